"""APScheduler 4 (a pre-release): jobs in PostgreSQL through SQLAlchemy, events through psycopg."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from benchmarks.peers.job import job_in_a_loop
from benchmarks.peers.peer import POSTGRES, Options, Peer, library


class Apscheduler(Peer):
    title = "APScheduler 4 (PostgreSQL)"
    kind = POSTGRES
    packages = ("APScheduler", "SQLAlchemy", "psycopg")
    note = "a pre-release, by its own word not for production"
    unfinished = "SELECT count(*) FROM jobs"
    asynchronous = True
    busy: ClassVar[Options] = {"concurrency": 100}
    calm: ClassVar[Options] = {"concurrency": 100}

    def make(self) -> tuple[Any, Any]:
        address = self.store.replace("postgresql://", "postgresql+psycopg://", 1)
        engine = library("sqlalchemy.ext.asyncio").create_async_engine(address)
        jobs = library("apscheduler.datastores.sqlalchemy").SQLAlchemyDataStore(engine)
        events = library("apscheduler.eventbrokers.psycopg").PsycopgEventBroker.from_async_sqla_engine(engine)
        scheduler = library("apscheduler").AsyncScheduler(jobs, events, max_concurrent_jobs=self.options["concurrency"])
        return scheduler, engine

    async def configured(self, *, stay: bool) -> None:
        scheduler, _ = self.make()
        async with scheduler:
            most = self.options["concurrency"]
            await scheduler.configure_task("job", func=job_in_a_loop, max_running_jobs=most)
            if stay:
                await scheduler.run_until_stopped()

    def prepare(self) -> None:
        asyncio.run(self.configured(stay=False))

    def work(self) -> None:
        asyncio.run(self.configured(stay=True))

    async def open(self) -> None:
        self.scheduler, self.engine = self.make()
        await self.scheduler.__aenter__()

    async def one(self, number: int) -> None:
        await self.scheduler.add_job("job", args=(number,))

    async def close(self) -> None:
        await self.scheduler.__aexit__(None, None, None)
        await self.engine.dispose()
