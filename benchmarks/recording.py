"""`record` through the group-commit writer, durable: one by one from many callers, and in batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter

from benchmarks.fleets import START, fleet_of, message, name_of
from benchmarks.floor import Slice
from wakeful.store.protocol import Recorded
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.store.writer import Writer

AGENTS = 100
BATCH = 100

Verb = Callable[[SqlStore], list[Recorded]]


class Recording:
    def __init__(self, folder: Path) -> None:
        self._store = open_sqlite(folder / "record.db")
        self._store.declare(fleet_of(AGENTS), START)
        self._writer = Writer(self._store)
        self._keys = count()

    def _verb(self, many: int) -> Verb:
        numbers = [next(self._keys) for _ in range(many)]
        items = [message(name_of(number % AGENTS), f"key-{number}") for number in numbers]
        return lambda store: store.record(items, START)

    def from_coroutines(self, callers: int) -> Slice:
        return lambda seconds: asyncio.run(self._from_coroutines(callers, seconds))

    async def _from_coroutines(self, callers: int, seconds: float) -> tuple[int, float]:
        async def caller() -> int:
            made = 0
            while perf_counter() < deadline:
                await self._writer.write(self._verb(1))
                made += 1
            return made

        started = perf_counter()
        deadline = started + seconds
        made = await asyncio.gather(*(caller() for _ in range(callers)))
        return sum(made), perf_counter() - started

    def from_threads(self, callers: int) -> Slice:
        return lambda seconds: self._from_threads(callers, seconds)

    def _from_threads(self, callers: int, seconds: float) -> tuple[int, float]:
        made = [0] * callers

        def caller(index: int) -> None:
            while perf_counter() < deadline:
                self._writer.submit(self._verb(1)).result()
                made[index] += 1

        threads = [threading.Thread(target=caller, args=(index,)) for index in range(callers)]
        started = perf_counter()
        deadline = started + seconds
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(made), perf_counter() - started

    def in_batches(self, seconds: float) -> tuple[int, float]:
        started, elapsed, made = perf_counter(), 0.0, 0
        while elapsed < seconds:
            made += len(self._writer.submit(self._verb(BATCH)).result())
            elapsed = perf_counter() - started
        return made, elapsed

    def close(self) -> None:
        self._writer.close()
        self._store.close()
