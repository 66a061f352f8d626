"""The fleet as a picture: lines of exactly the terminal's width, and as many as it has rows.

Laws:
- Pure: the same fleet, state, size and `now` give the same lines. Only rows that are seen are made.
- What holds the fleet, and that what is shown may be old, stand above everything, over the whole width.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from wakeful.cli.output import Line, Span
from wakeful.cli.standings import header, outages, pause_words, untaken
from wakeful.cli.top_cells import Glyphs, bar, cut, fitted, inert, width_of
from wakeful.cli.top_columns import columns, day_words, head_line, limit_style, row_line
from wakeful.cli.top_rows import LETTERS, SHADES, doing_of, failing, position_words, used, used_words
from wakeful.cli.top_state import (
    FILTER,
    KILL,
    PAUSE_FOR,
    PAUSE_REASON,
    RESUME_FLEET,
    SORTS,
    WAKE,
    Fleet,
    Prompt,
    Size,
    State,
)
from wakeful.cli.words import ago, counted, lasting

Row = dict[str, Any]

ALARM, STALE, GOOD, BAD = "black on_yellow", "white on_red", "bold", "bold magenta"
# Rows of the fleet that remain before the lines about the selected agent are shown.
FEWEST_ROWS = 6
_DETAIL = 5
_MOST_BANNERS, _MOST_NOTICES = 3, 2
_BAR, _WIDE = 5, 100


class Picture(NamedTuple):
    """`cursor` is the row and column where something is typed; `room` how many rows of the fleet, or lines of a page,
    there is place for; `first` the first of them that is shown, of `length`."""

    lines: list[Line]
    cursor: tuple[int, int] | None
    room: int
    first: int
    length: int


def fleet_picture(
    state: State, fleet: Fleet, rows: Sequence[Row], now: datetime, size: Size, glyphs: Glyphs
) -> Picture:
    """`rows` are those that the filter lets pass, in their order."""
    above, below = _above(state, fleet, len(rows), now, size), _below(state, fleet, size, glyphs)
    row = fleet.rows.get(state.selected)
    room = size.rows - len(above) - len(below) - 1
    detail = _detail(row, now, size, glyphs) if row is not None and room - _DETAIL >= FEWEST_ROWS else []
    room = max(room - len(detail), 1)
    at = next((number for number, found in enumerate(rows) if found["name"] == state.selected), 0)
    first = scrolled(state.first, at, room, len(rows))
    chosen = columns(size.columns, rows)
    drawn = [
        row_line(row, chosen, now, glyphs, selected=row["name"] == state.selected) for row in rows[first : first + room]
    ]
    drawn = drawn or [[Span(f"    {_nobody(state)}", "bold")]]
    drawn += [[] for _ in range(room - len(drawn))]
    lines = [*above, head_line(chosen, glyphs), *drawn, *detail, *below]
    # Of a window that is too low, the rows and what is typed are the last to go.
    lines = [*lines[: max(size.rows - len(below), 0)], *below][: size.rows] if len(lines) > size.rows else lines
    cursor = (len(lines) - 2, min(width_of(_asked(state.prompt)), size.columns - 1)) if state.prompt else None
    return Picture([fitted(line, size.columns, glyphs) for line in lines], cursor, room, first, len(rows))


def scrolled(first: int, at: int, room: int, total: int) -> int:
    """The first row that is shown, moved only as far as it takes to see the selected one."""
    first = min(first, at)
    first = max(first, at - room + 1)
    return max(min(first, total - room), 0)


# ---- above the rows


def _above(state: State, fleet: Fleet, found: int, now: datetime, size: Size) -> list[Line]:
    title, engine, *silent = header(fleet.status, now)
    watch = f" {now.astimezone():%H:%M:%S}"
    room = size.columns - len(watch)
    lines = [[*fitted(_inert(title), room), Span(watch, "dim")]]
    if fleet.silent:
        lines.append(stale_line(fleet, size))
    elif any("red" in span.style for span in engine):
        # Without an engine, or with one that is not well, nothing begins: that is as bad as not to know.
        told = "".join(span.text for span in _inert(engine))
        lines.append(fitted([Span(f" {told[:1].upper()}{told[1:]}")], size.columns, style=STALE))
    else:
        lines.append(_inert(engine))
    lines += [fitted([Span(text)], size.columns, style=ALARM) for text in banners(fleet.status["pauses"], now)]
    lines += _notices(fleet.status, silent, now)
    return [*lines, _counts(state, fleet, found)]


def stale_line(fleet: Fleet, size: Size) -> Line:
    told = f" STALE {lasting(fleet.silent)}, asking again"
    told += f"; this was at {fleet.as_of}" if fleet.as_of else ""
    told += f": {inert(fleet.problem, 200) or 'no answer'}"
    return fitted([Span(told)], size.columns, style=STALE)


def banners(pauses: Sequence[Row], now: datetime) -> list[str]:
    """Each pause of the fleet or of a source; those of agents together, and those in quarantine by that name."""
    lines = [f" PAUSED  {inert(pause_words(pause, now), 400)}" for pause in pauses if not _of_agent(pause)]
    more = len(lines) - _MOST_BANNERS
    lines = lines[:_MOST_BANNERS] + ([f" PAUSED  and {more} more"] if more > 0 else [])
    held = [pause for pause in pauses if _of_agent(pause)]
    for word, some in (
        (" QUARANTINED", [pause for pause in held if pause["owner"] == "quarantine"]),
        (" PAUSED ", [pause for pause in held if pause["owner"] != "quarantine"]),
    ):
        if len(some) == 1:
            lines.append(f"{word} {inert(pause_words(some[0], now), 400)}")
        elif some:
            names = ", ".join(inert(pause["scope"].partition(":")[2]) for pause in some[:20])
            lines.append(f"{word} {counted(len(some), 'agent')}: {names}{', …' if len(some) > 20 else ''}")
    return lines


def _of_agent(pause: Row) -> bool:
    return str(pause["scope"]).startswith("agent:")


def _notices(status: Row, silent: list[Line], now: datetime) -> list[Line]:
    told = [
        *silent,
        *outages(status.get("outages") or [], status.get("shared", False), now),
        *untaken(status.get("untaken") or []),
        *([Span(inert(said, 400), "yellow")] for said in status.get("diagnostics") or []),
    ]
    shown = [_inert(line) for line in told[:_MOST_NOTICES]]
    rest = len(told) - len(shown)
    return [*shown, [Span(f"and {counted(rest, 'more notice')}: wakeful status", "yellow")]] if rest > 0 else shown


def _counts(state: State, fleet: Fleet, found: int) -> Line:
    counts = fleet.status.get("counts") or {}
    line: Line = []
    for word in LETTERS:
        if counts.get(word):
            line.append(Span(f"{counts[word]:,} {word}  ", SHADES.get(word, "")))
    bad = sum(1 for row in fleet.rows.values() if failing(row))
    if bad:
        line.append(Span(f"{bad:,} failed last  ", BAD))
    if state.sort != SORTS[0] or state.backwards:
        line.append(Span(f"by {state.sort}{', backwards' if state.backwards else ''}  ", "dim"))
    if state.filter:
        line.append(Span(f"/{inert(state.filter, 60)}: {found:,} of {len(fleet.rows):,}", "bold"))
    return line


def _inert(line: Line) -> Line:
    return [Span(inert_keeping_ends(span.text), span.style) for span in line]


def inert_keeping_ends(text: str) -> str:
    """Pieces of a line of ours may begin or end with a space."""
    before, after = " " * (len(text) - len(text.lstrip(" "))), " " * (len(text) - len(text.rstrip(" ")))
    return before + inert(text, 400) + (after if text.strip() else "")


def _nobody(state: State) -> str:
    if state.filter:
        return f"no agent is found by {inert(state.filter, 60)!r} (Esc shows all)"
    return "no agents yet: they are taken up from the fleet file by wakeful up"


# ---- below the rows


def _detail(row: Row, now: datetime, size: Size, glyphs: Glyphs) -> list[Line]:
    """All that is known of the selected agent, however narrow the window."""
    name = inert(row["name"])
    rule = f"{glyphs.rule * 2} {name} "
    rule += glyphs.rule * max(size.columns - width_of(rule), 0)
    cadence = f"   {inert(row['cadence'])}" if row.get("cadence") else ""
    return [
        [Span(rule, "dim")],
        [Span(" now    ", "dim"), Span(doing_of(row, now), SHADES.get(row["state"], ""))],
        [Span(" day    ", "dim"), *_day(row, size.columns - 8 - width_of(cadence), glyphs), Span(cadence, "dim")],
        [Span(" today  ", "dim"), *_today(row, _BAR if size.columns < _WIDE else 2 * _BAR, glyphs)],
        [Span(" last   ", "dim"), *_last(row, now)],
    ]


def _day(row: Row, width: int, glyphs: Glyphs) -> Line:
    """Where it stands is always in sight, however long the day."""
    told = day_words(row, glyphs) or position_words(row) or "beat after beat"
    start = told.find("[")
    if start > 0 and width_of(told[: told.find("]") + 1]) > width:
        told = glyphs.more + " " + told[start:]
        start = 2
    told = cut(told, max(width, 1), glyphs)
    end = told.find("]") + 1 or len(told)
    if start < 0:
        return [Span(told)]
    return [Span(told[:start], "dim"), Span(told[start:end], "bold cyan"), Span(told[end:], "dim")]


def _today(row: Row, width: int, glyphs: Glyphs) -> Line:
    line: Line = []
    for what, word in (("wakes", "wakes"), ("minutes", "minutes"), ("usd", ""), ("tokens", "tokens")):
        amount, of = used(row, what)
        if not amount and of is None and what in ("usd", "tokens"):
            continue
        drawn = bar(amount, of, width, glyphs)
        told = " ".join(part for part in (word, used_words(row, what), drawn) if part)
        line.append(Span(f"{told}  ", limit_style(amount, of)))
    return line


def _last(row: Row, now: datetime) -> Line:
    last = row.get("last") or {}
    told = "never ran"
    if last.get("outcome") and last.get("ended_at"):
        told = f"{inert(last['outcome'])} {ago(last['ended_at'], now)}"
        told += f": {inert(last['reason'], 400)}" if last.get("reason") else ""
    waiting = []
    if row.get("unread"):
        waiting.append(f"{row['unread']:,} unread")
    if row.get("open_tasks"):
        waiting.append(counted(row["open_tasks"], "open task"))
    first = Span(f"{', '.join(waiting)}  ", "bold") if waiting else Span("")
    return [first, Span(told, BAD if failing(row) else "")]


KEYS = (
    ("p", "pause"),
    ("r", "resume"),
    ("t", "tick"),
    ("w", "wake"),
    ("l", "log"),
    ("y", "why"),
    ("/", "find"),
    ("s", "sort"),
    ("x", "end run"),
    ("P", "pause all"),
    ("?", "help"),
    ("q", "quit"),
)


# Where there is no room for all of them, these are found in the help.
_SPARE = ("s", "x")


def _below(state: State, fleet: Fleet, size: Size, glyphs: Glyphs) -> list[Line]:
    if state.prompt is not None:
        said: Line = [Span(_asked(state.prompt), "bold")]
        hint = state.prompt.problem or _HINTS[state.prompt.asks]
        return [said, [Span(hint, BAD if state.prompt.problem else "dim")]]
    message: Line = [Span(inert(state.said, 400), BAD if state.said_badly else GOOD)]
    held = any(pause["scope"] == "fleet" for pause in fleet.status["pauses"])
    keys = [("R", "resume all") if key == "P" and held else (key, word) for key, word in KEYS]
    return [message, key_line([each for each in keys if each[0] not in _SPARE or size.columns >= _WIDE])]


def key_line(keys: Sequence[tuple[str, str]]) -> Line:
    line: Line = []
    for key, word in keys:
        line += [Span(key, "bold"), Span(f" {word}  " if len(keys) < 8 else f" {word} ", "dim")]
    return line


_HINTS = {
    FILTER: "words of a name, a state, a position or what it does; Enter keeps it, Esc undoes it",
    PAUSE_FOR: "such as 45s, 10m or 2h; Enter alone: until somebody resumes it; Esc: do not pause",
    PAUSE_REASON: "shown to everybody who asks why; Enter pauses, Esc does not",
    WAKE: "a message that is left first; Enter alone only wakes; Esc: do not wake",
    RESUME_FLEET: "all that waited may begin",
    KILL: "TERM to all its processes, then KILL",
}


def _asked(prompt: Prompt) -> str:
    """The line that is typed, with what it is for."""
    whom, typed = inert(prompt.agent) or "the fleet", inert_keeping_ends(prompt.text)
    lasts = f" for {inert(prompt.duration)}" if prompt.duration else ""
    asked = {
        FILTER: "find: ",
        PAUSE_FOR: f"pause {whom} for: ",
        PAUSE_REASON: f"pause {whom}{lasts}, reason: ",
        WAKE: f"wake {whom}, message: ",
        RESUME_FLEET: "resume the fleet? y/n ",
        KILL: f"end run {prompt.run} of {whom}? y/n ",
    }
    return asked[prompt.asks] + typed
