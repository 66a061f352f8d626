"""Celery on Redis: acknowledged after the job, given back when a child dies; no results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.job import job
from benchmarks.peers.peer import APPLICATION, REDIS, Peer, library


class Celery(Peer):
    title = "celery (Redis)"
    kind = REDIS
    packages = ("celery", "kombu", "redis")
    note = "up to a second of accepted jobs is lost with the power; a dead worker's come back after an hour"
    unfinished = (("LLEN", "q"), ("HLEN", "unacked"))

    def application(self) -> Any:
        app = library("celery").Celery("bench", broker=self.store)
        app.conf.update(
            task_acks_late=True,
            task_reject_on_worker_lost=True,
            task_ignore_result=True,
            task_default_queue="q",
            broker_connection_retry_on_startup=True,
            worker_hijack_root_logger=False,
        )
        self.job = app.task(name="job")(job)
        return app

    def command(self) -> Sequence[str]:
        words = ("celery", "-A", f"{APPLICATION}:application", "worker", "-l", "error")
        return (*words, "-P", "prefork", "-c", "2")

    def open(self) -> None:
        self.application()

    def one(self, number: int) -> None:
        self.job.delay(number)
