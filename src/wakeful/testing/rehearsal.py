"""A fleet lived through in advance: the real engine, on a copy of the store, in time that jumps.

Laws:
- Runs are drawn from what the same agent did before: how it ended, how long it took, what it used. Of one that has no
  past each run is done, takes as long as is said, and costs what is set aside for it.
- Nothing arrives from outside, and no agent writes to another: what is told is what the fleet does by itself, and with
  what waits already.
- The same seed on the same store, from the same instant, gives the same days.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from wakeful.core.budgets import Bill
from wakeful.core.codec import decode
from wakeful.core.events import Event, EventKind
from wakeful.core.orders import Order
from wakeful.core.runs import Ending, Outcome, TaskEnd
from wakeful.core.wakes import Subject
from wakeful.engine.engine import Engine
from wakeful.fleet.watch import FleetFile
from wakeful.store.inline import Inline
from wakeful.store.listed import RunRow
from wakeful.store.store import SqlStore
from wakeful.testing.carrier import VirtualCarrier
from wakeful.testing.loop import LoopClock, live
from wakeful.testing.runner import Plan, done, failed, no_work

# So many runs of an agent are its past.
REMEMBERED = 500
HOUR = timedelta(hours=1)
_PAGE = 5_000
_TOLD = (EventKind.decided.value, EventKind.ended.value, EventKind.paused.value)


@dataclass(slots=True, kw_only=True)
class Days:
    """What became of an agent, or of all of them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    minutes: float = 0.0
    usd: int = 0
    tokens: int = 0
    # By guard: how often it held a wake back, and when it first did.
    deferred: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    first: dict[str, datetime] = field(default_factory=dict)
    quarantined_at: datetime | None = None
    by_day: Counter[str] = field(default_factory=Counter)
    # Seconds from a wake's first verdict until it was let in.
    waits: list[float] = field(default_factory=list)

    @property
    def runs(self) -> int:
        return self.outcomes.total()


class Rehearsal:
    """`store` is a copy of its own. `passed` is told, now and then, how far it has come."""

    def __init__(
        self, file: FleetFile, store: SqlStore, folder: Path, start: datetime, *, seed: int, takes: timedelta
    ) -> None:
        fleet = file.fleet
        assert fleet is not None
        self._file, self._store, self._folder = file, store, folder
        self._start = start
        self._seed, self._takes = seed, takes
        self._past = {agent.name: self._remembered(agent.name) for agent in fleet.agents}
        self.agents: dict[str, Days] = defaultdict(Days)
        self._asked: dict[int, datetime] = {}

    def run(self, days: float, passed: Callable[[timedelta], None] = lambda elapsed: None) -> None:
        newest = self._store.events(before=2**62, limit=1)
        live(lambda: self._live(timedelta(days=days), passed))
        after = newest[0].id if newest else 0
        for event in self._events(after):
            self._count(event)

    async def _live(self, length: timedelta, passed: Callable[[timedelta], None]) -> None:
        carrier = VirtualCarrier(self._plan)
        clock = LoopClock(self._start)
        engine = Engine(
            Inline(self._store),
            carrier,
            self._file,
            clock,
            "simulation",
            self._folder,
            sources=lambda agents, hints: [],
        )
        await engine.start()
        elapsed = timedelta()
        while elapsed < length:
            step = min(HOUR, length - elapsed)
            await asyncio.sleep(step.total_seconds())
            elapsed += step
            passed(elapsed)
        engine.leave(drain=False)
        await engine.stop()

    # -- what a run does

    def _remembered(self, agent: str) -> list[RunRow]:
        rows = self._store.runs(agent=agent, before=2**62, limit=REMEMBERED)
        return [row for row in rows if row.outcome is not None and row.started_at is not None]

    def _plan(self, order: Order) -> Plan:
        dice = Random(f"{self._seed}:{order.run.id}")
        past = self._past.get(order.agent.name, [])
        like = [row for row in past if row.subject is order.run.subject] or past
        row = dice.choice(like) if like else None
        duration = self._takes if row is None else _lasted(row)
        if row is not None and row.outcome is Outcome.killed:
            # The guardian ends it where it always did.
            duration = max(duration, order.agent.wall_clock(order.run.subject) + timedelta(seconds=1))
        usage = None if row is None or row.estimated else row.spend
        outcome = Outcome.done if row is None else row.outcome
        ending = no_work(usage) if outcome is Outcome.no_work else done("", usage)
        if outcome is Outcome.failed:
            ending = failed(row.reason if row is not None else "", usage)
        return Plan(duration=duration, ending=ending, tasks=_ends(order, duration, ending))

    # -- what was seen

    def _events(self, after: int) -> Iterator[Event]:
        while found := self._store.events(after=after, kinds=_TOLD, limit=_PAGE):
            yield from found
            after = found[-1].id

    def _count(self, event: Event) -> None:
        fields: dict[str, Any] = dict(event.fields or {})
        days = self.agents[event.agent or ""]
        if event.kind is EventKind.ended:
            days.outcomes[fields["outcome"]] += 1
            days.minutes += (fields.get("ms") or 0) / 60_000
            spend = decode(Bill, fields["spend"]).spend
            days.usd += spend.usd
            days.tokens += spend.tokens
            days.by_day[str(fields.get("day"))] += spend.usd
        elif event.kind is EventKind.paused and fields.get("owner") == "quarantine":
            days.quarantined_at = days.quarantined_at or event.at
        elif event.kind is EventKind.decided and event.wake is not None:
            self._judged(days, event, fields.get("verdict") or {})

    def _judged(self, days: Days, event: Event, verdict: dict[str, object]) -> None:
        assert event.wake is not None
        kind, guard = verdict.get("kind"), str(verdict.get("guard") or "")
        first = self._asked.setdefault(event.wake, event.at)
        if kind == "admit":
            days.waits.append((event.at - first).total_seconds())
        elif kind in ("defer", "refuse"):
            (days.deferred if kind == "defer" else days.refused)[guard] += 1
            days.first.setdefault(guard, event.at)


def _lasted(row: RunRow) -> timedelta:
    assert row.started_at is not None
    return max((row.ended_at or row.started_at) - row.started_at, timedelta(milliseconds=1))


def _ends(order: Order, duration: timedelta, ending: Ending) -> tuple[tuple[timedelta, TaskEnd], ...]:
    """A shift settles its tasks one after the other."""
    if order.run.subject is not Subject.task or order.agent.shift == 1:
        return ()
    parts = len(order.tasks) + 1
    return tuple(
        (duration * number / parts, TaskEnd(task=task.id, ending=ending)) for number, task in enumerate(order.tasks, 1)
    )
