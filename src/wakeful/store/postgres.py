"""The store in PostgreSQL: opened, and written to by many nodes at once."""

from __future__ import annotations

import logging
from typing import Any

from wakeful.core.errors import Mistake
from wakeful.store.postgres_session import Connection, Crowded, Place, PostgresSession
from wakeful.store.postgres_store import TRIES, PostgresStore, step_aside
from wakeful.store.session import Probe
from wakeful.store.writer import Answer, Writer

log = logging.getLogger("wakeful.store")

_STRENGTH = """
SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
    current_setting('synchronous_commit') AS commits, current_setting('fsync') AS flushes,
    current_setting('full_page_writes') AS pages
"""


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


def open_postgres(
    dsn: str, *, schema: str | None = None, probe: Probe | None = None, prepare: bool = True
) -> PostgresStore:
    """The store in a database, in its own schema if one is named.

    `prepare=False` is for a pooler between us and the server that does not know prepared statements; such a pooler
    also keeps no settings of a connection, so the schema must then be the user's own (`ALTER ROLE … SET search_path`).
    """
    session = PostgresSession(Place(dsn, schema, prepare), probe=probe)
    try:
        _mind(session.connection)
    except BaseException:
        session.close()
        raise
    return PostgresStore(session)


class PostgresWriter(Writer):
    """Group commit as ever; a call that found others in its way is made again, alone."""

    def _commit(self, calls: list[Any]) -> list[Answer]:
        answers = super()._commit(calls)
        for place, call in enumerate(calls):
            for turn in range(TRIES):
                if not isinstance(answers[place][1], Crowded):
                    break
                step_aside(turn)
                (answers[place],) = super()._commit([call])
        return answers
