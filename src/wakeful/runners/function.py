"""Agents that are Python functions: each in a warm worker under one guardian, called shift by shift.

Laws:
- A shift goes to a worker that has had one like it before, or to a new one; a worker has one shift at a time.
- The worker claims the run with `started`, as a guardian does; the run's folder says who holds it and how it ended.
- Nothing is lost with this object: whoever adopts a run hears every ending, each once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from wakeful.core.errors import Mistake
from wakeful.core.runs import Ending, describe
from wakeful.runners.endings import LOST, read_record
from wakeful.runners.held import HeldShift
from wakeful.runners.hired import Hired, Link
from wakeful.runners.leavings import identify
from wakeful.runners.process import VETOED, ProcessRunner
from wakeful.runners.processes import boot_id
from wakeful.runners.protocol import Assignment, Found, Held
from wakeful.runners.record import MOST_TASKS, VERSION, Record, line
from wakeful.runners.record import read_record as read_tasks
from wakeful.runners.shifts import Shift, marker

_ROOT = Path(__file__).resolve().parents[2]
_WORKER = "wakeful.runners.worker"
_START = f"import sys; sys.path.append(sys.argv.pop(1)); from {_WORKER} import main; main()"
# A worker that was gone before it took its shift is replaced this often.
_TRIES = 3
# Beyond a worker's age and its longest shift: its guardian's clock is only for what nobody foresaw.
_MARGIN = timedelta(hours=1)
# How long we wait for a worker to be gone that we have given up, in seconds.
_PATIENCE = 5.0
# How long what is left of a worker that ended badly is kept, in seconds.
_KEPT = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recycling:
    """When a worker has served long enough. After so many shifts, or when it has grown by so much, the process that
    does the tasks is forked afresh; a worker of this age is replaced as a whole. So many may be idle at once."""

    shifts: int = 1_000
    growth: int = 256 * 1024 * 1024
    age: timedelta = timedelta(hours=1)
    idle: int = 8


class FunctionRunner:
    def __init__(
        self,
        process_runner: ProcessRunner,
        folder: Path,
        link: Link | None = None,
        *,
        recycling: Recycling | None = None,
        import_limit: timedelta = timedelta(seconds=60),
    ) -> None:
        self._processes = process_runner
        self._folder = folder
        self._link = link
        self._recycling = recycling or Recycling()
        self._import_limit = import_limit.total_seconds()
        self._workers: dict[Hired, asyncio.Task[None]] = {}
        self._idle: OrderedDict[Hired, tuple[object, ...]] = OrderedDict()
        self._held: set[HeldShift] = set()
        self._swept = False

    # -- the seam -----------------------------------------------------------------------------------------------
    async def start(self, assignment: Assignment) -> HeldShift:
        shift = _checked(assignment)
        held = self._hold(HeldShift(shift.run, shift.folder, shift.tasks))
        if shift.lease.over() and self.veto(shift.folder):
            held.conclude(VETOED)
            return held
        try:
            await self._give(shift, held)
        except BaseException:
            held.let_go()
            raise
        return held

    def find(self, folder: Path) -> Found:
        return self._processes.find(folder)

    async def adopt(self, run: int, folder: Path) -> HeldShift:
        held = self._hold(HeldShift(run, folder))
        held.look()
        if held.ended.done():
            return held
        found = self.find(folder)
        if found is Found.unstarted:
            who = identify(folder)
            held.conclude(VETOED if who is not None and who.veto else LOST)
        elif held.worker is None:
            await self._lost_without_a_trace(run, folder, held)
        else:
            worker = Path(held.worker)
            hired = Hired(worker, await self._processes.adopt(run, worker), self._link, self._import_limit)
            hired.on_over = Hired.cut
            hired.attach(held)
            self._watch(hired)
        return held

    async def _lost_without_a_trace(self, run: int, folder: Path, held: HeldShift) -> None:
        process = await self._processes.adopt(run, folder)
        held.conclude(await process.wait())

    def veto(self, folder: Path) -> bool:
        return self._processes.veto(folder)

    async def close(self) -> None:
        """A worker that hears from nobody ends by itself, a busy one after its shift. One that has not come up is
        ended: nobody else knows what it was to do."""
        unborn = [hired for hired in self._workers if hired.shift is not None and not hired.came_up]
        watching = list(self._workers.values())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await asyncio.gather(*(_give_up(hired) for hired in unborn))
        for held in list(self._held):
            held.let_go()
        self._workers.clear()
        self._idle.clear()
        self._held.clear()

    def _hold(self, held: HeldShift) -> HeldShift:
        self._held.add(held)
        held.ended.add_done_callback(lambda _: self._held.discard(held))
        return held

    # -- workers ------------------------------------------------------------------------------------------------
    async def _give(self, shift: Shift, held: HeldShift) -> None:
        held.tries += 1
        hired = self._take(shift) if held.tries == 1 else None
        if hired is None:
            hired = await self._hire(shift)
        hired.hand(shift, held)

    def _take(self, shift: Shift) -> Hired | None:
        kin = shift.kin
        for hired in [hired for hired, known in reversed(self._idle.items()) if known == kin]:
            del self._idle[hired]
            if hired.fit(shift.longest.total_seconds()) and self._young(hired):
                return hired
            hired.cut()
        return None

    def _young(self, hired: Hired) -> bool:
        return asyncio.get_running_loop().time() - hired.born < self._recycling.age.total_seconds()

    async def _hire(self, shift: Shift) -> Hired:
        self._sweep()
        worker = self._folder / f"{shift.agent}-{os.getpid()}-{secrets.token_hex(6)}"
        settings = {
            "handler": shift.handler,
            "root": str(shift.root.absolute()),
            "memory": shift.memory,
            "shifts": self._recycling.shifts,
            "growth": self._recycling.growth,
        }
        lasts = self._recycling.age + shift.longest + _MARGIN
        held = await self._processes.start(
            Assignment(
                run=shift.run,
                epoch=shift.epoch,
                folder=worker,
                # -P: what lies in the working folder must not stand in for the standard library.
                command=(sys.executable, "-P", "-c", _START, str(_ROOT), str(worker.absolute())),
                workdir=shift.workdir,
                environment={**shift.lasting_environment(), **marker(worker)},
                briefing_json=json.dumps(settings),
                wall_clock=lasts,
                grace=shift.grace,
                secrets=shift.secrets,
                hidden=shift.hidden,
                output_limit=shift.output_limit,
                processes=shift.processes,
                memory=shift.memory,
                keeps_time=True,
            )
        )
        hired = Hired(worker, held, self._link, self._import_limit)
        hired.lasts = lasts.total_seconds()
        hired.on_over = lambda done, kin=shift.kin: self._rest(done, kin)  # type: ignore[misc]
        self._watch(hired)
        return hired

    def _watch(self, hired: Hired) -> None:
        self._workers[hired] = asyncio.ensure_future(self._live(hired))

    def _rest(self, hired: Hired, kin: tuple[object, ...]) -> None:
        if hired.broken:
            hired.cut()
            return
        self._idle[hired] = kin
        while len(self._idle) > self._recycling.idle:
            self._idle.popitem(last=False)[0].cut()

    async def _live(self, hired: Hired) -> None:
        """As long as a worker lives, and what is to be done when it does not."""
        try:
            ending = await hired.live()
        finally:
            self._idle.pop(hired, None)
            self._workers.pop(hired, None)
        held, shift = hired.held, hired.shift
        if held is not None and not held.ended.done():
            try:
                await self._after(hired, held, shift, ending)
            except Exception:
                # Whoever waits must not wait for ever; what became of the run is in its folder, for a later look.
                held.conclude(LOST)
                raise
        if ending.exit_code == 0 or held is None:
            await asyncio.to_thread(shutil.rmtree, hired.folder, ignore_errors=True)

    async def _after(self, hired: Hired, held: HeldShift, shift: Shift | None, ending: Ending) -> None:
        """A worker is gone with a shift on its hands: over after all, lost, vetoed, or never begun."""
        held.hear(read_tasks(str(held.folder)))
        if held.ended.done():
            return
        who = identify(held.folder)
        if who is not None and not who.veto:
            held.lose(ending, same_boot=who.boot_id == boot_id())
        elif who is not None:
            held.conclude(VETOED)
        elif shift is None:
            held.conclude(LOST)
        elif shift.lease.over() and self.veto(held.folder):
            held.conclude(VETOED)
        elif ending.by is None and (hired.came_up or _struck(ending)) and held.tries < _TRIES:
            await self._give(shift, held)
        else:
            self._fail(shift, held, ending, hired.unready)

    def _fail(self, shift: Shift, held: HeldShift, ending: Ending, unready: str | None) -> None:
        """The worker never came up: nothing was executed, and the record says so in its place."""
        record = Record(str(shift.folder.absolute()), shift.run, shift.epoch, shift.calls, "")
        if not record.claim(None):
            record.close(sync=False)
            held.conclude(VETOED)
            return
        problem = unready or f"the interpreter was gone: {describe(ending) or 'exit code 0'}"
        told = {
            "exit_code": ending.exit_code or None,
            "signal": ending.signal,
            "out_of_memory": ending.out_of_memory,
            "error": f"importing {shift.handler} failed: {problem}",
            "error_class": None if unready or ending.out_of_memory or _struck(ending) else "config",
        }
        if ending.by is not None and unready is None:
            told = {"by": ending.by}
        calls = [{"version": VERSION, "task": task, **told} for task in shift.calls]
        record.append(b"".join(line(call) for call in calls))
        record.finish(by=ending.by, call=None if shift.tasks else calls[0])
        record.close(sync=False)
        held.hear(read_tasks(str(shift.folder)))

    def _sweep(self) -> None:
        """What workers of earlier engines left: one that ended well has no shift that somebody could still ask for."""
        if self._swept:
            return
        self._swept = True
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in self._folder.iterdir():
            record = read_record(folder)
            old = time.time() - folder.stat().st_mtime > _KEPT and self.find(folder) is not Found.alive
            if old or (record is not None and record.get("exit_code") == 0):
                shutil.rmtree(folder, ignore_errors=True)


def _checked(assignment: Assignment) -> Shift:
    if not isinstance(assignment, Shift):
        raise Mistake(f"expected a shift, found {type(assignment).__name__}", "a handler is started with a Shift")
    if len(assignment.tasks) > MOST_TASKS:
        raise Mistake(f"a shift of {len(assignment.tasks)} tasks", f"give at most {MOST_TASKS}")
    return assignment


async def _give_up(hired: Hired) -> None:
    await hired.process.end("the end of its engine", at_once=True)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(hired.process.wait(), _PATIENCE)
        await asyncio.to_thread(shutil.rmtree, hired.folder, ignore_errors=True)


def _struck(ending: Ending) -> bool:
    """Whether somebody else ended it, and not the handler that it was importing."""
    return ending.lost or (ending.signal == signal.SIGKILL and not ending.out_of_memory)


__all__ = ["FunctionRunner", "Held", "HeldShift", "Link", "Recycling", "Shift"]
