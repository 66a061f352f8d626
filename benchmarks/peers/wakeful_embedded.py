"""wakeful in the process of its engine: whoever has both calls the operations of `Control` without a way between.

Laws:
- The caller's process is the engine's; the tasks are done by its workers, as ever. Its drain is that of the engine
  alone, and stands in the other line.
- The lines of `Store.record` leave out what `Control` does for a caller: who may, what is well-formed, the row as it is
  answered. It is how the engine's own sources record.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks.peers.peer import POSTGRES, SQLITE
from benchmarks.peers.wakeful import Wakeful, data_of, fields
from wakeful.control.callers import OPERATOR
from wakeful.control.control import Control
from wakeful.core.items import Kind, NewItem
from wakeful.engine.clock import SystemClock
from wakeful.engine.engine import Engine
from wakeful.engine.logs import set_up
from wakeful.fleet.watch import FleetFile
from wakeful.runners.carrier import Carrier
from wakeful.store.postgres_access import PostgresAccess
from wakeful.store.writer import Writer


class Embedded(Wakeful):
    note = ""
    asynchronous = True
    embedded = True

    async def open(self) -> None:
        data, shared, clock = data_of(self.folder), self.kind == POSTGRES, SystemClock()
        self.own = self.open_store()
        self.access = self.make_access()
        self.engine = None if self.context.setting == "enqueue" else self.make_engine(clock)
        if self.engine is not None:
            await self.engine.start()
        given: Any = {"beside": self.engine, "node": "here", "fleet_file": self.fleet, "shared": shared}
        self.control = Control(self.access, runs=data / "runs", clock=clock.now, **given)

    def make_access(self) -> Any:
        return Writer(self.own) if self.kind == SQLITE else PostgresAccess(self.own)

    def make_engine(self, clock: Any) -> Any:
        set_up()
        data = data_of(self.folder)
        carrier = Carrier(self.folder, data, url=lambda: "", token=lambda run: f"run-{run.id}", base=os.environ)
        file, shared = FleetFile(self.fleet), self.kind == POSTGRES
        return Engine(self.access, carrier, file, clock, "here", data, shared=shared)

    async def one(self, number: int) -> None:
        await self.control.add_task(OPERATOR, **fields(number, self.role))

    async def batch(self, numbers: Sequence[int]) -> None:
        await self.control.add_tasks(OPERATOR, tasks=[fields(number, self.role) for number in numbers])

    async def close(self) -> None:
        if self.engine is not None:
            await self.engine.stop()
        self.access.close()
        self.own.close()


class EmbeddedSqlite(Embedded):
    title = "wakeful (SQLite), in the engine's process"
    kind = SQLITE


class EmbeddedPostgres(Embedded):
    title = "wakeful (PostgreSQL), in the engine's process"
    kind = POSTGRES


class Recorded(Embedded):
    async def one(self, number: int) -> None:
        await self.batch((number,))

    async def batch(self, numbers: Sequence[int]) -> None:
        items = [NewItem(kind=Kind.task, role=self.role, subject="job", payload=str(number)) for number in numbers]
        await self.access.write(lambda store: store.record(items, datetime.now(UTC)))


class RecordedSqlite(Recorded):
    title = "wakeful (SQLite), Store.record in the engine's process"
    kind = SQLITE


class RecordedPostgres(Recorded):
    title = "wakeful (PostgreSQL), Store.record in the engine's process"
    kind = POSTGRES
