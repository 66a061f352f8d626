"""PostgreSQL behind the store's session: connections, transactions, and what a transaction holds.

Laws:
- One connection writes, in transactions that are as short as a verb; each thread that reads has one of its own, and
  waits for nobody.
- A connection that was lost is opened anew by whoever needs it next; what it was doing has failed, and says so.
- Every connection notices a server that has gone silent within seconds (keepalives, `tcp_user_timeout`).
- Wait only with empty hands. Who holds a lock already only tries for the next one, and where it is not to be had is
  `Crowded`: everything is put down, and begun again. (The fleet's money is waited for, as the last of all.)
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from wakeful.core.errors import Busy, Mistake
from wakeful.store.named_sql import Query, load_queries
from wakeful.store.postgres_copy import backup
from wakeful.store.postgres_migrate import migrate
from wakeful.store.postgres_text import adapt
from wakeful.store.session import CALL, Probe, Row

# Silence for longer than this is the loss of the connection, not a slow answer.
_PATIENCE = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "wakeful",
}

# A transaction of ours that its engine has forgotten must not hold up the others.
_SETTINGS = {"idle_in_transaction_session_timeout": "60s", "client_min_messages": "warning"}

# The connection is gone, or as good as gone.
_LOST = (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout)

# Others were in the way: nothing was written, and the same may be tried again at once.
_CROWD = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)

Connection = psycopg.Connection[Row]


class Crowded(Busy):
    """Others hold what this transaction needs beside what it has: it must begin again."""


@cache
def _queries() -> dict[str, Query]:
    """`?1` is how the other dialect numbers its parameters; here it is `$1`."""
    return {
        name: Query(name, re.sub(r"\?(\d+)", r"$\1", query.text), query.parameters)
        for name, query in load_queries("postgres").items()
    }


class Place:
    """Where the store is, and how a connection to it is made."""

    def __init__(self, dsn: str, schema: str | None, prepare: bool) -> None:
        try:
            named = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError as error:
            said = str(error).strip()
            raise Mistake(f"not an address of PostgreSQL: {said}", "write postgresql://user@host/database") from error
        self.schema = schema
        self.prepare = prepare
        # For people: whatever else the address says may be secret.
        self.name = f"{named.get('host') or 'localhost'}/{named.get('dbname') or ''}"
        settings = dict(_SETTINGS) | ({"search_path": _quoted(schema)} if schema else {})
        options = " ".join(f"-c {key}={value}" for key, value in settings.items())
        mine = {**_PATIENCE, **{key: value for key, value in named.items() if value is not None}}
        mine["options"] = f"{mine['options']} {options}" if mine.get("options") else options
        self._conninfo = make_conninfo("", **mine)

    def connect(self, *, read_only: bool = False) -> Connection:
        connection: Connection = psycopg.connect(
            self._conninfo,
            autocommit=True,
            row_factory=dict_row,
            cursor_factory=RawCursor,
            prepare_threshold=3 if self.prepare else None,
        )
        try:
            adapt(connection)
            if read_only:
                connection.execute("SET default_transaction_read_only = on")
        except BaseException:
            connection.close()
            raise
        return connection


def _quoted(schema: str) -> str:
    """For the options of a connection, in which a blank ends a setting."""
    name = '"' + schema.replace('"', '""') + '"'
    return re.sub(r"([\\ ])", r"\\\1", name)


class _Link:
    """Named queries over one connection, which is opened when it is first needed and again when it was lost."""

    def __init__(self, place: Place, *, read_only: bool) -> None:
        self.place = place
        self._read_only = read_only
        self._connection: Connection | None = None
        self._queries = _queries()
        self.closed = False

    @property
    def connection(self) -> Connection:
        connection = self._connection
        if connection is None or connection.closed:
            if self.closed:
                raise Busy(f"the store at {self.place.name} was closed")
            try:
                connection = self._connection = self.place.connect(read_only=self._read_only)
            except _LOST as error:
                raise self._away(error) from error
        return connection

    def _away(self, error: Exception) -> Busy:
        if isinstance(error, _CROWD):
            return Crowded(f"others are at work on the same: {str(error).strip()}")
        return Busy(f"the database {self.place.name} is away: {str(error).strip()}")

    @property
    def status(self) -> TransactionStatus:
        known = self._connection
        return TransactionStatus.UNKNOWN if known is None or known.closed else known.info.transaction_status

    def execute(self, name: str, parameters: Row) -> RawCursor[Row]:
        query = self._queries[name]
        bindings = [parameters[key] for key in query.parameters]
        try:
            return self.connection.execute(query.text.encode(), bindings)  # type: ignore[return-value]
        except _LOST as error:
            raise self._away(error) from error

    def say(self, statement: str) -> None:
        """A word of transactions: BEGIN, COMMIT and the like, which need no plan."""
        try:
            self.connection.execute(statement.encode(), prepare=False)
        except _LOST as error:
            raise self._away(error) from error

    def all(self, query: str, **parameters: Any) -> list[Row]:
        return self.execute(query, parameters).fetchall()

    def one(self, query: str, **parameters: Any) -> Row | None:
        return self.execute(query, parameters).fetchone()

    def close(self) -> None:
        self.closed = True
        if self._connection is not None:
            self._connection.close()


class Reader(_Link):
    """A connection that only reads: each query sees what was committed when it was asked."""

    def __init__(self, place: Place, log: int) -> None:
        super().__init__(place, read_only=True)
        self._log = log

    def execute(self, name: str, parameters: Row) -> RawCursor[Row]:
        if "settled" in self._queries[name].parameters:
            row = self.execute("last_settled", {"log": self._log}).fetchone()
            parameters = {**parameters, "settled": row["id"] if row else 0}
        # Outside a snapshot a query stands alone; where the connection was lost before it, it is asked once more.
        alone = self.status is not TransactionStatus.INTRANS
        try:
            return super().execute(name, parameters)
        except Busy:
            if alone and self._connection is not None and self._connection.closed and not self.closed:
                return super().execute(name, parameters)
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self.say("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            if self.status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                self.say("ROLLBACK")


class PostgresSession(_Link):
    """The writing connection of a store, and the readers beside it."""

    broken: type[Exception] = psycopg.IntegrityError

    def unreferenced(self, error: Exception) -> bool:
        return isinstance(error, psycopg.errors.ForeignKeyViolation)

    def __init__(self, place: Place, *, probe: Probe | None = None) -> None:
        super().__init__(place, read_only=False)
        self.probe = probe
        self.depth = 0
        self.untouched = False
        # Whether the transaction holds locks that others may wait for.
        self.laden = False
        # Whether it has said where it stands among the events.
        self.logs = False
        self._local = threading.local()
        self._readers: list[Reader] = []
        try:
            self._connection = place.connect()
            migrate(self.connection, place.schema)
            number = _number(self.connection)
            self.house, self.log = number << 8, (1 << 62) | (number % (1 << 24)) << 38
        except psycopg.OperationalError as error:
            self.close()
            reason = f"cannot open the store at {place.name}: {str(error).strip()}"
            raise Mistake(reason, "start the server, or mend the address of the store") from error
        except BaseException:
            self.close()
            raise

    def transaction(self, site: str) -> AbstractContextManager[None]:
        return _Part(self, site) if self.depth else _Whole(self, site)

    @property
    def alive(self) -> bool:
        return self.status is TransactionStatus.INTRANS

    def enter(self) -> None:
        """With all others who do the ordinary, and with nobody who changes the order of the house."""
        if self.laden:
            self._try("try_house", house=self.house)
        else:
            self.execute("enter_house", {"house": self.house})

    def alone(self) -> None:
        """With nobody else, until the commit."""
        if self.laden:
            self._try("try_house_alone", house=self.house)
        else:
            self.execute("have_house", {"house": self.house})
        self.laden = True

    def hold(self, **whose: Any) -> None:
        """The addresses of all whom it concerns, until the commit."""
        self.execute("try_addresses" if self.laden else "addresses", whose)
        self.laden = True

    def purse(self) -> None:
        """The money of the fleet, where it is bounded: one looks into it at a time."""
        # Always the last that is waited for, so those who have it wait for nobody.
        self.execute("hold_purse", {"purse": self.house + 1})

    def enter_log(self) -> None:
        """From here on nobody reads on behind what this transaction will have told."""
        if not self.logs:
            self.execute("enter_log", {"log": self.log})
            self.logs = True

    def _try(self, query: str, **parameters: Any) -> None:
        row = self.execute(query, parameters).fetchone()
        if row is None or not row["had"]:
            raise Crowded("others are at work, and this has work of its own under way")

    def run(self, query: str, **parameters: Any) -> int:
        return self.execute(query, parameters).rowcount

    def insert(self, query: str, **parameters: Any) -> int | None:
        row = self.execute(query, parameters).fetchone()
        return None if row is None else int(row["id"])

    def many(self, query: str, rows: Iterable[Row]) -> None:
        compiled = self._queries[query]
        bindings = [[row[key] for key in compiled.parameters] for row in rows]
        if bindings:
            try:
                with self.connection.cursor() as cursor:
                    cursor.executemany(compiled.text.encode(), bindings)
            except _LOST as error:
                raise self._away(error) from error

    def reader(self) -> Reader:
        """The calling thread's own connection."""
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = Reader(self.place, self.log)
            self._readers.append(reader)
        return reader

    def backup(self, path: Path) -> None:
        reader = self.reader()
        with reader.snapshot():
            backup(reader.connection, path)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        super().close()


class _Whole:
    """A transaction of its own: committed at the end, told to the probe on both sides."""

    __slots__ = ("session", "site")

    def __init__(self, session: PostgresSession, site: str) -> None:
        self.session = session
        self.site = site

    def __enter__(self) -> None:
        self.session.say("BEGIN")
        self.session.depth = 1
        self.session.laden = self.session.logs = False

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        session = self.session
        session.depth = 0
        try:
            if kind is None:
                if session.probe:
                    session.probe("before", self.site)
                session.say("COMMIT")
        finally:
            # After a commit there is nothing to undo; after anything else there may be, unless all is lost.
            if session.status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                with suppress(Busy):
                    session.say("ROLLBACK")
        if kind is None and session.probe:
            session.probe("after", self.site)


class _Part:
    """A transaction inside another: a savepoint, undone alone.

    The first part inside a writer's call, or after the locks of a verb, finds nothing written yet, and shares what it
    is in: a savepoint, or the whole.
    """

    __slots__ = ("session", "shared", "site")

    def __init__(self, session: PostgresSession, site: str) -> None:
        self.session = session
        self.site = site
        self.shared = False

    def __enter__(self) -> None:
        session = self.session
        self.shared = session.untouched
        session.untouched = self.site == CALL
        session.depth += 1
        if not self.shared:
            session.say("SAVEPOINT part")

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        session = self.session
        session.depth -= 1
        session.untouched = False
        # Where the connection was lost, the whole transaction is, and the savepoint with it.
        if session.status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            if kind is not None and (session.depth > 1 or not self.shared):
                session.say("ROLLBACK TO part")
                session.logs = False
            if not self.shared:
                session.say("RELEASE part")


def _number(connection: Connection) -> int:
    """By which the locks of this store are told from those of others in the same database."""
    row = connection.execute("SELECT 'address'::regclass::oid::bigint AS number").fetchone()
    assert row is not None
    return int(row["number"])
