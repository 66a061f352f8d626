"""The store in PostgreSQL: opened, and written to by many nodes at once.

Laws:
- What cannot come right by itself (a wrong password, no such database, a strange schema) is a `Mistake` at once.
- Whoever shall stay waits for a server that is away, and says what it waits for.
- No word of ours holds a password, also where it stands in the wrong place of an address.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from wakeful.core.errors import Busy, Mistake
from wakeful.store.postgres_place import Place
from wakeful.store.postgres_session import Crowded, PostgresSession, Reader
from wakeful.store.postgres_store import TRIES, PostgresStore, step_aside
from wakeful.store.postgres_wire import Connection
from wakeful.store.session import Probe
from wakeful.store.writer import Answer, Writer

log = logging.getLogger("wakeful.store")

# Between two attempts to open a store whose server is away, and between two words about it.
WAIT, WORD = 1.0, 30.0

_STRENGTH = """
SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
    current_setting('synchronous_commit') AS commits, current_setting('fsync') AS flushes,
    current_setting('full_page_writes') AS pages
"""

_REMEDY = "write postgresql://user:password@host:5432/database; in a password %40 stands for @, %2F for / and %3A for :"

# The client library tells no code of why a connection was refused, only words. Words that are not known here (another
# language) are waited on; what is waited for is said all the same.
_HOPELESS = re.compile(
    r"authentication failed|pg_hba\.conf|not permitted to log in|"
    r'(database|role|user) "[^"]*" does not exist|no such (database|user)|permission denied|'
    r"invalid \w+ value|invalid integer value|unrecognized configuration parameter|unsupported startup parameter|"
    r"does not support SSL|certificate",
    re.IGNORECASE,
)


def _mind(connection: Connection) -> None:
    """What we rest on: refuse a server that cannot keep our texts, and say aloud where it may lose them."""
    row = connection.execute(_STRENGTH).fetchone()
    assert row is not None
    if row["encoding"] != "UTF8":
        raise Mistake(f"the database's encoding is {row['encoding']}", "create one with the encoding UTF8")
    if row["version"] < 150_000:
        raise Mistake(f"the server is PostgreSQL {row['version'] // 10_000}", "use PostgreSQL 15 or newer")
    names = {"commits": "synchronous_commit", "flushes": "fsync", "pages": "full_page_writes"}
    weak = [f"{name} = off" for key, name in names.items() if row[key] == "off"]
    if weak:
        log.error("what was accepted may be lost with the server: %s", ", ".join(weak))


def place_at(dsn: str, schema: str | None = None, prepare: bool = True) -> Place:
    """Where that is; an address in which a password may have run into its neighbours is refused, and not repeated."""
    try:
        named = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        said = str(error).strip()
        if "@" in dsn or "password" in dsn:
            said = re.sub('".*"', "…", said, flags=re.DOTALL)
        raise Mistake(f"not an address of PostgreSQL: {said}", _REMEDY) from None
    if any("@" in str(named.get(key) or "") for key in ("host", "dbname")):
        raise Mistake("the address of the store has an @ too many", _REMEDY)
    if not all(port.isdecimal() for port in str(named.get("port") or "5432").split(",") if port):
        raise Mistake("the port in the address of the store is not a number", _REMEDY)
    if not str(named.get("connect_timeout") or "5").strip().isdecimal():
        raise Mistake("connect_timeout in the address of the store is not a number", "write whole seconds")
    return Place(dsn, schema, prepare)


def open_postgres(
    dsn: str, *, schema: str | None = None, probe: Probe | None = None, prepare: bool = True
) -> PostgresStore:
    """The store in a database, in its own schema if one is named.

    `prepare=False` is for a pooler between us and the server that does not know prepared statements; such a pooler
    also keeps no settings of a connection, so the schema must then be the user's own (`ALTER ROLE … SET search_path`).
    """
    place = place_at(dsn, schema, prepare)
    try:
        session = PostgresSession(place, probe=probe)
    except psycopg.errors.InsufficientPrivilege as error:
        reason = f"the store at {place.name} cannot be made: {first_line(error)}"
        raise Mistake(reason, "grant the user CREATE on the database, or name a schema of its own") from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        reason = f"the server of {place.name} only reads: {first_line(error)}"
        raise Mistake(reason, "name the one that writes (target_session_attrs=read-write finds it)") from error
    except psycopg.ProgrammingError:
        # An old server does not know some of our words; then that is what is wrong.
        with place.connect() as connection:
            _mind(connection)
        raise
    try:
        _mind(session.connection)
    except BaseException:
        session.close()
        raise
    return PostgresStore(session)


def connect_when_there(
    dsn: str,
    *,
    schema: str | None = None,
    probe: Probe | None = None,
    prepare: bool = True,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> PostgresStore:
    """The same for whoever shall stay: a server that is away, or not ready yet, is waited for."""
    name, said = place_at(dsn, schema, prepare).name, float("-inf")
    while True:
        try:
            store = open_postgres(dsn, schema=schema, probe=probe, prepare=prepare)
        except (Mistake, Busy, psycopg.Error) as error:
            cause = error.__cause__ if isinstance(error, Mistake) else error
            if not may_pass(cause):
                raise
            if clock() - said >= WORD:
                said = clock()
                log.warning("waiting for the database %s: %s", name, first_line(cause))
            sleep(WAIT)
        else:
            if said > float("-inf"):
                log.info("the database %s is there", name)
            return store


def may_pass(cause: BaseException | None) -> bool:
    """Whether what kept us from the store can come right by itself."""
    # A server that only reads may be about to take over from one that writes.
    if not isinstance(cause, (Busy, psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction)):
        return False
    connection = getattr(cause, "pgconn", None)
    return not (_HOPELESS.search(str(cause)) or (connection is not None and connection.needs_password))


def first_line(error: BaseException | None) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class Absence:
    """The last time that the database could not be reached: who had asked by then has the answer, and need not try.

    Without it each of many who wait in line would pay for an attempt of its own.
    """

    def __init__(self) -> None:
        self._last: tuple[float, str] | None = None

    def reach(self, link: PostgresSession | Reader, asked: float) -> None:
        """Have that connection open, or be `Busy`."""
        if link.status is not TransactionStatus.UNKNOWN:
            return
        last = self._last
        if last is not None and asked <= last[0]:
            raise Busy(last[1])
        try:
            _ = link.connection
        except Busy as busy:
            self._last = (time.monotonic(), str(busy))
            raise


class PostgresWriter(Writer):
    """Group commit as ever; a call that found others in its way is made again, alone."""

    store: PostgresStore

    def __init__(self, store: PostgresStore) -> None:
        self._absence = Absence()
        super().__init__(store)

    def _commit(self, calls: list[Any]) -> list[Answer]:
        answers = self._attempt(calls)
        for place, call in enumerate(calls):
            for turn in range(TRIES):
                if not isinstance(answers[place][1], Crowded):
                    break
                step_aside(turn)
                (answers[place],) = self._attempt([call])
        return answers

    def _attempt(self, calls: list[Any]) -> list[Answer]:
        try:
            self._absence.reach(self.store.session, max(call.asked for call in calls))
        except Busy as busy:
            return [(None, busy)] * len(calls)
        return super()._commit(calls)
