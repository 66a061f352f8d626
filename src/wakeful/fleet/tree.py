"""A declaration as it was written: values with their places, before anybody has judged them.

Both spellings are read into these few types, so that everything after the parsers knows one model only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from wakeful.core.wording import quoted
from wakeful.fleet.diagnostics import Notes, Place

NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Scalar(NamedTuple):
    """`plain` is a YAML scalar without quotes, which may have been meant as a number, a truth or nothing."""

    text: str
    line: int
    column: int
    plain: bool = False

    @property
    def empty(self) -> bool:
        return self.text in NULLS if self.plain else not self.text.strip()


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Raw, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Mapping:
    pairs: tuple[Pair, ...]
    line: int
    column: int


Raw = Scalar | Sequence | Mapping
Pair = tuple[Scalar, Raw]


class Entry(NamedTuple):
    """One property: its canonical name, key and value as written, and what it is worth where that is known."""

    name: str
    key: Scalar
    value: Raw
    known: object = None


Entries = dict[str, Entry]


@dataclass(slots=True)
class Block:
    """One agent, or one recurring task, as declared; `text` is what stands below a task's heading."""

    name: Scalar
    entries: Entries = field(default_factory=dict)
    text: str = ""


@dataclass(slots=True)
class Draft:
    """One fleet as declared."""

    fleet: Entries = field(default_factory=dict)
    agents: list[Block] = field(default_factory=list)
    recurring: list[Block] = field(default_factory=list)
    place: Place = field(default_factory=Place)


@lru_cache(maxsize=1_024)
def canonical(key: str) -> str:
    """Keys are read without case, and `-` and `_` are the same: `min_interval` is `MIN-INTERVAL`."""
    return key.strip().upper().replace("_", "-")


def described(value: Raw) -> str:
    match value:
        case Scalar():
            return "nothing" if value.empty else quoted(value.text)
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"


def distinct(pairs: tuple[Pair, ...] | list[Pair], notes: Notes) -> Iterator[tuple[str, Scalar, Raw]]:
    """The pairs under canonical names; the second of a kind is told and left out."""
    seen: dict[str, int] = {}
    for key, value in pairs:
        name = canonical(key.text)
        if name in seen:
            notes.error(key, f"{printed_key(key)} stands twice, first on line {seen[name]}", "keep one of them")
            continue
        seen[name] = key.line
        yield name, key, value


def printed_key(key: Scalar) -> str:
    """A key as it was written, without quotes where it cannot be mistaken for prose."""
    text = key.text
    return text if len(text) <= 64 and text.replace("-", "").replace("_", "").isalnum() else quoted(text)
