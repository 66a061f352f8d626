"""litequeue: a table in SQLite (WAL, synchronous=NORMAL, not to be changed). It has no worker: the loop is ours."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.peers.job import job
from benchmarks.peers.peer import SQLITE, Peer, library

# Of a loop that finds nothing, in seconds.
PAUSE = 0.01


class Litequeue(Peer):
    title = "litequeue (SQLite)"
    kind = SQLITE
    packages = ("litequeue",)
    note = "a commit does not wait for the disk; no worker (our loop polls every 10 ms), and nothing is delivered again"
    unfinished = "SELECT count(*) FROM Queue WHERE status < 2"
    apart = True
    batches = True

    def open(self) -> None:
        self.queue = library("litequeue").LiteQueue(str(self.database), timeout=30)

    def prepare(self) -> None:
        self.open()

    def one(self, number: int) -> None:
        self.queue.put(str(number))

    def batch(self, numbers: Sequence[int]) -> None:
        with self.queue.transaction():
            for number in numbers:
                self.queue.put(str(number))

    def work(self) -> None:
        self.open()
        while True:
            message = self.queue.pop()
            if message is None:
                time.sleep(PAUSE)
                continue
            job(int(message.data))
            self.queue.done(message.message_id)
