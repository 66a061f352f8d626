"""What is answered to whoever draws: a day in lanes, and what days have cost; see `answers` for the laws."""

from __future__ import annotations

from typing import TypedDict

from wakeful.control.told import CauseName, Expected, From, OutcomeName, Pause, SubjectName, Time, VerdictName


class LaneRun(From):
    """A run; `by_run` is the run whose wake it came of."""

    id: int
    start: Time
    end: Time | None
    outcome: OutcomeName | None
    cause: CauseName
    subject: SubjectName
    by_run: int | None
    wake_id: int
    summary: str


class LaneWake(From):
    """A verdict on a wake, when it was reached; one that waits has one each time it is asked about."""

    wake_id: int | None
    at: Time
    verdict: VerdictName
    guard: str | None
    reason: str
    cause: CauseName | None
    by_run: int | None
    run_id: int | None
    until: Time | None


class Stretch(TypedDict):
    since: Time
    until: Time


class Lane(TypedDict):
    """One agent; `more` are left out of it, the oldest of its runs and verdicts. What is ahead is told up to
    `ahead_until`, if not to the end."""

    agent: str
    runs: list[LaneRun]
    wakes: list[LaneWake]
    quiet: list[Stretch]
    pauses: list[Pause]
    ahead: list[Expected]
    ahead_until: Time | None
    more: int


class Timeline(TypedDict):
    since: Time
    until: Time
    now: Time
    lanes: list[Lane]


class Spending(TypedDict):
    """A number for each day."""

    usd: list[float]
    tokens: list[int]


class FleetSpending(Spending):
    of_usd: float | None
    of_tokens: int | None


class AgentSpending(Spending):
    agent: str


class Costs(TypedDict):
    """`days` are told the newest last, up to today; an agent's day is that of its own zone. Replicas are told as their
    address."""

    days: list[str]
    fleet: FleetSpending
    agents: list[AgentSpending]
