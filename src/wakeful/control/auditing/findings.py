"""What does not add up, in words a person can act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

EVENTS = "events"
FLEET = "fleet"
STANDINGS = "standings"
LIMITS = "limits"
WAKES = "wakes"
RUNS = "runs"
MESSAGES = "messages"
TASKS = "tasks"
TOTALS = "totals"
PAUSES = "pauses"
REST = "rest"

# What each rule says, and what to do where it does not hold.
RULES = {
    EVENTS: (
        "events are appended, never changed or removed",
        "something was taken from or put into the events: restore a backup, or keep the file and report it",
    ),
    FLEET: (
        "agents, their versions, roles and addresses are what was declared and set",
        "start the engine or run wakeful reload, which declares the fleet anew; if it stays, restore a backup",
    ),
    STANDINGS: (
        "position, streaks, gates and the next beat are the fold of the outcomes",
        "pause the agent and look at its last runs (wakeful runs AGENT); restore a backup if its place matters",
    ),
    LIMITS: (
        "every verdict is what the guards say to what is counted at that moment",
        "pause the fleet (wakeful pause) until it is known why a limit was not kept, and report it",
    ),
    WAKES: (
        "every wake is waiting, joined, refused or admitted, as its events tell",
        "ask again for what should run (wakeful tick, wakeful wake); restore a backup if wakes are missing",
    ),
    RUNS: (
        "every run was decided, started and ended once, as its events tell",
        "look at the run (wakeful runs, wakeful logs RUN); restore a backup if runs are missing",
    ),
    MESSAGES: (
        "a message is open, read, gone or closed by a run that was shown it; shown moves only by outcomes",
        "send the message again if it is lost; what its source still has is seen again after wakeful reload",
    ),
    TASKS: (
        "a task is open, completed, cancelled, dead or removed, as its attempts and its events tell",
        "look at it (wakeful task show TASK), then retry, complete or cancel it; add it again if it is lost",
    ),
    TOTALS: (
        "the sums of a day are what a recount gives",
        "limits of that day are judged by a wrong sum until the day ends: set a limit to match (wakeful set), or pause",
    ),
    PAUSES: (
        "a pause stands from the event that began it to the one that lifted it",
        "pause or resume it again (wakeful pause, wakeful resume)",
    ),
    REST: (
        "steps, output, slots and sources belong to something that is there",
        "what is left over does no harm; what is missing cannot be made again: restore a backup if it matters",
    ),
}

# Of one rule as many are kept; the rest is counted.
MOST_KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`rows` name the rows that do not agree, such as `run 17` or `event 903`."""

    rule: str
    rows: tuple[str, ...]
    expected: str
    found: str

    @property
    def what_to_do(self) -> str:
        return RULES[self.rule][1]


@dataclass(slots=True)
class Findings:
    """Those that are kept, and how many there were of each rule."""

    kept: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, rule: str, rows: str | tuple[str, ...], expected: object, found: object) -> None:
        self.counts[rule] += 1
        if self.counts[rule] <= MOST_KEPT:
            named = (rows,) if isinstance(rows, str) else rows
            self.kept.append(Finding(rule=rule, rows=named, expected=str(expected), found=str(found)))

    def hold(self, rule: str, rows: str | tuple[str, ...], what: str, expected: object, found: object) -> bool:
        """Whether they agree; else it is a finding."""
        if expected == found:
            return True
        self.add(rule, rows, f"{what} {shown(expected)}", shown(found))
        return False

    @contextmanager
    def readable(self, rule: str, rows: str | tuple[str, ...]) -> Iterator[None]:
        """A row that cannot be read is a finding, and the next one is looked at."""
        try:
            yield
        except UNREADABLE as error:
            self.add(rule, rows, "a row that can be read", f"{type(error).__name__}: {error}")

    def __iter__(self) -> Iterator[Finding]:
        order = list(RULES)
        return iter(sorted(self.kept, key=lambda finding: order.index(finding.rule)))


# What is raised by a row that does not hold what such a row holds.
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else str(value)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(micros: int) -> datetime:
    seconds, rest = divmod(micros, 1_000_000)
    return _EPOCH + timedelta(0, seconds, rest)


def moment_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else moment(micros)


def micros(at: datetime) -> int:
    delta = at - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
