"""A store that is only looked at, beside whoever writes to it: nothing is written, and nobody is held up.

Laws:
- Where an engine is at work its file is opened to be read, and no lock is asked for.
- Where nobody is, the file may need a writer before it can be read: one opens it under the folder's lock, for a moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from wakeful.core.errors import Mistake
from wakeful.store.auditing import Auditing
from wakeful.store.folder import DataFolder
from wakeful.store.session import Looking, Session


class _Beside:
    """As much of a session as looking needs: one reader, on one thread."""

    def __init__(self, reader: Looking) -> None:
        self._reader = reader

    def reader(self) -> Looking:
        return self._reader


def _onlooker(reader: Any) -> Auditing:
    return Auditing(cast(Session, _Beside(reader)))


@contextmanager
def look_at_folder(data: Path) -> Iterator[Auditing]:
    """The store in the file of a data folder."""
    folder = DataFolder(data)
    if not folder.database.is_file():
        raise Mistake(f"nothing is stored in {data} yet", "wakeful up makes the store")
    reader = _reader(folder.database) or _reader_after_writer(folder)
    try:
        yield _onlooker(reader)
    finally:
        reader.close()


def _reader(path: Path) -> Any:
    """None where the file cannot be read without a writer."""
    import apsw

    from wakeful.store.backups import APPLICATION_ID
    from wakeful.store.migrate import versions_of
    from wakeful.store.named_sql import load_migrations, load_queries
    from wakeful.store.sqlite import Reader

    try:
        reader = Reader(path, load_queries("sqlite"))
    except apsw.Error:
        return None
    try:
        ours = reader.connection.pragma("application_id") == APPLICATION_ID
        version = versions_of(reader.connection)[0] if ours else 0
    except apsw.Error:
        reader.close()
        return None
    except BaseException:
        reader.close()
        raise
    if version == load_migrations("sqlite")[-1][0]:
        return reader
    # Older than we are, or not ours: whoever opens it to write knows what to say or to do.
    reader.close()
    return None


def _reader_after_writer(folder: DataFolder) -> Any:
    from wakeful.store.sqlite import open_sqlite

    with folder:
        store = open_sqlite(folder.database)
        try:
            reader = _reader(folder.database)
        finally:
            # What we have open stays readable, also when the writer that made it so is gone.
            store.close()
    if reader is None:
        raise Mistake(f"{folder.database} cannot be read", "see wakeful doctor")
    return reader


@contextmanager
def look_at_database(address: str) -> Iterator[Auditing]:
    """The store that nodes share."""
    import psycopg

    from wakeful.store.named_sql import load_migrations
    from wakeful.store.postgres import place_at
    from wakeful.store.postgres_link import Reader

    reader = Reader(place_at(address), 0)
    try:
        version = 0
        with suppress(psycopg.errors.UndefinedTable):
            found = reader.connection.execute("SELECT version FROM schema").fetchone()
            version = int(str(found["version"])) if found else 0
        if version != load_migrations("postgres")[-1][0]:
            found_as = f"schema {version}" if version else "no store"
            raise Mistake(f"the database has {found_as}", "wakeful up brings it to what this wakeful knows")
        yield _onlooker(reader)
    finally:
        reader.close()
