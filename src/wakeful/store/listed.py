"""Rows as they are listed, and small answers: what a reader of the store is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from wakeful.core.agents import Agent
from wakeful.core.items import Item
from wakeful.core.runs import Outcome
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Pause, Subject, Wake

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as it is listed."""

    id: int
    agent: str
    wake: int
    cause: Cause
    subject: Subject
    state: str
    epoch: int
    attempt: int
    node: str | None
    outcome: Outcome | None
    reason: str
    summary: str
    admitted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    spend: Spend
    shown: tuple[int, ...] = ()
    tasks: tuple[int, ...] = ()
    # Nobody said what it used: `spend` is what was set aside for it.
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeRow:
    """A wake as it is listed, with the last verdict on it."""

    wake: Wake
    state: str
    guard: str | None
    reason: str
    retry_at: datetime | None
    joined: int | None
    run: int | None
    # All that it was tried with, the newest of which is `run`; told where wakes are listed.
    runs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """An agent as it is listed: where it stands and what it is doing, in one read."""

    agent: Agent
    version: int
    standing: Standing
    # Names of the live settings that replace what was declared.
    overrides: tuple[str, ...]
    run: RunRow | None = None
    # What holds it: its own pauses and those of its address and of the fleet, the strongest first.
    pauses: tuple[Pause, ...] = ()
    # The oldest of its waiting wakes, with the guard that it waits for.
    waiting: WakeRow | None = None
    unread: int = 0
    open_tasks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the guards compare with the limits of a day, set aside for open runs included; see `store.facts` for the
    scopes. Money is in millionths of a dollar."""

    scope: str
    day: str
    wakes: int
    ms: int
    usd: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """What a search has found, newest first; `next` is where it goes on, None when all was looked at."""

    rows: tuple[T, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Which verdicts; all of what is named must hold. One whose event does not tell is found as well."""

    verdict: str | None = None
    guard: str | None = None
    cause: str | None = None
    # A part of the reason, of the sender's name or of the agent's.
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step of a task, or of the beat where there is none; without a result it is begun."""

    task: int | None
    name: str
    result: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time, and where it lies: between two events, the first not included, and from one run on up to
    another, which is not."""

    since: datetime
    until: datetime
    events: tuple[int, int]
    runs: tuple[int, int]


class LaneRun(NamedTuple):
    """A run as it is drawn, with who asked for it. There may be thousands: instants are texts, as they are told."""

    id: int
    start: str
    end: str | None
    outcome: str | None
    cause: str
    subject: str
    sender: str | None
    by_run: int | None
    wake: int
    summary: str


class LaneWake(NamedTuple):
    """A verdict as it is drawn; instants are texts."""

    wake: int | None
    at: str
    verdict: str
    guard: str | None
    reason: str
    cause: str | None
    sender: str | None
    by_run: int | None
    run: int | None
    until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What happened to one agent, oldest first; `more` are left out."""

    agent: str
    runs: tuple[LaneRun, ...]
    wakes: tuple[LaneWake, ...]
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """An engine that is or was at work on this store, by the store's own clock."""

    name: str
    host: str
    url: str
    since: datetime
    seen_at: datetime
    left_at: datetime | None
    # Neither left nor silent for longer than its lease.
    alive: bool
    # How many runs it holds.
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a task; `counted` is false for an end that we brought about ourselves."""

    run: int
    started_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None
    counted: bool
    exit_code: int | None
    error: str
    # The last of what it printed.
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; all of what is named must hold. `tag` is one of theirs, `key` the causal one."""

    # Of these agents or addresses; empty is everybody's.
    agents: tuple[str, ...] = ()
    role: str | None = None
    # Who added them.
    sender: str | None = None
    states: tuple[str, ...] = ()
    tag: str | None = None
    key: str | None = None
    source: str | None = None
    priority: str | None = None
    # A part of the title or of the last error.
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source that somebody tends, or whose outage was told."""

    source: str
    agent: str
    # Who tends it; None where there is nobody to share it with.
    node: str | None
    # Why it cannot be read, and since when; None while it can.
    outage: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckRow:
    """An item that was put before runs that ended, and is still there."""

    item: Item
    # How many runs saw it, since when, and which was the last.
    runs: int
    first_shown_at: datetime
    last_run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A run under way that somebody wants ended; or only one task of it, which is no longer this run's to do."""

    run: int
    epoch: int
    by: str
    at_once: bool
    task: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How many items are open, by address (or `role:` and the role) and kind; and since when the oldest of those waits
    that a run could handle now and none has."""

    open: dict[tuple[str, str], int]
    oldest: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a sweep of the past removed; `more` says that there was more than one sweep takes."""

    runs: int = 0
    wakes: int = 0
    items: int = 0
    events: int = 0
    more: bool = False
