"""Statements over one connection to PostgreSQL, in the words of its protocol.

Laws:
- A statement is prepared once. What type a parameter has, the statement says; all are sent as text.
- What is sent is not waited for; whoever asks for an answer waits for all that was sent before it. So an error may be
  raised by a later statement than the one that met it.
- While we send, we read: neither side ever waits for the other to empty its buffers.

A cursor of psycopg costs several times the processor time that the server needs for statements as small as ours. This
is the layer below it (`psycopg.pq`), on the same connection, which is psycopg's as ever while nothing is outstanding.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult

from wakeful.store.named_sql import Query
from wakeful.store.postgres_text import listed, read, written
from wakeful.store.session import Row

Connection = psycopg.Connection[Row]

# So many answers at most are left unread, for they are kept in memory on both sides.
MOST_SENT = 256

_FINE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)

_Load = Callable[[bytes], Any]


def _load_bytes(value: bytes) -> bytes:
    return bytes.fromhex(value[2:].decode())


def _load_free_text(value: bytes) -> str:
    return read(value.decode())


# By the number of the type. Free text is VARCHAR in our schema, and only that; names and marks take the faster way.
_LOADS: dict[int, _Load] = {
    16: lambda value: value == b"t",
    17: _load_bytes,
    20: int,
    21: int,
    23: int,
    25: bytes.decode,
    1043: _load_free_text,
    2278: lambda value: None,
}


def bound(value: Any) -> bytes | None:
    """As the server reads it, whatever its type there."""
    if value is None:
        return None
    if isinstance(value, str):
        return str.encode(written(value))
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if isinstance(value, list):
        return listed(value).encode()
    raise TypeError(f"{value!r} cannot be bound")


class Answer:
    """What came back of one statement, once everything before it has been read."""

    __slots__ = ("name", "result")

    def __init__(self, name: str) -> None:
        self.name = name
        self.result: PGresult | None = None

    @property
    def changed(self) -> int:
        """How many rows it changed, or found."""
        return 0 if self.result is None else self.result.command_tuples or 0

    @property
    def tag(self) -> bytes:
        return b"" if self.result is None else self.result.command_status or b""


class Wire:
    def __init__(self, connection: Connection, *, prepare: bool) -> None:
        self.connection = connection
        # Whether somebody is in `settle`.
        self.waiting = False
        self._libpq = connection.pgconn
        self._prepare = prepare
        self._known: dict[str, bytes] = {}
        self._columns: dict[str, list[tuple[str, _Load]]] = {}
        self._sent: list[Answer] = []
        # Where among what was sent a statement is prepared: what follows an error is not heard, and not prepared.
        self._preparing: dict[Answer, str] = {}
        self._socket = connection.pgconn.socket
        self._readable = select.poll()
        self._readable.register(self._socket, select.POLLIN)

    @property
    def outstanding(self) -> bool:
        """Whether anything was sent whose end is not known."""
        return bool(self._sent)

    def send(self, query: Query, bindings: list[bytes | None]) -> Answer:
        """Not waited for: the answer is there after `settle`."""
        if len(self._sent) >= MOST_SENT:
            self.settle()
        self._begin()
        if self._prepare:
            self._libpq.send_query_prepared(self._prepared(query), bindings)
        else:
            self._libpq.send_query_params(query.text.encode(), bindings)
        return self._await(query.name)

    def say(self, statement: bytes) -> Answer:
        """A word of transactions: BEGIN, COMMIT and the like, which need no plan."""
        self._begin()
        self._libpq.send_query_params(statement, None)
        return self._await("")

    def _begin(self) -> None:
        if not self._sent:
            self._libpq.enter_pipeline_mode()

    def _await(self, name: str) -> Answer:
        answer = Answer(name)
        self._sent.append(answer)
        return answer

    def _prepared(self, query: Query) -> bytes:
        name = self._known.get(query.name)
        if name is None:
            name = self._known[query.name] = query.name.encode()
            self._libpq.send_prepare(name, query.text.encode())
            self._preparing[self._await("")] = query.name
        return name

    def settle(self) -> None:
        """Until everything that was sent is done; of what went wrong, the first is raised."""
        if not self._sent:
            return
        error: psycopg.Error | None = None
        self.waiting = True
        try:
            self._libpq.pipeline_sync()
            self._flush()
            for answer in self._sent:
                error = self._read(answer) or error
            if self._next().status != ExecStatus.PIPELINE_SYNC:
                raise psycopg.OperationalError("the server answered what was not asked")
            self._libpq.exit_pipeline_mode()
            while self._libpq.notifies():
                # Behind a pooler those of others may come here; nobody listens on this one.
                pass
        except BaseException:
            # Cut off in the middle of an answer there is no way to go on; the server undoes what was not committed.
            self.connection.close()
            raise
        finally:
            self.waiting = False
            self._sent.clear()
            self._preparing.clear()
        if error is not None:
            raise error

    def _read(self, answer: Answer) -> psycopg.Error | None:
        result, error = self._next(), None
        if result.status in _FINE:
            answer.result = result
        else:
            # What was sent after something that went wrong is only told that it was not heard.
            error = error_from_result(result) if result.status == ExecStatus.FATAL_ERROR else None
            self._known.pop(self._preparing.get(answer, ""), None)
        if self._libpq.status == ConnStatus.BAD:
            raise error or psycopg.OperationalError("the connection was lost")
        self._wait()
        self._libpq.get_result()
        return error

    def _next(self) -> PGresult:
        self._wait()
        result = self._libpq.get_result()
        if result is None:
            raise psycopg.OperationalError("the connection was lost")
        return result

    def _wait(self) -> None:
        libpq = self._libpq
        while libpq.is_busy():
            self._readable.poll()
            libpq.consume_input()

    def _flush(self) -> None:
        libpq = self._libpq
        while libpq.flush():
            ready = select.poll()
            ready.register(self._socket, select.POLLIN | select.POLLOUT)
            if any(events & ~select.POLLOUT for _, events in ready.poll()):
                libpq.consume_input()

    def rows(self, answer: Answer) -> list[Row]:
        result = answer.result
        if result is None:
            raise psycopg.InternalError(f"{answer.name} was not answered")
        columns = self._columns.get(answer.name)
        if columns is None:
            columns = [(_named(result, at), _LOADS[result.ftype(at)]) for at in range(result.nfields)]
            self._columns[answer.name] = columns
        get = result.get_value
        rows = []
        for number in range(result.ntuples):
            row: Row = {}
            for at, (column, load) in enumerate(columns):
                value = get(number, at)
                row[column] = None if value is None else load(value)
            rows.append(row)
        return rows


def _named(result: PGresult, at: int) -> str:
    return (result.fname(at) or b"").decode()
