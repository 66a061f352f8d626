"""Numbered migrations, and the fence against code that is too old.

Laws:
- The schema's version is the number of its last migration; migrations run in order, each in one transaction.
- `minimum_reader` is the oldest version of the code that may still use the file; older code is refused by name.
"""

from __future__ import annotations

import re

import apsw

from wakeful.core.errors import TooOld
from wakeful.store.named_sql import load_migrations

_TABLE = "CREATE TABLE IF NOT EXISTS schema (version INTEGER NOT NULL, minimum_reader INTEGER NOT NULL)"
_MINIMUM = re.compile(r"^-- minimum_reader: (\d+)$", re.MULTILINE)


def migrate(connection: apsw.Connection, application_id: int) -> int:
    """Bring the file to this code's version, or refuse it; returns the version."""
    migrations = load_migrations("sqlite")
    newest = migrations[-1][0]
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_TABLE)
        version, minimum = versions_of(connection)
        for number, script in migrations:
            if number > version:
                connection.execute(script)
                found = _MINIMUM.search(script)
                minimum = int(found[1]) if found else minimum
        if newest > version:
            connection.pragma("application_id", application_id)
            connection.execute("DELETE FROM schema")
            connection.execute("INSERT INTO schema VALUES (?, ?)", (newest, minimum))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return max(newest, version)


def versions_of(connection: apsw.Connection) -> tuple[int, int]:
    """The schema of a file and the oldest one that its reader must know; refuses what this code is too old for."""
    newest = load_migrations("sqlite")[-1][0]
    version, minimum = next(connection.execute("SELECT version, minimum_reader FROM schema"), (0, 0))
    if minimum > newest:
        raise TooOld(
            f"this store has schema {version} and needs a wakeful that knows schema {minimum}; "
            f"this one knows {newest} (install a newer wakeful)"
        )
    return int(version), int(minimum)
