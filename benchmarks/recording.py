"""`record` through the group-commit writer, durable: one by one from many callers, and in batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter

from benchmarks.fleets import START, fleet_of, message, name_of
from benchmarks.lines import BATCHES, THREADS_64
from wakeful.store.protocol import Recorded
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.store.writer import Writer

AGENTS = 100
CALLERS = (1, 8, 64)
BATCH = 100

Verb = Callable[[SqlStore], list[Recorded]]


class Recording:
    def __init__(self, folder: Path, seconds: float) -> None:
        self._seconds = seconds
        self._store = open_sqlite(folder / "record.db")
        self._store.declare(fleet_of(AGENTS), START)
        self._writer = Writer(self._store)
        self._keys = count()

    def sample(self) -> dict[str, float]:
        found = {}
        for callers in CALLERS:
            name = f"record, {callers} caller{'' if callers == 1 else 's'}"
            found[name] = asyncio.run(self._from_coroutines(callers))
        return found | {THREADS_64: self._from_threads(64), BATCHES: self._in_batches()}

    def _verb(self, many: int) -> Verb:
        numbers = [next(self._keys) for _ in range(many)]
        items = [message(name_of(number % AGENTS), f"key-{number}") for number in numbers]
        return lambda store: store.record(items, START)

    async def _from_coroutines(self, callers: int) -> float:
        async def caller() -> int:
            for made in count(1):
                await self._writer.call(self._verb(1))
                if perf_counter() >= deadline:
                    return made
            raise AssertionError("count() ended")

        started = perf_counter()
        deadline = started + self._seconds
        made = await asyncio.gather(*(caller() for _ in range(callers)))
        return sum(made) / (perf_counter() - started)

    def _from_threads(self, callers: int) -> float:
        made = [0] * callers

        def caller(index: int) -> None:
            while perf_counter() < deadline:
                self._writer.submit(self._verb(1)).result()
                made[index] += 1

        threads = [threading.Thread(target=caller, args=(index,)) for index in range(callers)]
        started = perf_counter()
        deadline = started + self._seconds
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(made) / (perf_counter() - started)

    def _in_batches(self) -> float:
        started = perf_counter()
        for batches in count(1):
            self._writer.submit(self._verb(BATCH)).result()
            elapsed = perf_counter() - started
            if elapsed >= self._seconds:
                return batches * BATCH / elapsed
        raise AssertionError("count() ended")

    def close(self) -> None:
        self._writer.close()
        self._store.close()
