"""dramatiq on Redis: its default middleware, acknowledged after the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks.peers.job import job
from benchmarks.peers.peer import APPLICATION, REDIS, Options, Peer, library


class Dramatiq(Peer):
    title = "dramatiq (Redis)"
    kind = REDIS
    packages = ("dramatiq", "redis")
    note = "up to a second of accepted jobs is lost with the power; a dead worker's come back after a minute or later"
    unfinished = (("HLEN", "dramatiq:q.msgs"),)
    busy: ClassVar[Options] = {"threads": 16}
    calm: ClassVar[Options] = {"threads": 8}

    def application(self) -> Any:
        dramatiq = library("dramatiq")
        broker = library("dramatiq.brokers.redis").RedisBroker(url=self.store)
        dramatiq.set_broker(broker)
        self.job = dramatiq.actor(actor_name="job", queue_name="q", max_retries=5)(job)
        return broker

    def command(self) -> Sequence[str]:
        threads = str(self.options["threads"])
        return ("dramatiq", f"{APPLICATION}:broker", "-p", "1", "-t", threads, "--skip-logging")

    def open(self) -> None:
        self.application()

    def one(self, number: int) -> None:
        self.job.send(number)
