"""What `wakeful top` is showing: which page, which agent, what is being typed. Nothing here draws, asks or waits.

Law: an agent is chosen by its name, never by its place on the screen: what moves while a key is pressed is not hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

FLEET, LOG, WHY, HELP = "fleet", "log", "why", "help"
SORTS = ("trouble", "name", "busy", "next beat", "last run", "unread", "spent")
CAUSES = ("timer", "operator", "task", "peer", "news")
STREAMS = ("stdout", "stderr")

# What a prompt asks for.
FILTER, PAUSE_FOR, PAUSE_REASON, WAKE, RESUME_FLEET, KILL = (
    "filter",
    "pause for",
    "pause reason",
    "wake",
    "resume",
    "kill",
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A line that is being typed. `agent` is "" where the fleet is meant; `before` is what was there, for Esc."""

    asks: str
    agent: str = ""
    text: str = ""
    before: str = ""
    duration: str | None = None
    run: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """`first` is the first row that is shown. `line` is the first line of a page; None stands at its end and stays
    there. `run` is the run whose log is shown, None for the newest."""

    view: str = FLEET
    selected: str = ""
    first: int = 0
    sort: str = SORTS[0]
    backwards: bool = False
    filter: str = ""
    prompt: Prompt | None = None
    page_of: str = ""
    line: int | None = 0
    stream: str = STREAMS[0]
    cause: str = CAUSES[0]
    run: int | None = None
    # What came of the last key, until the next one.
    said: str = ""
    said_badly: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What was on the screen when the key was pressed: the names in their order, how many rows of the fleet or lines
    of the page there is room for, how many lines the page has, and the row of the selected agent."""

    names: Sequence[str] = ()
    room: int = 1
    lines: int = 0
    row: Row | None = None
    newest_run: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """An operation that a key asks for, and what is said while it is under way."""

    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    saying: str = ""


QUIT, REDRAW = "quit", "redraw"
Act = Ask | str | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is known of the fleet, and since when nobody answered: `silent` seconds, 0 while somebody does.
    `problem` is why, where that is known."""

    status: Row
    rows: Mapping[str, Row]
    silent: float = 0.0
    problem: str = ""
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    columns: int
    rows: int
