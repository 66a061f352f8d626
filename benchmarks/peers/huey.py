"""huey, on SQLite (WAL, synchronous=FULL) and on PostgreSQL (SKIP LOCKED, NOTIFY), with its own consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks.peers.job import job
from benchmarks.peers.peer import APPLICATION, POSTGRES, SQLITE, Options, Peer, library


class Huey(Peer):
    note = "at most once: a job is deleted before it is run, and lost if its worker dies"

    def make(self) -> Any:
        raise NotImplementedError

    def application(self) -> Any:
        huey = self.make()
        self.job = huey.task(name="job")(job)
        return huey

    def prepare(self) -> None:
        self.make()

    def command(self) -> Sequence[str]:
        workers, kind = self.options["workers"], self.options["kind"]
        words = ["huey_consumer", f"{APPLICATION}.application", "-w", str(workers), "-k", kind, "-q"]
        if "delay" in self.options:
            delay = str(self.options["delay"])
            words += ["-d", delay, "-m", delay, "-b", "1.0"]
        return words

    def open(self) -> None:
        self.application()

    def one(self, number: int) -> None:
        self.job(number)


class HueySqlite(Huey):
    title = "huey (SQLite)"
    packages = ("huey",)
    kind = SQLITE
    unfinished = "SELECT count(*) FROM task"
    busy: ClassVar[Options] = {"workers": 2, "kind": "process"}
    calm: ClassVar[Options] = {"workers": 1, "kind": "thread"}
    eager: ClassVar[Options] = {"workers": 1, "kind": "thread", "delay": 0.01}

    def make(self) -> Any:
        return library("huey").SqliteHuey("bench", filename=str(self.database))


class HueyPostgres(Huey):
    title = "huey (PostgreSQL)"
    kind = POSTGRES
    packages = ("huey", "psycopg")
    unfinished = "SELECT count(*) FROM huey_task"
    busy: ClassVar[Options] = {"workers": 4, "kind": "process"}
    calm: ClassVar[Options] = {"workers": 1, "kind": "thread"}

    def make(self) -> Any:
        return library("huey").PostgresHuey("bench", dsn=self.store)
