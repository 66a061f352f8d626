"""The floor on SQLite: one table, one index, one process, no features; what is left when everything is taken away.

WAL with synchronous=FULL, claims of 100 with an owner and a lease, deleted when done; a datagram wakes the idle worker.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import ClassVar

from benchmarks.peers.job import job
from benchmarks.peers.peer import SQLITE, Options, Peer

TABLE = """
CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL DEFAULT 0, owner TEXT, lease REAL,
    payload INTEGER NOT NULL);
CREATE INDEX job_ready ON job (id) WHERE state = 0;
"""
CLAIM = """
UPDATE job SET state = 1, owner = ?, lease = ?
WHERE id IN (SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT ?) RETURNING id, payload
"""


class FloorSqlite(Peer):
    title = "floor SQLite"
    kind = SQLITE
    note = "not a queue: the bare work, the job in the worker's own process"
    unfinished = "SELECT count(*) FROM job"
    floor = True
    apart = True
    batches = True
    busy: ClassVar[Options] = {"claim": 100}
    calm: ClassVar[Options] = {"claim": 1}

    @property
    def bell(self) -> str:
        return f"{self.database}.bell"

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.database, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        return connection

    def prepare(self) -> None:
        with closing(self.connect()) as connection:
            connection.executescript(TABLE)

    def open(self) -> None:
        self.connection = self.connect()
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def one(self, number: int) -> None:
        self.connection.execute("INSERT INTO job (payload) VALUES (?)", (number,))
        self.ring()

    def batch(self, numbers: Sequence[int]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT INTO job (payload) VALUES (?)", [(number,) for number in numbers])
        self.connection.execute("COMMIT")
        self.ring()

    def ring(self) -> None:
        # Nobody listens, or has been rung for often enough.
        with suppress(OSError):
            self.line.sendto(b"1", self.bell)

    def close(self) -> None:
        self.connection.close()
        self.line.close()

    def work(self) -> None:
        connection, owner, most = self.connect(), str(os.getpid()), self.options["claim"]
        bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        bell.bind(self.bell)
        while True:
            rows = connection.execute(CLAIM, (owner, time.time() + 30, most)).fetchall()
            if not rows:
                bell.recv(16)
                with suppress(BlockingIOError):
                    while bell.recv(16, socket.MSG_DONTWAIT):
                        pass
                continue
            for _, number in rows:
                job(number)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM job WHERE id = ?", [(id,) for id, _ in rows])
            connection.execute("COMMIT")
