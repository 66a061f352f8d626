"""SAQ on Redis, as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks.peers.job import job
from benchmarks.peers.peer import APPLICATION, REDIS, Options, Peer, library


async def job_of(found: Any, *, number: int) -> None:
    job(number)


class Saq(Peer):
    title = "saq (Redis)"
    kind = REDIS
    packages = ("saq", "redis")
    note = "up to a second of accepted jobs is lost with the power; a dead worker's are not tried again out of the box"
    unfinished = (("LLEN", "saq:q:queued"), ("LLEN", "saq:q:active"))
    asynchronous = True
    busy: ClassVar[Options] = {"concurrency": 50}
    calm: ClassVar[Options] = {"concurrency": 10}

    def make(self) -> Any:
        return library("saq").Queue.from_url(self.store, name="q")

    def application(self) -> Any:
        functions = [("job", job_of)]
        return {"queue": self.make(), "functions": functions, "concurrency": self.options["concurrency"]}

    def command(self) -> Sequence[str]:
        return ("saq", f"{APPLICATION}.application", "--quiet")

    async def open(self) -> None:
        self.queue = self.make()
        await self.queue.connect()

    async def one(self, number: int) -> None:
        await self.queue.enqueue("job", number=number)

    async def close(self) -> None:
        await self.queue.disconnect()
