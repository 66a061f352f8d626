"""The pages behind the fleet: the log of a run, why an agent does not run, and the keys.

Laws:
- Pure, as the fleet's picture is. A page is a heading, lines that can be scrolled, and its own keys.
- What an agent printed is text: cleaned, measured, cut between cells; nothing of it reaches the terminal as a sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from wakeful.cli.output import Line, Span
from wakeful.cli.top_cells import Glyphs, fitted, folded, inert, lines_of_text, wrapped
from wakeful.cli.top_screen import BAD, Picture, key_line, stale_line
from wakeful.cli.top_state import Fleet, Size, State
from wakeful.cli.why import sentence
from wakeful.cli.words import BADLY, clock, lasting, numbers, read_time, told_of

Row = dict[str, Any]

# So many lines of a log are kept; the rest is for `wakeful logs`.
MOST_LINES = 20_000
LONGEST_LINE = 4_000

LOG_KEYS = (
    ("q", "back"),
    ("up/down/PgUp/PgDn", "scroll"),
    ("End", "follow"),
    ("e", "other stream"),
    ("n", "newest run"),
)
WHY_KEYS = (("q", "back"), ("c", "other cause"), ("up/down", "scroll"))
HELP_KEYS = (("q", "back"), ("up/down", "scroll"))


@dataclass(slots=True)
class Log:
    """What one stream of a run printed, as far as it was read."""

    agent: str
    stream: str
    run: Row | None = None
    newest: int | None = None
    over: bool = False
    nothing: str = ""
    problem: str = ""
    lines: list[str] = field(default_factory=list)
    _rest: str = ""
    _width: int = 0
    _done: int = 0
    _wrapped: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """A piece may end in the middle of a line, or of a sequence: what has no end yet is kept as it came."""
        whole, end, self._rest = (self._rest + text).rpartition("\n")
        self.lines += lines_of_text(whole + end)[:-1] if end else []
        # A line without an end must not grow for ever.
        if len(self._rest) > LONGEST_LINE:
            self.lines += lines_of_text(self._rest)
            self._rest = ""
        surplus = len(self.lines) - MOST_LINES
        if surplus > 0:
            del self.lines[:surplus]
            self._width = 0

    def take(self, told: Row) -> None:
        """What was found of it."""
        self.problem = told.get("problem", "")
        self.nothing = told.get("nothing", "" if "problem" not in told else self.nothing)
        self.newest = told.get("newest", self.newest)
        self.run = told.get("run", self.run)
        self.over = told.get("over", self.over)
        if "text" in told:
            self.add(told["text"])

    def told(self, width: int) -> list[str]:
        """Its lines as they stand in a window of that width; those that were cut before are not cut again."""
        if width != self._width:
            self._width, self._done, self._wrapped = width, 0, []
        for line in self.lines[self._done :]:
            self._wrapped += wrapped(line, width)
        self._done = len(self.lines)
        rest = lines_of_text(self._rest) if self._rest else []
        return [*self._wrapped, *(piece for line in rest for piece in wrapped(line, width))]


def log_picture(state: State, fleet: Fleet, log: Log | None, now: datetime, size: Size, glyphs: Glyphs) -> Picture:
    above = [_log_title(state, log, now)]
    if log is not None and log.problem:
        above.append([Span(f" {inert(log.problem, 200)}; asking again", BAD)])
    lines: list[str | Line] = []
    if log is not None:
        lines = [*log.told(size.columns), *(_ended(log, size.columns) if log.over else [])]
        if not lines:
            lines = [[Span(log.nothing or f"nothing on its {state.stream} yet", "dim")]]
    return _page(state, fleet, above, lines, LOG_KEYS, size, glyphs)


def _log_title(state: State, log: Log | None, now: datetime) -> Line:
    who = [Span(f" {inert(state.page_of)}", "bold")]
    if log is None:
        return [*who, Span(": looking for its newest run…", "dim")]
    if log.run is None:
        return [*who, Span(f": {log.nothing or 'looking for its newest run…'}", "dim")]
    run = log.run
    told = f" run {run['id']}, {state.stream}: "
    if run.get("ended_at") or run.get("outcome"):
        told += f"{inert(run['outcome'] or run['state'])} {clock(run['ended_at'], now)}"
        style = BAD if run["outcome"] in BADLY else ""
    else:
        since = run.get("started_at")
        told += f"running {lasting(now - read_time(since))}" if since else "starting"
        style = "bold cyan"
    line = [*who, Span(told, style)]
    if log.newest is not None and log.newest != run["id"]:
        line.append(Span(f"   run {log.newest} has begun: n", "bold yellow"))
    return line


def _ended(log: Log, width: int) -> list[Line]:
    run = log.run or {}
    told = inert(told_of(run), 400)
    words = f"run {run.get('id')} {inert(run.get('outcome') or run.get('state') or 'ended')}"
    style = BAD if run.get("outcome") in BADLY else "bold"
    return [[Span(line, style)] for line in folded(f"[{words}{f': {told}' if told else ''}]", width)]


def why_picture(state: State, fleet: Fleet, answer: Row | None, now: datetime, size: Size, glyphs: Glyphs) -> Picture:
    above: list[Line] = [[Span(f" {inert(state.page_of)}", "bold"), Span(f": why, for a wake by {state.cause}", "dim")]]
    lines: list[Line] = [[Span("asking…", "dim")]]
    if answer is not None and "problem" in answer:
        lines = [[Span(text, BAD)] for text in folded(inert(answer["problem"], 400), size.columns)]
    elif answer is not None:
        lines = _why_lines(answer, now, size.columns, glyphs)
    return _page(state, fleet, above, lines, WHY_KEYS, size, glyphs)


def _why_lines(answer: Row, now: datetime, width: int, glyphs: Glyphs) -> list[Line]:
    style = "" if answer["verdict"] == "admit" else BAD
    lines: list[Line] = [
        [Span(text, f"bold {style}")] for text in _told(sentence(answer, answer["cause"], None, now), width)
    ]
    lines.append([])
    names = max((len(opinion["guard"]) for opinion in answer["opinions"]), default=0)
    for opinion in answer["opinions"]:
        verdict = opinion["verdict"]
        mark = glyphs.wrong if verdict else glyphs.fine
        said = [verdict or "no objection", opinion.get("reason") or ""]
        said.append(numbers(opinion.get("numbers") or {}))
        said.append(f"next eligible {clock(opinion['until'], now)}" if opinion.get("until") else "")
        text = f"{mark} {opinion['guard']:{names}}  {'; '.join(inert(part, 400) for part in said if part)}"
        style = BAD if opinion["guard"] == answer["guard"] else "yellow" if verdict else ""
        lines += [[Span(line, style)] for line in folded(text, width, indent=names + 4)]
    for assumption in answer.get("assumptions") or []:
        lines += [[Span(line, "dim")] for line in _told(f"assumed: {assumption}", width)]
    last = answer.get("last_decision")
    if last:
        told = f"last decision, {clock(last['at'], now)}: {last['verdict']}"
        told += f" by {last['guard']}: {last['reason'] or ''}" if last["guard"] else ""
        told += f" (run {last['run_id']})" if last.get("run_id") else ""
        lines += [[], *([Span(line)] for line in _told(told, width))]
    return lines


def _told(text: str, width: int) -> list[str]:
    return folded(inert(text, 400), width, indent=2)


HELP = """\
Moving      up down j k, PgUp PgDn, Home End; the selected agent stays selected however the rows move
Enter l     follow the log of its newest run; there: e shows the other stream, End follows again
y           why it would run now or not, guard by guard; there: c asks for another cause
p           pause it: for how long, and the reason
r           resume it, also from quarantine
t           tick: ask for its next beat now
w           wake it: look at its inbox now, with a message if you like
x           end its run, after y
P R         pause or resume the whole fleet
/           find: words of a name, a state, a position or what it does; Esc shows all again
s S         sort: trouble first, name, busy, next beat, last run, unread, spent; S turns it around
? h         this; Ctrl-L draws everything again
q           back, or quit; Ctrl-Z leaves for a while, fg comes back

Letters     R running, W waiting, I idle, P paused, Q quarantined, D disabled
Columns     more of them come as the window is wider; the lines below tell all of the selected agent
Bars        what today used of its limit; without a bar there is no limit

What is shown is what wakeful status tells (wakeful status --json for programs). It follows the events of the \
engine; when none answers that is said above the rows, and it comes back by itself."""


def help_picture(state: State, fleet: Fleet, size: Size, glyphs: Glyphs) -> Picture:
    lines: list[Line] = []
    for text in HELP.split("\n"):
        lines += [[Span(line)] for line in folded(text, size.columns, indent=12 if text[11:12] == " " else 0)]
    return _page(state, fleet, [[Span(" wakeful top", "bold")]], lines, HELP_KEYS, size, glyphs)


def _page(
    state: State,
    fleet: Fleet,
    above: list[Line],
    lines: Sequence[str | Line],
    keys: Sequence[tuple[str, str]],
    size: Size,
    glyphs: Glyphs,
) -> Picture:
    """`state.line` None stands at the end."""
    if fleet.silent:
        above = [*above, stale_line(fleet, size)]
    room = max(size.rows - len(above) - 2, 1)
    last = max(len(lines) - room, 0)
    first = last if state.line is None else min(state.line, last)
    shown = [[Span(line)] if isinstance(line, str) else line for line in lines[first : first + room]]
    shown += [[] for _ in range(room - len(shown))]
    place = "all" if not last else f"lines {first + 1:,} to {min(first + room, len(lines)):,} of {len(lines):,}"
    if state.line is None:
        place += ", following"
    rule = f"{glyphs.rule * 2} {place} "
    drawn = [*above, *shown, [Span(rule + glyphs.rule * max(size.columns - len(rule), 0), "dim")], key_line(keys)]
    return Picture([fitted(line, size.columns, glyphs) for line in drawn[: size.rows]], None, room, first, len(lines))
