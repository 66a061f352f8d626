"""The floor: what this disk gives to SQLite alone, one row to a commit, and many.

The same statements over apsw and over the standard library's sqlite3, in WAL mode with `synchronous=FULL`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw

GROUP = 100
_TABLE = "CREATE TABLE item (id INTEGER PRIMARY KEY, agent TEXT NOT NULL, body TEXT NOT NULL)"
_INSERT = "INSERT INTO item (agent, body) VALUES (?, ?)"
_BODY = "hello" * 10

# Works for about so many seconds; how much was done, and in what time.
Slice = Callable[[float], tuple[int, float]]


class Floor:
    def __init__(self, folder: Path) -> None:
        self._apsw = apsw.Connection(str(folder / "bare.db"))
        self._stdlib = sqlite3.connect(folder / "bare-sqlite3.db", isolation_level=None)
        for execute in (self._apsw.execute, self._stdlib.execute):
            execute("PRAGMA journal_mode = wal")
            execute("PRAGMA synchronous = full")
            execute(_TABLE)

    def one(self, seconds: float) -> tuple[int, float]:
        return _insert(self._apsw.execute, 1, seconds)

    def many(self, seconds: float) -> tuple[int, float]:
        return _insert(self._apsw.execute, GROUP, seconds)

    def one_by_sqlite3(self, seconds: float) -> tuple[int, float]:
        return _insert(self._stdlib.execute, 1, seconds)

    def many_by_sqlite3(self, seconds: float) -> tuple[int, float]:
        return _insert(self._stdlib.execute, GROUP, seconds)

    def close(self) -> None:
        self._apsw.close()
        self._stdlib.close()


def _insert(execute: Callable[..., Any], rows: int, seconds: float) -> tuple[int, float]:
    started, elapsed, made = perf_counter(), 0.0, 0
    while elapsed < seconds:
        execute("BEGIN IMMEDIATE")
        for _ in range(rows):
            execute(_INSERT, ("moss", _BODY))
        execute("COMMIT")
        made += rows
        elapsed = perf_counter() - started
    return made, elapsed
