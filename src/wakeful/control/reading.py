"""What can be looked at: the fleet, its agents, their runs and what these printed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.control.ahead import next_beat, one_offs
from wakeful.control.base import LONGEST_LIST, NEWEST, bounded, chosen, find, find_one, must_not_be_more, numbered
from wakeful.control.callers import Caller, Forbidden
from wakeful.control.doing import doing
from wakeful.control.nodes import Nodes
from wakeful.control.output import Read, in_file, read_output, read_text
from wakeful.control.rows import (
    STATES,
    Row,
    agent_row,
    agent_state,
    listing,
    pause_row,
    run_row,
    source_row,
    time_or_none,
    whole_agent_row,
)
from wakeful.control.run_rows import whole_run
from wakeful.control.spending import fleet_spent, spent_today, used_today
from wakeful.core.agents import Fleet, Limits
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.runs import Outcome
from wakeful.core.wakes import POOLS, Cause, Pause, Pool
from wakeful.fleet.watch import FleetFile
from wakeful.store.protocol import AgentRow, Found, RunRow, SourceRow, Store

_PAGE = 500
# How many agents are told unless more are asked for, and how many may be named.
_EACH, MOST_NAMED = 100, 500
# So many agents are told before others are served.
_AT_ONCE = 100
_MOST_OPEN = 10_000
# Among how many runs the last of an agent is looked for, of one agent and of a page of them.
_FEW, _MANY = 5, 500
_BADLY = ("failed", "killed")
# The names of what is kept of a run: in its folder, and in the store.
_FILES = {"stdout": "stdout", "stderr": "stderr", "briefing": "briefing.txt"}


class Reading(Nodes):
    _fleet_file: FleetFile | None = None

    async def status(self, caller: Caller) -> Row:
        """The whole fleet on one screen."""
        now = self.clock()
        told = await self._counted(now)
        if self.beside is not None:
            health = dict(self.beside.health())
            title, diagnostics = health.pop("title", ""), health.pop("diagnostics", [])
        else:
            health = None
            title, diagnostics = await asyncio.to_thread(self._declared)
        if title:
            told["fleet"] = {"title": title, **told["fleet"]}
        nodes = await self.access.read(self._node_rows)
        place = {"node": self.node, "shared": self.shared, "nodes": nodes}
        return {**told, "engine": health, "diagnostics": diagnostics, **place}

    async def _counted(self, now: datetime) -> Row:
        """A page of agents at a time, so that others are served in between."""
        counts: Counter[str] = Counter()
        names: set[str] = set()
        # What holds for the fleet as a whole stands in the limits of each of its agents.
        limits: Limits | Fleet = Fleet()
        after: str | None = ""
        while after is not None:
            page = await self.access.read(lambda store, after=after: store.overview(after=after, limit=_PAGE))  # type: ignore[misc]
            counts.update(agent_state(row, now) for row in page)
            names.update(name for row in page for name in (row.agent.name, row.agent.address))
            limits = page[-1].agent.limits if page else limits
            after = page[-1].agent.name if len(page) == _PAGE else None
            await asyncio.sleep(0)
        told = await self.access.read(lambda store: _fleet(store, counts, limits, now))
        pauses = await self.access.read(lambda store: store.pauses())
        held = [pause for pause in pauses if (pause.until is None or pause.until > now) and _holds(pause, names)]
        return {**told, "pauses": [pause_row(pause) for pause in held]}

    def _declared(self) -> tuple[object, object]:
        """What the fleet file says of itself, read again only when it has changed."""
        if self.fleet_file is None:
            return "", []
        if self._fleet_file is None:
            self._fleet_file = FleetFile(self.fleet_file)
        else:
            self._fleet_file.refresh()
        fleet = self._fleet_file.fleet
        return fleet.title if fleet else "", [str(diagnostic) for diagnostic in self._fleet_file.diagnostics]

    async def agents(
        self, caller: Caller, *, names: list[str] | None = None, after: str = "", limit: int | None = None
    ) -> Row:
        """The agents by name, each with where it stands, what it is doing and what it has used today. With `names` only
        these, and those behind these addresses; who is unknown is left out."""
        unless_said = _EACH if names is None else LONGEST_LIST
        most, now = bounded(unless_said if limit is None else limit), self.clock()
        must_not_be_more("names", names, MOST_NAMED)
        rows = await self.access.read(lambda store: store.overview(names=names, after=after, limit=most + 1, now=now))
        more = rows[most - 1].agent.name if len(rows) > most else None
        rows = rows[:most]
        beside = await self._read_beside(rows, now)
        told = []
        for number, row in enumerate(rows, 1):
            told.append({**agent_row(row, now, beside.sources), **beside.row(row, now)})
            if not number % _AT_ONCE:
                await asyncio.sleep(0)
        return listing(told, more)

    async def _read_beside(self, rows: Sequence[AgentRow], now: datetime) -> Details:
        """A few reads, however many agents there are."""
        alone = rows[0] if len(rows) == 1 else None
        sources = await self.access.read(_sources)
        asked = await self.access.read(lambda store: _asked_of(store, alone) if alone else one_offs(store))
        ends = await self.access.read(lambda store: _ends(store, rows))
        today = await self.access.read(lambda store: used_today(store, rows, now))
        nodes = await self.access.read(lambda store: len(store.nodes(now))) if self.shared else 0
        here = self.node if nodes == 1 else None
        return Details(sources=sources, asked=asked, ends=ends, today=today, places=self.shared, here=here)

    async def agent(self, caller: Caller, *, agent: str) -> Row:
        """One agent: where it stands, what holds it, its day, and what it spent."""
        now = self.clock()
        row = await self.access.read(lambda store: find_one(store, agent, now))
        beside = await self._read_beside([row], now)
        spent = await self.access.read(lambda store: spent_today(store, row, now))
        elsewhere = self.shared and row.run is not None and row.run.node not in (None, self.node)
        told = {**whole_agent_row(row, now, beside.sources), **beside.row(row, now)}
        return {**told, "spent": spent, "elsewhere": elsewhere, "shared": self.shared}

    # ---- runs

    async def runs(
        self,
        caller: Caller,
        *,
        agent: str | None = None,
        open: bool | None = None,
        outcome: str | None = None,
        cause: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> Row:
        """Newest first. Of a search by outcome or cause a page may be short, or empty, and not be the last: it looks
        at a part of the past, and `next` is where it goes on."""
        most, cursor = bounded(limit), before or NEWEST
        numbered("run", before=before or None)
        ended = None if outcome is None else chosen(outcome, Outcome, "outcome").value
        begun = None if cause is None else chosen(cause, Cause, "cause").value
        like: dict[str, Any] = {"open": open, "before": cursor, "limit": most + 1}

        def read(store: Store) -> Row:
            names = [row.agent.name for row in find(store, agent).agents] if agent is not None else [None]
            if ended is None and begun is None:
                rows = [row for name in names for row in store.runs(agent=name, **like)]
                return _run_page(rows, most, None)
            found = [store.find_runs(agent=name, outcome=ended, cause=begun, **like) for name in names]
            return _run_page([row for each in found for row in each.rows], most, _further(found, most))

        return await self.access.read(read)

    async def show_run(self, caller: Caller, *, run: int) -> Row:
        """One run, with the wake that led to it, what it was told and shown, its tasks and its steps."""

        def read(store: Store) -> Row:
            row = _run(store, run)
            if not caller.is_operator and row.agent != caller.name:
                raise Forbidden(f"{caller.name} may see runs of {caller.name}, not of {row.agent}")
            return whole_run(store, row)

        told = await self.access.read(read)
        kept = self._kept(run, told["node"], "briefing")
        return {**told, "briefing": await self.access.read(lambda store: read_text(kept(store)))}

    async def output(
        self, caller: Caller, *, run: int, stream: str = "stdout", offset: int = 0, limit: int = 65_536
    ) -> Row:
        """What the run printed, from a byte on; a negative offset counts from the end."""
        if stream not in ("stdout", "stderr"):
            raise Mistake(f"unknown stream {stream!r}", "use stdout or stderr")
        # First whether it is over, then what there is: what is read after the end is all.
        row = await self.access.read(lambda store: _run(store, run))
        kept, over = self._kept(run, row.node, stream), row.ended_at is not None
        piece = await self.access.read(lambda store: read_output(kept(store), offset, limit, over))
        return {"run": run, "stream": stream, **piece}

    def _kept(self, run: int, node: str | None, stream: str) -> Callable[[Store], Read]:
        """The run's own folder if it is here. Another node's run of that number may have left one here too, before
        the store was another one."""
        folder = self.folder / str(run)
        if (not self.shared or node in (None, self.node)) and folder.is_dir():
            return lambda store: in_file(folder / _FILES[stream])
        return lambda store: lambda offset, limit: store.output(run, stream, offset, limit)


def _run(store: Store, run: int) -> RunRow:
    row = store.run(run)
    if row is None:
        raise Unknown(f"no run {run}")
    return row


def _run_page(rows: list[RunRow], most: int, further: int | None) -> Row:
    """`further` is how far down they are all of them; None to the end."""
    newest = [row for row in sorted(rows, key=lambda row: -row.id) if further is None or row.id >= further]
    return listing(map(run_row, newest[:most]), newest[most - 1].id if len(newest) > most else further)


def _further(found: Sequence[Found[RunRow]], most: int) -> int | None:
    """Where the first of several searches stopped looking; a full page goes on from its own last."""
    stops = [each.next for each in found if each.next is not None and len(each.rows) <= most]
    return max(stops, default=None)


def _sources(store: Store) -> dict[str, list[SourceRow]]:
    """By agent."""
    found: dict[str, list[SourceRow]] = {}
    for row in store.sources():
        found.setdefault(row.agent, []).append(row)
    return found


def _asked_of(store: Store, row: AgentRow) -> dict[str, list[datetime]]:
    return one_offs(store, row.agent.name) | one_offs(store, row.agent.address)


def _ends(store: Store, rows: Sequence[AgentRow]) -> dict[str, RunRow]:
    """The last run of one agent; of many, of those that did not end well if it is among the newest. One read."""
    alone = rows[0].agent.name if len(rows) == 1 else None
    ended = {row.agent.name: row.standing.last_ended_at for row in rows if alone or row.standing.last_outcome in _BADLY}
    newest = store.runs(agent=alone, before=NEWEST, limit=_FEW if alone else _MANY) if ended else []
    return {run.agent: run for run in reversed(newest) if run.ended_at and run.ended_at == ended.get(run.agent)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What the rows of agents alone do not tell, of a page of them."""

    sources: Mapping[str, Sequence[SourceRow]]
    # Beats that were asked for, by agent or address.
    asked: Mapping[str, Sequence[datetime]]
    ends: Mapping[str, RunRow]
    today: Mapping[str, Row]
    # Whether it is worth saying where an agent runs, and where that goes without saying.
    places: bool
    here: str | None

    def row(self, row: AgentRow, now: datetime) -> Row:
        """Its next beat, why its last run ended as it did, what it is doing, and what it has used today."""
        standing, run = row.standing, self.ends.get(row.agent.name)
        beat = next_beat(row, self.asked, now)
        last = {"outcome": standing.last_outcome, "ended_at": time_or_none(standing.last_ended_at)}
        # Of one that was not looked for nothing is told, least of all that there is none.
        none = {"run": None, "reason": ""} if standing.last_outcome is None else {}
        why = {"run": run.id, "reason": run.reason} if run else none
        node = row.run.node if row.run and self.places and row.run.node != self.here else None
        return {
            "last": {**last, **why},
            "next_beat": beat.row() if beat else None,
            "doing": doing(row, beat, now, node),
            "today": self.today[row.agent.name],
        }


# ---- the status


def _holds(pause: Pause, names: AbstractSet[str]) -> bool:
    """What holds an agent that is no longer in the fleet holds nobody."""
    kind, _, name = pause.scope.partition(":")
    return kind != "agent" or name in names


def _fleet(store: Store, counts: Counter[str], limits: Limits | Fleet, now: datetime) -> Row:
    open_runs = store.runs(open=True, limit=_MOST_OPEN)
    taken = Counter(POOLS[run.subject] for run in open_runs)
    return {
        "fleet": {
            "agents": sum(counts.values()),
            "sessions": {"taken": taken[Pool.sessions], "of": limits.sessions},
            "workers": {"taken": taken[Pool.workers], "of": limits.workers},
            "spent": fleet_spent(store, limits if isinstance(limits, Limits) else Limits(), now),
        },
        "pauses": [],
        "counts": {state: counts[state] for state in STATES},
        "open_runs": [run_row(run) for run in open_runs],
        "outages": [source_row(source) for source in store.sources() if source.outage is not None],
        # Open tasks that nobody can take.
        "untaken": [{"agent": agent, "role": role, "tasks": tasks} for agent, role, tasks in store.untaken()],
    }
