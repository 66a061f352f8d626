"""Numbered migrations on PostgreSQL: however many nodes start at once, one migrates and the others find it done.

Laws:
- All migrations that are missing run in one transaction, under a lock that lives and dies with it.
- A schema that holds the tables of another program is left as it is.
"""

from __future__ import annotations

import re

import psycopg
from psycopg import sql

from wakeful.core.errors import Mistake, TooOld
from wakeful.store.named_sql import load_migrations

# "wake" in ASCII; any number will do that others do not use.
_LOCK = 0x77616B65

_TABLE = "CREATE TABLE IF NOT EXISTS schema (version BIGINT NOT NULL, minimum_reader BIGINT NOT NULL)"
_MINIMUM = re.compile(r"^-- minimum_reader: (\d+)$", re.MULTILINE)

_SCHEMA = "SELECT nspname FROM pg_namespace WHERE nspname = $1"

_LOOK = """
SELECT current_schema() AS schema, to_regclass('schema') IS NOT NULL AS ours,
    (SELECT min(t.tablename) FROM pg_tables t WHERE t.schemaname = current_schema()) AS stranger
"""


def migrate(connection: psycopg.Connection[dict[str, object]], schema: str | None) -> int:
    """Bring the schema to this code's version, or refuse it; returns the version."""
    migrations = load_migrations("postgres")
    newest = migrations[-1][0]
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock($1)", (_LOCK,))
        # Who may not make schemas may have been given one.
        if schema is not None and connection.execute(_SCHEMA, (schema,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        _refuse_foreign(connection)
        connection.execute(_TABLE)
        version, minimum = _versions(connection, newest)
        for number, script in migrations:
            if number > version:
                connection.execute(script.encode())
                found = _MINIMUM.search(script)
                minimum = int(found[1]) if found else minimum
        if newest > version:
            connection.execute("DELETE FROM schema")
            connection.execute("INSERT INTO schema VALUES ($1, $2)", (newest, minimum))
    return max(newest, version)


def _refuse_foreign(connection: psycopg.Connection[dict[str, object]]) -> None:
    found = connection.execute(_LOOK).fetchone()
    assert found is not None
    if found["schema"] is None:
        raise Mistake("the database has no schema that this user may use", "name one, or grant the user its use")
    if found["stranger"] is not None and not found["ours"]:
        raise Mistake(
            f"the schema {found['schema']} is not a wakeful store: it has another program's table {found['stranger']}",
            "name another database or another schema; this one was left untouched",
        )


def _versions(connection: psycopg.Connection[dict[str, object]], newest: int) -> tuple[int, int]:
    row = connection.execute("SELECT version, minimum_reader FROM schema").fetchone()
    version, minimum = (int(str(row["version"])), int(str(row["minimum_reader"]))) if row else (0, 0)
    if minimum > newest:
        raise TooOld(
            f"this store has schema {version} and needs a wakeful that knows schema {minimum}; "
            f"this one knows {newest} (install a newer wakeful)"
        )
    return version, minimum
