"""The next beats of an agent, each with the assumption it rests on.

Law: a forecast asks the same door and settles by the same rules as the engine, on facts carried forward. It
is wrong only where its assumptions are, so it says them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Limits
from wakeful.core.budgets import reserve
from wakeful.core.durations import format_duration
from wakeful.core.facts import Facts
from wakeful.core.lifecycle import SINGLE, Kind, Position, State, gate_opens_at, resolve
from wakeful.core.runs import Ending, Outcome, Result, Run
from wakeful.core.settlement import Settlement, settle
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Subject, VerdictKind, Wake
from wakeful.core.windows import day_of

ENDINGS = {
    Outcome.done: Ending(exit_code=0, result=Result(outcome="done")),
    Outcome.no_work: Ending(exit_code=0, result=Result(outcome="no_work")),
    Outcome.failed: Ending(exit_code=1),
    Outcome.killed: Ending(timed_out=True),
}
# Deferrals of one beat after which its future is not worth telling.
PATIENCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    at: datetime
    state: str
    hits: int
    kind: Kind
    assumption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """What the forecast carries from beat to beat; `facts` are those of the last start, `clock` its end."""

    clock: datetime
    agent: Agent
    limits: Limits
    standing: Standing
    facts: Facts
    starts: tuple[datetime, ...] = ()
    one_offs: tuple[datetime, ...] = ()

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


@dataclass(frozen=True, slots=True)
class _Start:
    at: datetime
    one_off: datetime | None
    held: tuple[str, ...]


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
) -> list[Expected]:
    """`facts` are those of `why`: spend, pauses. The list ends where nothing more will happen."""
    if not agent.enabled:
        return []
    known, supposed = _suppose(replace(facts or Facts(now=now), now=now, timezone=agent.timezone))
    world = _World(
        clock=now,
        agent=agent,
        limits=limits,
        standing=standing,
        facts=known,
        starts=(now,) * known.burst_starts,
        one_offs=tuple(sorted(moment for moment in agent.one_offs if moment > now)),
    )
    before = "a slot is free"
    expected: list[Expected] = []
    while len(expected) < n and (start := _next_start(world)) is not None:
        expected.append(_expect(world, start, [f"if {before}", *supposed]))
        world = _run(world, start, Outcome(outcome), run_length)
        before = f"every run before it ends {outcome} and takes {format_duration(run_length)}"
        if reserve(standing.costs, limits) != Spend():
            before += " and costs what is reserved for it"
    return expected


def _expect(world: _World, start: _Start, supposed: list[str]) -> Expected:
    rests_on = [*supposed, *(f"held back: {reason}" for reason in start.held)]
    if start.one_off:
        rests_on.append(f"asked for at {start.one_off.isoformat()}")
    return Expected(
        at=start.at,
        state=world.position.state,
        hits=world.position.hits,
        kind=world.state.kind,
        assumption="; ".join(rests_on),
    )


def _suppose(facts: Facts) -> tuple[Facts, list[str]]:
    """What nobody can foresee is supposed away, aloud."""
    supposed = []
    if facts.open_run is not None:
        supposed.append(f"if run {facts.open_run} leaves the position as it is")
    if facts.pause is not None and facts.pause.until is None:
        supposed.append(f"if the pause by {facts.pause.owner} is lifted now")
        facts = replace(facts, pause=None)
    return replace(facts, moot=None, open_run=None, slots_taken=0), supposed


def _next_start(world: _World) -> _Start | None:
    """The earlier of the timer and the next one-off: quiet hours hold only the first."""
    starts = []
    if world.standing.due_at is not None:
        starts.append(_admitted(world, world.standing.due_at, None))
    if world.one_offs:
        starts.append(_admitted(world, world.one_offs[0], world.one_offs[0]))
    return min((start for start in starts if start), key=lambda start: start.at, default=None)


def _admitted(world: _World, due_at: datetime, one_off: datetime | None) -> _Start | None:
    """When the door lets this beat in, and what held it until then."""
    moment, held = max(due_at, world.clock), tuple[str, ...]()
    slot = one_off.isoformat() if one_off else ""
    wake = Wake(agent=world.agent.name, cause=Cause.timer, subject=Subject.beat, requested_at=moment, slot=slot)
    for _ in range(PATIENCE):
        verdict = admit(wake, _facts_at(world, moment), world.limits)
        if verdict.kind is VerdictKind.admit:
            return _Start(moment, one_off, held)
        if verdict.until is None or verdict.until <= moment:
            return None
        moment, held = verdict.until, (*held, verdict.reason)
    return None


def _facts_at(world: _World, moment: datetime) -> Facts:
    facts, state, zone = world.facts, world.state, ZoneInfo(world.agent.timezone)
    if day_of(moment, zone) != day_of(facts.now, zone):
        facts = replace(facts, spent=Spend(), fleet_spent=Spend(), seconds_today=0.0)
    if facts.pause is not None and facts.pause.until is not None and facts.pause.until <= moment:
        facts = replace(facts, pause=None)
    recent = [start for start in world.starts if start > moment - world.limits.burst_window]
    return replace(
        facts,
        now=moment,
        reserve=world.reserve,
        burst_starts=len(recent),
        gate_state=state.name,
        gate_opens_at=gate_opens_at(state, world.standing.ran_at(state.name), moment, zone),
    )


def _run(world: _World, start: _Start, outcome: Outcome, length: timedelta) -> _World:
    facts, clock = _facts_at(world, start.at), start.at + length
    ended = _settle(world, outcome, clock)
    return replace(
        world,
        clock=clock,
        standing=ended.standing,
        facts=replace(
            facts,
            spent=facts.spent + ended.bill.spend,
            fleet_spent=facts.fleet_spent + ended.bill.spend,
            seconds_today=facts.seconds_today + length.total_seconds(),
            pause=ended.pause or facts.pause,
        ),
        starts=(*world.starts, start.at),
        one_offs=tuple(moment for moment in world.one_offs if moment != start.one_off),
    )


def _settle(world: _World, outcome: Outcome, ended: datetime) -> Settlement:
    run = Run(
        id=0,
        agent=world.agent.name,
        wake=0,
        cause=Cause.timer,
        subject=Subject.beat,
        version=0,
        position=world.position,
        reserved=world.reserve or Spend(),
    )
    agent = world.agent
    return settle(run, ENDINGS[outcome], world.standing, agent, ended, began_with=agent.lifecycle)
