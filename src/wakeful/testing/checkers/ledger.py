"""The events, told again: what stands, runs, is charged and is paused at each of them.

Law: nothing here is taken from a counter, a fact or a standing of the store, and no rule from the core. Outcomes
are read off the endings that the virtual agents came to; everything else is folded from the order of events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from wakeful.core.agents import Agent, Fleet, Limits
from wakeful.core.codec import read_time
from wakeful.core.events import Event
from wakeful.core.lifecycle import Kind, Lifecycle
from wakeful.core.standing import Spend
from wakeful.core.wakes import Wake
from wakeful.testing.checkers.calendar import day_label
from wakeful.testing.checkers.history import History, error_class, outcome_of, taken
from wakeful.testing.checkers.rules import changed_due, first_due, moved, next_due, reservation, resolved, resumed_due

POOLS = {"beat": "sessions", "inbox": "sessions", "task": "workers"}


@dataclass(slots=True, kw_only=True)
class Place:
    """Where an agent must stand."""

    state: str
    hits: int = 0
    idle: int = 0
    failures: int = 0
    due: datetime | None = None
    gates: dict[str, datetime] = field(default_factory=dict)
    costs: list[Spend] = field(default_factory=list)
    last_beat: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A run between its admission and its end."""

    run: int
    agent: Agent
    wake: Wake
    at: datetime
    version: int
    day: str
    fleet_day: str
    reserved: Spend
    charged: bool
    state: str
    hits: int

    @property
    def pool(self) -> str:
        return POOLS[self.wake.subject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    address: str
    pair: tuple[str, str]
    day: str
    at: datetime


class Ledger:
    def __init__(self, history: History) -> None:
        self.history = history
        self.agents: dict[str, Agent] = {}
        self.gone: set[str] = set()
        # One-offs that were past when their agent was first declared: nobody's to catch up with.
        self.never_ours: dict[str, set[datetime]] = {}
        self.versions: Counter[str] = Counter()
        self.lifecycles: dict[tuple[str, int], Lifecycle] = {}
        self.places: dict[str, Place] = {}
        self.open: dict[int, Open] = {}
        # Until when, and since which event.
        self.pauses: dict[tuple[str, str], tuple[datetime | None, int]] = {}
        self.charges: dict[int, Charge] = {}
        self.totals: Counter[tuple[str, str, str]] = Counter()
        self.starts: dict[str, list[Open]] = defaultdict(list)
        # The peer wakes of each run that wait, or were charged once, whatever became of them.
        self.by_run: dict[int, set[int]] = defaultdict(set)
        self._bare: dict[str, Agent] = {}
        self._overrides: dict[str, dict[str, Any]] = defaultdict(dict)
        self._fleets = {declared.call.at: declared.fleet for declared in history.witness.declared}
        self._settings = {setting.call.at: setting for setting in history.witness.settings}
        self._boots = [known for known in history.witness.declared if known.boot and known.committed]

    # -- folding ----------------------------------------------------------------------------------------------
    def apply(self, event: Event) -> None:
        self.boots_before(self.history.call(event).order)
        fold = getattr(self, f"_{event.kind.value}", None)
        if fold is not None:
            fold(event)

    def boots_before(self, order: int) -> None:
        """A start writes no event of its own: what it does to timers is told by the witness."""
        while self._boots and self._boots[0].call.order <= order:
            boot = self._boots.pop(0)
            for name, place in self.places.items():
                if place.due is not None:
                    place.due = resumed_due(place, self.agents[name], boot.call.at, boot.fleet.grace)

    def _declared(self, event: Event) -> None:
        name = _named(event)
        fleet = self._fleets[event.at]
        agent = _under(fleet, name)
        before = self.agents.get(name)
        self._bare[name] = agent
        self.agents[name] = agent = _overridden(agent, self._overrides[name])
        self.gone.discard(name)
        self.never_ours.setdefault(name, {moment for moment in agent.one_offs if moment <= event.at})
        self._next_version(event, agent)
        place = self.places.setdefault(name, Place(state=agent.lifecycle.start))
        if not agent.enabled:
            place.due = None
        elif place.due is None:
            place.due = first_due(agent, fleet, event.at)
        elif before is not None and before.cadence != agent.cadence:
            place.due = changed_due(place, agent, fleet, event.at)

    def _set(self, event: Event) -> None:
        name = _named(event)
        setting = self._settings[event.at]
        for key, value in setting.settings.items():
            if value is None:
                self._overrides[name].pop(key, None)
            else:
                self._overrides[name][key] = value
        self.agents[name] = _overridden(self._bare[name], self._overrides[name])
        self._next_version(event, self.agents[name])

    def _next_version(self, event: Event, agent: Agent) -> None:
        """One that was never used before; what was rolled back may have used some."""
        version = int(_text(event, "version"))
        assert version > self.versions[agent.name], f"version {version} of {agent.name} is used again"
        self.versions[agent.name] = version
        self.lifecycles[(agent.name, version)] = agent.lifecycle

    def _removed(self, event: Event) -> None:
        self.gone.add(_named(event))
        self.places[_named(event)].due = None

    def _paused(self, event: Event) -> None:
        until = (event.fields or {}).get("until")
        key = (_text(event, "scope"), _text(event, "owner"))
        self.pauses[key] = (read_time(str(until)) if until else None, event.id)

    def _resumed(self, event: Event) -> None:
        self.pauses.pop((_text(event, "scope"), _text(event, "owner")), None)

    def _asked(self, event: Event) -> None:
        """It waits: undecided, or in place of a refused one that it had joined."""
        wake = self.history.wakes[event.wake or 0].wake
        if wake.cause == "peer" and "joined" not in (event.fields or {}):
            self.by_run[wake.by_run or 0].add(wake.id)

    def _decided(self, event: Event) -> None:
        if event.wake is None:
            return
        self._remember(event.wake, event)
        if event.run is None:
            return
        agent = self.agents[_named(event)]
        wake = self.history.wakes[event.wake].wake
        place = self.places[agent.name]
        day, fleet_day = self.days(agent, event.at)
        state, hits = resolved(place.state, place.hits, agent.lifecycle)
        charge = wake.cause == "peer" and event.wake not in self.charges
        opened = Open(
            run=event.run,
            agent=agent,
            wake=wake,
            at=event.at,
            version=self.versions[agent.name],
            day=day,
            fleet_day=fleet_day,
            reserved=Spend() if self.rests(agent, wake) else reservation(place.costs, agent.limits),
            charged=charge,
            state=state,
            hits=hits,
        )
        self.open[event.run] = opened
        self.starts[agent.name].append(opened)
        if charge:
            pair = self.pair(wake, agent)
            self.charges[event.wake] = Charge(address=agent.address, pair=pair, day=day, at=event.at)
            self._count(opened, pair, 1)
        self._spend(opened, opened.reserved)

    def _remember(self, wake: int, event: Event) -> None:
        row = self.history.wakes[wake].wake
        verdict = (event.fields or {}).get("verdict")
        if row.cause == "peer" and row.by_run is not None and isinstance(verdict, dict):
            if verdict["kind"] != "refuse":
                self.by_run[row.by_run].add(wake)
            elif wake not in self.charges:
                self.by_run[row.by_run].discard(wake)

    def _voided(self, event: Event) -> None:
        opened = self.open.pop(event.run or 0)
        self.starts[opened.agent.name].remove(opened)
        self._spend(opened, Spend() - opened.reserved)
        if opened.charged:
            self._count(opened, self.charges.pop(opened.wake.id).pair, -1)
            # It waits again, unless it became part of another that waits already.
            if opened.wake.by_run is not None and "joined" in (event.fields or {}):
                self.by_run[opened.wake.by_run].discard(opened.wake.id)

    def _ended(self, event: Event) -> None:
        opened = self.open.pop(event.run or 0)
        execution = self.history.execution(event.run)
        assert execution is not None and execution.told is not None
        ending = execution.told
        usage = ending.result.usage if ending.result else None
        self._spend(opened, (opened.reserved if usage is None else usage) - opened.reserved)
        elapsed = int(ending.elapsed.total_seconds() * 1000)
        self.totals[(f"agent:{opened.agent.address}", opened.day, "ms")] += elapsed
        place, agent = self.places[opened.agent.name], self.agents[opened.agent.name]
        if usage is not None:
            place.costs = [*place.costs, usage][-20:]
        outcome = outcome_of(ending)
        if opened.wake.subject == "beat":
            quota = error_class(ending) == "quota"
            at_once = taken(ending) and place.failures == 0
            self._beat(opened, place, agent, outcome, event.at, ending.by is None and not quota)
            # The first loss in a row is tried again at once.
            place.due = event.at if at_once else place.due
        elif outcome == "done":
            place.idle = 0
            soon = next_due(agent, 0, event.at)
            if place.due is not None and soon is not None:
                place.due = min(place.due, soon)
        if agent.name in self.gone or not agent.enabled:
            place.due = None

    def _beat(self, opened: Open, place: Place, agent: Agent, outcome: str, at: datetime, counts: bool) -> None:
        began = self.lifecycles[(agent.name, opened.version)]
        state = next((state for state in began.states if state.name == opened.state), None)
        rests = state is not None and state.kind is Kind.rem
        good = outcome in ("done", "no_work")
        if outcome == "done":
            place.gates[opened.state] = at
        if good:
            place.failures = 0
            place.idle = place.idle if rests else 0 if outcome == "done" else place.idle + 1
        elif counts:
            place.failures += 1
        place.state, place.hits = resolved(*moved(opened.state, opened.hits, began, outcome), agent.lifecycle)
        place.due = next_due(agent, place.idle if good else 0, at)
        place.gates = {
            name: when
            for name, when in place.gates.items()
            if any(state.name == name for state in agent.lifecycle.states)
        }
        place.last_beat = at

    def _count(self, opened: Open, pair: tuple[str, str], amount: int) -> None:
        self.totals[(f"agent:{opened.agent.address}", opened.day, "wakes")] += amount
        self.totals[("pair:" + "|".join(pair), opened.day, "wakes")] += amount

    def _spend(self, opened: Open, spend: Spend) -> None:
        for measure, amount in (("usd", spend.usd), ("tokens", spend.tokens)):
            self.totals[(f"agent:{opened.agent.address}", opened.day, measure)] += amount
            self.totals[("fleet", opened.fleet_day, measure)] += amount

    # -- asking -----------------------------------------------------------------------------------------------
    def days(self, agent: Agent, moment: datetime) -> tuple[str, str]:
        return day_label(moment, agent.timezone), day_label(moment, agent.limits.fleet_timezone)

    def pair(self, wake: Wake, agent: Agent) -> tuple[str, str]:
        """Who and whom, whichever way; replicas count as the one address they stand behind."""
        sender = wake.sender or ""
        one = self.agents[sender].address if sender in self.agents else sender
        return min(one, agent.address), max(one, agent.address)

    def rests(self, agent: Agent, wake: Wake) -> bool:
        """A rem beat calls no model and needs no money."""
        place = self.places[agent.name]
        here, _ = resolved(place.state, place.hits, agent.lifecycle)
        kinds = {state.name: state.kind for state in agent.lifecycle.states}
        return wake.subject == "beat" and kinds[here] is Kind.rem

    def lives(self, name: str) -> bool:
        return name in self.agents and name not in self.gone and self.agents[name].enabled

    def behind(self, wake: Wake) -> list[str]:
        """The living agents that could answer a wake."""
        if wake.agent in self.agents and wake.agent not in self.gone:
            return [wake.agent] if self.lives(wake.agent) else []
        fits = (lambda agent: agent.address == wake.agent) if wake.agent else (lambda a: wake.role in a.roles)
        return [name for name in sorted(self.agents) if self.lives(name) and fits(self.agents[name])]


def _named(event: Event) -> str:
    assert event.agent is not None
    return event.agent


def _text(event: Event, key: str) -> str:
    return str((event.fields or {})[key])


def _under(fleet: Fleet, name: str) -> Agent:
    """A declared agent, with what its fleet says for all."""
    agent = next(agent for agent in fleet.agents if agent.name == name)
    whole = {"sessions": fleet.sessions, "workers": fleet.workers, "fleet_timezone": fleet.timezone}
    return replace(agent, limits=_with(agent.limits, whole))


def _with(limits: Limits, changes: dict[str, Any]) -> Limits:
    return replace(limits, **changes)


def _overridden(agent: Agent, overrides: dict[str, Any]) -> Agent:
    limits, retries = agent.limits, agent.retries
    for key, value in overrides.items():
        if key == "max_failures":
            agent = replace(agent, max_failures=value)
        elif key == "max_retries":
            retries = replace(retries, max_retries=value)
        elif key == "minutes_per_day":
            limits = replace(limits, minutes_per_day=value, minutes_declared=True)
        else:
            limits = replace(limits, **{key: value})
    return replace(agent, limits=limits, retries=retries)
