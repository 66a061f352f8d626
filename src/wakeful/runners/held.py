"""A shift under way, as its holder sees it: fed with the lines of its record, from a worker or from the file.

Law: each line counts once, however often it is heard; so whoever was away reads everything again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from wakeful.core.runs import Ending, TaskEnd
from wakeful.runners.endings import LOST
from wakeful.runners.lease import extend
from wakeful.runners.record import read_begun, read_record
from wakeful.runners.shifts import plain_end, read_end, sum_up

UNTRIED = Ending(by="the loss of its worker")

Stop = Callable[[str, bool, int | None], Awaitable[None]]


class HeldShift:
    def __init__(self, run: int, folder: Path, tasks: tuple[int, ...] | None = None) -> None:
        self._run = run
        self.folder = folder
        # None until the record has said which; a run without tasks has none.
        self.task_ids = tasks
        self.worker: str | None = None
        # How many workers it was given to.
        self.tries = 0
        self._call: Ending | None = None
        self._ends: list[TaskEnd] = []
        self._told: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Ending] = self._loop.create_future()
        # Done when the worker has claimed the run, or it has ended without.
        self.begun: asyncio.Future[None] = self._loop.create_future()
        self._waiting: list[asyncio.Future[None]] = []
        # Who can end it; set by whoever holds its worker.
        self.stop: Stop | None = None

    @property
    def run(self) -> int:
        return self._run

    @property
    def over(self) -> bool:
        return self.ended.done()

    # -- heard --------------------------------------------------------------------------------------------------
    def hear(self, lines: Sequence[bytes] | Sequence[dict[str, Any]]) -> None:
        for each in lines:
            if self.ended.done():
                break
            if isinstance(each, bytes):
                # Most say the same, and are not worth a whole reading.
                plain = plain_end(each)
                if plain is not None:
                    self._add(plain)
                    continue
            line: dict[str, Any] = json.loads(each) if isinstance(each, bytes) else each
            if "tasks" in line:
                self._begin(line)
            elif "over" in line:
                self._over(line)
            else:
                self._end(line)
        self._wake()

    def look(self) -> None:
        """Read the record if it is whole; of one that still grows only whose it is, for its worker tells the rest."""
        lines = read_record(str(self.folder))
        over = any("over" in line for line in lines)
        self.hear(lines if over else [line for line in lines if "tasks" in line])

    def _begin(self, line: dict[str, Any]) -> None:
        if line.get("run") == self._run:
            self.worker = str(line.get("worker") or "") or None
            self.task_ids = tuple(task for task in line["tasks"] if task is not None)
            self._has_begun()

    def _has_begun(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def _end(self, line: dict[str, Any]) -> None:
        task, ending, result = read_end(line)
        if task is None:
            self._call = ending
        else:
            self._add(TaskEnd(task=task, ending=ending, result=result))

    def _add(self, end: TaskEnd) -> None:
        if end.task not in self._told:
            self._told.add(end.task)
            self._ends.append(end)

    def _over(self, line: dict[str, Any]) -> None:
        elapsed = timedelta(seconds=line.get("elapsed") or 0)
        self.conclude(self._call or sum_up(self._ends, line.get("by"), elapsed))

    def lose(self, worker: Ending, *, same_boot: bool) -> None:
        """Its worker is gone and will record nothing more. What had not begun was not tried."""
        known: list[int | None] = list(self.task_ids or ())
        begun = read_begun(self.worker, self._run, known) if self.worker and same_boot else None
        for task in self.task_ids or ():
            if worker.by is not None:
                ending = Ending(by=worker.by)
            else:
                ending = LOST if begun is None or task in begun else UNTRIED
            self._add(TaskEnd(task=task, ending=ending))
        self.conclude(self._call or (LOST if worker.by is None else Ending(by=worker.by)))

    def conclude(self, ending: Ending) -> None:
        if not self.ended.done():
            self.ended.set_result(ending)
        self._has_begun()
        self._wake()

    def let_go(self) -> None:
        self.begun.cancel()
        self.ended.cancel()
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    # -- told ---------------------------------------------------------------------------------------------------
    async def tasks(self) -> AsyncIterator[TaskEnd]:
        """Each task as it ends, each once, in the order in which they ended; any number of callers may listen."""
        async for batch in self.batches():
            for end in batch:
                yield end

    async def batches(self) -> AsyncIterator[list[TaskEnd]]:
        """The same, with those that have ended meanwhile together: to be settled in one transaction."""
        given = 0
        while True:
            if given < len(self._ends):
                batch = self._ends[given:]
                given += len(batch)
                yield batch
            elif self.ended.cancelled():
                raise asyncio.CancelledError
            elif self.ended.done():
                return
            else:
                waiter = self._loop.create_future()
                self._waiting.append(waiter)
                await waiter

    async def wait(self) -> Ending:
        return await asyncio.shield(self.ended)

    async def end(self, by: str, *, at_once: bool = False, task: int | None = None) -> None:
        """End the shift on purpose, or only one task of it; what has not begun never does."""
        if not self.ended.done() and self.stop is not None:
            await self.stop(by, at_once, task)

    def extend(self, until: float) -> None:
        if not self.ended.done():
            extend(str(self.folder), until)
