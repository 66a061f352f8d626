"""A queue drained from end to end: tasks that do nothing, handed out to warm handlers by a whole engine.

Laws:
- The engine is the real one, with its log, its guardians and its workers, on a store that flushes each commit.
- A drain counts from the first handler's first line until the store knows of no open task: what was begun and not
  settled is not done. Produce and drain counts from the first call that enqueues.
- A wake is that of an idle engine whose worker is warm, from the call that enqueues to the handler's first line.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import apsw
import psycopg

from benchmarks.engine import line_of
from benchmarks.lines import Line
from wakeful.core.items import Kind, NewItem
from wakeful.engine.clock import SystemClock
from wakeful.engine.engine import Engine
from wakeful.engine.logs import set_up
from wakeful.fleet.watch import FleetFile
from wakeful.runners.carrier import Carrier
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_access import PostgresAccess
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.store.writer import Writer
from wakeful.testing.postgres import PostgresServer, installed

TASKS, BATCH, WAKES = 10_000, 1_000, 200
# Tasks a second, and milliseconds.
DRAIN = {"SQLite": 14_000, "PostgreSQL": 15_000}
TOGETHER = {"SQLite": 10_000, "PostgreSQL": 15_000}
P50, P99 = 3, 8
PAUSE = 0.03
PATIENCE = 120.0
OPEN = "SELECT 1 FROM item WHERE kind = 'task' AND closed_at IS NULL LIMIT 1"
UNDONE = "SELECT count(*) FROM item WHERE kind = 'task' AND state <> 'completed'"

HANDLERS = """
import os, time

begun = False

def nothing(run):
    global begun
    if not begun:
        begun = True
        with open(f"first-{os.getpid()}", "w") as file:
            file.write(repr(time.clock_gettime(time.CLOCK_BOOTTIME)))

def clock(run):
    return time.clock_gettime(time.CLOCK_BOOTTIME)
"""
AGENT = "* one-{number}\n:PROPERTIES:\n:HANDLER: drain_handlers:nothing\n:TASKS: desk\n:END:\n"
CLOCK = "* clock\n:PROPERTIES:\n:HANDLER: drain_handlers:clock\n:TASKS: watch\n:END:\n"

Say = Callable[[str], None]
Open = Callable[[], SqlStore]
Query = Callable[[str], Any]


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def draining(folder: Path, rounds: int, say: Say) -> list[Line]:
    """On SQLite in that folder; and on PostgreSQL, where there is one."""
    lines = [*_lines("SQLite", folder, rounds, say)]
    if installed() is not None:
        lines += _lines("PostgreSQL", folder, rounds, say)
    return lines


def _lines(name: str, folder: Path, rounds: int, say: Say) -> list[Line]:
    drained: dict[int, list[float]] = {1: [], 3: []}
    together, wakes = [], list[float]()
    for number in range(rounds):
        for workers, rates in drained.items():
            rates.append(asyncio.run(_drain(name, folder / f"{name}-{number}-{workers}", workers)))
            say(f"{name}, drained by {workers}: {rates[-1]:,.0f} tasks/s")
        together.append(asyncio.run(_together(name, folder / f"{name}-{number}-together")))
        say(f"{name}, produced and drained: {together[-1]:,.0f} tasks/s")
        wakes += asyncio.run(_wakes(name, folder / f"{name}-{number}-wakes"))
        say(f"{name}, wake: p50 {median(wakes):.2f} ms, p99 {_p99(wakes):.2f} ms")
    return [
        line_of(f"drain, {name}, 1 worker", median(drained[1]), "tasks/s"),
        line_of(f"drain, {name}, 3 workers", median(drained[3]), f"tasks/s, goal {DRAIN[name]:,}"),
        line_of(f"produce and drain, {name}, 3 workers", median(together), f"tasks/s, goal {TOGETHER[name]:,}"),
        line_of(f"enqueued to first line, {name}, p50", median(wakes), f"ms, goal {P50}"),
        line_of(f"enqueued to first line, {name}, p99", _p99(wakes), f"ms, goal {P99}"),
    ]


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


# ---- an engine


class Scene:
    def __init__(self, folder: Path, open_store: Open, query: Query, shared: bool) -> None:
        self.folder = folder
        self.open_store = open_store
        self.query = query
        self.shared = shared
        self.store = open_store()

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Writer]:
        data = self.folder / "data"
        access: Writer = PostgresAccess(self.store) if self.shared else Writer(self.store)  # type: ignore[arg-type]
        carrier = Carrier(self.folder, data, url=lambda: "", token=lambda run: f"run-{run.id}", base=os.environ)
        file = FleetFile(self.folder / "fleet.org")
        engine = Engine(access, carrier, file, SystemClock(), "bench", data, shared=self.shared)
        await engine.start()
        try:
            yield access
        finally:
            await engine.stop()
            access.close()

    async def drained(self) -> float:
        until = now() + PATIENCE
        while self.query(OPEN):
            assert now() < until, "the queue was not drained in time"
            await asyncio.sleep(0.005)
        return now()

    def first_line(self) -> float:
        return min(float(file.read_text()) for file in (self.folder / "data" / "work").glob("*/first-*"))


@asynccontextmanager
async def _scene(name: str, folder: Path, workers: int) -> AsyncIterator[Scene]:
    (folder / "data").mkdir(parents=True)
    (folder / "drain_handlers.py").write_text(HANDLERS)
    agents = "".join(AGENT.format(number=number) for number in range(workers))
    (folder / "fleet.org").write_text(f"#+WORKERS: {workers}\n#+GRACE: 0s\n{agents}{CLOCK}", encoding="utf-8")
    with (folder / "log").open("w") as log:
        set_up(log)
        try:
            if name == "SQLite":
                path = folder / "data" / "wakeful.db"
                open_sqlite(path).close()
                with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as look:
                    yield _opened(folder, lambda: open_sqlite(path), lambda text: look.execute(text).fetchone(), False)
            else:
                with PostgresServer(durable=True) as server:
                    open_postgres(server.dsn).close()
                    with psycopg.connect(server.dsn, autocommit=True) as watch:
                        yield _opened(
                            folder,
                            lambda: open_postgres(server.dsn),
                            lambda text: watch.execute(text.encode()).fetchone(),
                            True,
                        )
        finally:
            logging.getLogger().handlers[:] = []


def _opened(folder: Path, open_store: Open, query: Query, shared: bool) -> Scene:
    return Scene(folder, open_store, query, shared)


def _tasks(count: int, role: str = "desk") -> list[NewItem]:
    return [NewItem(kind=Kind.task, role=role, subject="nothing", payload="{}") for _ in range(count)]


# ---- what is measured


async def _drain(name: str, folder: Path, workers: int) -> float:
    async with _scene(name, folder, workers) as scene:
        for _ in range(TASKS // BATCH):
            scene.store.record(_tasks(BATCH), datetime.now(UTC))
        async with scene.engine():
            ended = await scene.drained()
        assert scene.query(UNDONE)[0] == 0
        scene.store.close()
        return TASKS / (ended - scene.first_line())


async def _together(name: str, folder: Path) -> float:
    async with _scene(name, folder, 3) as scene:
        async with scene.engine() as access:
            await access.write(lambda store: store.record(_tasks(96), datetime.now(UTC)))
            await scene.drained()
            await asyncio.sleep(0.5)
            began = now()
            for _ in range(TASKS // BATCH):
                await access.write(lambda store: store.record(_tasks(BATCH), datetime.now(UTC)))
            ended = await scene.drained()
        assert scene.query(UNDONE)[0] == 0
        scene.store.close()
        return TASKS / (ended - began)


async def _wakes(name: str, folder: Path) -> list[float]:
    """Milliseconds."""
    async with _scene(name, folder, 1) as scene:
        wakes = []
        async with scene.engine() as access:
            for _ in range(WAKES + 3):
                await asyncio.sleep(PAUSE)
                called = now()
                (task,) = await access.write(lambda store: store.record(_tasks(1, "watch"), datetime.now(UTC)))
                await scene.drained()
                item = await access.read(lambda store, id=task.id: store.item(id))  # type: ignore[misc]
                assert item is not None and item.result is not None
                wakes.append((float(item.result) - called) * 1e3)
        scene.store.close()
        # The first ones found the worker cold.
        return wakes[3:]
