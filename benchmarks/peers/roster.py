"""Who takes part, in the order of the table."""

from __future__ import annotations

import importlib

from benchmarks.peers.peer import Context, Peer

# module, class
_ALL = (
    ("floor_sqlite", "FloorSqlite"),
    ("wakeful", "WakefulSqlite"),
    ("wakeful_embedded", "EmbeddedSqlite"),
    ("wakeful_embedded", "RecordedSqlite"),
    ("persist_queue", "PersistQueue"),
    ("huey", "HueySqlite"),
    ("litequeue", "Litequeue"),
    ("dbos", "DbosSqlite"),
    ("floor_postgres", "FloorPostgres"),
    ("wakeful", "WakefulPostgres"),
    ("wakeful_embedded", "EmbeddedPostgres"),
    ("wakeful_embedded", "RecordedPostgres"),
    ("pgqueuer", "Pgqueuer"),
    ("huey", "HueyPostgres"),
    ("procrastinate", "Procrastinate"),
    ("dbos", "DbosPostgres"),
    ("apscheduler", "Apscheduler"),
    ("dramatiq", "Dramatiq"),
    ("saq", "Saq"),
    ("taskiq", "Taskiq"),
    ("celery", "Celery"),
)


def peers() -> list[type[Peer]]:
    return [getattr(importlib.import_module(f"benchmarks.peers.{module}"), name) for module, name in _ALL]


def peer_of(given: Context) -> Peer:
    for module, name in _ALL:
        # Only the one that is asked for: the others' files are no matter of this process.
        if given.peer == name:
            kind: type[Peer] = getattr(importlib.import_module(f"benchmarks.peers.{module}"), name)
            return kind(given)
    raise LookupError(given.peer)
