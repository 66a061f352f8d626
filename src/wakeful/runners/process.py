"""Agents as processes, each under its own guardian.

Laws:
- We wait on process handles, never on pipes or numbers: neither an inherited stdout nor a reused pid can fool us.
- Whatever we know of a run can be learnt again from its folder; nothing is lost with this object.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from datetime import timedelta
from pathlib import Path
from typing import Any

from wakeful.core.runs import Ending
from wakeful.runners.cage import Cage
from wakeful.runners.endings import LOST, read_ending, read_record
from wakeful.runners.guardian import now, write_whole
from wakeful.runners.nursery import LENGTH
from wakeful.runners.processes import boot_id, is_zombie, marked, signal_all, start_time
from wakeful.runners.protocol import (
    BRIEFING,
    BRIEFING_JSON,
    EXIT,
    GUARDIAN,
    LEASE,
    RESULT,
    STARTED,
    STOP,
    Assignment,
    Found,
    Held,
)

_ROOT = Path(__file__).resolve().parents[2]
_NURSERY = "import sys; sys.path.insert(0, sys.argv.pop()); from wakeful.runners.nursery import main; main()"
_VETO = b"veto"


class _Held:
    """A run whose guardian we hold a handle of; or one that has ended already."""

    def __init__(self, run: int, folder: Path, handle: int | None) -> None:
        self._run = run
        self.folder = folder
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ending] = self._loop.create_future()
        self._handle = handle
        if handle is None:
            self._conclude()
        else:
            self._loop.add_reader(handle, self._conclude)

    @property
    def run(self) -> int:
        return self._run

    def _conclude(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None
        if not self._ended.done():
            self._ended.set_result(conclude(self.folder))

    async def wait(self) -> Ending:
        return await asyncio.shield(self._ended)

    async def end(self, by: str, *, at_once: bool = False) -> None:
        write_whole(str(self.folder / STOP), {"by": by, "at_once": at_once})
        if self._handle is not None:
            try:
                signal.pidfd_send_signal(self._handle, signal.SIGTERM)
            except ProcessLookupError:
                return

    def extend(self, lease: timedelta) -> None:
        write_whole(str(self.folder / LEASE), now() + lease.total_seconds())

    def let_go(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None
        if not self._ended.done():
            self._ended.cancel()


def conclude(folder: Path) -> Ending:
    """What a run that is no longer guarded came to; what is left of it is ended first."""
    if read_record(folder) is None:
        end_leftovers(folder)
        return LOST
    return read_ending(folder)


def end_leftovers(folder: Path) -> None:
    """A guardian that was killed may leave processes behind: by its cage, and by the marker in their environment."""
    who = _guardian(folder)
    cage = Cage(dict(who.get("cage", {}))) if who.get("boot_id") == boot_id() else Cage({})
    if not cage.kill():
        signal_all(cage.inhabitants(), signal.SIGKILL)
    signal_all(marked(str(folder / RESULT).encode()), signal.SIGKILL)
    cage.remove()


def _guardian(folder: Path) -> dict[str, Any]:
    try:
        who = json.loads((folder / GUARDIAN).read_bytes())
    except (OSError, ValueError):
        return {}
    return who if isinstance(who, dict) else {}


class ProcessRunner:
    def __init__(self) -> None:
        self._connection: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: deque[asyncio.Future[int | None]] = deque()
        self._turn = asyncio.Lock()
        self._held: set[_Held] = set()

    async def start(self, assignment: Assignment) -> Held:
        order = _write_folder(assignment)
        handle = await self._fork(order)
        return self._hold(_Held(assignment.run, assignment.folder, handle))

    def _hold(self, held: _Held) -> _Held:
        self._held.add(held)
        held._ended.add_done_callback(lambda _: self._held.discard(held))
        return held

    def find(self, folder: Path) -> Found:
        if (folder / EXIT).exists():
            return Found.ended
        try:
            content = (folder / STARTED).read_bytes()
        except FileNotFoundError:
            return Found.unstarted
        if content == _VETO:
            return Found.unstarted
        return Found.alive if _alive(folder) else Found.ended if (folder / EXIT).exists() else Found.lost

    async def adopt(self, run: int, folder: Path) -> Held:
        return self._hold(_Held(run, folder, _handle(folder)))

    def veto(self, folder: Path) -> bool:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            file = os.open(folder / STARTED, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return (folder / STARTED).read_bytes() == _VETO
        os.write(file, _VETO)
        os.close(file)
        return True

    async def close(self) -> None:
        for held in list(self._held):
            held.let_go()
        self._held.clear()
        self._drop_nursery()

    # -- the nursery --------------------------------------------------------------------------------------------
    async def _fork(self, order: bytes) -> int | None:
        """The handle of a new guardian. A nursery that died is replaced once; it holds nothing that could be lost."""
        for attempt in (1, 2):
            try:
                return await self._ask(order)
            except OSError:
                self._drop_nursery()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    async def _ask(self, order: bytes) -> int | None:
        loop = asyncio.get_running_loop()
        connection = self._connection or self._start_nursery(loop)
        reply: asyncio.Future[int | None] = loop.create_future()
        async with self._turn:
            self._replies.append(reply)
            await loop.sock_sendall(connection, LENGTH.pack(len(order)) + order)
        return await reply

    def _start_nursery(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        ours, theirs = socket.socketpair()
        # -I and -S: neither the user's settings nor installed packages, which a guardian needs none of.
        command = [sys.executable, "-I", "-S", "-c", _NURSERY, str(theirs.fileno()), str(_ROOT)]
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd="/", start_new_session=True
        )
        theirs.close()
        ours.setblocking(False)
        self._connection = ours
        loop.add_reader(ours, self._answered, ours)
        return ours

    def _answered(self, connection: socket.socket) -> None:
        try:
            data, handles, _, _ = socket.recv_fds(connection, LENGTH.size, 1)
        except BlockingIOError:
            return
        except OSError:
            data, handles = b"", []
        if not data:
            self._drop_nursery()
            return
        reply = self._replies.popleft()
        if not reply.done():
            reply.set_result(handles[0] if handles else None)

    def _drop_nursery(self) -> None:
        if self._connection is not None:
            asyncio.get_running_loop().remove_reader(self._connection)
            self._connection.close()
            self._connection = None
        if self._process is not None:
            # It ends by itself when its caller's end of the line is closed.
            self._process.wait()
            self._process = None
        while self._replies:
            reply = self._replies.popleft()
            if not reply.done():
                reply.set_exception(ConnectionError("the nursery is gone"))


def _alive(folder: Path) -> bool:
    who = _guardian(folder)
    pid = who.get("pid")
    if not isinstance(pid, int) or who.get("boot_id") != boot_id():
        return False
    return start_time(pid) == who.get("start_time") and not is_zombie(pid)


def _handle(folder: Path) -> int | None:
    """A handle of the guardian, if it is alive: by boot id, pid and start time, looked at again behind the handle."""
    if not _alive(folder):
        return None
    try:
        handle = os.pidfd_open(int(_guardian(folder)["pid"]))
    except OSError:
        return None
    if _alive(folder):
        return handle
    os.close(handle)
    return None


def _write_folder(assignment: Assignment) -> bytes:
    """The run's folder, and the order as the guardian reads it. Secrets travel in the order, never in the folder."""
    folder = assignment.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in ((BRIEFING, assignment.briefing), (BRIEFING_JSON, assignment.briefing_json)):
        file = os.open(folder / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(text.encode())
    lease = assignment.lease
    order = {
        "asked": now(),
        "run": assignment.run,
        "epoch": assignment.epoch,
        "folder": str(folder.absolute()),
        "command": list(assignment.command),
        "workdir": str(assignment.workdir.absolute()),
        "environment": dict(assignment.environment),
        "wall_clock": assignment.wall_clock.total_seconds(),
        "grace": assignment.grace.total_seconds(),
        "lease": None if lease is None else lease.total_seconds(),
        "secrets": list(assignment.secrets),
        "output_limit": assignment.output_limit,
        "processes": assignment.processes,
        "memory": assignment.memory,
    }
    return json.dumps(order).encode()
