"""SQLite behind the store's session.

Laws:
- One process writes, over one connection, which alone checkpoints; everything else opens the file read-only.
- Always BEGIN IMMEDIATE: a read that turns into a write fails at once in SQLite, whatever the timeout.
- `synchronous=FULL`: what was committed survives the loss of power. Only tests say otherwise.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw

from wakeful.core.errors import Busy, Mistake
from wakeful.store.backups import APPLICATION_ID, copy
from wakeful.store.migrate import migrate
from wakeful.store.named_sql import Query, load_queries
from wakeful.store.session import CALL, Probe, Row
from wakeful.store.store import SqlStore

BUSY_TIMEOUT_MS = 5_000
_CACHE_KIB = 64 * 1024


class _Connection:
    """Named queries over one apsw connection."""

    def __init__(self, connection: apsw.Connection, queries: dict[str, Query]) -> None:
        self.connection = connection
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Without this a statement that touches a partial index is prepared anew for every new value that is bound.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._queries = queries
        self._columns: dict[str, tuple[str, ...]] = {}

    def _execute(self, name: str, parameters: Row) -> apsw.Cursor:
        query = self._queries[name]
        bindings = tuple([parameters[key] for key in query.parameters])
        try:
            return self.connection.execute(query.text, bindings)
        except apsw.BusyError as error:
            raise Busy(f"the database is locked by another process: {error}") from error

    def all(self, query: str, **parameters: Any) -> list[Row]:
        cursor = self._execute(query, parameters)
        columns = self._columns.get(query)
        rows = []
        for row in cursor:
            if columns is None:
                columns = tuple(column[0] for column in cursor.get_description())
                self._columns[query] = columns
            rows.append(dict(zip(columns, row, strict=True)))
        return rows

    def lists(self, *queries: tuple[str, Row]) -> list[list[Row]]:
        return [self.all(query, **parameters) for query, parameters in queries]

    def one(self, query: str, **parameters: Any) -> Row | None:
        rows = self.all(query, **parameters)
        return rows[0] if rows else None

    def close(self) -> None:
        self.connection.close()


class Reader(_Connection):
    """A read-only connection: in WAL mode it neither waits for the writer nor holds it up."""

    def __init__(self, path: Path, queries: dict[str, Query]) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        super().__init__(apsw.Connection(uri, flags=flags, statementcachesize=256), queries)
        self.connection.pragma("query_only", True)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("COMMIT")


class SqliteSession(_Connection):
    """The writing connection of a store file, and the readers beside it."""

    broken: type[Exception] = apsw.ConstraintError

    def unreferenced(self, error: Exception) -> bool:
        return getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_FOREIGNKEY

    def __init__(self, path: Path, *, durable: bool = True, probe: Probe | None = None) -> None:
        _create(path)
        flags = apsw.SQLITE_OPEN_READWRITE
        super().__init__(apsw.Connection(str(path), flags=flags, statementcachesize=256), load_queries("sqlite"))
        self.path = path
        self.probe = probe
        self.depth = 0
        self.untouched = False
        self._local = threading.local()
        self._readers: list[Reader] = []
        self._refuse_foreign()
        try:
            self._prepare(durable)
            migrate(self.connection, APPLICATION_ID)
        except apsw.BusyError as error:
            self.close()
            raise Busy(f"{path} is locked by another process") from error

    def _refuse_foreign(self) -> None:
        """A file that is not ours is left as it is, to the byte."""
        try:
            tables = self.connection.execute("SELECT count(*) FROM sqlite_schema").get
            ours = self.connection.pragma("application_id") == APPLICATION_ID
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise self._not_ours(str(error)) from error
        if tables and not ours:
            raise self._not_ours("it is the database of another program")

    def _not_ours(self, why: str) -> Mistake:
        self.close()
        return Mistake(
            f"{self.path} is not a wakeful store: {why}",
            "name another data folder, or restore this file from a backup; it was left untouched",
        )

    def _prepare(self, durable: bool) -> None:
        connection = self.connection
        connection.pragma("synchronous", "full" if durable else "off")
        connection.pragma("journal_mode", "wal")
        connection.pragma("foreign_keys", True)
        connection.pragma("cache_size", -_CACHE_KIB)
        connection.pragma("trusted_schema", False)

    def transaction(self, site: str) -> AbstractContextManager[None]:
        return _Part(self, site) if self.depth else _Whole(self, site)

    @property
    def alive(self) -> bool:
        return self.connection.in_transaction

    def write(self, query: str, **parameters: Any) -> None:
        for _ in self._execute(query, parameters):
            pass

    def run(self, query: str, **parameters: Any) -> int:
        before = self.connection.total_changes()
        for _ in self._execute(query, parameters):
            pass
        return self.connection.total_changes() - before

    def insert(self, query: str, **parameters: Any) -> int | None:
        # RETURNING would build a temporary table for every row.
        self._execute(query, parameters)
        return self.connection.last_insert_rowid() if self.connection.changes() else None

    def inserts(self, query: str, rows: Sequence[Row]) -> list[int]:
        before = self.connection.total_changes()
        self.many(query, rows)
        if self.connection.total_changes() - before != len(rows):
            raise AssertionError(f"{query}: not every row is a new one")
        # One connection writes, and ids are given one after the other.
        last = self.connection.last_insert_rowid()
        return list(range(last - len(rows) + 1, last + 1))

    def many(self, query: str, rows: Sequence[Row]) -> None:
        if len(rows) == 1:
            self.write(query, **rows[0])
        elif rows:
            names = self._queries[query].parameters
            bindings = [tuple([row[name] for name in names]) for row in rows]
            self.connection.executemany(self._queries[query].text, bindings)

    def reader(self) -> Reader:
        """The calling thread's own read-only connection."""
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = Reader(self.path, self._queries)
            self._readers.append(reader)
        return reader

    def backup(self, path: Path) -> None:
        copy(self.reader().connection, path)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        super().close()


class _Whole:
    """A transaction of its own: begun at once, committed at the end, told to the probe on both sides."""

    __slots__ = ("session", "site")

    def __init__(self, session: SqliteSession, site: str) -> None:
        self.session = session
        self.site = site

    def __enter__(self) -> None:
        try:
            self.session.connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            raise Busy(f"{self.session.path} is locked by another process") from error
        self.session.depth = 1

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        session = self.session
        session.depth = 0
        try:
            if kind is None:
                if session.probe:
                    session.probe("before", self.site)
                session.connection.execute("COMMIT")
        finally:
            # After a commit there is nothing to undo; after anything else there may be.
            if session.connection.in_transaction:
                session.connection.execute("ROLLBACK")
        if kind is None and session.probe:
            session.probe("after", self.site)


class _Part:
    """A transaction inside another: a savepoint, undone alone.

    The first part inside a writer's call finds nothing written yet, and shares the savepoint of that call.
    """

    __slots__ = ("session", "shared", "site")

    def __init__(self, session: SqliteSession, site: str) -> None:
        self.session = session
        self.site = site
        self.shared = False

    def __enter__(self) -> None:
        session = self.session
        self.shared = session.untouched
        session.untouched = self.site == CALL
        session.depth += 1
        if not self.shared:
            session.connection.execute("SAVEPOINT part")

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        connection = self.session.connection
        self.session.depth -= 1
        self.session.untouched = False
        # An error such as a full disk may have undone the whole transaction, and the savepoint with it.
        if connection.in_transaction:
            if kind is not None:
                connection.execute("ROLLBACK TO part")
            if not self.shared:
                connection.execute("RELEASE part")


def _create(path: Path) -> None:
    """A new file is private from its first instant."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        reason = f"cannot open {path}: {error.strerror}"
        raise Mistake(reason, "name a data folder that you may write to") from error


def open_sqlite(path: Path, *, durable: bool = True, probe: Probe | None = None) -> SqlStore:
    """The store in one file. The caller holds the data folder's lock (see `folder`)."""
    return SqlStore(SqliteSession(path, durable=durable, probe=probe))
