"""What is wrong with a file, and where: `file:line:col: reason (do this)`.

Laws:
- Every mistake of a file is told in one pass; an error refuses the file, a warning does not.
- Text from a file is shown short and escaped: a file cannot write to the terminal of the person who checks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from wakeful.core.errors import Mistake
from wakeful.core.wording import nearest

LONGEST_REASON = 400
MOST_NOTES = 1_000
LONGEST_GUESS = 64


class Severity(StrEnum):
    error = "error"
    warning = "warning"


class Placed(Protocol):
    """Anything that knows where it stands in its file; lines and columns count characters from 1."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Place:
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    file: str
    line: int
    column: int
    severity: Severity
    reason: str
    remedy: str

    def __str__(self) -> str:
        kind = "warning: " if self.severity is Severity.warning else ""
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{printable(self.file)}:{self.line}:{self.column}: {kind}{self.reason}{advice}"


class Notes:
    """The diagnostics of one file while it is being read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.errors = 0
        self._kept: list[Diagnostic] = []
        self._guesses: dict[tuple[str, int], str | None] = {}

    def error(self, place: Placed, reason: str, remedy: str) -> None:
        self.errors += 1
        self._keep(place, Severity.error, reason, remedy)

    def warn(self, place: Placed, reason: str, remedy: str) -> None:
        self._keep(place, Severity.warning, reason, remedy)

    def mistake(self, place: Placed, mistake: Mistake, about: str = "") -> None:
        reason = f"{about}: {mistake.reason}" if about else mistake.reason
        self.error(place, reason, mistake.remedy)

    def nearest(self, word: str, known: Iterable[str]) -> str | None:
        """The known word that was probably meant; bounded, for a hostile file may hold many unknown words."""
        words = tuple(known)
        asked = (word, hash(words))
        if asked not in self._guesses:
            if len(word) > LONGEST_GUESS or len(self._guesses) >= MOST_NOTES:
                return None
            self._guesses[asked] = nearest(word, words)
        return self._guesses[asked]

    def all(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self._kept))

    def _keep(self, place: Placed, severity: Severity, reason: str, remedy: str) -> None:
        if len(self._kept) > MOST_NOTES:
            return
        if len(self._kept) == MOST_NOTES:
            reason, remedy = f"more than {MOST_NOTES} mistakes", "mend these first"
        self._kept.append(Diagnostic(self.file, place.line, place.column, severity, clipped(reason), clipped(remedy)))


def printable(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def clipped(text: str) -> str:
    short = text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
    return printable(short)
