"""SQLite behind the store's session.

Laws:
- One process writes, over one connection, which alone checkpoints; everything else opens the file read-only.
- Always BEGIN IMMEDIATE: a read that turns into a write fails at once in SQLite, whatever the timeout.
- `synchronous=FULL`: what was committed survives the loss of power. Only tests say otherwise.
- A file that is damaged is not opened (see `pages`). One that cannot be written for now, or is no longer where it was,
  is `Sick`: nothing is answered as done. After an error of the disk the connection is another one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from wakeful.core.errors import Busy, Mistake, Sick
from wakeful.store import pages
from wakeful.store.backups import APPLICATION_ID, copy
from wakeful.store.filing import Filing
from wakeful.store.migrate import migrate
from wakeful.store.named_sql import Query, load_queries
from wakeful.store.session import CALL, Probe, Row
from wakeful.store.store import SqlStore

BUSY_TIMEOUT_MS, IMPATIENT_MS = 4_000, 100
_CACHE_KIB = 64 * 1024
# By these the disk, or the file on it, tells that it is in trouble.
TROUBLE = (
    *(apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.CorruptError, apsw.NotADBError),
    *(apsw.PermissionsError, apsw.ProtocolError, apsw.NoLFSError),
)


def _keep_a_log(connection: apsw.Connection) -> None:
    """While another process turns a fresh file into one with a log, SQLite refuses at once, whatever its timeout."""
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


class _Connection:
    """Named queries over one apsw connection."""

    def __init__(self, connection: apsw.Connection, queries: dict[str, Query]) -> None:
        self.connection = connection
        self._begin_with(connection)
        self._queries = queries
        self._columns: dict[str, tuple[str, ...]] = {}

    def _begin_with(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Without this a statement that touches a partial index is prepared anew for every new value that is bound.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)

    def _execute(self, name: str, parameters: Row) -> apsw.Cursor:
        query = self._queries[name]
        bindings = tuple([parameters[key] for key in query.parameters])
        try:
            return self.connection.execute(query.text, bindings)
        except apsw.BusyError as error:
            raise Busy(f"the database is locked by another process: {error}") from error
        except TROUBLE as error:
            raise self.sick(error) from error

    def sick(self, error: Exception) -> Sick:
        return Sick(f"the store does not answer: {error}; see that its disk is there, writable and not full")

    def all(self, query: str, **parameters: Any) -> list[Row]:
        try:
            return self._rows(query, self._execute(query, parameters))
        except TROUBLE as error:
            raise self.sick(error) from error

    def _rows(self, query: str, cursor: apsw.Cursor) -> list[Row]:
        columns = self._columns.get(query)
        if columns is None:
            first = next(cursor, None)
            if first is None:
                return []
            columns = self._columns[query] = tuple(column[0] for column in cursor.get_description())
            return [dict(zip(columns, row, strict=True)) for row in (first, *cursor)]
        return [dict(zip(columns, row)) for row in cursor.fetchall()]  # noqa: B905  as strict the first time

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

    def __init__(
        self, path: Path, *, durable: bool = True, probe: Probe | None = None, disk: str | None = None
    ) -> None:
        """`disk` is the name of the VFS that it is reached by, where it is not the machine's own."""
        summed = durable and pages.verify(path)
        _create(path)
        self.path = path
        self._file, self._log = str(path), str(pages.log_of(path))
        self.probe = probe
        self._disk = disk
        self._durable = durable
        super().__init__(self._connected(), load_queries("sqlite"))
        self.depth = 0
        self.held_by: int | None = None
        self.untouched = False
        self._local = threading.local()
        self._readers: list[Reader] = []
        self._filing: Filing | None = None
        # The disk failed us over this connection.
        self._suspect = False
        self.patient = True
        self._refuse_foreign()
        try:
            self._prepare(durable)
            migrate(self.connection, APPLICATION_ID)
            if durable:
                self._filing = Filing(path, self.connection, summed=summed)
            else:
                pages.forget(path)
            self._place = self._where()
        except apsw.BusyError as error:
            self.close()
            raise Busy(f"{path} is locked by another process") from error
        except TROUBLE as error:
            self.close()
            raise self.sick(error) from error
        except Mistake:
            self.close()
            raise

    def _connected(self) -> apsw.Connection:
        try:
            connection = apsw.Connection(
                str(self.path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._disk, statementcachesize=256
            )
        except TROUBLE as error:
            raise self.sick(error) from error
        return connection

    def _where(self) -> tuple[int, int, int, int]:
        """Which files we write to, as far as they are still where they were."""
        try:
            file, log = os.stat(self._file), os.stat(self._log)
        except OSError as error:
            raise Sick(f"{error.filename} was taken away while it was in use: put it back") from error
        return file.st_dev, file.st_ino, log.st_dev, log.st_ino

    def must_be_there(self) -> None:
        """Before anything is written: what went into a file that nobody can find again would be lost."""
        if self._suspect:
            self._reconnect()
        if self._where() != self._place:
            raise Sick(f"{self.path} was replaced while it was in use: stop the engine, then put it back")

    def be_patient(self, patient: bool) -> None:
        """Whoever finds the lock taken after a long wait has waited for those who come next, too."""
        self.patient = patient
        self.connection.set_busy_timeout(BUSY_TIMEOUT_MS if patient else IMPATIENT_MS)

    def _reconnect(self) -> None:
        old, self.connection = self.connection, self._connected()
        self._begin_with(self.connection)
        try:
            self._prepare(self._durable)
            if self._filing is not None:
                self._filing.follow(self.connection)
        except TROUBLE as error:
            raise self.sick(error) from error
        with suppress(apsw.Error):
            old.close(True)
        self._suspect = False

    def sick(self, error: Exception) -> Sick:
        self._suspect = not isinstance(error, apsw.FullError)
        return super().sick(error)

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
        remedy = "name another data folder, or restore this file from a backup; it was left untouched"
        return Mistake(f"{self.path} is not a wakeful store: {why}", remedy)

    def _prepare(self, durable: bool) -> None:
        connection = self.connection
        connection.pragma("synchronous", "full" if durable else "off")
        _keep_a_log(connection)
        connection.pragma("foreign_keys", True)
        connection.pragma("cache_size", -_CACHE_KIB)
        connection.pragma("trusted_schema", False)
        # What a part of a transaction would undo is kept at hand: it is written with almost every statement.
        connection.pragma("temp_store", "memory")

    def transaction(self, site: str) -> AbstractContextManager[None]:
        return _Part(self, site) if self.depth else _Whole(self, site)

    @property
    def alive(self) -> bool:
        return self.connection.in_transaction

    def nearest(self) -> _Connection:
        return self if self.held_by == threading.get_ident() else self.reader()

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
            try:
                self.connection.executemany(self._queries[query].text, bindings)
            except TROUBLE as error:
                raise self.sick(error) from error

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
        if self._filing is not None:
            self._filing.close()
            self._filing = None
        super().close()


class _Whole:
    """A transaction of its own: begun at once, committed at the end, told to the probe on both sides."""

    __slots__ = ("session", "site")

    def __init__(self, session: SqliteSession, site: str) -> None:
        self.session = session
        self.site = site

    def __enter__(self) -> None:
        session = self.session
        session.must_be_there()
        try:
            session.connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            session.be_patient(False)
            raise Busy(f"{session.path} is locked by another process") from error
        except TROUBLE as error:
            raise session.sick(error) from error
        if not session.patient:
            session.be_patient(True)
        session.depth = 1
        session.held_by = threading.get_ident()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        session = self.session
        session.depth, session.held_by = 0, None
        try:
            if kind is None:
                if session.probe:
                    session.probe("before", self.site)
                session.connection.execute("COMMIT")
        except TROUBLE as trouble:
            raise session.sick(trouble) from trouble
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


def open_sqlite(path: Path, *, durable: bool = True, probe: Probe | None = None, disk: str | None = None) -> SqlStore:
    """The store in one file. The caller holds the data folder's lock (see `folder`)."""
    return SqlStore(SqliteSession(path, durable=durable, probe=probe, disk=disk))
