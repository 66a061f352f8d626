"""A whole store from PostgreSQL into one private file, and from such a file into PostgreSQL.

Laws:
- The file is a store of SQLite: what is backed up from one database can be looked at, opened and loaded with either.
- Both schemas have the same tables with the same columns; ids are kept, and none is ever given twice.
- A copy is one snapshot, whole or not there; what was loaded is compared row by row before it is committed.
- Who moves to another store brings nobody along: no node of before counts as being up, and no run as being held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import apsw
import psycopg
from psycopg import RawServerCursor, sql

from wakeful.core.errors import Mistake
from wakeful.store.backups import APPLICATION_ID, copy, verify
from wakeful.store.migrate import migrate
from wakeful.store.named_sql import load_queries
from wakeful.store.session import Row

Connection = psycopg.Connection[Row]
T = TypeVar("T")

# Each after those that it names.
TABLES = (
    *("address", "fleet", "agent", "declaration", "role", "standing", "wake", "run", "item", "dependency"),
    *("run_item", "attempt", "recurrence", "step", "pause", "total", "node", "source", "output", "event", "reckoning"),
)
NUMBERED = ("wake", "run", "item", "event")

_SHARE = 1_000

# Told of each share and of each table's end: what is done, with which table, how many rows of how many.
Progress = Callable[[str, str, int, int], None]

# As no lease and no node outlives its store: whoever held a run has another one now, if he is there at all.
_LET_GO = (
    "UPDATE node SET left_at = seen_at WHERE left_at IS NULL",
    "DELETE FROM source WHERE outage IS NULL",
    "UPDATE source SET node = NULL, lease_until = NULL",
    "UPDATE run SET lease_until = least(lease_until, lease_clock()) WHERE state = 'running'",
)


def backup(connection: Connection, path: Path) -> None:
    """Whatever the snapshot of this connection shows, in a new file."""
    # A database without a name lives in memory, and on disk when it grows; its last reader takes it along.
    draft = apsw.Connection("")
    try:
        migrate(draft, APPLICATION_ID)
        draft.execute("BEGIN")
        for table in TABLES:
            _draw(connection, draft, table)
        draft.execute("DELETE FROM sqlite_sequence")
        for table in NUMBERED:
            row = connection.execute(
                "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass), 0) AS last",
                (table,),
            ).fetchone()
            assert row is not None
            draft.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, row["last"]))
            # What was undone here has used up its numbers; an audit of the file would miss them.
            draft.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (f"{table} gaps", row["last"]))
        draft.execute("COMMIT")
        copy(draft, path)
    finally:
        draft.close()


def _draw(connection: Connection, draft: apsw.Connection, table: str) -> None:
    columns = columns_of(draft, table)
    marks = ", ".join("?" * len(columns))
    if table == "reckoning":
        # They came with the events; the originals may have been swept differently.
        draft.execute("DELETE FROM reckoning")
    draft.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", _rows(connection, table, columns))


def _rows(connection: Connection, table: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(names, sql.Identifier(table), sql.SQL(_order(table)))
    if table == "total":
        # The fleet's is in parts.
        sums = sql.SQL(", ").join(sql.SQL("sum({0})::bigint").format(sql.Identifier(name)) for name in columns[2:])
        query = sql.SQL("SELECT scope, day, {} FROM total GROUP BY scope, day ORDER BY 1, 2").format(sums)
    with RawServerCursor(connection, "drawn", row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.itersize = _SHARE
        cursor.execute(query.as_bytes(connection))
        yield from cursor


def _order(table: str) -> LiteralString:
    return "1, 2, 3" if table == "output" else "1, 2"


def columns_of(source: apsw.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in source.execute(f"PRAGMA table_info({table})")]


def load(path: Path, connection: Connection, *, told: Progress | None = None, moves: bool = False) -> dict[str, int]:
    """A store file into an empty store; how many rows of each table. All or nothing, compared before it is kept. With
    `moves` nobody who was at work on the file is taken to be at work here."""
    verify(path)
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    source = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        with connection.transaction():
            _refuse_full(connection)
            connection.execute("ALTER TABLE event DISABLE TRIGGER event_reckons")
            counts = {table: _pour(source, connection, table, told) for table in TABLES}
            connection.execute("ALTER TABLE event ENABLE TRIGGER event_reckons")
            for table in NUMBERED:
                _go_on_from(source, connection, table)
            # The one table that the file has not: what is open takes its slots again.
            connection.execute(load_queries("postgres")["number_slots"].text.encode())
            for table in TABLES:
                _compare(source, connection, table, counts[table], told)
            for statement in _LET_GO if moves else ():
                connection.execute(statement.encode())
    finally:
        source.close()
    return counts


def _counted(rows: Iterable[T], what: str, table: str, of: int, told: Progress | None) -> Iterator[T]:
    done = 0
    for done, row in enumerate(rows, 1):
        yield row
        if told is not None and done % _SHARE == 0 and done < of:
            told(what, table, done, of)
    if told is not None:
        told(what, table, done, of)


def _refuse_full(connection: Connection) -> None:
    row = connection.execute("SELECT EXISTS (SELECT 1 FROM event) OR EXISTS (SELECT 1 FROM address) AS used").fetchone()
    if row is not None and row["used"]:
        raise Mistake("the store to copy into is not empty", "name an empty database or another schema")


def _pour(source: apsw.Connection, connection: Connection, table: str, told: Progress | None) -> int:
    columns = columns_of(source, table)
    query = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    count: int = next(source.execute(f"SELECT count(*) FROM {table}"))[0]
    rows = source.execute(f"SELECT {', '.join(columns)} FROM {table}")
    with connection.cursor() as cursor, cursor.copy(query.as_bytes(connection)) as poured:
        for row in _counted(rows, "copied", table, count, told):
            poured.write_row(row)
    return count


def _go_on_from(source: apsw.Connection, connection: Connection, table: str) -> None:
    """Ids that were given and forgotten since are not given again."""
    last = next(source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)), (0,))[0]
    if last:
        connection.execute("SELECT setval(pg_get_serial_sequence($1, 'id')::regclass, $2)", (table, last))


def _compare(source: apsw.Connection, connection: Connection, table: str, of: int, told: Progress | None) -> None:
    columns = columns_of(source, table)
    mine = source.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {_order(table)}")
    both = zip_longest(mine, _rows(connection, table, columns))
    for one, other in _counted(both, "compared", table, of, told):
        if one != other:
            raise Mistake(f"the copy of {table} differs: {one!r} became {other!r}", "nothing was kept; report this")
