"""The floor: what this disk gives to SQLite alone, one row to a commit, and many.

The same statements over apsw and over the standard library's sqlite3, in WAL mode with `synchronous=FULL`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw

from benchmarks.lines import BARE, BARE_STDLIB, GROUPED, GROUPED_STDLIB

GROUP = 100
_TABLE = "CREATE TABLE item (id INTEGER PRIMARY KEY, agent TEXT NOT NULL, body TEXT NOT NULL)"
_INSERT = "INSERT INTO item (agent, body) VALUES (?, ?)"
_BODY = "hello" * 10

Execute = Callable[..., Any]


class Floor:
    def __init__(self, folder: Path, seconds: float) -> None:
        self._seconds = seconds
        self._apsw = apsw.Connection(str(folder / "bare.db"))
        self._stdlib = sqlite3.connect(folder / "bare-sqlite3.db", isolation_level=None)
        for execute in (self._apsw.execute, self._stdlib.execute):
            execute("PRAGMA journal_mode = wal")
            execute("PRAGMA synchronous = full")
            execute(_TABLE)

    def sample(self) -> dict[str, float]:
        return {
            BARE: self._rate(self._apsw.execute, 1),
            BARE_STDLIB: self._rate(self._stdlib.execute, 1),
            GROUPED: self._rate(self._apsw.execute, GROUP),
            GROUPED_STDLIB: self._rate(self._stdlib.execute, GROUP),
        }

    def _rate(self, execute: Execute, rows: int) -> float:
        started = perf_counter()
        for commits in count(1):
            execute("BEGIN IMMEDIATE")
            for _ in range(rows):
                execute(_INSERT, ("moss", _BODY))
            execute("COMMIT")
            elapsed = perf_counter() - started
            if elapsed >= self._seconds:
                return commits * rows / elapsed
        raise AssertionError("count() ended")

    def close(self) -> None:
        self._apsw.close()
        self._stdlib.close()
