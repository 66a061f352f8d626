"""Stores that are copied, opened, killed and compared, many of them, each from the same beginning."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit

import apsw
import psycopg
from psycopg import sql

from wakeful.store.postgres import PostgresWriter, open_postgres
from wakeful.store.postgres_copy import NUMBERED
from wakeful.store.postgres_session import PostgresSession
from wakeful.store.postgres_store import PostgresStore
from wakeful.store.rows import to_micros
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.store.writer import Writer

# In which part of a sum something is counted is a matter of luck.
_TOTALS = "SELECT scope, day, sum(wakes), sum(ms), sum(usd), sum(tokens) FROM total GROUP BY scope, day"

_NUMBER = "SELECT setval(pg_get_serial_sequence({}, 'id'), coalesce(max(id), 1), max(id) > 0) FROM {}"

Dump = dict[str, list[tuple[Any, ...]]]


class House(ABC):
    """A place is what `open` takes."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._numbers = count()

    def __enter__(self) -> House:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget(self.scene())

    @abstractmethod
    def scene(self) -> str:
        """The place that all others begin as copies of."""

    @abstractmethod
    def begin(self) -> SqlStore:
        """The store of the scene, new."""

    @abstractmethod
    def fresh(self) -> str:
        """One more place that is as the scene is."""

    @abstractmethod
    def nothing(self) -> str:
        """A place where no store was ever opened."""

    def empty(self) -> str:
        """One with a new store."""
        place = self.nothing()
        self.open(place).close()
        return place

    @abstractmethod
    def forget(self, place: str) -> None: ...

    @abstractmethod
    def open(self, place: str) -> SqlStore: ...

    @abstractmethod
    def writer(self, store: SqlStore) -> Writer: ...

    @abstractmethod
    def dump(self, place: str) -> Dump:
        """Every row of every table."""

    def damage(self, place: str) -> list[str]:
        """What the database says that is wrong with its own file."""
        return []

    # A file has neither a clock nor numbers that outlive what was undone.

    def tell_time(self, store: SqlStore, now: datetime) -> None:
        """What a clock of the store's own shows from now on to whoever writes, and to the calling thread."""
        return None

    def tell_reader(self, store: SqlStore, now: datetime) -> None:
        """The same to the calling thread alone."""
        return None

    def forget_numbers(self, place: str) -> None:
        """Numbers that were given in what was undone are given again."""
        return None


class SqliteHouse(House):
    def scene(self) -> str:
        return str(Path(self.where, "scene.db"))

    def begin(self) -> SqlStore:
        return self.open(self.scene())

    def nothing(self) -> str:
        return str(Path(self.where, f"{next(self._numbers)}.db"))

    def fresh(self) -> str:
        place = self.nothing()
        # What is committed may still be in the log beside the file.
        for beside in ("", "-wal", "-sums"):
            with suppress(FileNotFoundError):
                shutil.copyfile(self.scene() + beside, place + beside)
        return place

    def forget(self, place: str) -> None:
        for path in Path(self.where).glob(f"{Path(place).name}*"):
            path.unlink()

    def open(self, place: str) -> SqlStore:
        # A kill leaves what the kernel holds of the file, whether the disk has it or not.
        return open_sqlite(Path(place), durable=False)

    def writer(self, store: SqlStore) -> Writer:
        return Writer(store)

    def dump(self, place: str) -> Dump:
        connection = apsw.Connection(place)
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return {table: _sorted(connection.execute(f"SELECT * FROM {table} NOT INDEXED")) for table in tables}
        finally:
            connection.close()

    def damage(self, place: str) -> list[str]:
        connection = apsw.Connection(place)
        try:
            said = [str(line) for (line,) in connection.execute("PRAGMA integrity_check")]
            strangers = [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
            return [*(line for line in said if line != "ok"), *strangers]
        finally:
            connection.close()


class PostgresHouse(House):
    """A database each: the server copies one quicker than we could make it."""

    def scene(self) -> str:
        return f"crashed_{os.getpid()}"

    def begin(self) -> SqlStore:
        self._do("CREATE DATABASE {}", self.scene())
        return self.open(self.scene())

    def nothing(self) -> str:
        place = f"{self.scene()}_{next(self._numbers)}"
        self._do("CREATE DATABASE {}", place)
        return place

    def fresh(self) -> str:
        place = f"{self.scene()}_{next(self._numbers)}"
        self._do("CREATE DATABASE {} TEMPLATE {}", place, self.scene())
        return place

    def forget(self, place: str) -> None:
        self._do("DROP DATABASE IF EXISTS {} WITH (FORCE)", place)

    def open(self, place: str) -> SqlStore:
        return open_postgres(self._address(place))

    def writer(self, store: SqlStore) -> Writer:
        assert isinstance(store, PostgresStore)
        return PostgresWriter(store)

    def dump(self, place: str) -> Dump:
        with psycopg.connect(self._address(place)) as connection:
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            queries: dict[str, sql.SQL | sql.Composed] = {}
            queries |= {table: sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)) for (table,) in found}
            if "total" in queries:
                queries["total"] = sql.SQL(_TOTALS)
            return {table: _sorted(connection.execute(query)) for table, query in queries.items()}

    def tell_time(self, store: SqlStore, now: datetime) -> None:
        assert isinstance(store.session, PostgresSession)
        store.session.connection.execute(*_clock(now))
        self.tell_reader(store, now)

    def tell_reader(self, store: SqlStore, now: datetime) -> None:
        assert isinstance(store.session, PostgresSession)
        store.session.reader().connection.execute(*_clock(now))

    def forget_numbers(self, place: str) -> None:
        with psycopg.connect(self._address(place)) as connection:
            for table in NUMBERED:
                if connection.execute("SELECT to_regclass(%s) IS NULL", (table,)).fetchone() != (True,):
                    names = sql.Literal(table), sql.Identifier(table)
                    connection.execute(sql.SQL(_NUMBER).format(*names))

    def _address(self, place: str) -> str:
        return urlsplit(self.where)._replace(path=f"/{place}").geturl()

    def _do(self, statement: LiteralString, *names: str) -> None:
        with psycopg.connect(self.where, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _clock(now: datetime) -> tuple[LiteralString, tuple[str]]:
    return "SELECT set_config('wakeful.now', $1, false)", (str(to_micros(now)),)


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)
