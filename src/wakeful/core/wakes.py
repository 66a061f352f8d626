"""A cause asks for a wake; the wake is a request and the verdict on it.

Laws:
- Five causes, three subjects, three verdicts; nothing else exists.
- Root, depth and lineage travel with the wake, so that a loop can be seen without walking the past.
- A verdict names its guard and its numbers; a deferral says until when, or what has to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Cause(StrEnum):
    timer = "timer"
    operator = "operator"
    task = "task"
    peer = "peer"
    news = "news"


class Subject(StrEnum):
    beat = "beat"
    inbox = "inbox"
    task = "task"


class Pool(StrEnum):
    """The two kinds of slot: sessions hold beat and inbox runs, workers hold task runs."""

    sessions = "sessions"
    workers = "workers"


class VerdictKind(StrEnum):
    admit = "admit"
    defer = "defer"
    refuse = "refuse"


class WakeReason(StrEnum):
    """Why one agent may wake another. Whatever else it has to say can wait for the other's next run."""

    blocker = "blocker"
    critical_finding = "critical_finding"
    user_request = "user_request"


# The source of a one-off task (`wakeful run`). The space keeps it apart from every source that can be declared.
ONE_OFF = "wakeful run"

POOLS = {Subject.beat: Pool.sessions, Subject.inbox: Pool.sessions, Subject.task: Pool.workers}

# The order in which one agent's waiting wakes are tried; equals are tried oldest first.
RANKS = {Cause.operator: 0, Cause.peer: 1, Cause.timer: 2, Cause.task: 3, Cause.news: 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """A request that an agent run. `id` is 0 until the store has recorded it."""

    agent: str | None
    cause: Cause
    subject: Subject
    requested_at: datetime
    id: int = 0
    role: str | None = None
    sender: str | None = None
    reason: str | None = None
    item: int | None = None
    task: int | None = None
    source: str | None = None
    by_run: int | None = None
    root: int | None = None
    depth: int = 0
    lineage_usd: int = 0
    slot: str = ""
    attempt: int = 1
    charged: bool = False

    @property
    def pool(self) -> Pool:
        return POOLS[self.subject]

    @property
    def one_off(self) -> bool:
        """A beat that was asked for by its instant, not by the cadence."""
        return self.slot != ""


def order(wakes: Sequence[Wake]) -> list[Wake]:
    """First come, first served between agents; within one agent by rank, then oldest first. What is for a role comes
    after whatever goes before a task: it might take the very agent that is asked for."""
    fifo = sorted(wakes, key=lambda wake: (wake.requested_at, wake.id))
    ranked: dict[str | None, list[Wake]] = {}
    for wake in sorted(fifo, key=lambda wake: RANKS[wake.cause]):
        ranked.setdefault(wake.agent or wake.role, []).append(wake)
    found = [ranked[wake.agent or wake.role].pop(0) for wake in fifo]
    before = max((number for number, wake in enumerate(found) if RANKS[wake.cause] < RANKS[Cause.task]), default=-1) + 1
    head = sorted(found[:before], key=lambda wake: wake.agent is None)
    return head + found[before:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause is the presence of its row; the scope says whom it holds."""

    scope: str
    owner: str
    reason: str
    since: datetime
    until: datetime | None = None


FLEET = "fleet"


def agent_scope(name: str) -> str:
    return f"agent:{name}"


def source_scope(name: str) -> str:
    return f"source:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to a wake. `until` is the next instant at which the answer can differ, when that is known."""

    kind: VerdictKind
    guard: str | None = None
    reason: str = ""
    numbers: dict[str, float | str] = field(default_factory=dict)
    until: datetime | None = None
    trip: Pause | None = None


ADMIT = Verdict(kind=VerdictKind.admit)


def defer(guard: str, reason: str, *, until: datetime | None = None, **numbers: float | str) -> Verdict:
    return Verdict(kind=VerdictKind.defer, guard=guard, reason=reason, until=until, numbers=numbers)


def refuse(guard: str, reason: str, *, until: datetime | None = None, **numbers: float | str) -> Verdict:
    return Verdict(kind=VerdictKind.refuse, guard=guard, reason=reason, until=until, numbers=numbers)
