"""A warning where beats bunch although they are spread wherever nobody said when: more agents due in one minute than
sessions. It is no mistake: they take turns. It stands at the line that says when the first of them is due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.agents import Fleet
from wakeful.core.bunching import Bunch, Together, bunches, by_offset, by_schedule
from wakeful.core.durations import format_duration
from wakeful.core.windows import DAY, DAYS
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.tree import Draft, Scalar

WEEK = timedelta(days=7)
MINUTE = timedelta(minutes=1)
# As many of each kind are told, and as many agents of each are named.
MOST_TOLD = 3
MOST_NAMED = 6


def warn_bunches(draft: Draft, fleet: Fleet, notes: Notes, now: datetime) -> None:
    start = now.replace(second=0, microsecond=0)
    zone = ZoneInfo(fleet.timezone)

    def by_the_clock(at: datetime) -> str:
        local = at.astimezone(zone)
        return f"{DAYS[local.weekday()][:3].capitalize()} {local:%H:%M} {fleet.timezone}"

    def after_the_start(at: datetime) -> str:
        return f"{format_duration(at - start)} after the first start"

    told = _Told(draft, fleet, notes)
    told.warn("SCHEDULE", by_schedule(fleet.agents), now, by_the_clock, "another minute")
    # What is due at the start itself is in its first minute.
    first, counted = start - timedelta.resolution, by_offset(fleet.agents, start + fleet.grace)
    told.warn("OFFSET", counted, first, after_the_start, "another OFFSET, or none", within=DAY)


class _Told:
    def __init__(self, draft: Draft, fleet: Fleet, notes: Notes) -> None:
        self.draft = draft
        self.sessions = fleet.sessions
        self.notes = notes
        self.blocks = {block.name.text: block for block in draft.agents}
        self.addresses = {agent.name: agent.address for agent in fleet.agents}

    def warn(
        self,
        key: str,
        groups: list[Together],
        since: datetime,
        when: Callable[[datetime], str],
        instead: str,
        *,
        within: timedelta = WEEK,
    ) -> None:
        looked = bunches(groups, self.sessions, since, within)
        span = format_duration(max((looked.until - since) // MINUTE * MINUTE, MINUTE))
        for bunch in looked.found[:MOST_TOLD]:
            often = f", {bunch.times} times in {span}" if bunch.times > 1 else ""
            reason = _reason(bunch, when(bunch.at) + often, self.sessions)
            remedy = f"give some of them {instead}, or write SESSIONS: {len(bunch.agents)}"
            self.notes.warn(self._place(bunch, key), reason, remedy)

    def _place(self, bunch: Bunch, key: str) -> Scalar:
        """Where the file says when the first of them is due."""
        block = self.blocks[self.addresses[bunch.agents[0]]]
        entry = block.entries.get(key) or self.draft.fleet.get(key)
        return entry.key if entry else block.name


def _reason(bunch: Bunch, often: str, sessions: int) -> str:
    named, more = ", ".join(bunch.agents[:MOST_NAMED]), len(bunch.agents) - MOST_NAMED
    names = f"{named} and {more} more" if more > 0 else named
    waiting = len(bunch.agents) - sessions
    wait = "1 of them waits" if waiting == 1 else f"{waiting} of them wait"
    return (
        f"{len(bunch.agents)} agents are due in the same minute ({often}): {names}; SESSIONS is {sessions}, so {wait}"
    )
