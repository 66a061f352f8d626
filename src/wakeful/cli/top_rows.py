"""The rows of the fleet, in their order, and what can be said of one in a word.

Laws:
- Trouble comes first unless another order is asked for; what is well keeps its place by name, so that nothing jumps.
- A filter is words that must all be found: in the name, the state, the position, what it does, its last outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

from wakeful.cli.standings import NOWHERE, doing_words
from wakeful.cli.top_cells import inert
from wakeful.cli.words import BADLY, read_time

Row = dict[str, Any]

LETTERS = {"running": "R", "waiting": "W", "idle": "I", "paused": "P", "quarantined": "Q", "disabled": "D"}
# Apart for whoever cannot tell red from green; the letter and the word say the same.
SHADES = {
    "running": "bold cyan",
    "waiting": "yellow",
    "paused": "bold yellow",
    "quarantined": "bold magenta",
    "disabled": "dim",
}
_BUSY = ("running", "waiting", "quarantined", "paused", "idle", "disabled")
_NUMBER = re.compile(r"(\d+)")
_LATE = "~"


def arranged(rows: Iterable[Row], sort: str, backwards: bool, wanted: str, now: datetime) -> list[Row]:
    words = wanted.casefold().split()
    found = [row for row in rows if not words or _matches(row, words, now)]
    ordered = sorted(sorted(found, key=by_name), key=_ORDERS[sort])
    return ordered[::-1] if backwards else ordered


def by_name(row: Row) -> list[tuple[int, str]]:
    return _natural(str(row["name"]))


@lru_cache(maxsize=10_000)
def _natural(name: str) -> list[tuple[int, str]]:
    """moss-2 before moss-10."""
    parts = _NUMBER.split(name.casefold())
    return [(int(part), "") if part.isdecimal() and len(part) < 18 else (-1, part) for part in parts]


def _matches(row: Row, words: list[str], now: datetime) -> bool:
    told = f"{row['name']} {row['state']} {position_words(row)} {doing_of(row, now)} {last_of(row)}".casefold()
    return all(word in told for word in words)


def failing(row: Row) -> bool:
    return last_of(row) in BADLY


def _trouble(row: Row) -> int:
    if row["state"] == "quarantined":
        return 0
    return 1 if failing(row) and row["state"] != "disabled" else 2


def _next(row: Row) -> str:
    beat = row.get("next_beat")
    return str((beat and beat["at"]) or row.get("due_at") or _LATE)


def _ended(row: Row) -> float:
    ended = (row.get("last") or {}).get("ended_at")
    return -read_time(ended).timestamp() if ended else 0.0


def _spent(row: Row) -> tuple[float, float]:
    return -used(row, "usd")[0], -used(row, "minutes")[0]


_ORDERS: dict[str, Callable[[Row], Any]] = {
    "trouble": _trouble,
    "name": by_name,
    "busy": lambda row: _BUSY.index(row["state"]) if row["state"] in _BUSY else len(_BUSY),
    "next beat": _next,
    "last run": _ended,
    "unread": lambda row: (-(row.get("unread") or 0), -(row.get("open_tasks") or 0)),
    "spent": _spent,
}


# ---- in words


def doing_of(row: Row, now: datetime) -> str:
    return inert(doing_words(row.get("doing") or [row["state"]], now), 400)


def position_words(row: Row) -> str:
    position = row["position"]
    if position["state"] == NOWHERE:
        return ""
    return inert(position["state"]) + (f" +{position['hits']}" if position["hits"] else "")


def last_of(row: Row) -> str:
    return str((row.get("last") or {}).get("outcome") or "")


def used(row: Row, what: str) -> tuple[float, float | None]:
    """How much of today's wakes, minutes, dollars or tokens, and of how many."""
    told = (row.get("today") or {}).get(what) or {}
    of = told.get("of")
    return float(told.get("used") or 0), None if of is None else float(of)


def short(number: float) -> str:
    """`412`, `12k`, `3.4M`: a number of few cells."""
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if number >= size:
            step = 1_000 if unit == "k" else size
            return f"{number / step:.1f}{unit}" if number < 10 * step else f"{number / step:.0f}{unit}"
    # What is not yet used up must not look as if it were.
    return str(int(number)) if number >= 10 or number == int(number) else f"{int(number * 10) / 10:.1f}"


def used_words(row: Row, what: str) -> str:
    """`5/12`, `34/120`, `$0.42/5.00`; without a limit only what was used."""
    amount, of = used(row, what)
    if what == "usd":
        return f"${amount:.2f}" + ("" if of is None else f"/{of:.2f}")
    return short(amount) + ("" if of is None else f"/{short(of)}")


def brief(seconds: float) -> str:
    """`45s`, `4m`, `3h`, `12d`: one unit."""
    whole = max(int(seconds), 0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def last_words(row: Row, now: datetime) -> str:
    """`failed 3m`: how its last run ended, and how long ago."""
    last = row.get("last") or {}
    if not last.get("outcome") or not last.get("ended_at"):
        return ""
    return f"{inert(last['outcome'])} {brief((now - read_time(last['ended_at'])).total_seconds())}"
