"""Where beats bunch: minutes in which more agents are due than may run at once.

Laws:
- Only what somebody wrote can bunch: a SCHEDULE, and an OFFSET with its INTERVAL. Other beats are spread by themselves.
- Agents that beat together are followed as one, in the order of time, and for a bounded number of instants: of a large
  fleet less of the time ahead is looked at, and how much is said.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.agents import Agent

MINUTE = timedelta(minutes=1)
# An instant of a schedule takes about a tenth of a millisecond to find.
MOST_INSTANTS = 3_000

Following = Callable[[datetime], datetime]


@dataclass(frozen=True, slots=True)
class Together:
    """Agents that are always due at the same instants; `following` gives the first one after another."""

    following: Following
    agents: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bunch:
    """The agents of one minute, the first time that it comes, and how many times it came in what was looked at."""

    agents: tuple[str, ...]
    at: datetime
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bunches:
    """The largest first; one that is part of a larger one is left out. `until` is how far was looked."""

    found: tuple[Bunch, ...]
    until: datetime


def by_schedule(agents: Iterable[Agent]) -> list[Together]:
    groups: dict[tuple[str, str], Together] = {}
    for agent in agents:
        schedule = agent.cadence.schedule
        if agent.enabled and schedule is not None:
            at = (schedule.expression, agent.timezone)
            if at not in groups:
                zone = ZoneInfo(agent.timezone)
                groups[at] = Together(lambda moment, schedule=schedule, zone=zone: schedule.after(moment, zone))  # type: ignore[misc]
            groups[at].agents.append(agent.name)
    return list(groups.values())


def by_offset(agents: Iterable[Agent], start: datetime) -> list[Together]:
    """As if every run ended at once, the first beats being counted from `start`."""
    groups: dict[tuple[timedelta, timedelta], Together] = {}
    for agent in agents:
        every, offset = agent.cadence.base, agent.cadence.offset
        if agent.enabled and agent.cadence.schedule is None and every and offset is not None:
            at = (every, offset)
            if at not in groups:
                groups[at] = Together(_each(start + offset, every))
            groups[at].agents.append(agent.name)
    return list(groups.values())


def _each(first: datetime, every: timedelta) -> Following:
    return lambda moment: first if moment < first else first + every * ((moment - first) // every + 1)


def bunches(
    groups: Sequence[Together], sessions: int, now: datetime, within: timedelta, most: int = MOST_INSTANTS
) -> Bunches:
    """The minutes after `now` in which more than `sessions` agents are due."""
    end = now + within
    if sum(len(group.agents) for group in groups) <= sessions:
        return Bunches(found=(), until=end)
    # Of very many different schedules those that most agents share.
    groups = sorted(groups, key=lambda group: -len(group.agents))[: most // 4]
    ahead = [(group.following(now), number) for number, group in enumerate(groups)]
    heapq.heapify(ahead)
    seen: dict[tuple[int, ...], tuple[datetime, int]] = {}
    taken = len(ahead)
    while ahead and ahead[0][0] < end and taken < most:
        minute = ahead[0][0].replace(second=0, microsecond=0)
        due: set[int] = set()
        while ahead and ahead[0][0] < minute + MINUTE:
            at, number = ahead[0]
            due.add(number)
            # Twice within a minute is once here.
            heapq.heapreplace(
                ahead, (groups[number].following(max(at, minute + MINUTE - timedelta.resolution)), number)
            )
            taken += 1
        if sum(len(groups[number].agents) for number in due) > sessions:
            together = tuple(sorted(due))
            first, times = seen.get(together, (minute, 0))
            seen[together] = (first, times + 1)
    until = end if not ahead else min(end, ahead[0][0])
    return Bunches(found=_largest(seen, groups), until=until)


def _largest(seen: dict[tuple[int, ...], tuple[datetime, int]], groups: Sequence[Together]) -> tuple[Bunch, ...]:
    def size(together: tuple[int, ...]) -> int:
        return sum(len(groups[number].agents) for number in together)

    kept: list[set[int]] = []
    found = []
    for together, (at, times) in sorted(seen.items(), key=lambda each: (-size(each[0]), each[1][0])):
        if not any(set(together) <= larger for larger in kept):
            kept.append(set(together))
            names = tuple(name for number in together for name in groups[number].agents)
            found.append(Bunch(agents=names, at=at, times=times))
    return tuple(found)
