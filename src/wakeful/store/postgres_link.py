"""Named queries over a connection to PostgreSQL.

Laws:
- Each thread that reads has a connection of its own, and waits for nobody.
- A connection that was lost is opened anew by whoever needs it next; what it was doing has failed, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from wakeful.core.errors import Busy
from wakeful.store.named_sql import Query, load_queries
from wakeful.store.postgres_place import Place
from wakeful.store.postgres_text import tabled
from wakeful.store.postgres_wire import Answer, Connection, Wire, bound
from wakeful.store.session import Row

# The connection is gone, or as good as gone.
_LOST = (
    psycopg.OperationalError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    # After a failover: it is the server that was, and only reads now.
    psycopg.errors.ReadOnlySqlTransaction,
)

# Two that look at tasks of one key at once both find theirs free; the index lets one of them have it.
ONE_OF_A_KEY = "item_key_held"

# Others were in the way: nothing was written, and the same may be tried again at once.
_CROWD = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class Crowded(Busy):
    """Others hold what this transaction needs beside what it has: it must begin again."""


@cache
def postgres_queries() -> dict[str, Query]:
    """`?1` is how the other dialect numbers its parameters; here it is `$1`."""
    queries = {}
    for name, query in load_queries("postgres").items():
        text = re.sub(r"\?(\d+)", r"$\1", query.text)
        queries[name] = Query(name, text, query.parameters)
        if text.endswith("FOR NO KEY UPDATE"):
            # Who holds something already asks for the same without waiting.
            queries[f"try_{name}"] = Query(f"try_{name}", f"{text} NOWAIT", query.parameters)
    return queries


class Link:
    """Named queries over one connection, which is opened when it is first needed and again when it was lost."""

    def __init__(self, place: Place, *, read_only: bool) -> None:
        self.place = place
        self._read_only = read_only
        self._wire: Wire | None = None
        self._queries = postgres_queries()
        self.closed = False

    @property
    def wire(self) -> Wire:
        wire = self._wire
        if wire is None or wire.connection.closed:
            if self.closed:
                raise Busy(f"the store at {self.place.name} was closed")
            try:
                wire = self._wire = self.open()
            except _LOST as error:
                raise self._away(error) from error
        return wire

    def open(self) -> Wire:
        return Wire(self.place.connect(read_only=self._read_only), prepare=self.place.prepare)

    @property
    def connection(self) -> Connection:
        """For what is no named query: nothing is left unread on it. Another thread may look at it, no more."""
        if not self.wire.waiting:
            self.settle()
        return self.wire.connection

    def _away(self, error: Exception) -> Busy:
        if isinstance(error, _CROWD):
            return Crowded(f"others are at work on the same: {str(error).strip()}")
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction) and self._wire is not None:
            self._wire.connection.close()
        return Busy(f"the database {self.place.name} is away: {str(error).strip()}")

    @property
    def status(self) -> TransactionStatus:
        """While nothing is outstanding."""
        if self._wire is None or self._wire.connection.closed:
            return TransactionStatus.UNKNOWN
        return self._wire.connection.info.transaction_status

    def send(self, name: str, parameters: Row) -> Answer:
        """Not waited for."""
        query = self._queries[name]
        if "rows" in query.parameters and "rows" not in parameters:
            # It takes many at once, and this is one.
            parameters = {"rows": tabled([parameters])}
        bindings = [bound(parameters[key]) for key in query.parameters]
        try:
            return self.wire.send(query, bindings)
        except _LOST as error:
            raise self._away(error) from error

    def say(self, statement: str) -> Answer:
        """A word of transactions, not waited for."""
        try:
            return self.wire.say(statement.encode())
        except _LOST as error:
            raise self._away(error) from error

    def settle(self) -> None:
        """Everything that was sent is done, or what went wrong is raised."""
        if self._wire is not None and self._wire.outstanding:
            try:
                self._wire.settle()
            except _LOST as error:
                raise self._away(error) from error
            except psycopg.errors.UniqueViolation as error:
                if error.diag.constraint_name != ONE_OF_A_KEY:
                    raise
                raise Crowded("another task of the same key was begun just now") from error
            except psycopg.errors.NotNullViolation as error:
                if error.diag.table_name != "attempt":
                    raise
                raise Crowded("another run was given the task just now") from error

    def ask(self, *queries: tuple[str, Row]) -> list[Answer]:
        """Sent together, and waited for."""
        answers = [self.send(query, parameters) for query, parameters in queries]
        self.settle()
        return answers

    def all(self, query: str, **parameters: Any) -> list[Row]:
        (answer,) = self.ask((query, parameters))
        return self.wire.rows(answer)

    def lists(self, *queries: tuple[str, Row]) -> list[list[Row]]:
        return [self.wire.rows(answer) for answer in self.ask(*queries)]

    def one(self, query: str, **parameters: Any) -> Row | None:
        rows = self.all(query, **parameters)
        return rows[0] if rows else None

    def close(self) -> None:
        self.closed = True
        if self._wire is not None:
            self._wire.connection.close()


class Reader(Link):
    """A connection that only reads: each query sees what was committed when it was asked."""

    def __init__(self, place: Place, log: int) -> None:
        super().__init__(place, read_only=True)
        self._log = log

    def ask(self, *queries: tuple[str, Row]) -> list[Answer]:
        if any("settled" in self._queries[query].parameters for query, _ in queries):
            row = self.one("last_settled", log=self._log)
            settled = row["id"] if row else 0
            queries = tuple((query, {**parameters, "settled": settled}) for query, parameters in queries)
        # Outside a snapshot a query stands alone; where the connection was lost before it, it is asked once more.
        alone = self.status is not TransactionStatus.INTRANS
        try:
            return super().ask(*queries)
        except Busy:
            if alone and self._wire is not None and self._wire.connection.closed and not self.closed:
                return super().ask(*queries)
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self.say("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self.settle()
        try:
            yield
        finally:
            if self.status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                self.say("ROLLBACK")
                self.settle()
