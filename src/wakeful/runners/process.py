"""Agents as processes, each under its own guardian.

Laws:
- We wait on process handles, never on pipes or numbers: neither an inherited stdout nor a reused pid can fool us.
- Whatever we know of a run can be learnt again from its folder; nothing is lost with this object.
- A start returns when the run is settled: `started` is there, by its guardian or by a veto.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from wakeful.core.runs import Ending, TaskEnd
from wakeful.runners.endings import read_ending, read_record
from wakeful.runners.lease import extend
from wakeful.runners.lease import veto as create_veto
from wakeful.runners.leavings import Identity, end_leavings, identify
from wakeful.runners.line import NurseryGone, NurseryLine
from wakeful.runners.protocol import (
    BRIEFING,
    BRIEFING_JSON,
    EXIT,
    STOP,
    Assignment,
    Found,
)
from wakeful.runners.whole import now, write_whole

VETOED = Ending(by="veto")
NO_BATCHES: tuple[list[TaskEnd], ...] = ()
# A nursery that dies under an order is replaced this often before the caller is told.
_TRIES = 3
# Starts that are under way at once: the rest waits here, not in the nursery's queue.
_AT_ONCE = 16
# So long after its wall clock, in seconds, a guardian that has not ended its run is taken for stopped.
_ROUSED = 1.0


class HeldRun:
    """A run whose guardian we hold a handle of; or one that has ended already."""

    def __init__(self, run: int, folder: Path, handle: int | None) -> None:
        self._run = run
        self.folder = folder
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Ending] = self._loop.create_future()
        self._handle: int | None = None
        self._concluding: asyncio.Task[None] | None = None
        self._watch(handle)

    @property
    def run(self) -> int:
        return self._run

    @property
    def over(self) -> bool:
        return self.ended.done()

    def _watch(self, handle: int | None) -> None:
        self._handle = handle
        if handle is None:
            self._concluding = self._loop.create_task(self._conclude())
        else:
            self._loop.add_reader(handle, self._guardian_gone)

    def _guardian_gone(self) -> None:
        self._drop_handle()
        self._watch(None)

    def _drop_handle(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    async def _conclude(self) -> None:
        """Our guardian is gone: its record says how the run ended, or another guardian holds it, or nobody does."""
        if read_record(self.folder) is None:
            who = identify(self.folder)
            if who is not None and (handle := who.handle()) is not None:
                self._watch(handle)
                return
            ending = await asyncio.to_thread(conclude, self.folder, who)
        else:
            ending = await asyncio.to_thread(read_ending, self.folder)
        if not self.ended.done():
            self.ended.set_result(ending)

    async def wait(self) -> Ending:
        return await asyncio.shield(self.ended)

    async def batches(self) -> AsyncIterator[list[TaskEnd]]:
        """A process has no tasks that end before it does."""
        await self.wait()
        for batch in NO_BATCHES:
            yield batch

    async def end(self, by: str, *, at_once: bool = False, task: int | None = None) -> None:
        """The one task that it may be about is all of it."""
        write_whole(str(self.folder / STOP), {"by": by, "at_once": at_once})
        self._signal(signal.SIGTERM)
        self.rouse()

    def rouse(self) -> None:
        """Its guardian may have been stopped by what it guards: then it keeps no time and obeys nobody."""
        self._signal(signal.SIGCONT)

    def rouse_after(self, seconds: float) -> None:
        timer = self._loop.call_later(seconds, self.rouse)
        self.ended.add_done_callback(lambda _: timer.cancel())

    def _signal(self, number: signal.Signals) -> None:
        if self._handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def extend(self, until: float) -> None:
        if not self.ended.done():
            extend(str(self.folder), until)

    def let_go(self) -> None:
        self._drop_handle()
        if self._concluding is not None:
            self._concluding.cancel()
        self.ended.cancel()


def conclude(folder: Path, who: Identity | None) -> Ending:
    """What a run that nobody guards any more came to. It may have left its record while we looked."""
    if who is not None and who.veto:
        return VETOED
    if read_record(folder) is None:
        end_leavings(folder, who)
    return read_ending(folder)


class ProcessRunner:
    def __init__(self) -> None:
        self._line: NurseryLine | None = None
        self._crowd = asyncio.Semaphore(_AT_ONCE)
        self._held: set[HeldRun] = set()

    async def start(self, assignment: Assignment) -> HeldRun:
        order = _write_folder(assignment)
        for attempt in range(1, _TRIES + 1):
            line = self._nursery()
            try:
                async with self._crowd:
                    handle = await line.ask(order)
                break
            except NurseryGone:
                # The order may have been placed: then a second guardian finds `started`, and leaves it to the first.
                if self._line is line:
                    self._line = None
                await asyncio.to_thread(line.close)
                if attempt == _TRIES:
                    raise
        held = self._hold(HeldRun(assignment.run, assignment.folder, handle))
        held.rouse_after(assignment.wall_clock.total_seconds() + _ROUSED)
        return held

    def _nursery(self) -> NurseryLine:
        if self._line is not None and not self._line.alive:
            self._line.close()
            self._line = None
        if self._line is None:
            self._line = NurseryLine()
        return self._line

    def _hold(self, held: HeldRun) -> HeldRun:
        self._held.add(held)
        held.ended.add_done_callback(lambda _: self._held.discard(held))
        return held

    def find(self, folder: Path) -> Found:
        if (folder / EXIT).exists():
            return Found.ended
        who = identify(folder)
        if who is None or who.veto:
            return Found.unstarted
        if who.alive():
            return Found.alive
        return Found.ended if (folder / EXIT).exists() else Found.lost

    async def adopt(self, run: int, folder: Path) -> HeldRun:
        who = identify(folder)
        held = self._hold(HeldRun(run, folder, who.handle() if who is not None else None))
        held.rouse()
        return held

    def veto(self, folder: Path) -> bool:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if create_veto(str(folder)):
            return True
        who = identify(folder)
        return who is not None and who.veto

    async def close(self) -> None:
        for held in list(self._held):
            held.let_go()
        self._held.clear()
        if self._line is not None:
            line, self._line = self._line, None
            await asyncio.to_thread(line.close)


def _write_folder(assignment: Assignment) -> bytes:
    """The run's folder, and the order as the guardian reads it. Secrets travel in the order, never in the folder."""
    folder = assignment.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in ((BRIEFING, assignment.briefing), (BRIEFING_JSON, assignment.briefing_json)):
        file = os.open(folder / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(text.encode())
    most = {"usd": assignment.most_usd, "tokens": assignment.most_tokens}
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
        "leased_until": assignment.leased_until,
        "fence": assignment.fence.total_seconds(),
        "most": {unit: amount for unit, amount in most.items() if amount is not None},
        "secrets": list(dict.fromkeys((*assignment.secrets, *assignment.hidden))),
        "output_limit": assignment.output_limit,
        "processes": assignment.processes,
        "memory": assignment.memory,
        "keeps_time": assignment.keeps_time,
    }
    return json.dumps(order).encode()
