"""taskiq on Redis streams (the broker of its that acknowledges), one worker process, uvloop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.job import job_in_a_loop
from benchmarks.peers.peer import APPLICATION, REDIS, Peer, library


class Taskiq(Peer):
    title = "taskiq (Redis)"
    kind = REDIS
    packages = ("taskiq", "taskiq-redis", "redis", "uvloop")
    note = "up to a second of accepted jobs is lost with the power; a dead worker's come back after ten minutes"
    unfinished = (("XPENDING", "q", "taskiq"),)
    asynchronous = True

    def application(self) -> Any:
        broker = library("taskiq_redis").RedisStreamBroker(
            self.store, queue_name="q", consumer_id="0", unacknowledged_lock_timeout=10
        )
        self.job = broker.task(task_name="job")(job_in_a_loop)
        return broker

    def command(self) -> Sequence[str]:
        words = ("taskiq", "worker", f"{APPLICATION}:application", "--workers", "1", "--max-async-tasks", "100")
        return (*words, "--max-prefetch", "0", "--log-level", "ERROR")

    async def open(self) -> None:
        self.broker = self.application()
        await self.broker.startup()

    async def one(self, number: int) -> None:
        await self.job.kiq(number)

    async def close(self) -> None:
        await self.broker.shutdown()
