"""How a store is reached: where it is, and by whom it is opened.

Laws:
- A command needs the lock of the data folder only where the store is in that folder, and for as short as possible.
- psycopg is imported by nobody who does not need it.
- Where no engine was ever up, a command takes up the fleet file by itself: a message to an agent that is declared there
  is kept for its first run.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wakeful import belongings
from wakeful.belongings import DATA, SQLITE
from wakeful.core.errors import Busy, Mistake
from wakeful.fleet.load import FLEET_NAMES, find_fleet
from wakeful.store.folder import DataFolder

if TYPE_CHECKING:
    from wakeful.control.control import Control
    from wakeful.store.postgres_store import PostgresStore
    from wakeful.store.store import SqlStore
    from wakeful.store.writer import Writer


def now_utc() -> datetime:
    return datetime.now(UTC)


# ---- where things are


def fleet_path(fleet: Path | None) -> Path:
    found = fleet or find_fleet()
    if found is None:
        raise Mistake(
            f"no {' or '.join(FLEET_NAMES)} in this folder", "name it with --fleet, or begin with wakeful init"
        )
    return found


def data_path(data: Path | None, fleet: Path | None) -> Path:
    """`--data` or WAKEFUL_DATA, else `.wakeful` beside the fleet file, else in this folder."""
    if data is not None:
        return data
    found = fleet or find_fleet()
    return (found.absolute().parent if found else Path.cwd()) / DATA


# ---- stores


def open_shared(address: str, *, patient: bool = False) -> PostgresStore:
    """The store at that address. A server that is away is waited for by a `patient` caller, and is `Busy` to others."""
    try:
        from wakeful.store.postgres import connect_when_there, may_pass, open_postgres
    except ImportError as error:
        if not (error.name or "psycopg").startswith("psycopg"):
            raise
        raise Mistake(
            "a store in PostgreSQL needs psycopg, which is not installed", "pip install 'wakeful[postgres]'"
        ) from error
    if patient:
        return connect_when_there(address)
    # A command says what it has to say itself; the doctor looks at how well the server keeps what it is given.
    logging.getLogger("wakeful.store").addHandler(logging.NullHandler())
    try:
        return open_postgres(address)
    except Mistake as mistake:
        if may_pass(mistake.__cause__):
            raise Busy(mistake.reason) from mistake
        raise


def open_store(address: str, folder: DataFolder) -> SqlStore:
    if address != SQLITE:
        return open_shared(address, patient=True)
    from wakeful.store.sqlite import open_sqlite

    return open_sqlite(folder.database)


def access_to(store: SqlStore, shared: bool) -> tuple[Writer, tuple[type[Exception], ...]]:
    """How coroutines reach the store, and by which errors it tells that it is in trouble."""
    if shared:
        import psycopg

        from wakeful.store.postgres_access import PostgresAccess

        return PostgresAccess(cast("PostgresStore", store)), (psycopg.Error,)
    import apsw

    from wakeful.store.writer import Writer

    return Writer(store), (apsw.Error,)


# ---- without an engine


@contextmanager
def open_offline(data: Path, fleet: Path | None = None, *, named: bool = True) -> Iterator[Control]:
    """The fleet as a command reaches it when no engine runs here: a store of its own under the lock, for as short as
    possible; one that is shared as one more of those who use it. See `belongings.store_address` for `named`."""
    from wakeful.control.control import Control

    given: dict[str, Any] = {"runs": data / belongings.RUNS, "clock": now_utc, "fleet_file": fleet}
    address = belongings.store_address(data, fleet, named=named)
    own = fleet if fleet is not None and (named or belongings.is_of(data, fleet)) else None
    if address != SQLITE:
        shared = open_shared(address)
        from wakeful.store.postgres_access import PostgresInline

        try:
            _take_up_first(shared, own, address)
            yield Control(PostgresInline(shared), **given, node=belongings.known_node(data), shared=True)
        finally:
            shared.close()
        return
    from wakeful.store.inline import Inline
    from wakeful.store.sqlite import open_sqlite

    with DataFolder(data) as folder:
        store = open_sqlite(folder.database)
        try:
            _take_up_first(store, own, address)
            yield Control(Inline(store), **given, node=belongings.known_node(data))
        finally:
            store.close()


def _take_up_first(store: SqlStore, fleet: Path | None, address: str) -> None:
    """What `wakeful up` would refuse is left to it, and every edit once it was up: it says what is wrong."""
    now = now_utc()
    if fleet is None or store.nodes(now):
        return
    from wakeful.engine.declarations import unrunnable
    from wakeful.fleet.load import load_fleet

    declared = load_fleet(fleet, run=os.environ.get("WAKEFUL_RUN")).fleet
    if declared is not None and declared.store == address and not unrunnable(declared):
        store.declare(declared, now)
