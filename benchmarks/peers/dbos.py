"""DBOS Transact: one queue in the database, worked by one application, filled by its client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks.peers.job import job
from benchmarks.peers.peer import POSTGRES, SQLITE, Options, Peer, library

QUEUE = {"queue_name": "q", "workflow_name": "job"}


class Dbos(Peer):
    batches = True
    note = "polls every second out of the box; keeps a workflow's history; a batch is a transaction of single calls"
    eager: ClassVar[Options] = {"poll": 0.01}
    # Longer than it sleeps, so that its own rhythm is not that of the wakes.
    between = (0.3, 1.3)
    # It looks at its schedules every second during its first minute, and that is no rest.
    settle = 60.0

    @property
    def url(self) -> str:
        raise NotImplementedError

    def launch(self) -> Any:
        dbos = library("dbos").DBOS
        settings = {"system_database_url": self.url, "log_level": "WARNING", "application_version": "1"}
        dbos(config={"name": "bench", **settings})
        dbos.workflow(name="job")(job)
        dbos.launch()
        dbos.register_queue("q", polling_interval_sec=self.options.get("poll", 1.0))
        return dbos

    def prepare(self) -> None:
        self.launch().destroy()

    def work(self) -> None:
        self.launch()
        while True:
            time.sleep(3600)

    def open(self) -> None:
        self.client = library("dbos").DBOSClient(system_database_url=self.url, application_name="bench")

    def one(self, number: int) -> None:
        self.client.enqueue(QUEUE, number)

    def batch(self, numbers: Sequence[int]) -> None:
        with self.client._sys_db.engine.begin() as connection:
            for number in numbers:
                self.client.enqueue_in_transaction(connection, QUEUE, number)

    def close(self) -> None:
        self.client.destroy()


class DbosSqlite(Dbos):
    title = "DBOS (SQLite)"
    kind = SQLITE
    packages = ("dbos", "SQLAlchemy")
    unfinished = "SELECT count(*) FROM workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"


class DbosPostgres(Dbos):
    title = "DBOS (PostgreSQL)"
    kind = POSTGRES
    packages = ("dbos", "SQLAlchemy", "psycopg")
    unfinished = "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"

    @property
    def url(self) -> str:
        return self.store
