"""The columns of the fleet: those that always are, and those that come as there is room.

Law: what an agent is doing gets what is left, and at least `LEAST`; a column comes only when that remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.cli.output import Line, Span
from wakeful.cli.top_cells import Glyphs, bar, filled, inert, width_of
from wakeful.cli.top_rows import (
    LETTERS,
    SHADES,
    doing_of,
    failing,
    last_words,
    position_words,
    short,
    used,
    used_words,
)

Row = dict[str, Any]
Cell = Callable[[Row, datetime, Glyphs], Span]

LEAST = 32
SHORTEST_NAME, LONGEST_NAME, LONGEST_ON_NARROW = 5, 28, 16
NARROW = 100
_BAR = 5
_NEARLY = 0.8


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    width: int
    cell: Cell
    right: bool = False


def _number(key: str, style: str) -> Cell:
    def cell(row: Row, now: datetime, glyphs: Glyphs) -> Span:
        amount = row.get(key) or 0
        return Span(short(amount), style) if amount else Span("")

    return cell


def _used(what: str) -> Cell:
    def cell(row: Row, now: datetime, glyphs: Glyphs) -> Span:
        amount, of = used(row, what)
        words = used_words(row, what) if amount or of is not None else ""
        drawn = bar(amount, of, _BAR, glyphs)
        return Span(f"{words} {drawn}".strip(), limit_style(amount, of))

    return cell


def limit_style(amount: float, of: float | None) -> str:
    if of is None or not amount:
        return "dim"
    return "bold magenta" if amount >= of else "yellow" if amount >= of * _NEARLY else ""


def _name(row: Row, now: datetime, glyphs: Glyphs) -> Span:
    return Span(inert(row["name"]), "bold")


def _doing(row: Row, now: datetime, glyphs: Glyphs) -> Span:
    return Span(doing_of(row, now), SHADES.get(row["state"], ""))


def _position(row: Row, now: datetime, glyphs: Glyphs) -> Span:
    return Span(position_words(row), "cyan")


def _last(row: Row, now: datetime, glyphs: Glyphs) -> Span:
    return Span(last_words(row, now), "bold magenta" if failing(row) else "dim")


def _reason(row: Row, now: datetime, glyphs: Glyphs) -> Span:
    return Span(inert((row.get("last") or {}).get("reason") or ""), "magenta" if failing(row) else "dim")


def _day(row: Row, now: datetime, glyphs: Glyphs) -> Span:
    return Span(day_words(row, glyphs), "dim")


def day_words(row: Row, glyphs: Glyphs) -> str:
    """`draft ×3 › [edit 1/2] › rem`: its day, with where it stands."""
    at, hits = row["position"]["state"], row["position"]["hits"]
    told = []
    for state in row.get("day") or []:
        name, repeat = inert(state["state"]), state.get("repeat") or 1
        if state["state"] == at:
            told.append(f"[{name} {hits}/{repeat}]" if repeat > 1 else f"[{name}]")
        else:
            told.append(f"{name} {glyphs.times}{repeat}" if repeat > 1 else name)
    return f" {glyphs.then} ".join(told)


DOING = Column("DOING", 0, _doing)
UNREAD = Column("UNREAD", 6, _number("unread", "bold"), right=True)
TASKS = Column("TASKS", 5, _number("open_tasks", "bold"), right=True)
LAST = Column("LAST", 11, _last)
POSITION = Column("POSITION", 14, _position)
WAKES = Column("WAKES", 12, _used("wakes"), right=True)
MINUTES = Column("MINUTES", 13, _used("minutes"), right=True)
SPENT = Column("SPENT", 18, _used("usd"), right=True)
REASON = Column("WHY IT ENDED SO", 34, _reason)
DAY = Column("DAY", 40, _day)

_ALWAYS = (UNREAD, TASKS, LAST)
# As there is room, in this order.
_MORE = (POSITION, WAKES, MINUTES, SPENT, REASON, DAY)
_ORDER = (POSITION, DOING, WAKES, MINUTES, SPENT, UNREAD, TASKS, LAST, REASON, DAY)
_MARKS = 4


_WORTH: dict[str, Callable[[Row], object]] = {
    POSITION.head: position_words,
    SPENT.head: lambda row: used(row, "usd") != (0.0, None),
    REASON.head: lambda row: (row.get("last") or {}).get("reason"),
    DAY.head: lambda row: row.get("day"),
}


def columns(width: int, rows: Sequence[Row]) -> list[Column]:
    """Those that fit in a terminal of that width and have something to say of one of these rows, as they stand."""
    most = LONGEST_ON_NARROW if width < NARROW else LONGEST_NAME
    longest = max((width_of(str(row["name"])) for row in rows), default=0)
    name = Column("AGENT", min(max(longest, SHORTEST_NAME), most), _name)
    left = width - _MARKS - name.width - 1 - sum(column.width + 1 for column in _ALWAYS)
    chosen = [*_ALWAYS]
    if left < LEAST // 2:
        # A window that is hardly one: who, and what it does.
        chosen, left = [], width - _MARKS - name.width - 1
    for column in _MORE:
        if left - column.width - 1 < LEAST + 1 or not chosen:
            break
        if column.head in _WORTH and not any(map(_WORTH[column.head], rows)):
            continue
        chosen.append(column)
        left -= column.width + 1
    doing = Column(DOING.head, max(left - 1, 1), DOING.cell)
    return [name, *(doing if column is DOING else column for column in _ORDER if column is DOING or column in chosen)]


def head_line(chosen: Sequence[Column], glyphs: Glyphs) -> Line:
    heads = [filled(column.head, column.width, glyphs, right=column.right) for column in chosen]
    return [Span(" " * _MARKS + " ".join(heads), "bold underline")]


def row_line(row: Row, chosen: Sequence[Column], now: datetime, glyphs: Glyphs, *, selected: bool) -> Line:
    state = row["state"]
    mark = Span(f" {glyphs.chosen if selected else ' '}{LETTERS.get(state, '?')} ", SHADES.get(state, "dim"))
    cells = [column.cell(row, now, glyphs) for column in chosen]
    spans = [mark] + [
        Span(filled(cell.text, column.width, glyphs, right=column.right) + " ", cell.style)
        for cell, column in zip(cells, chosen, strict=True)
    ]
    if not selected:
        return spans
    return [
        Span(span.text, " ".join(dict.fromkeys([*span.style.replace("dim", "").split(), "reverse"]))) for span in spans
    ]
