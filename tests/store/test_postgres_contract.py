"""The store's contract over PostgreSQL, and what only its schema can say: the impossible cannot be written."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from tests.store.postgres_server import connection_of, release, store_in, tell_time
from tests.store.test_sqlite_contract import IMPOSSIBLE
from wakeful.core.admission import admit
from wakeful.core.items import Kind, NewItem, Ring
from wakeful.core.settlement import settle
from wakeful.core.wakes import Pause
from wakeful.store.backups import APPLICATION_ID
from wakeful.store.migrate import migrate
from wakeful.store.named_sql import Query, load_queries
from wakeful.store.postgres_copy import TABLES, columns_of
from wakeful.store.postgres_session import Connection
from wakeful.store.protocol import Finish, Store
from wakeful.store.session import Probe
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store import StoreContract
from wakeful.testing.contracts.store_case import DONE, LEASE, NOW, a_fleet, operator


@pytest.fixture(autouse=True)
def _released(tmp_path: Path) -> Iterator[None]:
    yield
    release(tmp_path)


class TestPostgresStore(StoreContract):
    def make_store(self, tmp_path: Path, probe: Probe | None = None) -> Store:
        return store_in(tmp_path, probe)

    def set_clock(self, now: datetime, store: Store | None = None) -> None:
        opened = store or self.store
        assert isinstance(opened, SqlStore)
        tell_time(opened, now)


# ---- what cannot be written


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Connection]:
    """The writing connection of a store that holds one row of everything; see the same in test_sqlite_contract."""
    store = store_in(tmp_path)
    store.declare(a_fleet("moss", "wren", "hale"), NOW)
    store.record([NewItem(kind=Kind.message, agent="moss", ring=Ring.news, dedupe="k1")], NOW)
    store.record([NewItem(kind=Kind.task, agent="hale")], NOW)
    store.decide([operator("wren")], admit, NOW)
    (order,) = store.claim("one", NOW, LEASE)
    store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)], settle, NOW)
    store.decide([operator("moss"), operator("moss")], admit, NOW)
    store.claim("one", NOW, LEASE)
    store.pause(Pause(scope="fleet", owner="operator", reason="", since=NOW), NOW)
    yield connection_of(store)
    store.close()


PIECE = "INSERT INTO output (run, stream, start, data) VALUES ({})"

# What SQLite says to it, as PostgreSQL does; everything else is a check.
SAID = {
    "node.host": psycopg.errors.NotNullViolation,
    "FOREIGN KEY": psycopg.errors.ForeignKeyViolation,
    "UNIQUE": psycopg.errors.UniqueViolation,
    "wake_waiting": psycopg.errors.UniqueViolation,
    "cannot store TEXT": psycopg.errors.InvalidTextRepresentation,
    "append-only": psycopg.errors.RestrictViolation,
}


def everything(raw: Connection) -> dict[str, list[Any]]:
    return {table: raw.execute(f"SELECT * FROM {table} ORDER BY 1, 2".encode()).fetchall() for table in TABLES}


@pytest.mark.parametrize(("statement", "words"), [row[1:] for row in IMPOSSIBLE], ids=[row[0] for row in IMPOSSIBLE])
def test_the_impossible_cannot_be_written(raw, statement, words):
    # The fleet's totals are in parts, of which one may be below nothing.
    statement = statement.replace("VALUES ('fleet', '2026", "VALUES ('agent:moss', '2026")
    before = everything(raw)
    error = next((error for said, error in SAID.items() if words.startswith(said)), psycopg.errors.CheckViolation)
    with pytest.raises(error):
        raw.execute(statement.encode())
    assert everything(raw) == before


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("UPDATE slot SET run = 2 WHERE number = 2 AND pool = 'sessions'", psycopg.errors.UniqueViolation),
        ("UPDATE slot SET run = 999 WHERE number = 2 AND pool = 'sessions'", psycopg.errors.ForeignKeyViolation),
        ("INSERT INTO slot (pool, number) VALUES ('sessions', 1)", psycopg.errors.UniqueViolation),
        ("INSERT INTO total (scope, day, part) VALUES ('agent:moss', 'd', 1)", psycopg.errors.CheckViolation),
        (PIECE.format("2, 'stdin', 0, 'a'"), psycopg.errors.CheckViolation),
        (PIECE.format("2, 'stdout', -1, 'a'"), psycopg.errors.CheckViolation),
        (PIECE.format("2, 'stdout', 0, ''"), psycopg.errors.CheckViolation),
        (PIECE.format("999, 'stdout', 0, 'a'"), psycopg.errors.ForeignKeyViolation),
        (PIECE.format("2, 'stdout', 0, 'a'), (2, 'stdout', 0, 'b'"), psycopg.errors.UniqueViolation),
    ],
    ids=[
        *("a run in two slots", "a slot of no run", "a slot that is there twice", "a total in parts"),
        *("output of no stream", "output before the beginning", "a piece of nothing", "output of no run"),
        "a piece in the place of another",
    ],
)
def test_what_is_only_here_has_its_impossible_too(raw, statement, error):
    with pytest.raises(error):
        raw.execute(statement.encode())


# ---- the two dialects are one


# Whose instants are the database's own here, and the caller's there.
LEASES = {"join_node", "leave_node", "renew_runs", "node_rows", "orphaned_runs", "tend_sources", "forget_source"}


def parameters_of(query: Query) -> frozenset[str]:
    """Where many rows are one parameter, those of each row."""
    named = frozenset(query.parameters)
    if "rows" in named:
        (columns,) = re.findall(r"json_to_recordset\(\?\d+::json\) AS \w* ?\(([^)]*)\)", query.text)
        named |= {column.split()[0] for column in columns.split(",")} - {"rows"}
    return named - {"rows", "settled", "log", "id"}


def test_both_dialects_have_the_same_queries_with_the_same_parameters():
    ours, theirs = load_queries("postgres"), load_queries("sqlite")
    shared = {name: parameters_of(ours[name]) for name in theirs}
    assert shared == {
        name: frozenset(query.parameters) - ({"now"} if name in LEASES else set()) for name, query in theirs.items()
    }


def test_both_schemas_have_the_same_tables_with_the_same_columns(tmp_path):
    store, other = store_in(tmp_path), apsw.Connection("")
    migrate(other, APPLICATION_ID)
    rows = connection_of(store).execute(
        "SELECT table_name AS name, column_name AS field FROM information_schema.columns"
        " WHERE table_schema = current_schema()"
    )
    ours = {(row["name"], row["field"]) for row in rows} - {("total", "part")}
    store.close()
    tables = [str(row[0]) for row in other.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    theirs = {(table, field) for table in tables for field in columns_of(other, table) if "sqlite_" not in table}
    other.close()
    assert {pair for pair in ours if pair[0] != "slot"} == theirs
    assert {table for table, _ in theirs} == {*TABLES, "schema"}
