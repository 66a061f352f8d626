"""The floor on PostgreSQL: one table, one index, SKIP LOCKED claims of 100, NOTIFY to wake the idle worker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

import psycopg

from benchmarks.peers.job import job
from benchmarks.peers.peer import POSTGRES, Options, Peer

TABLE = """
CREATE TABLE job (id bigserial PRIMARY KEY, state smallint NOT NULL DEFAULT 0, owner text, lease timestamptz,
    payload bigint NOT NULL);
CREATE INDEX job_ready ON job (id) WHERE state = 0;
"""
ONE = "WITH put AS (INSERT INTO job (payload) VALUES (%s) RETURNING 1) SELECT pg_notify('bell', '') FROM put"
MANY = """
WITH put AS (INSERT INTO job (payload) SELECT unnest(%s::bigint[]) RETURNING 1), sum AS (SELECT count(*) FROM put)
SELECT pg_notify('bell', '') FROM sum
"""
CLAIM = """
UPDATE job SET state = 1, owner = %s, lease = now() + interval '30 s'
WHERE id IN (SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING id, payload
"""


class FloorPostgres(Peer):
    title = "floor PostgreSQL"
    kind = POSTGRES
    packages = ("psycopg",)
    note = "not a queue: the bare work, the job in the worker's own process"
    unfinished = "SELECT count(*) FROM job"
    floor = True
    apart = True
    batches = True
    busy: ClassVar[Options] = {"claim": 100}
    calm: ClassVar[Options] = {"claim": 1}

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.store, autocommit=True)

    def prepare(self) -> None:
        with self.connect() as connection:
            connection.execute(TABLE)

    def open(self) -> None:
        self.connection = self.connect()

    def one(self, number: int) -> None:
        self.connection.execute(ONE, (number,))

    def batch(self, numbers: Sequence[int]) -> None:
        self.connection.execute(MANY, (list(numbers),))

    def close(self) -> None:
        self.connection.close()

    def work(self) -> None:
        connection, bell, owner = self.connect(), self.connect(), str(os.getpid())
        bell.execute("LISTEN bell")
        while True:
            rows = connection.execute(CLAIM, (owner, self.options["claim"])).fetchall()
            if not rows:
                for _ in bell.notifies(stop_after=1):
                    pass
                continue
            for _, number in rows:
                job(number)
            connection.execute("DELETE FROM job WHERE id = ANY(%s)", ([id for id, _ in rows],))
