"""Rows as they are listed: what a reader of the store is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wakeful.core.agents import Agent
from wakeful.core.runs import Outcome
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Pause, Subject, Wake


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """An agent as it is listed: where it stands and what it is doing, in one read."""

    agent: Agent
    version: int
    standing: Standing
    # Names of the live settings that replace what was declared.
    overrides: tuple[str, ...]
    run: RunRow | None
    # What holds it: its own pauses and those of its address and of the fleet, the strongest first.
    pauses: tuple[Pause, ...]
    # The oldest of its waiting wakes, with the guard that it waits for.
    waiting: WakeRow | None
    unread: int
    open_tasks: int


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
