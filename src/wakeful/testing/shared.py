"""SQLite as nodes share a PostgreSQL: leases are counted by one clock, whatever the calendars of the nodes show.

Law: every query that counts a lease does it by `lease_clock()`, as in the other dialect; one that has changed so that
it can no longer be put right is an error, not a lease by the wrong clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

import apsw

from wakeful.store.named_sql import Query, parse_queries, positional
from wakeful.store.rows import to_micros
from wakeful.store.session import Probe
from wakeful.store.sqlite import Reader, SqliteSession
from wakeful.store.store import SqlStore

# In each query, what counts by the caller's calendar, and what counts by the clock of the leases.
LEASES: dict[str, tuple[tuple[str, str], ...]] = {
    "join_node": ((":now, :now, :lease", "lease_clock(), lease_clock(), :lease"),),
    "leave_node": (("seen_at = :now, left_at = :now", "seen_at = lease_clock(), left_at = lease_clock()"),),
    "renew_runs": ((":now + :lease", "lease_clock() + :lease"),),
    "renew_node": (
        ("seen_at = :now", "seen_at = lease_clock()"),
        ("min(lease_until)", ":now + min(lease_until) - lease_clock()"),
    ),
    "node_rows": (("> :now AS alive", "> lease_clock() AS alive"),),
    "start_run": ((":now + :lease", "lease_clock() + :lease"),),
    "orphaned_runs": (("lease_until <= :now", "lease_until <= lease_clock()"),),
    "next_instant": (("min(lease_until)", "max(:now, :now + min(lease_until) - lease_clock())"),),
    "tend_sources": (
        (":now + :lease, :now", "lease_clock() + :lease, lease_clock()"),
        ("lease_until <= :now", "lease_until <= lease_clock()"),
    ),
    "forget_source": (("lease_until <= :now", "lease_until <= lease_clock()"),),
}


@cache
def leased_queries() -> dict[str, Query]:
    found: dict[str, Query] = {}
    folder = files("wakeful.store") / "sql" / "sqlite"
    for file in folder.iterdir():
        if file.name.endswith(".sql") and not file.name[:4].isdigit():
            for name, body in parse_queries(file.read_text(encoding="utf-8")).items():
                if name in LEASES:
                    found[name] = positional(name, _leased(name, body))
    if missing := LEASES.keys() - found.keys():
        raise ValueError(f"no such queries any more: {', '.join(sorted(missing))}")
    return found


def _leased(name: str, body: str) -> str:
    for old, new in LEASES[name]:
        if body.count(old) != 1:
            raise ValueError(f"the query {name} no longer has {old!r} once: say in LEASES how it counts leases")
        body = body.replace(old, new)
    return body


class SharedSession(SqliteSession):
    def __init__(self, path: Path, lease_clock: Callable[[], datetime], *, probe: Probe | None = None) -> None:
        super().__init__(path, durable=False, probe=probe)
        self._lease_clock = lease_clock
        self._queries = {**self._queries, **leased_queries()}
        self._told: set[int] = set()
        self._tell_time(self.connection)

    def reader(self) -> Reader:
        reader = super().reader()
        self._tell_time(reader.connection)
        return reader

    def _tell_time(self, connection: apsw.Connection) -> None:
        if id(connection) not in self._told:
            self._told.add(id(connection))
            connection.create_scalar_function("lease_clock", self._time, 0)

    def _time(self, *nothing: object) -> int:
        return to_micros(self._lease_clock())


def open_shared(path: Path, lease_clock: Callable[[], datetime]) -> SqlStore:
    return SqlStore(SharedSession(path, lease_clock))
