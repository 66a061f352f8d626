"""persist-queue: SQLiteAckQueue with WAL, each put committed. It has no worker: the loop is ours."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.peers.job import job
from benchmarks.peers.peer import SQLITE, Peer, library

# Of a loop that finds nothing, in seconds.
PAUSE = 0.01


class PersistQueue(Peer):
    title = "persist-queue (SQLite)"
    kind = SQLITE
    packages = ("persist-queue",)
    note = "no worker (our loop polls every 10 ms); what was claimed comes back when the queue is opened anew"
    unfinished = "SELECT count(*) FROM ack_queue_default WHERE status < 5"

    @property
    def database(self) -> Any:
        return self.folder / "data.db"

    def open(self) -> None:
        self.queue = library("persistqueue").SQLiteAckQueue(str(self.folder), auto_commit=True, multithreading=True)

    def prepare(self) -> None:
        self.open()

    def one(self, number: int) -> None:
        self.queue.put(number)

    def work(self) -> None:
        empty = library("persistqueue").Empty
        self.open()
        while True:
            try:
                number = self.queue.get(block=False)
            except empty:
                time.sleep(PAUSE)
                continue
            job(number)
            self.queue.ack(number)
