"""What the doctor looks at where the store is in PostgreSQL. Nothing is changed by looking."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING

from wakeful.belongings import named
from wakeful.cli.connection import store_of
from wakeful.cli.findings import Found, Level
from wakeful.cli.place import Place
from wakeful.cli.words import lasting

if TYPE_CHECKING:
    from wakeful.store.postgres_wire import Connection

# Each decision asks the database a handful of times.
SLOW = 0.020
APART = 2.0
HEARD_WITHIN = 2.0
_TIMES = 7
# A dump takes a while; what is open for longer than this is looked at by a person.
LONG = 60.0

_INSTALL = "pip install 'wakeful[postgres]'"
_POOLER = "name the server itself, or a pooler that keeps a connection for its client (session mode)"

_ABOUT = """
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
    current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes, current_schema() AS schema,
    to_regclass('schema') IS NOT NULL AND to_regclass('standing') IS NOT NULL AS ours,
    coalesce((SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'), 0)::bigint AS bytes
"""

_OLDEST = """
SELECT pid, application_name AS name, extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    AND xact_start < clock_timestamp() - make_interval(secs => $1) ORDER BY xact_start LIMIT 1
"""


@contextmanager
def _connected(place: Place) -> Iterator[Connection]:
    from wakeful.store.postgres import place_at

    connection = place_at(store_of(place)).connect()
    try:
        yield connection
    finally:
        connection.close()


def psycopg(place: Place) -> Found:
    try:
        import psycopg
    except ImportError as error:
        return Level.fail, f"it cannot be imported: {error}", _INSTALL
    return Level.ok, f"{psycopg.__version__}, libpq {psycopg.pq.version() // 10_000}"


def store(place: Place) -> Found:
    """Version, what is in it, and whether it keeps what it was given."""
    with _connected(place) as connection:
        row = connection.execute(_ABOUT).fetchone()
    assert row is not None
    where = f"PostgreSQL {row['version'].split()[0]} at {named(store_of(place))}, schema {row['schema']}"
    if row["number"] < 150_000:
        return Level.fail, where, "use PostgreSQL 15 or newer"
    if row["schema"] is None:
        return Level.fail, where, "create the schema that the address names, or grant this user its use"
    weak = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if row[name] == "off"]
    if weak:
        settings = ", ".join(f"{name} = off" for name in weak)
        return Level.warn, f"{where}: what was accepted may be lost with the server: {settings}", "set them to on"
    if not row["ours"]:
        return Level.warn, f"{where}: nothing is stored yet", "wakeful up makes the store"
    return Level.ok, f"{where}, {row['bytes'] / 10**6:.1f} MB"


def round_trip(place: Place) -> Found:
    took = []
    with _connected(place) as connection:
        for _ in range(_TIMES):
            began = time.perf_counter()
            connection.execute("SELECT 1")
            took.append(time.perf_counter() - began)
    said = f"{median(took) * 1_000:.1f} ms to the database and back"
    if median(took) > SLOW:
        return Level.warn, said, "put the nodes nearer to it: each decision asks it a handful of times"
    return Level.ok, said


def clocks(place: Place) -> Found:
    """Leases are counted by the database's clock alone; timers fire by each node's own."""
    with _connected(place) as connection:
        before = datetime.now(UTC)
        row = connection.execute("SELECT clock_timestamp() AS at").fetchone()
        after = datetime.now(UTC)
    assert row is not None
    ahead = ((before + (after - before) / 2) - row["at"]).total_seconds()
    if abs(ahead) <= APART:
        return Level.ok, f"this machine and the database agree to {abs(ahead) * 1_000:.0f} ms"
    which = "ahead of" if ahead > 0 else "behind"
    return Level.warn, f"this machine is {lasting(abs(ahead))} {which} the database", "set both clocks by NTP"


def hints(place: Place) -> Found:
    """Whether a word from one connection reaches another, as it must between nodes."""
    channel = f"wakeful_doctor_{secrets.token_hex(4)}"
    with _connected(place) as listener, _connected(place) as speaker:
        listener.execute(f"LISTEN {channel}".encode())
        began = time.perf_counter()
        speaker.execute("SELECT pg_notify($1, '')", (channel,))
        for _ in listener.notifies(timeout=HEARD_WITHIN, stop_after=1):
            return Level.ok, f"heard after {(time.perf_counter() - began) * 1_000:.1f} ms"
    return Level.warn, "nodes do not hear each other, and so are up to 5s late", _POOLER


def strangers(place: Place) -> Found:
    """While a transaction of somebody's is open, nothing that has changed since can be swept away."""
    with _connected(place) as connection:
        row = connection.execute(_OLDEST, (LONG,)).fetchone()
    if row is None:
        return Level.ok, f"no transaction of others is open for more than {lasting(LONG)}"
    who = f"{row['name'] or 'somebody'} (process {row['pid']})"
    said = f"a transaction of {who} is open for {lasting(row['seconds'])}, and slows everything down until it ends"
    return Level.warn, said, "end it; idle_in_transaction_session_timeout ends those that are forgotten"


LOOKS: tuple[tuple[str, Callable[[Place], Found]], ...] = (
    ("psycopg", psycopg),
    ("store", store),
    ("round trip", round_trip),
    ("clocks", clocks),
    ("hints", hints),
    ("strangers", strangers),
)
