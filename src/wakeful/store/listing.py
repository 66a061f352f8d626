"""What is listed: runs, wakes and events from either end, and the fleet as it stands.

Law: a page costs what is on it. A filter that would walk the whole past has an index of its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from wakeful.core.agents import Agent
from wakeful.core.events import Event, EventKind
from wakeful.core.wakes import FLEET, Pause, Wake, agent_scope
from wakeful.store.base import SqlBase
from wakeful.store.protocol import AgentRow, RunRow, WakeRow
from wakeful.store.rows import (
    from_micros,
    micros_or_none,
    to_events,
    to_micros,
    to_pause,
    to_run_row,
    to_standing,
    to_wake,
    to_wake_row,
)
from wakeful.store.session import Reading, Row

# Above every id, and after every name.
LAST_ID = (1 << 63) - 1
LAST_NAME = "\U0010ffff"

# What is told of agents that stand beside one another, and of some that were named.
_OF_SPAN = ("oldest_waiting", "unread_counts", "task_counts")
_OF_NAMES = ("oldest_waiting_of", "unread_counts_of", "task_counts_of")

# The kinds of event that have an index of their own.
ACTS = frozenset(
    {
        EventKind.declared,
        EventKind.removed,
        EventKind.set,
        EventKind.paused,
        EventKind.resumed,
        EventKind.stopped,
        EventKind.task_changed,
    }
)


class Listing(SqlBase):
    def runs(
        self,
        *,
        agent: str | None = None,
        open: bool | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        reader = self.session.reader()
        span = {"after": after, "before": LAST_ID if before is None else before}
        if open:
            ids = ids_of(reader.all("open_runs", agent=agent, **span))
            return _run_rows(reader, page_of(ids, before, limit))
        asked = {**span, "agent": agent, "open": None if open is None else int(open), "limit": limit}
        if before is None:
            rows = reader.all("list_runs" if agent is None else "agent_runs", **asked)
        else:
            rows = reader.all("latest_runs" if agent is None else "latest_agent_runs", **asked)
        return _run_rows(reader, ids_of(rows))

    def wakes(
        self,
        *,
        agent: str | None = None,
        state: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[WakeRow]:
        reader = self.session.reader()
        span = {"after": after, "before": LAST_ID if before is None else before}
        if state == "waiting":
            ids = ids_of(reader.all("waiting_wakes", agent=agent, **span))
            return _wake_rows(reader, page_of(ids, before, limit))
        asked = {**span, "agent": agent, "state": state, "limit": limit}
        if before is None:
            rows = reader.all("list_wakes" if agent is None else "agent_wakes", **asked)
        else:
            rows = reader.all("latest_wakes" if agent is None else "latest_agent_wakes", **asked)
        return _wake_rows(reader, ids_of(rows))

    def one_offs(self, agent: str | None = None) -> list[tuple[str, datetime]]:
        rows = self.session.reader().all("waiting_one_offs", agent=agent)
        return [(row["agent"], from_micros(row["retry_at"])) for row in rows]

    def wake(self, id: int) -> WakeRow | None:
        rows = _wake_rows(self.session.reader(), [id])
        return rows[0] if rows else None

    def keyed_wake(self, subject: str, key: str) -> Wake | None:
        reading = self.session.nearest()
        row = reading.one("keyed_wake", subject=subject, key=key)
        return None if row is None else to_wake(row)

    def lineage(self, root: int, *, limit: int = 1000) -> list[WakeRow]:
        reader = self.session.reader()
        return _wake_rows(reader, ids_of(reader.all("wakes_from", root=root, limit=limit)))

    def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        agent: str | None = None,
        kinds: tuple[str, ...] = (),
        limit: int = 1000,
    ) -> list[Event]:
        reader = self.session.reader()
        span = {"after": after, "before": LAST_ID if before is None else before}
        wanted = json.dumps(kinds) if kinds else None
        if kinds and ACTS.issuperset(kinds):
            query = "act_events" if agent is None else "agent_act_events"
            ids = page_of(ids_of(reader.all(query, agent=agent, kinds=wanted, **span)), before, limit)
            return to_events(reader.all("event_rows", ids=json.dumps(ids)))
        asked = {**span, "agent": agent, "kinds": wanted, "limit": limit}
        if before is None:
            rows = reader.all("list_events" if agent is None else "agent_events", **asked)
        else:
            rows = reader.all("latest_events" if agent is None else "latest_agent_events", **asked)
        return to_events(rows)

    def events_until(self, at: datetime) -> int:
        return last_event_until(self.session.reader(), to_micros(at))

    def shown_in(self, items: Sequence[int]) -> dict[int, int]:
        rows = self.session.reader().all("shown_in", ids=json.dumps(list(items)))
        return {row["item"]: row["run"] for row in rows}

    def is_tainted(self, run: int) -> bool:
        row = self.session.reader().one("tainted_run", run=run)
        return row is not None and bool(row["tainted"])

    # -- the fleet as it stands ---------------------------------------------------------------------------
    def overview(
        self,
        *,
        agent: str | None = None,
        names: Sequence[str] | None = None,
        after: str = "",
        limit: int = 1000,
        now: datetime | None = None,
        brief: bool = False,
    ) -> list[AgentRow]:
        reader = self.session.reader()
        if names is not None:
            with reader.snapshot():
                rows = reader.all("named_overview_rows", names=json.dumps(list(names)), after=after, limit=limit)
                return self._overview(reader, rows, now, named=True) if rows else []
        first, last = (after, LAST_NAME) if agent is None else (agent, agent)
        if brief:
            rows = reader.all("overview_rows", first=first, last=last, after=after, limit=limit)
            agents = self._declared(reader, rows)
            return [_listed(row, agents[row["name"]]) for row in rows]
        with reader.snapshot():
            rows = reader.all("overview_rows", first=first, last=last, after=after, limit=limit)
            return self._overview(reader, rows, now) if rows else []

    def _overview(
        self, reader: Reading, rows: list[Row], now: datetime | None, *, named: bool = False
    ) -> list[AgentRow]:
        """Those that were `named` may stand far apart: what is between them is not looked at."""
        names = dict.fromkeys(name for row in rows for name in (row["name"], row["address"]))
        span = {"names": json.dumps(list(names))} if named else {"first": min(names), "last": max(names)}
        oldest_waiting, unread_counts, task_counts = _OF_NAMES if named else _OF_SPAN
        agents = self._declared(reader, rows)
        runs = {run.agent: run for run in _open_runs(reader, rows, named)}
        pauses = _pauses(reader, min(names), max(names))
        waiting = _waiting(reader.all(oldest_waiting, **span), names)
        unread = _counts(reader.one(unread_counts, **span, now=micros_or_none(now)))
        tasks = _counts(reader.one(task_counts, **span))
        listed = []
        for row in rows:
            name, address = row["name"], row["address"]
            shared = None if name == address else address
            listed.append(
                replace(
                    _listed(row, agents[name]),
                    run=runs.get(name),
                    pauses=_held_by(pauses, name, shared) if pauses else (),
                    waiting=waiting.get(name) or waiting.get(address),
                    unread=unread.get(name, 0) + unread.get(shared, 0),
                    open_tasks=tasks.get(name, 0) + tasks.get(shared, 0),
                )
            )
        return listed

    def _declared(self, reader: Reading, rows: list[Row]) -> dict[str, Agent]:
        """The agents of these rows; declarations are read only of those whose version is new to us."""
        found = {row["name"]: self.known_agent(row["name"], row["version"]) for row in rows}
        missing = [name for name, agent in found.items() if agent is None]
        read = reader.all("declared_agents", names=json.dumps(missing)) if missing else []
        agents = {name: agent for name, agent in found.items() if agent is not None}
        return agents | {row["name"]: self.read_agent(row) for row in read}


def _listed(row: Row, agent: Agent) -> AgentRow:
    return AgentRow(
        agent=agent,
        version=row["version"],
        standing=to_standing(row),
        overrides=tuple(json.loads(row["overrides"])) if row["overrides"] != "{}" else (),
    )


def ids_of(rows: list[Row]) -> list[int]:
    return [row["id"] for row in rows]


def page_of(ids: list[int], before: int | None, limit: int) -> list[int]:
    return sorted(ids, reverse=before is not None)[:limit]


def _run_rows(reader: Reading, ids: list[int]) -> list[RunRow]:
    return [to_run_row(row) for row in reader.all("run_rows", ids=json.dumps(ids))] if ids else []


def _wake_rows(reader: Reading, ids: list[int]) -> list[WakeRow]:
    return [to_wake_row(row) for row in reader.all("wake_rows", ids=json.dumps(ids))] if ids else []


def _open_runs(reader: Reading, rows: list[Row], named: bool) -> list[RunRow]:
    if named:
        return _run_rows(reader, ids_of(reader.all("open_runs_of", names=json.dumps([row["name"] for row in rows]))))
    only = rows[0]["name"] if len(rows) == 1 else None
    return _run_rows(reader, ids_of(reader.all("open_runs", agent=only, after=0, before=LAST_ID)))


def _waiting(rows: list[Row], names: Collection[str]) -> dict[str, WakeRow]:
    return {row["agent"]: to_wake_row(row) for row in rows if row["agent"] in names}


def _counts(row: Row | None) -> dict[str | None, int]:
    return json.loads(row["counts"]) if row else {}


def _pauses(reader: Reading, first: str, last: str) -> dict[str, list[Pause]]:
    held: dict[str, list[Pause]] = {}
    rows = reader.all("pauses_in", first_scope=agent_scope(first), last_scope=agent_scope(last))
    for pause in map(to_pause, rows):
        held.setdefault(pause.scope, []).append(pause)
    return held


def _held_by(pauses: dict[str, list[Pause]], name: str, shared: str | None) -> tuple[Pause, ...]:
    """The widest scope first, as the guards see it; within one, whatever lasts longest."""
    scopes = (FLEET, agent_scope(name), agent_scope(shared)) if shared else (FLEET, agent_scope(name))
    return tuple(pause for scope in scopes for pause in sorted(pauses.get(scope, ()), key=_weakness))


def _weakness(pause: Pause) -> tuple[bool, float, str]:
    return pause.until is not None, -pause.until.timestamp() if pause.until else 0.0, pause.owner


def last_event_until(reader: Reading, at: int) -> int:
    """The largest id of an event at or before that instant: the newest stretch of unbroken time that has one."""
    for first in [*(row["event"] for row in reader.all("reckonings", at=at)), 0]:
        end = reader.one("next_reckoning", event=first)
        found = _search(reader, first, end["event"] if end and end["event"] is not None else LAST_ID, at)
        if found:
            return found
    return 0


def _search(reader: Reading, first: int, end: int, at: int) -> int:
    """By halves: within a stretch later events have later instants."""
    low, high = reader.one("event_from", first=first, end=end), reader.one("last_event", first=first, end=end)
    if low is None or high is None or low["at"] > at:
        return 0
    if high["at"] <= at:
        return int(high["id"])
    known, beyond = int(low["id"]), int(high["id"])
    while beyond - known > 1:
        middle = (known + beyond) // 2
        row = reader.one("event_from", first=middle, end=beyond)
        if row is not None and row["at"] <= at:
            known = int(row["id"])
        else:
            beyond = middle
    return known
