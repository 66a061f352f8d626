"""The next beats of an agent, each with the assumption it rests on.

Laws:
- A forecast asks the same door and settles by the same rules as the engine, and at the same instants: a beat is
  decided when it falls due, and again when what it waits for can have changed.
- It is wrong only where its assumptions are, so it says them. What nobody can foresee is supposed away, aloud.
- It ends where nothing more will happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Limits
from wakeful.core.budgets import reserve
from wakeful.core.codec import read_time, write_time
from wakeful.core.durations import format_duration
from wakeful.core.facts import Facts
from wakeful.core.lifecycle import SINGLE, Kind, Position, State, gate_opens_at, resolve
from wakeful.core.runs import Ending, Outcome, Result, Run
from wakeful.core.settlement import settle
from wakeful.core.standing import NOTHING, Spend, Standing
from wakeful.core.wakes import FLEET, Cause, Pause, Subject, Verdict, VerdictKind, Wake, agent_scope, order
from wakeful.core.windows import NEVER, day_of

ENDINGS = {
    Outcome.done: Ending(exit_code=0, result=Result(outcome="done")),
    Outcome.no_work: Ending(exit_code=0, result=Result(outcome="no_work")),
    Outcome.failed: Ending(exit_code=1),
    Outcome.killed: Ending(timed_out=True),
}
# Deferrals of one beat after which its future is not worth telling.
PATIENCE = 50
# Who waits for one of these is tried again when a run of the agent ends, as the store does it.
CHANGED_BY_A_RUN = frozenset({"busy", "state_gate", "spend"})
BURSTING = (Cause.timer, Cause.peer, Cause.news)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    at: datetime
    state: str
    hits: int
    kind: Kind
    assumption: str


class Waiting(Protocol):
    """A wake that waits, as a store lists it."""

    @property
    def wake(self) -> Wake: ...
    @property
    def guard(self) -> str | None: ...
    @property
    def retry_at(self) -> datetime | None: ...


class Ran(Protocol):
    """A run, as a store lists it."""

    @property
    def cause(self) -> Cause: ...
    @property
    def subject(self) -> Subject: ...
    @property
    def state(self) -> str: ...
    @property
    def admitted_at(self) -> datetime: ...
    @property
    def ended_at(self) -> datetime | None: ...


def forecast(
    standing: Standing,
    agent: Agent,
    limits: Limits,
    now: datetime,
    n: int,
    *,
    outcome: str = "done",
    run_length: timedelta = timedelta(),
    facts: Facts | None = None,
    pauses: Sequence[Pause] = (),
    waiting: Sequence[Waiting] | None = None,
    runs: Sequence[Ran] | None = None,
    until: datetime | None = None,
) -> list[Expected]:
    """The next `n`, and none after `until`. `facts` and `pauses` are those of `why`. `waiting` are the agent's wakes
    that wait, `runs` its latest runs, at least those of its burst window. Without them only declared one-offs wait, no
    beat is under way, and the starts that the facts count are supposed to lie evenly in the window."""
    if not agent.enabled:
        return []
    known = facts or Facts(now=now)
    pauses = [*pauses, *([known.pause] if known.pause else [])]
    future = _Future(
        clock=now,
        agent=agent,
        limits=limits,
        standing=standing,
        outcome=Outcome(outcome),
        run_length=run_length,
        facts=replace(known, now=now, timezone=agent.timezone),
        pauses=[pause for pause in pauses if pause.until is not None and pause.scope in _scopes(agent)],
        starts=_spread(known.burst_starts, limits, now) if runs is None else _started(runs),
        waiting=_declared(agent, now) if waiting is None else _recorded(waiting, now),
        guessed_until=now + limits.burst_window if runs is None and known.burst_starts else now,
    )
    future.take_up(runs or ())
    supposed = _supposed(future, pauses, known.open_run)
    before = "a slot is free"
    expected: list[Expected] = []
    while len(expected) < n and (start := future.next_start()) is not None:
        if until is not None and future.clock > until:
            break
        expected.append(_expect(future, start, [f"if {before}", *supposed]))
        before = f"every run before it ends {outcome} and takes {format_duration(run_length)}"
        if reserve(standing.costs, limits) != NOTHING:
            before += " and costs what is reserved for it"
    return expected


@dataclass(frozen=True, slots=True)
class _Beat:
    """A beat that was asked for. `at` is when it is decided; None, when nobody can say."""

    wake: Wake
    at: datetime | None
    guard: str = ""
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Open:
    wake: Wake
    position: Position
    began: datetime
    ends: datetime
    reserved: Spend


@dataclass(slots=True, kw_only=True)
class _Future:
    """One agent at the door, from instant to instant. `facts` are as of their own `now`: their day is the one that
    the totals belong to."""

    clock: datetime
    agent: Agent
    limits: Limits
    standing: Standing
    outcome: Outcome
    run_length: timedelta
    facts: Facts
    pauses: list[Pause]
    starts: list[datetime]
    waiting: list[_Beat]
    # Until then some of the `starts` are guessed.
    guessed_until: datetime
    run: _Open | None = None

    @property
    def position(self) -> Position:
        return resolve(self.standing.position, self.agent.lifecycle)

    @property
    def state(self) -> State:
        return self.agent.lifecycle.state(self.position.state) or SINGLE.states[0]

    @property
    def reserve(self) -> Spend | None:
        """A rem beat never calls the model, so it needs no money."""
        return None if self.state.kind is Kind.rem else reserve(self.standing.costs, self.limits)

    # -- deciding -------------------------------------------------------------------------------------------------
    def next_start(self) -> _Beat | None:
        """The next beat that the door lets in, at `clock`; None when none will be."""
        while True:
            beat = self._next_asking()
            if self.run is not None and (beat is None or beat.at is None or self.run.ends <= beat.at):
                self._finish(self.run)
            elif beat is None or beat.at is None:
                return None
            else:
                self.clock = beat.at
                if self._decide(beat):
                    return beat

    def _next_asking(self) -> _Beat | None:
        asking = [beat for beat in self.waiting if beat.at is not None]
        due = self.standing.due_at
        asked = [beat.wake for beat in self.waiting] + ([self.run.wake] if self.run else [])
        if due is not None and not any(_is_timer(wake) for wake in asked):
            asking.append(_Beat(_timer(self.agent, due), max(due, self.clock)))
        first = min((beat.at for beat in asking if beat.at), default=None)
        together = [beat for beat in asking if beat.at == first]
        served = order([beat.wake for beat in together])[:1]
        return next((beat for beat in together if beat.wake in served), None)

    def _decide(self, beat: _Beat) -> bool:
        """Whether it was admitted; if not, it waits or is gone."""
        self.waiting = [other for other in self.waiting if other.wake is not beat.wake]
        self._new_day()
        verdict = admit(beat.wake, self._facts(beat.wake), self.limits)
        if verdict.kind is VerdictKind.admit:
            self._start(beat.wake)
        elif verdict.kind is VerdictKind.defer:
            if verdict.trip is not None:
                self.pauses.append(verdict.trip)
            self.waiting.append(self._deferred(beat, verdict))
        return verdict.kind is VerdictKind.admit

    def _deferred(self, beat: _Beat, verdict: Verdict) -> _Beat:
        foreseen = verdict.until is not None and self.clock < verdict.until < NEVER and len(beat.held) < PATIENCE
        reason = verdict.reason
        if verdict.guard == "busy":
            reason = "a run was under way"
        elif verdict.guard == "burst" and self.clock < self.guessed_until:
            reason += ", if those of the past were spread evenly"
        # Recorded only now, it stands behind all that were recorded before at the same instant.
        id = beat.wake.id or 1 + max((other.wake.id for other in self.waiting), default=0)
        return _Beat(
            replace(beat.wake, id=id),
            at=verdict.until if foreseen else None,
            guard=verdict.guard or "",
            held=(*beat.held, reason),
        )

    def _new_day(self) -> None:
        """Totals are kept by the day: the agent's own, and of the fleet's money the fleet's."""
        own, fleet = ZoneInfo(self.agent.timezone), ZoneInfo(self.limits.fleet_timezone)
        if day_of(self.clock, own) != day_of(self.facts.now, own):
            self.facts = replace(self.facts, spent=NOTHING, seconds_today=0.0)
        if day_of(self.clock, fleet) != day_of(self.facts.now, fleet):
            self.facts = replace(self.facts, fleet_spent=NOTHING)
        self.facts = replace(self.facts, now=self.clock)

    def _facts(self, wake: Wake) -> Facts:
        state, zone, due = self.state, ZoneInfo(self.agent.timezone), self.standing.due_at
        moved = _is_timer(wake) and (due is None or due > self.clock)
        since = self.clock - self.limits.burst_window
        return replace(
            self.facts,
            moot="the beat has been run or moved since" if moved else None,
            pause=next((pause for pause in self.pauses if pause.until is None or pause.until > self.clock), None),
            reserve=self.reserve,
            burst_starts=sum(start > since for start in self.starts),
            gate_state=state.name,
            gate_opens_at=gate_opens_at(state, self.standing.ran_at(state.name), self.clock, zone),
            open_run=None if self.run is None else 0,
            slots_taken=0,
        )

    # -- running --------------------------------------------------------------------------------------------------
    def take_up(self, runs: Sequence[Ran]) -> None:
        """A beat under way: the cadence's own, unless that is not due yet or waits itself."""
        open_beats = [run for run in runs if run.ended_at is None and run.subject is Subject.beat]
        if not open_beats:
            return
        began, due = open_beats[0].admitted_at, self.standing.due_at
        own = due is not None and due <= self.clock and not any(_is_timer(beat.wake) for beat in self.waiting)
        wake = replace(_timer(self.agent, began), slot="" if own else write_time(began))
        ends = max(began + self.run_length, self.clock)
        self.run = _Open(wake, self.position, began, ends, self.reserve or NOTHING)

    def _start(self, wake: Wake) -> None:
        reserved = self.reserve or NOTHING
        self.run = _Open(wake, self.position, self.clock, self.clock + self.run_length, reserved)
        spent, fleet_spent = self.facts.spent + reserved, self.facts.fleet_spent + reserved
        self.facts = replace(self.facts, spent=spent, fleet_spent=fleet_spent)
        if wake.cause in BURSTING:
            self.starts.append(self.clock)

    def _finish(self, open_run: _Open) -> None:
        zone = ZoneInfo(self.agent.timezone)
        self.run, self.clock = None, open_run.ends
        run = Run(
            id=0,
            agent=self.agent.name,
            wake=0,
            cause=open_run.wake.cause,
            subject=Subject.beat,
            version=0,
            position=open_run.position,
            reserved=open_run.reserved,
        )
        lifecycle = self.agent.lifecycle
        settled = settle(run, ENDINGS[self.outcome], self.standing, self.agent, self.clock, began_with=lifecycle)
        self.standing = settled.standing
        if day_of(open_run.began, zone) == day_of(self.facts.now, zone):
            seconds = (open_run.ends - open_run.began).total_seconds()
            self.facts = replace(self.facts, seconds_today=self.facts.seconds_today + seconds)
        if settled.pause is not None:
            self.pauses.append(settled.pause)
        self.waiting = [
            replace(beat, at=self.clock) if beat.guard in CHANGED_BY_A_RUN else beat for beat in self.waiting
        ]


def _timer(agent: Agent, due: datetime) -> Wake:
    return Wake(agent=agent.name, cause=Cause.timer, subject=Subject.beat, requested_at=due)


def _is_timer(wake: Wake) -> bool:
    """The cadence's own beat; one-offs stand beside it."""
    return wake.cause is Cause.timer and not wake.one_off


def _scopes(agent: Agent) -> set[str]:
    return {FLEET, agent_scope(agent.name), agent_scope(agent.address)}


def _declared(agent: Agent, now: datetime) -> list[_Beat]:
    """One-offs are asked for in advance, and so before any beat that falls due."""
    moments = sorted({moment for moment in agent.one_offs if moment > now})
    return [_Beat(replace(_timer(agent, now), id=id, slot=write_time(at)), at) for id, at in enumerate(moments, 1)]


def _recorded(waiting: Sequence[Waiting], now: datetime) -> list[_Beat]:
    """What waits for nothing that has an instant (a slot, a pause without an end) is supposed to have it now."""
    beats = [row for row in waiting if row.wake.subject is Subject.beat]
    return [_Beat(row.wake, max(row.retry_at or now, now), row.guard or "") for row in beats]


def _started(runs: Sequence[Ran]) -> list[datetime]:
    return [run.admitted_at for run in runs if run.cause in BURSTING and run.state != "void"]


def _spread(count: int, limits: Limits, now: datetime) -> list[datetime]:
    return [now - limits.burst_window * (index + 0.5) / count for index in range(count)]


def _supposed(future: _Future, pauses: Sequence[Pause], run: int | None) -> list[str]:
    """What is supposed of every beat."""
    agent, limits = future.agent, future.limits
    supposed = []
    if future.run is not None:
        whose = "the beat under way" if run is None else f"run {run}"
        supposed.append(f"if {whose} ends {future.outcome} at {future.run.ends.isoformat()}")
    elif run is not None:
        supposed.append(f"if run {run} leaves the position as it is")
    endless = [pause.owner for pause in pauses if pause.until is None and pause.scope in _scopes(agent)]
    supposed += [f"if the pause by {owner} is lifted now" for owner in dict.fromkeys(endless)]
    if agent.check is not None:
        supposed.append("if its CHECK lets it wake")
    if limits.fleet_usd_per_day is not None or limits.fleet_tokens_per_day is not None:
        supposed.append("if no other agent spends")
    elif agent.address != agent.name and (limits.minutes_declared or reserve(future.standing.costs, limits) != NOTHING):
        supposed.append(f"if no other replica of {agent.address} runs")
    return supposed


def _expect(future: _Future, start: _Beat, supposed: list[str]) -> Expected:
    rests_on = [*supposed, *(f"held back: {reason}" for reason in dict.fromkeys(start.held))]
    if start.wake.one_off:
        rests_on.append(f"asked for at {read_time(start.wake.slot).isoformat()}")
    return Expected(
        at=future.clock,
        state=future.position.state,
        hits=future.position.hits,
        kind=future.state.kind,
        assumption="; ".join(rests_on),
    )
