"""The events, told again in one pass: what was declared, stood, ran, was charged, waited and was paused.

Laws:
- Nothing but events is read, in the order of their ids; the same events give the same past.
- What is counted is what the store counts under its lock: a run that is void was never there, a day is the day of the
  admission, and settled money replaces what was reserved.
- Where earlier events are gone the past begins late. It says since when, and takes nothing for known that is not told.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.core.agents import Agent, Limits, override
from wakeful.core.budgets import Bill, remember
from wakeful.core.cadence import resume_beat
from wakeful.core.codec import decode, read_time
from wakeful.core.events import Event
from wakeful.core.lifecycle import Position, begin
from wakeful.core.runs import Outcome
from wakeful.core.standing import NOTHING, Spend, Standing
from wakeful.core.wakes import FLEET, Cause, Pause, Pool, Subject, VerdictKind, Wake
from wakeful.core.windows import day_of

# The verdict's guard where a CHECK command, and none of the guards, held a beat back.
CHECK = "check"
_BURSTING = (Cause.timer, Cause.peer, Cause.news)
_LIMIT_NAMES = frozenset(limit.name for limit in fields(Limits))


@dataclass(slots=True, kw_only=True)
class Life:
    """What the events have told of one agent. `due_told` is false while none of them says when its beat is due."""

    agent: Agent
    version: int
    standing: Standing
    settings: dict[str, Any] = field(default_factory=dict)
    removed: bool = False
    due_told: bool = False
    # When its runs by timer, peer and news were admitted.
    starts: dict[int, datetime] = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        return self.agent.enabled and not self.removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A run between its admission and its end, with what it was charged to."""

    agent: str
    address: str
    wake: int
    pool: Pool
    by_run: int | None
    charged: bool
    pair: str
    day: str
    fleet_day: str
    reserved: Spend


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A wake that waits for a slot; its place is the agent, the address or the role that it names."""

    place: str
    pool: Pool
    requested_at: datetime


@dataclass(slots=True)
class Total:
    """The sums of one scope and day."""

    wakes: int = 0
    ms: int = 0
    spend: Spend = NOTHING


class Past:
    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        self.open: dict[int, Opened] = {}
        self.pauses: dict[tuple[str, str], Pause] = {}
        self.totals: dict[tuple[str, str], Total] = defaultdict(Total)
        # The admissions that were charged: by address the run's wake and instant, and by wake the day.
        self.charges: dict[str, dict[int, tuple[int, datetime]]] = defaultdict(dict)
        self.charged: dict[int, str] = {}
        # The peer wakes of each run that wait, or were charged once, whatever became of them.
        self.by_run: dict[int, set[int]] = defaultdict(set)
        # Whose each run is, or was: what it asks for is bounded by that agent's limits.
        self.ran: dict[int, str] = {}
        self.queue: dict[int, Queued] = {}
        # When the told past begins, where there was more before.
        self.since: datetime | None = None
        self._last = 0

    def feed(self, event: Event) -> None:
        """One event more; they come in the order of their ids."""
        if event.id and event.id != self._last + 1:
            self.since = event.at
            for life in self.lives.values():
                life.due_told = False
        self._last = event.id or self._last
        tell = getattr(self, f"_{event.kind}", None)
        if tell is not None:
            tell(event, event.fields or {})

    # -- what was declared ------------------------------------------------------------------------------------
    def _declared(self, event: Event, told: dict[str, Any]) -> None:
        name = event.agent or ""
        known = self.lives.get(name)
        settings = known.settings if known else {}
        # Live settings outlive the declaration that they were made for.
        agent = override(_body(told), _typed(settings))
        standing = known.standing if known else Standing(agent=name, position=begin(agent.lifecycle), gates={})
        due_told = "due_at" in told or not agent.enabled
        due = _moment(told.get("due_at")) if agent.enabled else None
        self.lives[name] = Life(
            agent=agent,
            version=told["version"],
            standing=replace(standing, due_at=due),
            settings=settings,
            due_told=due_told,
            starts=known.starts if known else {},
        )

    def _set(self, event: Event, told: dict[str, Any]) -> None:
        name, agent = event.agent or "", _body(told)
        life = self.lives.get(name)
        if life is None:
            standing = Standing(agent=name, position=begin(agent.lifecycle), gates={})
            life = self.lives[name] = Life(agent=agent, version=0, standing=standing)
        life.agent, life.version = agent, told["version"]
        settings = life.settings | told["settings"]
        life.settings = {key: value for key, value in settings.items() if value is not None}

    def _removed(self, event: Event, told: dict[str, Any]) -> None:
        life = self.lives.get(event.agent or "")
        if life is not None:
            life.removed = True
            life.standing = replace(life.standing, due_at=None)

    def _booted(self, event: Event, told: dict[str, Any]) -> None:
        """A start: nothing that is timed runs before the grace is over."""
        grace = timedelta(seconds=told["grace"])
        for life in self.lives.values():
            due, zone = life.standing.due_at, ZoneInfo(life.agent.timezone)
            if due is not None:
                due = resume_beat(due, life.agent.cadence, event.at, grace, zone, life.standing.idle_streak)
                life.standing = replace(life.standing, due_at=due)

    def _paused(self, event: Event, told: dict[str, Any]) -> None:
        pause = decode(Pause, told)
        self.pauses[pause.scope, pause.owner] = pause

    def _resumed(self, event: Event, told: dict[str, Any]) -> None:
        self.pauses.pop((told["scope"], told["owner"]), None)

    # -- what was asked and answered --------------------------------------------------------------------------
    def _asked(self, event: Event, told: dict[str, Any]) -> None:
        """Recorded while nobody lived to decide it: it waits, for nothing in particular."""
        wake = asked(event)
        if wake.cause is Cause.peer and wake.by_run is not None and "joined" not in told:
            self.by_run[wake.by_run].add(wake.id)

    def _decided(self, event: Event, told: dict[str, Any]) -> None:
        wake, verdict = asked(event), told.get("verdict")
        self.queue.pop(wake.id, None)
        if verdict is None:
            return
        kind, guard = verdict["kind"], verdict.get("guard")
        if kind == VerdictKind.defer and guard == "slots":
            place = Queued(place=wake.agent or wake.role or "", pool=wake.pool, requested_at=wake.requested_at)
            self.queue[wake.id] = place
        if event.run is not None:
            self._admit(event, told, wake)
        if wake.cause is Cause.peer and wake.by_run is not None:
            if kind != VerdictKind.refuse or wake.id in self.charged:
                self.by_run[wake.by_run].add(wake.id)
            else:
                self.by_run[wake.by_run].discard(wake.id)
        life = self.lives.get(event.agent or "")
        if guard == CHECK and life is not None:
            idle, due = verdict["numbers"]["idle_streak"], _moment(verdict.get("until"))
            life.standing = replace(life.standing, idle_streak=idle, due_at=due)

    def _admit(self, event: Event, told: dict[str, Any], wake: Wake) -> None:
        name, run = event.agent or "", event.run or 0
        life = self.lives.get(name)
        agent = life.agent if life else Agent(name=name, address=name)
        reserved = told.get("facts", {}).get("reserve")
        opened = Opened(
            agent=name,
            address=agent.address,
            wake=wake.id,
            pool=wake.pool,
            by_run=wake.by_run,
            charged=told.get("charged", False),
            pair=self.pair(wake.sender, agent.address),
            day=day_of(event.at, ZoneInfo(agent.timezone)),
            fleet_day=day_of(event.at, ZoneInfo(agent.limits.fleet_timezone)),
            reserved=decode(Spend, reserved) if reserved else NOTHING,
        )
        self.open[run], self.ran[run] = opened, name
        if life is not None and wake.cause in _BURSTING:
            life.starts[run] = event.at
        if opened.charged:
            self.charges[opened.address][run] = (wake.id, event.at)
            self.charged[wake.id] = opened.day
            self._count(opened, 1)
        self._spend(opened, opened.address, opened.reserved)

    def _voided(self, event: Event, told: dict[str, Any]) -> None:
        run = event.run or 0
        opened = self.open.pop(run, None)
        if opened is None:
            return
        self._spend(opened, opened.address, NOTHING - opened.reserved)
        if opened.agent in self.lives:
            self.lives[opened.agent].starts.pop(run, None)
        if opened.charged:
            self.charges[opened.address].pop(run)
            self.charged.pop(opened.wake)
            self._count(opened, -1)
        # It waits again, unless it became part of another that waits already.
        if "joined" in told and opened.by_run is not None and opened.wake not in self.charged:
            self.by_run[opened.by_run].discard(opened.wake)

    # -- what came of it --------------------------------------------------------------------------------------
    def _ended(self, event: Event, told: dict[str, Any]) -> None:
        name, bill = event.agent or "", decode(Bill, told["spend"])
        life, opened = self.lives.get(name), self.open.pop(event.run or 0, None)
        agent = life.agent if life else Agent(name=name, address=name)
        if opened is None:
            opened = _unseen(event, told, agent)
        self._spend(opened, agent.address, bill.spend - opened.reserved)
        for total in self._both(opened, agent.address):
            total.ms += told["ms"]
        if life is not None:
            life.standing = _moved(life, event, told, bill)
            life.due_told = True

    def _count(self, opened: Opened, amount: int) -> None:
        self.totals[agent_total(opened.address), opened.day].wakes += amount
        self.totals[opened.pair, opened.day].wakes += amount

    def _spend(self, opened: Opened, address: str, spend: Spend) -> None:
        for total in self._both(opened, address):
            total.spend += spend

    def _both(self, opened: Opened, address: str) -> Iterator[Total]:
        yield self.totals[agent_total(address), opened.day]
        yield self.totals[FLEET, opened.fleet_day]

    def total(self, scope: str, day: str) -> Total:
        return self.totals.get((scope, day)) or Total()

    def pair(self, sender: str | None, address: str) -> str:
        """The unordered pair of two addresses; a replica speaks under the one that it shares."""
        life = self.lives.get(sender or "")
        return "pair:" + "|".join(sorted((life.agent.address if life else sender or "", address)))


def agent_total(address: str) -> str:
    return f"agent:{address}"


def asked(event: Event) -> Wake:
    """The wake that a `decided` event is about, as it was asked for."""
    told: dict[str, Any] = event.fields or {}
    cause, role = Cause(told["cause"]), told.get("role")
    # A joined request tells only its cause, and who asks.
    subject = Subject(told.get("subject", Subject.task if cause is Cause.task else Subject.inbox))
    requested = told.get("requested_at")
    return Wake(
        id=event.wake or 0,
        agent=told.get("to", None if role else event.agent),
        role=role,
        cause=cause,
        subject=subject,
        requested_at=read_time(requested) if requested else event.at,
        sender=told.get("from"),
        item=None if subject is Subject.task else event.item,
        task=event.item if subject is Subject.task else None,
        source=told.get("source"),
        by_run=told.get("by_run"),
        depth=told.get("depth", 0),
        slot=told.get("slot", ""),
        attempt=told.get("attempt", 1),
    )


def _moved(life: Life, event: Event, told: dict[str, Any], bill: Bill) -> Standing:
    gates = life.standing.gates or {}
    if told["subject"] == Subject.beat:
        known = {state.name for state in life.agent.lifecycle.states}
        done = {told["position"][0]: event.at} if told["outcome"] == Outcome.done else {}
        gates = {name: at for name, at in (gates | done).items() if name in known}
    return replace(
        life.standing,
        position=Position(*told["stands"]),
        idle_streak=told["idle_streak"],
        failure_streak=told["failure_streak"],
        due_at=_moment(told["due_at"]) if life.timed else None,
        gates=gates,
        costs=remember(life.standing.costs, bill),
        last_outcome=told["outcome"],
        last_ended_at=event.at,
    )


def _unseen(event: Event, told: dict[str, Any], agent: Agent) -> Opened:
    """A run whose admission is no longer told: nothing was reserved for it in what we counted."""
    return Opened(
        agent=agent.name,
        address=agent.address,
        wake=event.wake or 0,
        pool=Pool.sessions,
        by_run=None,
        charged=False,
        pair="",
        day=told["day"],
        fleet_day=day_of(event.at, ZoneInfo(agent.limits.fleet_timezone)),
        reserved=NOTHING,
    )


def _body(told: dict[str, Any]) -> Agent:
    return decode(Agent, json.loads(told["body"]))


def _moment(text: str | None) -> datetime | None:
    return None if text is None else read_time(text)


def _typed(settings: dict[str, Any]) -> dict[str, Any]:
    """Told settings as the values that limits and policies hold."""
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key in _LIMIT_NAMES:
            values[key] = getattr(decode(Limits, {key: value}), key)
        else:
            values[key] = timedelta(seconds=value) if key == "retry_base" else value
    return values
