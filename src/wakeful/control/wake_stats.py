"""How much an agent was woken today, in the words of those who have read `wake-stats` before.

Laws:
- The numbers are those that the guards compare: what is told here is what the next wake is decided on.
- Nothing is counted: they are facts of the door and totals of the day, by the calendar of the agent's own zone.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from wakeful.control.base import Base, Target, find, must_be_own
from wakeful.control.callers import Caller
from wakeful.control.rows import Row, time_or_none
from wakeful.core.guards import cooldown, minutes_per_day, wakes_per_day
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.core.windows import day_of
from wakeful.store.protocol import Store

# Those that end with time alone; what else may stand in the way is for `why` to say.
_PASSING = (cooldown, wakes_per_day, minutes_per_day)


class WakeStats(Base):
    async def wake_stats(self, caller: Caller, *, agent: str) -> Row:
        """How much it was woken today, and what the limits have left."""
        now = self.clock()
        target = await self.access.read(lambda store: find(store, agent))
        must_be_own(caller, target, "the wakes")
        return await self.access.read(lambda store: _stats(store, target, now))


def _stats(store: Store, target: Target, now: datetime) -> Row:
    agent = target.first.agent
    wake = Wake(agent=agent.name, cause=Cause.peer, subject=Subject.inbox, requested_at=now)
    why = store.why(wake, now)
    facts, limits = why.facts, why.limits
    objections = [found for guard in _PASSING if (found := guard(wake, facts, limits)) is not None]
    last = facts.last_peer_wake_at
    return {
        "wakesToday": facts.wakes_today,
        "maxWakesPerDay": limits.wakes_per_day,
        "cooldownSeconds": _plain(limits.cooldown.total_seconds()),
        "lastWakeTime": None if last is None else int(last.timestamp() * 1000),
        "maxDailySessionMinutes": _plain(limits.minutes_per_day),
        "sessionMinutesToday": _plain(round(facts.seconds_today / 60, 1)),
        "nextEligible": time_or_none(max((found.until for found in objections if found.until), default=None)),
        "pairs": store.pairs(agent.address, day_of(now, ZoneInfo(agent.timezone))),
    }


def _plain(number: float) -> float | int:
    return int(number) if number == int(number) else number
