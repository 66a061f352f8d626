"""Why, at any past instant: the facts that a wake would have been decided on, from the events alone.

Laws:
- The facts are those that the store would have gathered; the guards are asked as they are, never again in other words.
- What the events cannot tell (what lay in an inbox, what happened before the oldest event) is taken in the wake's
  favour, and every such assumption is said.
- A recorded verdict is what the guards say to the facts in its own event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Limits
from wakeful.core.budgets import MEMORY, reserve
from wakeful.core.codec import decode, write_time
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.events import Event
from wakeful.core.facts import Facts
from wakeful.core.lifecycle import Kind, gate_opens_at, resolve
from wakeful.core.past import CHECK, Life, Past, agent_total, asked
from wakeful.core.standing import Standing
from wakeful.core.wakes import FLEET, Cause, Pause, Pool, Subject, Verdict, Wake, agent_scope, source_scope
from wakeful.core.windows import day_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """An agent as it was declared and stood then, live settings included, and what the guards would have read."""

    wake: Wake
    agent: Agent
    version: int
    standing: Standing
    facts: Facts
    assumptions: tuple[str, ...] = ()

    @property
    def limits(self) -> Limits:
        return self.agent.limits


class Replay:
    """Many instants in one pass: feed the events in order, and ask in between."""

    def __init__(self) -> None:
        self.past = Past()

    def feed(self, event: Event) -> None:
        self.past.feed(event)

    def agent(self, name: str) -> Agent | None:
        life = self.past.lives.get(name)
        return None if life is None else life.agent

    def facts(self, wake: Wake, at: datetime, *, agent: str | None = None) -> Hindsight:
        """`agent` says who answers, where the wake names an address or a role; else it is whoever is best placed."""
        life = self.past.lives.get(agent) if agent else _answering(self.past, wake)
        if life is None:
            whom, gone = wake.agent or wake.role, self.past.since
            told = f"the events until {write_time(at)} tell of no agent that answers to {whom}"
            raise Unknown(told + (f"; those before {write_time(gone)} are gone" if gone else ""))
        named = replace(wake, agent=life.agent.name)
        return Hindsight(
            wake=named,
            agent=life.agent,
            version=life.version,
            standing=life.standing,
            facts=_facts(self.past, life, wake, at),
            assumptions=tuple(_assumptions(self.past, life, named, at)),
        )


def facts_at(events: Iterable[Event], wake: Wake, at: datetime) -> Hindsight:
    """`events` are those of the whole fleet, in the order of their ids, up to the instant that is asked for."""
    replay = Replay()
    for event in events:
        replay.feed(event)
    return replay.facts(wake, at)


def recompute(event: Event, agent: Agent) -> Verdict:
    """What the guards say to the facts of a `decided` event; `agent` is the declaration of its version with the live
    settings of then. A CHECK command's word, and that nobody answers, is not the guards' and stays as it is told."""
    told: dict[str, Any] = event.fields or {}
    if "verdict" not in told:
        raise Mistake(f"event {event.id} carries no verdict of its own", "ask for the wake that it joined")
    recorded = decode(Verdict, told["verdict"])
    if recorded.guard == CHECK or "facts" not in told:
        return recorded
    wake = replace(asked(event), agent=event.agent)
    return replace(admit(wake, decode(Facts, told["facts"]), agent.limits), trip=None)


def _answering(past: Past, wake: Wake) -> Life | None:
    """The agent that a wake names; or of those behind its address or role the idle first, then the longest rested."""
    named = past.lives.get(wake.agent or "")
    if named is not None and not named.removed:
        return named
    behind = [
        life
        for life in past.lives.values()
        if life.timed and (life.agent.address == wake.agent if wake.agent else wake.role in life.agent.roles)
    ]
    return min(behind, key=lambda life: _rested(past, life), default=named)


def _rested(past: Past, life: Life) -> tuple[bool, bool, float, str]:
    name, ended = life.agent.name, life.standing.last_ended_at
    paused = any(scope == agent_scope(name) for scope, _ in past.pauses)
    return (paused, _busy_with(past, name) is not None, ended.timestamp() if ended else 0.0, name)


def _facts(past: Past, life: Life, wake: Wake, at: datetime) -> Facts:
    agent, standing = life.agent, life.standing
    limits, zone = agent.limits, ZoneInfo(agent.timezone)
    day, fleet_day = day_of(at, zone), day_of(at, ZoneInfo(limits.fleet_timezone))
    position = resolve(standing.position, agent.lifecycle)
    state = agent.lifecycle.state(position.state)
    gate = gate_opens_at(state, standing.ran_at(position.state), at, zone) if state else None
    resting = wake.subject is Subject.beat and state is not None and state.kind is Kind.rem
    own, fleet = past.total(agent_total(agent.address), day), past.total(FLEET, fleet_day)
    # A wake that is tried again was charged before: it does not stand in its own way.
    counted = int(past.charged.get(wake.id) == day)
    since, until = at - limits.burst_window, at + limits.burst_window
    return Facts(
        now=at,
        timezone=agent.timezone,
        moot=_moot(life, wake, at),
        pause=_pause(past, agent, wake, at),
        wakes_by_run=len(past.by_run.get(wake.by_run or 0, set()) - {wake.id}),
        wakes_allowed=_allowed(past, wake),
        last_peer_wake_at=_last_peer_wake(past, agent.address, wake.id),
        wakes_today=max(own.wakes - counted, 0),
        pair_wakes_today=max(past.total(past.pair(wake.sender, agent.address), day).wakes - counted, 0),
        seconds_today=own.ms / 1000,
        spent=own.spend,
        fleet_spent=fleet.spend,
        reserve=None if resting else reserve(standing.costs, limits),
        burst_starts=sum(since < start < until for start in life.starts.values()),
        gate_opens_at=gate,
        gate_state=position.state if gate else None,
        open_run=_busy_with(past, agent.name),
        slots_taken=_slots_taken(past, wake, limits),
    )


def _moot(life: Life, wake: Wake, at: datetime) -> str | None:
    name, due = life.agent.name, life.standing.due_at
    if life.removed:
        return f"{name} was removed from the fleet"
    if not life.agent.enabled:
        return f"{name} is disabled"
    if wake.cause is Cause.timer and not wake.one_off and life.due_told and (due is None or due > at):
        return "the beat has been run or moved since"
    return None


def _pause(past: Past, agent: Agent, wake: Wake, at: datetime) -> Pause | None:
    """The widest pause that holds this wake."""
    scopes = [FLEET, agent_scope(agent.name), agent_scope(agent.address)]
    scopes += [source_scope(wake.source)] if wake.source else []
    standing = [pause for pause in past.pauses.values() if pause.until is None or pause.until > at]
    held = [pause for pause in standing if pause.scope in scopes]
    return min(held, key=lambda pause: (scopes.index(pause.scope), pause.owner), default=None)


def _allowed(past: Past, wake: Wake) -> int | None:
    """The limit of the agent whose run asks, as it was declared and set then."""
    asks = past.lives.get(past.ran.get(wake.by_run or 0, ""))
    return None if asks is None or asks.removed else asks.agent.limits.wakes_per_run


def _last_peer_wake(past: Past, address: str, but: int) -> datetime | None:
    """The last in order, not the latest by its stamp: the clock may have been set back since."""
    charges = reversed(past.charges.get(address, {}).values())
    return next((at for wake, at in charges if wake != but), None)


def _busy_with(past: Past, name: str) -> int | None:
    return next((run for run, opened in past.open.items() if opened.agent == name), None)


def _slots_taken(past: Past, wake: Wake, limits: Limits) -> int:
    """The open runs of the pool, and whoever waits longer for a slot of it."""
    place = wake.agent or wake.role or ""
    queue = [queued for queued in past.queue.values() if queued.pool is wake.pool]
    # An agent's better wake stands where its oldest one does.
    ours = min([wake.requested_at, *(queued.requested_at for queued in queue if queued.place == place)])
    ahead = sum(queued.requested_at < ours for queued in queue)
    limit = limits.sessions if wake.pool is Pool.sessions else limits.workers
    return sum(opened.pool is wake.pool for opened in past.open.values()) + min(ahead, limit)


# -- what is not told -----------------------------------------------------------------------------------------
def _assumptions(past: Past, life: Life, wake: Wake, at: datetime) -> Iterator[str]:
    name = life.agent.name
    if wake.subject is Subject.task:
        task = "a task" if wake.task is None else f"task {wake.task}"
        yield f"the events do not tell what {task} waited for: it is taken to have been ready"
    elif wake.cause in (Cause.peer, Cause.news) or wake.item is not None:
        yield f"the events do not tell what lay in the inbox of {name}: what rang is taken to have been unshown"
    if wake.cause is Cause.timer and not wake.one_off and not life.due_told:
        yield f"the events do not tell when {name} was due: its beat is taken to have been due"
    if past.since is not None:
        yield from _before(past, life, wake, at, past.since)


def _before(past: Past, life: Life, wake: Wake, at: datetime, since: datetime) -> Iterator[str]:
    """What is taken for granted because the events before `since` are gone."""
    agent, standing, limits, told = life.agent, life.standing, life.agent.limits, write_time(since)
    yield f"the events before {told} are gone: no run of then is taken to be open, no untold pause to stand"
    yield f"nobody who asked before {told} is taken to wait for a slot still"
    zones = {(agent.timezone, agent.timezone), (limits.fleet_timezone, limits.fleet_timezone)}
    # When it woke the other, the other's calendar said under which day the pair was counted.
    others = (other.agent for other in past.lives.values() if wake.sender in (other.agent.name, other.agent.address))
    zones |= {(other.timezone, agent.timezone) for other in others}
    if any(day_of(since, ZoneInfo(then)) >= day_of(at, ZoneInfo(now)) for then, now in zones):
        yield f"what was woken, run and spent on that day before {told} is not counted"
    if at - since < max(limits.burst_window, limits.cooldown):
        yield f"starts and peer wakes before {told} are not counted by burst and cooldown"
    if wake.by_run is not None and wake.by_run not in past.open:
        yield f"what run {wake.by_run} asked for before {told} is not counted"
    if wake.by_run is not None and wake.by_run not in past.ran:
        yield f"whose run {wake.by_run} was is not told: it is taken to have as many wakes as one of {agent.name}"
    state = agent.lifecycle.state(resolve(standing.position, agent.lifecycle).state)
    if standing.last_ended_at is None:
        yield f"no end of a run of {agent.name} is told: it is taken to stand at the start of its lifecycle"
    if state is not None and (state.min_interval or state.when_schedule) and standing.ran_at(state.name) is None:
        yield f"no beat in {state.name} that ended done is told: its gate is taken to have been open"
    budgets = (limits.usd_per_day, limits.tokens_per_day, limits.fleet_usd_per_day, limits.fleet_tokens_per_day)
    if len(standing.costs) < MEMORY and any(budget is not None for budget in budgets):
        yield f"the reserve is drawn from the {len(standing.costs)} runs whose cost is told since {told}"
