"""PgQueuer: asyncpg, durable tables (its default), its own supervisor on uvloop, as `pgq run` does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, ClassVar

from benchmarks.peers.job import job
from benchmarks.peers.peer import POSTGRES, Options, Peer, library


class Pgqueuer(Peer):
    title = "pgqueuer (PostgreSQL)"
    kind = POSTGRES
    packages = ("pgqueuer", "asyncpg", "uvloop")
    note = "batches of 1,000 for the drain, 10 out of the box"
    unfinished = "SELECT count(*) FROM pgqueuer"
    asynchronous = True
    apart = True
    batches = True
    busy: ClassVar[Options] = {"batch": 1000}
    calm: ClassVar[Options] = {"batch": 10}

    async def connect(self) -> tuple[Any, Any]:
        connection = await library("asyncpg").connect(self.store)
        return connection, library("pgqueuer.db").AsyncpgDriver(connection)

    def prepare(self) -> None:
        async def install() -> None:
            connection, driver = await self.connect()
            await library("pgqueuer.queries").Queries(driver).install()
            await connection.close()

        library("uvloop").run(install())

    @asynccontextmanager
    async def queue(self) -> AsyncIterator[Any]:
        connection, driver = await self.connect()
        queue = library("pgqueuer").PgQueuer(driver)

        async def entry(found: Any) -> None:
            job(int(found.payload))

        queue.entrypoint("job")(entry)
        yield queue
        await connection.close()

    def work(self) -> None:
        supervisor = library("pgqueuer.adapters.cli.supervisor")
        # Its own defaults, which the command line would give.
        patience = {"heartbeat_timeout": timedelta(seconds=30), "dequeue_timeout": timedelta(seconds=30)}
        library("uvloop").run(supervisor.run(self.queue, batch_size=self.options["batch"], **patience))

    async def open(self) -> None:
        self.connection, driver = await self.connect()
        self.queries = library("pgqueuer.queries").Queries(driver)

    async def one(self, number: int) -> None:
        await self.queries.enqueue("job", b"%d" % number)

    async def batch(self, numbers: Sequence[int]) -> None:
        count = len(numbers)
        await self.queries.enqueue(["job"] * count, [b"%d" % number for number in numbers], [0] * count)

    async def close(self) -> None:
        await self.connection.close()
