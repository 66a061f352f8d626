"""procrastinate: psycopg, a worker that listens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks.peers.job import job_in_a_loop
from benchmarks.peers.peer import POSTGRES, Options, Peer, library


class Procrastinate(Peer):
    title = "procrastinate (PostgreSQL)"
    kind = POSTGRES
    packages = ("procrastinate", "psycopg")
    note = "what a dead worker left is taken up only by a task that the application adds for it"
    unfinished = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    batches = True
    busy: ClassVar[Options] = {"concurrency": 30}
    calm: ClassVar[Options] = {"concurrency": 1}

    def make(self, connector: str) -> tuple[Any, Any]:
        procrastinate = library("procrastinate")
        app = procrastinate.App(connector=getattr(procrastinate, connector)(conninfo=self.store))
        return app, app.task(name="job", queue="q")(job_in_a_loop)

    def prepare(self) -> None:
        app, _ = self.make("SyncPsycopgConnector")
        with app.open():
            app.schema_manager.apply_schema()

    def work(self) -> None:
        async def run() -> None:
            app, _ = self.make("PsycopgConnector")
            async with app.open_async():
                await app.run_worker_async(queues=["q"], concurrency=self.options["concurrency"])

        asyncio.run(run())

    def open(self) -> None:
        self.app, self.job = self.make("SyncPsycopgConnector")
        self.app.open()

    def one(self, number: int) -> None:
        self.job.defer(number=number)

    def batch(self, numbers: Sequence[int]) -> None:
        self.job.batch_defer(*({"number": number} for number in numbers))

    def close(self) -> None:
        self.app.close()
