"""What happened to agents over some hours, and what is expected of the next: a lane for each.

Laws:
- What happened is read from where it lies, and no more of the past is looked at than is asked for. A lane that has too
  much of it tells the newest, and how much it leaves out.
- Quiet hours are those that hold now. What is ahead is what `forecast` says, as far as it is worth drawing; a lane
  that tells only a part of it says how far that reaches, so that nobody takes the rest for nothing.
- Between two lanes others are served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.control.base import NEWEST, Base, must_not_be_more
from wakeful.control.callers import Caller
from wakeful.control.rows import Row, expected_row, pause_row, time_or_none
from wakeful.core.codec import decode, write_time
from wakeful.core.errors import Mistake
from wakeful.core.events import Event, EventKind
from wakeful.core.forecast import forecast
from wakeful.core.moments import read_moment
from wakeful.core.wakes import FLEET, Cause, Pause, Subject, Wake, agent_scope
from wakeful.core.windows import NEVER, Window, inside_until, opens_at
from wakeful.store.protocol import AgentRow, Lane, Span, Store

MOST_LANES = 100
LONGEST = timedelta(days=7)
BEFORE, BEHIND = timedelta(hours=6), timedelta(hours=2)
# Runs and verdicts of one lane, each.
MOST_MARKS = 500
# Beats ahead of one lane, and of all of them together: more of them nobody could tell apart.
MOST_AHEAD, ALL_AHEAD = 50, 500
_FEWEST_AHEAD = 3
# Lanes that are read together.
_AT_ONCE = 10
UTC_ZONE = ZoneInfo("UTC")


class Timeline(Base):
    async def timeline(
        self, caller: Caller, *, agents: list[str] | None = None, since: str | None = None, until: str | None = None
    ) -> Row:
        """What happened to these agents over some hours, and what is ahead. Each has a lane: runs, verdicts, quiet
        hours, pauses, expected beats. Unless it is said whom and when, it is the first hundred, from six hours ago
        until in two."""
        now = self.clock()
        must_not_be_more("agents", agents, MOST_LANES)
        first, last = _bounds(since, until, now)
        rows = await self.access.read(lambda store: store.overview(names=agents, limit=MOST_LANES, now=now))
        span = await self.access.read(lambda store: store.span(first, last))
        told, pauses = await self.access.read(lambda store: _pauses(store, rows))
        ahead = max(min(MOST_AHEAD, ALL_AHEAD // max(len(rows), 1)), _FEWEST_AHEAD) if last > now else 0
        lanes: list[Row] = []
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            names = [row.agent.name for row in some]
            found = await self.access.read(lambda store, names=names: store.lanes(names, span, limit=MOST_MARKS))  # type: ignore[misc]
            for row, lane in zip(some, found, strict=True):
                beats = await self.access.read(lambda store, row=row: _ahead(store, row, now, last, ahead))  # type: ignore[misc]
                held = _held(row, told, pauses, span, now)
                cut = beats[ahead - 1]["at"] if len(beats) > ahead else None
                expected = {"ahead": beats[:ahead], "ahead_until": cut}
                lanes.append({**_lane(lane), "quiet": _quiet(row, span), "pauses": held, **expected, "more": lane.more})
            await asyncio.sleep(0)
        return {"since": write_time(first), "until": write_time(last), "now": write_time(now), "lanes": lanes}


def _bounds(since: str | None, until: str | None, now: datetime) -> tuple[datetime, datetime]:
    last = now + BEHIND if until is None else read_moment(until, now, UTC_ZONE)
    first = last - BEFORE - BEHIND if since is None else read_moment(since, now, UTC_ZONE, past=True)
    if until is None and since is not None:
        last = min(last, first + LONGEST)
    if first >= last:
        found = f"{write_time(first)} and {write_time(last)}"
        raise Mistake(f"expected since to lie before until, found {found}", "put the earlier instant first")
    if last - first > LONGEST:
        raise Mistake(f"expected at most {LONGEST.days} days, found {last - first}", "ask for fewer at a time")
    return first, last


# ---- what happened


def _lane(lane: Lane) -> Row:
    return {
        "agent": lane.agent,
        "runs": [
            {
                "id": run.id,
                "start": run.start,
                "end": run.end,
                "outcome": run.outcome,
                "cause": run.cause,
                "subject": run.subject,
                "from": run.sender,
                "by_run": run.by_run,
                "wake_id": run.wake,
                "summary": run.summary,
            }
            for run in lane.runs
        ],
        "wakes": [
            {
                "wake_id": wake.wake,
                "at": wake.at,
                "verdict": wake.verdict,
                "guard": wake.guard,
                "reason": wake.reason,
                "cause": wake.cause,
                "from": wake.sender,
                "by_run": wake.by_run,
                "run_id": wake.run,
                "until": wake.until,
            }
            for wake in lane.wakes
        ],
    }


# ---- what held it


def _quiet(row: AgentRow, span: Span) -> list[Row]:
    windows, zone = row.agent.limits.quiet_hours, ZoneInfo(row.agent.timezone)
    return [
        {"since": write_time(begin), "until": write_time(end)}
        for begin, end in _stretches(windows, span.since, span.until, zone)
    ]


def _stretches(
    windows: tuple[Window, ...], since: datetime, until: datetime, zone: ZoneInfo
) -> Iterator[tuple[datetime, datetime]]:
    moment = since
    while windows and (begin := opens_at(windows, moment, zone)) < min(until, NEVER):
        end = inside_until(windows, begin, zone)
        if end is None:
            return
        yield begin, min(end, until)
        moment = end


def _pauses(store: Store, rows: Sequence[AgentRow]) -> tuple[list[Event], list[Pause]]:
    """When any of them was paused and resumed, and what holds them now."""
    names: dict[str | None, None] = {None: None}
    names |= dict.fromkeys(name for row in rows for name in (row.agent.name, row.agent.address))
    return store.pauses_told(list(names)), store.pauses()


def _held(row: AgentRow, told: Sequence[Event], now_held: Iterable[Pause], span: Span, now: datetime) -> list[Row]:
    """What held it within that span, each with when it was over; null while it holds."""
    scopes = {FLEET, agent_scope(row.agent.name), agent_scope(row.agent.address)}
    open_: dict[tuple[str, str], Pause] = {}
    found: list[tuple[Pause, datetime | None]] = []
    for event in told:
        fields: dict[str, Any] = event.fields or {}
        if fields.get("scope") not in scopes:
            continue
        key = (fields["scope"], fields["owner"])
        before = open_.pop(key, None)
        if before is not None:
            found.append((before, event.at if before.until is None else min(before.until, event.at)))
        if event.kind is EventKind.paused:
            open_[key] = decode(Pause, fields)
    found += [(pause, None) for pause in open_.values()]
    # Of a pause that was told of too long ago only its row is left.
    found += [(pause, None) for pause in now_held if pause.scope in scopes and (pause.scope, pause.owner) not in open_]
    rows = []
    for pause, end in found:
        over = end or (pause.until if pause.until is not None and pause.until <= now else None)
        if pause.since <= span.until and (over is None or over >= span.since):
            rows.append({**pause_row(pause), "until": time_or_none(over or pause.until)})
    return sorted(rows, key=lambda each: each["since"])


# ---- what is ahead


def _ahead(store: Store, row: AgentRow, now: datetime, until: datetime, most: int) -> list[Row]:
    """One more than are told, where there is one."""
    if not most or not row.agent.enabled:
        return []
    wake = Wake(agent=row.agent.name, cause=Cause.timer, subject=Subject.beat, requested_at=now)
    why = store.why(wake, now)
    names = dict.fromkeys((row.agent.name, row.agent.address))
    beats = forecast(
        row.standing,
        row.agent,
        why.limits,
        now,
        most + 1,
        facts=why.facts,
        pauses=why.pauses,
        waiting=[each for name in names for each in store.wakes(agent=name, state="waiting")],
        runs=store.runs(agent=row.agent.name, before=NEWEST, limit=why.limits.burst + 1),
        until=until,
    )
    return [expected_row(beat) for beat in beats]
