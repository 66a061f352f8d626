"""When the next beat is due.

Laws:
- The delay is counted from the end of a run: the base, or after n idle beats in a row 1 min * 2^(n - 1),
  at most 30 minutes, whichever is longer.
- A boot keeps what was due, after a grace; what fell due while nobody was there is caught up once.
- A clock set back never lengthens a wait beyond its interval.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.cron import Schedule

FIRST_BACKOFF = timedelta(minutes=1)
LONGEST_BACKOFF = timedelta(minutes=30)
# A schedule's stored instant that lies further beyond its next one than this was written under a wrong clock.
WRONG_CLOCK = timedelta(days=2)
STAGGER = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """An interval, a schedule, continuous with a breather, or none of them: no timer."""

    interval: timedelta | None = None
    schedule: Schedule | None = None
    continuous: bool = False
    breather: timedelta = timedelta(seconds=45)
    offset: timedelta | None = None

    @property
    def base(self) -> timedelta | None:
        return self.breather if self.continuous else self.interval


def backoff(streak: int) -> timedelta:
    if streak <= 0:
        return timedelta()
    # The exponent is bounded first: a quiet year is a long streak.
    return min(FIRST_BACKOFF * (1 << min(streak - 1, 5)), LONGEST_BACKOFF)


def next_beat(cadence: Cadence, idle_streak: int, now: datetime, zone: ZoneInfo) -> datetime | None:
    """The due instant after a run that ended `now`; None when the agent has no timer."""
    rest = backoff(idle_streak)
    if cadence.schedule is not None:
        return _not_before(cadence.schedule, now, rest, zone)
    return None if cadence.base is None else now + max(cadence.base, rest)


def first_beat(
    cadence: Cadence,
    boot: datetime,
    grace: timedelta,
    index: int,
    count: int,
    zone: ZoneInfo,
    stagger: timedelta = STAGGER,
) -> datetime | None:
    """The first beat of an agent never seen before, the `index`th of `count`."""
    if cadence.schedule is not None:
        return cadence.schedule.after(boot, zone)
    if cadence.base is None:
        return None
    if cadence.offset is not None:
        return boot + grace + cadence.offset
    return boot + grace + _share(cadence.base, index, count, stagger)


def changed_beat(
    before: Cadence,
    cadence: Cadence,
    due_at: datetime,
    idle_streak: int,
    now: datetime,
    grace: timedelta,
    index: int,
    count: int,
    zone: ZoneInfo,
    stagger: timedelta = STAGGER,
) -> datetime | None:
    """The beat of a known agent whose cadence was changed: the one it has, or a sooner one if it now has one. What one
    edit changes for many agents is spread as first beats are; an offset that was changed is counted anew."""
    soon = next_beat(cadence, idle_streak, now, zone)
    if soon is None or cadence.base is None:
        return soon
    if cadence.offset is not None:
        return min(due_at, soon) if cadence.offset == before.offset else now + grace + cadence.offset
    return min(due_at, soon + _share(cadence.base, index, count, stagger))


def _share(base: timedelta, index: int, count: int, stagger: timedelta) -> timedelta:
    return min(stagger, base / max(count, 1)) * index


def resume_beat(
    due_at: datetime,
    cadence: Cadence,
    boot: datetime,
    grace: timedelta,
    zone: ZoneInfo | None = None,
    idle_streak: int | None = None,
) -> datetime:
    """The stored due instant after a restart. A schedule's longest wait is known only with its zone, an idle agent's
    only with its streak."""
    rest = LONGEST_BACKOFF if idle_streak is None else backoff(idle_streak)
    longest = boot + max(cadence.base or timedelta(), rest, grace)
    if cadence.schedule is not None:
        bound = due_at if zone is None else _not_before(cadence.schedule, boot, LONGEST_BACKOFF, zone)
        # A clock set back by a little must not fire an instant twice; one that was plainly wrong must not stop us.
        longest = due_at if due_at - bound <= WRONG_CLOCK else bound
    elif cadence.base is None:
        longest = due_at
    return max(min(due_at, longest), boot + grace)


def _not_before(schedule: Schedule, now: datetime, rest: timedelta, zone: ZoneInfo) -> datetime:
    """The first instant of the schedule that is later than `now` and not before `now + rest`."""
    return schedule.after(max(now, now + rest - timedelta.resolution), zone)
