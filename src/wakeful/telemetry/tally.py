"""What a node did since it started, added up from the events it wrote.

Laws:
- A count only grows while the node lives, and begins at nothing with it: a restart is a reset, as Prometheus expects.
- There are as many series as there are agents and words of closed vocabularies, and never more agents than
  `MOST_AGENTS`: the rest is counted together, under the name `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from wakeful.core.budgets import Bill
from wakeful.core.codec import decode, read_time
from wakeful.core.events import Event, EventKind
from wakeful.core.wakes import Cause

MOST_AGENTS = 20_000
OTHER = "other"
# Wakes that wait for a slot, and since when; the oldest are forgotten first.
MOST_WAITING = 100_000
SLOTS, JOINED = "slots", "joined"

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class Histogram:
    """How many were at most so long; `counts` has one place more, for what was longer than all bounds."""

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds


class Tally:
    def __init__(self, most_agents: int = MOST_AGENTS) -> None:
        # By agent, cause and outcome.
        self.completed: Counter[tuple[str, str, str]] = Counter()
        # By agent, cause, verdict and guard.
        self.decided: Counter[tuple[str, str, str, str]] = Counter()
        self.duration = Histogram()
        self.slot_wait = Histogram()
        self.lag = Histogram()
        self.tokens = 0
        # In millionths of a dollar.
        self.cost = 0
        self._agents: set[str] = set()
        self._most_agents = most_agents
        self._waiting: dict[int, datetime] = {}

    async def hear(self, events: Sequence[tuple[Event, bool]]) -> None:
        for event, own in events:
            if event.kind is EventKind.decided:
                self._decision(event, event.fields or {}, own)
            elif event.kind is EventKind.ended and own:
                self._end(event, event.fields or {})

    def _decision(self, event: Event, told: Mapping[str, Any], own: bool) -> None:
        verdict = told.get("verdict")
        if verdict is None and "joined" not in told:
            # A declared instant that was withdrawn was never put before the guards.
            return
        kind, guard = (verdict["kind"], verdict.get("guard") or "") if verdict else ("defer", JOINED)
        since = self._waited(event, kind, guard)
        if not own:
            return
        self.decided[self._named(event.agent), told["cause"], kind, guard] += 1
        if kind != "admit":
            return
        self.slot_wait.add(_seconds(since, event.at) if since else 0.0)
        if told["cause"] == Cause.timer.value and "requested_at" in told:
            self.lag.add(_seconds(read_time(told["requested_at"]), event.at))

    def _waited(self, event: Event, kind: str, guard: str) -> datetime | None:
        """Since when an admitted wake waited for a slot, whichever node told it to."""
        wake = event.wake or 0
        if kind == "defer" and guard == SLOTS:
            self._waiting.setdefault(wake, event.at)
            while len(self._waiting) > MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            return None
        if guard == JOINED:
            return None
        return self._waiting.pop(wake, None)

    def _end(self, event: Event, told: Mapping[str, Any]) -> None:
        self.completed[self._named(event.agent), told["cause"], told["outcome"]] += 1
        self.duration.add(told["ms"] / 1000)
        spend = decode(Bill, told["spend"]).spend
        self.tokens += spend.tokens
        self.cost += spend.usd

    def _named(self, agent: str | None) -> str:
        name = agent or ""
        if name in self._agents:
            return name
        if len(self._agents) >= self._most_agents:
            return OTHER
        self._agents.add(name)
        return name


def _seconds(since: datetime, until: datetime) -> float:
    return max(0.0, (until - since).total_seconds())
