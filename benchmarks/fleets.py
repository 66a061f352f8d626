"""Fleets and wakes of any size, alike but for their names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from wakeful.core.agents import Agent, Fleet, Limits
from wakeful.core.cadence import Cadence
from wakeful.core.items import Kind, NewItem, Origin, Ring
from wakeful.core.orders import Order
from wakeful.core.runs import Ending
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.store.protocol import Finish

START = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=15)

# Longer than an interval: after a step every beat is due again.
STEP = timedelta(hours=2)

_BODY = "hello" * 10
_MANY = 1_000_000


def name_of(index: int) -> str:
    return f"agent-{index:06}"


def fleet_of(size: int) -> Fleet:
    """Slots for all, so that a timer is admitted; no wakes a day, so that a peer's wake is refused."""
    limits, cadence = Limits(wakes_per_day=0), Cadence(interval=timedelta(hours=1))
    names = (name_of(index) for index in range(size))
    agents = tuple(Agent(name=name, address=name, cadence=cadence, limits=limits) for name in names)
    return Fleet(agents=agents, sessions=_MANY, workers=_MANY)


def message(agent: str, key: str, *, ring: Ring = Ring.silent) -> NewItem:
    return NewItem(
        kind=Kind.message, agent=agent, sender="wren", origin=Origin.agent, body=_BODY, dedupe=key, ring=ring
    )


def timer(agent: str, now: datetime) -> Wake:
    return Wake(agent=agent, cause=Cause.timer, subject=Subject.beat, requested_at=now)


def peer(agent: str, item: int, now: datetime) -> Wake:
    return Wake(agent=agent, cause=Cause.peer, subject=Subject.inbox, requested_at=now, sender="wren", item=item)


def done(order: Order) -> Finish:
    return Finish(run=order.run.id, epoch=order.run.epoch, ending=Ending(exit_code=0, elapsed=timedelta(seconds=1)))
