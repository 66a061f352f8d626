"""Where a store in PostgreSQL is, and how a connection to it is made.

Laws:
- Every connection notices a server that has gone silent within seconds (keepalives, `tcp_user_timeout`).
- Every query of ours is a few probes of indexes, however large its tables have grown since it was planned; and is
  planned as such.
- What an address says beside host and database may be secret, and is never told.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from wakeful.core.errors import Mistake
from wakeful.store.postgres_text import adapt
from wakeful.store.postgres_wire import Connection

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

_SETTINGS = {
    # A transaction of ours that its engine has forgotten must not hold up the others.
    "idle_in_transaction_session_timeout": "60s",
    "client_min_messages": "warning",
    # Never as a scan, however few rows a table had when its statistics were last taken.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}

# What writes is planned once; a list that may be asked for in many ways is planned for the way that it is asked.
_WRITING = {"plan_cache_mode": "force_generic_plan"}
_READING = {"default_transaction_read_only": "on"}


class Place:
    """Where the store is, and how a connection to it is made."""

    def __init__(self, dsn: str, schema: str | None, prepare: bool) -> None:
        try:
            named = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError:
            # What the library says may quote the whole address, with its password.
            raise Mistake("this is not an address of PostgreSQL", "write postgresql://user@host/database") from None
        self.schema = schema
        self.prepare = prepare
        # For people: whatever else the address says may be secret.
        self.name = f"{named.get('host') or 'localhost'}/{named.get('dbname') or ''}"
        settings = dict(_SETTINGS) | ({"search_path": _quoted(schema)} if schema else {})
        mine = {**_PATIENCE, **{key: value for key, value in named.items() if value is not None}}
        # Said at the start of the connection: behind a pooler a SET would stay with whoever is given it next.
        self._conninfo = _with_options(mine, {**settings, **_WRITING})
        self._reading = _with_options(mine, {**settings, **_READING})

    def connect(self, *, read_only: bool = False) -> Connection:
        connection: Connection = psycopg.connect(
            self._reading if read_only else self._conninfo,
            autocommit=True,
            row_factory=dict_row,
            cursor_factory=RawCursor,
            prepare_threshold=3 if self.prepare else None,
        )
        try:
            adapt(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _with_options(named: dict[str, Any], settings: dict[str, str]) -> str:
    options = " ".join(f"-c {key}={value}" for key, value in settings.items())
    return make_conninfo(
        "", **{**named, "options": f"{named['options']} {options}" if named.get("options") else options}
    )


def _quoted(schema: str) -> str:
    """For the options of a connection, in which a blank ends a setting."""
    name = '"' + schema.replace('"', '""') + '"'
    return re.sub(r"([\\ ])", r"\\\1", name)
