"""What happened to an agent within a span of time: its runs, the verdicts on its wakes, and what held it.

Laws:
- A span is found by halves, as the past is in order; what lies before and behind it is not read.
- Of a lane that has more than is asked for, the newest are told, and how many there are besides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from wakeful.core.events import Event
from wakeful.core.wakes import VerdictKind
from wakeful.store.base import SqlBase
from wakeful.store.listed import Lane, LaneRun, LaneWake, Span
from wakeful.store.listing import last_event_until
from wakeful.store.rows import to_events, to_micros, write_micros
from wakeful.store.session import Reading, Row

# What a person did to an agent is little; of a pause that is looked at, so many before it or behind it at most.
MOST_PAUSES = 200


class Lanes(SqlBase):
    def span(self, since: datetime, until: datetime) -> Span:
        reader = self.session.reader()
        first, last = to_micros(since), to_micros(until)
        return Span(
            since=since,
            until=until,
            events=(last_event_until(reader, first - 1), last_event_until(reader, last)),
            runs=(_runs_until(reader, first - 1) + 1, _runs_until(reader, last) + 1),
        )

    def lanes(self, agents: Sequence[str], span: Span, *, limit: int = 500) -> list[Lane]:
        reader, lanes = self.session.reader(), []
        (after, before), (first, end) = span.events, span.runs
        since, until = to_micros(span.since), to_micros(span.until)
        asked = []
        for agent in agents:
            asked.append(("lane_runs", {"agent": agent, "first": first, "end": end, "limit": limit + 1}))
            asked.append(("lane_wakes", {"agent": agent, "after": after, "last": before, "limit": limit + 1}))
        found = reader.lists(*asked)
        for number, agent in enumerate(agents):
            runs, wakes = found[2 * number], found[2 * number + 1]
            more = 0
            if len(runs) > limit:
                more += _count(reader, "count_lane_runs", agent=agent, first=first, end=end) - limit
            if len(wakes) > limit:
                more += _count(reader, "count_lane_wakes", agent=agent, after=after, last=before) - limit
            told = [row for row in reversed(runs[:limit]) if _is_within(row, since, until)]
            lanes.append(
                Lane(
                    agent=agent,
                    runs=tuple(map(_run, told)),
                    wakes=_wakes(reversed(wakes[:limit])),
                    more=more,
                )
            )
        return lanes

    def pauses_told(self, agents: Sequence[str | None]) -> list[Event]:
        reader, found = self.session.reader(), []
        for rows in reader.lists(*(("pause_events", {"agent": agent, "limit": MOST_PAUSES}) for agent in agents)):
            found += rows
        return to_events(sorted(found, key=lambda row: row["id"]))


def _count(reader: Reading, query: str, **asked: object) -> int:
    row = reader.one(query, **asked)
    return int(row["number"]) if row else 0


def _runs_until(reader: Reading, at: int) -> int:
    """The largest id of a run that was admitted at or before that instant, by halves; 0 where there is none."""
    low, high = reader.one("run_from", first=0), reader.one("last_run")
    if low is None or high is None or low["admitted_at"] > at:
        return 0
    if high["admitted_at"] <= at:
        return int(high["id"])
    known, beyond = int(low["id"]), int(high["id"])
    while beyond - known > 1:
        middle = (known + beyond) // 2
        row = reader.one("run_from", first=middle)
        if row is not None and row["id"] < beyond and row["admitted_at"] <= at:
            known = int(row["id"])
        else:
            beyond = middle
    return known


def _is_within(row: Row, since: int, until: int) -> bool:
    """The one before the span may have lasted into it."""
    lasted = row["ended_at"] is None or row["ended_at"] >= since
    return row["state"] != "void" and lasted and _start(row) <= until


def _start(row: Row) -> int:
    return int(row["admitted_at"] if row["started_at"] is None else row["started_at"])


def _run(row: Row) -> LaneRun:
    end = row["ended_at"]
    return LaneRun(
        row["id"],
        write_micros(_start(row)),
        None if end is None else write_micros(end),
        row["outcome"],
        row["cause"],
        row["subject"],
        row["sender"],
        row["by_run"],
        row["wake"],
        row["summary"],
    )


def _wakes(rows: Iterable[Row]) -> tuple[LaneWake, ...]:
    """Read together: there may be thousands."""
    known = list(rows)
    told = json.loads(f"[{','.join(row['told'] for row in known)}]")
    return tuple(_wake(row, *said) for row, said in zip(known, told, strict=True))


def _wake(
    row: Row,
    kind: str | None,
    guard: str | None,
    reason: str | None,
    until: str | None,
    cause: str | None,
    sender: str | None,
    by_run: int | None,
    joined: int | None,
) -> LaneWake:
    if kind is None:
        # What joined another wake, or was withdrawn, was never put before the guards.
        kind = VerdictKind.refuse.value if joined is None else VerdictKind.defer.value
        reason = "withdrawn" if joined is None else f"joined wake {joined}, which waits already"
    at, run = write_micros(row["at"]), row["run"]
    return LaneWake(row["wake"], at, kind, guard or None, reason or "", cause, sender, by_run, run, until)
