"""What the verbs of the store need of a database: named queries inside transactions.

A second database is one more implementation of this seam, and one more folder of SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

Row = dict[str, Any]

# Called with "before" and "after" around every commit, and the name of the verb: crash tests live on it.
Probe = Callable[[str, str], None]


# The site of one caller's share in a group of calls that are committed together.
CALL = "call"


class Reading(Protocol):
    def one(self, query: str, **parameters: Any) -> Row | None: ...
    def all(self, query: str, **parameters: Any) -> list[Row]: ...
    def lists(self, *queries: tuple[str, Row]) -> list[list[Row]]:
        """What each of these finds; they are asked together where that is quicker."""


class Looking(Reading, Protocol):
    def snapshot(self) -> AbstractContextManager[None]:
        """What is read inside was all true at one moment."""


class Session(Reading, Protocol):
    broken: type[Exception]
    """What is raised when the schema forbids a write."""
    depth: int
    """Inside how many transactions it is; 0 outside of any."""

    def unreferenced(self, error: Exception) -> bool:
        """Whether that was because a row names another that does not exist."""

    @property
    def alive(self) -> bool:
        """Whether the transaction is still there; a database in trouble may have given it up."""

    def transaction(self, site: str) -> AbstractContextManager[None]:
        """All or nothing; inside another transaction, all or nothing of its own part."""

    def write(self, query: str, **parameters: Any) -> None:
        """Execute, and ask nothing back; what goes wrong may be told later, but not after the transaction."""

    def run(self, query: str, **parameters: Any) -> int:
        """Execute; the number of rows that changed."""

    def insert(self, query: str, **parameters: Any) -> int | None:
        """Execute an insert that returns the new row's id; None when a conflict let it pass."""

    def inserts(self, query: str, rows: Sequence[Row]) -> list[int]:
        """Execute for each, in order; the ids of the new rows."""

    def many(self, query: str, rows: Sequence[Row]) -> None:
        """Execute for each, in any order; a database may take them all at once."""

    def nearest(self) -> Reading:
        """Who reads in the course of a transaction of this thread sees what it wrote; anybody else, a reader."""

    def reader(self) -> Looking:
        """Reads what was committed; it never waits for a writer, nor holds one up."""

    def backup(self, path: Path) -> None:
        """Everything that is committed, in a new private file."""

    def close(self) -> None: ...
