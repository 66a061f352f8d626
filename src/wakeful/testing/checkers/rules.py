"""Rules of the core, written once more for the checkers: where a day moves, when a beat is due, what a run may cost."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

from wakeful.core.agents import Agent, Fleet, Limits
from wakeful.core.lifecycle import Lifecycle
from wakeful.core.standing import Spend
from wakeful.testing.checkers.calendar import fires_after

if TYPE_CHECKING:
    from wakeful.testing.checkers.ledger import Place

HALF_HOUR = timedelta(minutes=30)


def resolved(state: str, hits: int, lifecycle: Lifecycle) -> tuple[str, int]:
    """A place in a lifecycle that may have been edited since."""
    for known in lifecycle.states:
        if known.name == state:
            return state, min(hits, known.repeat - 1)
    return lifecycle.start, 0


def moved(state: str, hits: int, lifecycle: Lifecycle, outcome: str) -> tuple[str, int]:
    known = next((known for known in lifecycle.states if known.name == state), None)
    if known is None:
        return lifecycle.start, 0
    if outcome == "done" and hits + 1 < known.repeat:
        return state, hits + 1
    return (known.next, 0) if outcome in ("done", "no_work") else (state, hits)


def next_due(agent: Agent, streak: int, end: datetime) -> datetime | None:
    rest = min(timedelta(minutes=2 ** min(streak - 1, 9)), HALF_HOUR) if streak else timedelta()
    cadence = agent.cadence
    if cadence.schedule is not None:
        tick = timedelta(microseconds=1)
        return fires_after(cadence.schedule.expression, max(end, end + rest - tick), agent.timezone)
    interval = cadence.breather if cadence.continuous else cadence.interval
    return None if interval is None else end + max(interval, rest)


def first_due(agent: Agent, fleet: Fleet, at: datetime) -> datetime | None:
    cadence = agent.cadence
    if cadence.schedule is not None:
        return fires_after(cadence.schedule.expression, at, agent.timezone)
    interval = cadence.breather if cadence.continuous else cadence.interval
    return None if interval is None else at + fleet.grace + _share(agent, fleet, interval)


def changed_due(place: Place, agent: Agent, fleet: Fleet, at: datetime) -> datetime | None:
    """Of an agent whose cadence was edited: the beat that it has, or a sooner one, spread as first beats are."""
    soon, cadence = next_due(agent, place.idle, at), agent.cadence
    interval = cadence.breather if cadence.continuous else cadence.interval
    if soon is None or cadence.schedule is not None or interval is None:
        return soon
    assert place.due is not None
    return min(place.due, soon + _share(agent, fleet, interval))


def _share(agent: Agent, fleet: Fleet, interval: timedelta) -> timedelta:
    index = [known.name for known in fleet.agents].index(agent.name)
    return min(fleet.stagger, interval / len(fleet.agents)) * index


def resumed_due(place: Place, agent: Agent, boot: datetime, grace: timedelta) -> datetime:
    cadence, due = agent.cadence, place.due
    assert due is not None
    interval = cadence.breather if cadence.continuous else cadence.interval
    if cadence.schedule is None and interval is not None:
        rest = min(timedelta(minutes=2 ** min(place.idle - 1, 10)), HALF_HOUR) if place.idle else timedelta()
        due = min(due, boot + max(interval, rest, grace))
    return max(due, boot + grace)


def reservation(costs: list[Spend], limits: Limits) -> Spend:
    """What a run must be able to afford; where there is a budget nothing is free, and nothing dearer than all of it."""
    usd = _reserved([cost.usd for cost in costs], limits.reserve_usd, limits.usd_per_day, limits.fleet_usd_per_day)
    tokens = _reserved(
        [cost.tokens for cost in costs],
        limits.reserve_tokens,
        limits.tokens_per_day,
        limits.fleet_tokens_per_day,
    )
    return Spend(usd=usd, tokens=tokens)


def _reserved(past: list[int], declared: int | None, *budgets: int | None) -> int:
    bounds = [budget for budget in budgets if budget is not None]
    if not bounds:
        return 0
    if past:
        wanted = sorted(past)[ceil(len(past) * 9 / 10) - 1]
    else:
        wanted = declared if declared is not None else ceil(min(bounds) / 10)
    return max(min(wanted, min(bounds)), 1)
