"""One measurement's own world: a fresh store, a pipe for the marks, a worker, a caller; all gone at its end.

Laws:
- Nothing waits for ever: each wait has its limit, and what is not there by then is a `Failure`.
- A job is done when its store says so, not when its first line ran.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.job import MARK, MARKS
from benchmarks.peers.machine import below, end
from benchmarks.peers.peer import Context, Peer, environment
from benchmarks.peers.produce import ANSWER
from benchmarks.peers.servers import Servers, Unfinished

ROOT = Path(__file__).resolve().parents[2]
# A megabyte: the marks of more jobs than there are, so that no job waits for us.
_F_SETPIPE_SZ = 1031
_PIPE = 1 << 20
START = 60.0
# Without a single mark for so long, there will be none.
STALLED = 20.0
SETTLED = 60.0
# How often the marks are read, and the store is asked, in seconds: enough for a percent, too seldom to be felt.
_READ = 0.01
_ASK = 0.003
WARM = 1_000_000_000


class Failure(Exception):
    """A peer did not do what it should; the words are for the table."""


@dataclass(frozen=True, slots=True)
class Marks:
    count: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """The interpreters: our own, and that of the peers."""

    ours: Path
    peers: Path

    def of(self, peer: type[Peer]) -> Path:
        return self.ours if peer.ours else self.peers


class Stage:
    def __init__(self, kind: type[Peer], setting: str, servers: Servers, python: Python) -> None:
        self.kind = kind
        self.setting = setting
        self.servers = servers
        self.python = python.of(kind)
        self.stack = ExitStack()
        self.worker: subprocess.Popen[bytes] | None = None
        self._callers: list[subprocess.Popen[bytes]] = []
        self._unread = b""

    def __enter__(self) -> Stage:
        try:
            self.folder, self.store = self.stack.enter_context(self.servers.fresh(self.kind))
            # After the store, so before it when all ends: nobody is left who uses it.
            self.stack.callback(self._end_all)
            self.log = self.folder / "log"
            self._make_pipe()
            self._run("benchmarks.peers.work", "prepare")
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def _make_pipe(self) -> None:
        self.marks = self.folder / "marks"
        os.mkfifo(self.marks)
        # Open at both ends: a writer that comes and goes is no end of file.
        self._pipe = os.open(self.marks, os.O_RDWR | os.O_NONBLOCK)
        self.stack.callback(os.close, self._pipe)
        fcntl.fcntl(self._pipe, _F_SETPIPE_SZ, _PIPE)

    def peer(self, setting: str | None = None) -> Peer:
        return self.kind(self._context(setting))

    def _context(self, setting: str | None) -> Context:
        given = {"folder": str(self.folder), "store": self.store, "setting": setting or self.setting}
        return Context(peer=self.kind.__name__, **given)

    # ---- processes

    def _environment(self, setting: str | None) -> dict[str, str]:
        path = f"{self.python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        added = {"PATH": path, "PYTHONPATH": str(ROOT), MARKS: str(self.marks), "PYTHONUNBUFFERED": "1"}
        return {**os.environ, **added, **environment(self._context(setting))}

    def _run(self, module: str, *words: str) -> None:
        with self.log.open("ab") as log:
            given: dict[str, Any] = {"env": self._environment(None), "cwd": self.folder, "timeout": START}
            done = subprocess.run(
                [str(self.python), "-m", module, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **given
            )
        if done.returncode:
            raise Failure(f"cannot be set up: {self._said()}")

    def start_worker(self) -> None:
        program, *words = self.peer().command()
        name = program if "/" in program else str(self.python.parent / program)
        with self.log.open("ab") as log:
            given: dict[str, Any] = {"env": self._environment(None), "cwd": self.folder, "stdin": subprocess.DEVNULL}
            self.worker = subprocess.Popen([name, *words], stdout=log, stderr=log, start_new_session=True, **given)

    @contextmanager
    def caller(self, setting: str | None = None) -> Iterator[Caller]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [str(self.python), "-m", "benchmarks.peers.produce"],
                env=self._environment(setting),
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._callers.append(process)
        caller = Caller(process, self._said)
        caller.hear(START)
        yield caller
        caller.leave()

    def _said(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "nothing was said"

    def processes(self) -> list[int]:
        """All that this stage has started, and whatever those started: everything below us but the servers."""
        servers = {pid for kind in ("PostgreSQL", "Redis") for pid in self.servers.pids(kind)}
        return [pid for pid in below(os.getpid()) if pid not in servers and pid != os.getpid()]

    def _end_all(self) -> None:
        # Those that are nearest to us first: whoever watches over others ends them better than we do.
        known = [process for process in (self.worker, *self._callers) if process is not None]
        end([process.pid for process in known if process.poll() is None])
        while left := self.processes():
            end(left)
        for process in known:
            with suppress(ChildProcessError):
                process.wait()
        for process in self._callers:
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    assert stream is not None
                    stream.close()

    # ---- marks

    def _read(self) -> list[tuple[int, int]]:
        with suppress(BlockingIOError):
            self._unread += os.read(self._pipe, _PIPE)
        whole = len(self._unread) // MARK.size * MARK.size
        found = list(MARK.iter_unpack(self._unread[:whole]))
        self._unread = self._unread[whole:]
        return found

    def mark_of(self, number: int, patience: float = START) -> int:
        until = time.monotonic() + patience
        while (left := until - time.monotonic()) > 0:
            select.select([self._pipe], [], [], min(left, 1.0))
            for found, moment in self._read():
                if found == number:
                    return moment
            self._still_there()
        raise Failure(f"a job was not begun within {patience:g} s ({self._said()})")

    def collect(self, jobs: int) -> Marks:
        """Until each of that many jobs has begun."""
        seen: set[int] = set()
        moments: list[int] = []
        until = time.monotonic() + START
        while len(seen) < jobs:
            if time.monotonic() > until:
                raise Failure(f"{len(seen):,} of {jobs:,} jobs were begun, then none ({self._said()})")
            for number, moment in self._read():
                if 1 <= number <= jobs:
                    seen.add(number)
                    moments.append(moment)
                    until = time.monotonic() + STALLED
            self._still_there()
            time.sleep(_READ)
        return Marks(len(moments), min(moments), max(moments))

    def _still_there(self) -> None:
        if self.worker is not None and self.worker.poll() is not None:
            raise Failure(f"its worker has ended ({self._said()})")

    def settled(self) -> int:
        """When the store knew of no job that is not done."""
        until = time.monotonic() + SETTLED
        with self.servers.counting(self.peer()) as unfinished:
            while left := _patiently(unfinished):
                if time.monotonic() > until:
                    raise Failure(f"{left:,} jobs were begun and not done")
                time.sleep(_ASK)
        return time.monotonic_ns()

    def warm(self, caller: Caller) -> None:
        """One job all the way through."""
        caller.ask(f"single {WARM}", START)
        self.mark_of(WARM)


def _patiently(unfinished: Unfinished) -> int:
    import sqlite3

    try:
        return unfinished()
    except sqlite3.OperationalError:
        # A peer that keeps a rollback journal locks its readers out while it commits.
        return 1


class Caller:
    """A process that enqueues, as `produce` has it."""

    def __init__(self, process: subprocess.Popen[bytes], said: Callable[[], str]) -> None:
        self.pid = process.pid
        self._process = process
        self._said = said
        self._unread = b""

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{command}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise Failure(f"its caller has ended ({self._said()})") from None

    def hear(self, patience: float) -> dict[str, Any]:
        until = time.monotonic() + patience
        while True:
            line = self._line(until)
            if line is None:
                raise Failure(f"its caller did not answer within {patience:g} s ({self._said()})")
            # Libraries may say things of their own.
            if line.startswith(ANSWER):
                answer: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                if "error" in answer:
                    raise Failure(answer["error"])
                return answer

    def _line(self, until: float) -> str | None:
        assert self._process.stdout is not None
        stream = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            if not select.select([stream], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            piece = os.read(stream, _PIPE)
            if not piece:
                raise Failure(f"its caller has ended ({self._said()})")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")

    def ask(self, command: str, patience: float) -> dict[str, Any]:
        self.send(command)
        return self.hear(patience)

    def leave(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(START)
