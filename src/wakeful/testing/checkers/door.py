"""The guards once more, from the words of the table and recounts alone; every verdict is held against them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from wakeful.core.agents import Agent
from wakeful.core.events import Event, EventKind
from wakeful.core.wakes import Wake
from wakeful.testing.checkers.calendar import fires_after, quiet, within
from wakeful.testing.checkers.history import History, Violation
from wakeful.testing.checkers.ledger import POOLS, Ledger
from wakeful.testing.checkers.rules import reservation, resolved

RULE = "the door: every verdict is the first objection of the table"

# Where a task comes from that is asked for once, and done at once.
ONE_OFF = "wakeful run"

# What each guard says to a wake that it objects to; the two given twice answer by cause.
REFUSES = {"wakes_per_run", "cooldown", "wakes_per_day", "wakes_per_pair", "chain"}


def objections(ledger: Ledger, wake: Wake, agent: Agent, now: datetime) -> Iterator[str]:
    """The guards behind `moot` that object, in their order."""
    limits, one_off = agent.limits, wake.slot != "" or wake.source == ONE_OFF
    if _paused(ledger, wake, agent, now):
        yield "paused"
    if wake.cause != "operator" and not one_off and quiet(limits.quiet_hours, now, agent.timezone):
        yield "quiet_hours"
    if wake.cause == "peer":
        yield from _peer(ledger, wake, agent, now)
    yield from _day(ledger, wake, agent, now)
    if wake.cause in ("timer", "peer", "news"):
        # What lies further ahead than a window was told by a clock that has been set back since.
        starts = [run for run in ledger.starts[agent.name] if abs(run.at - now) < limits.burst_window]
        recent = [run for run in starts if run.wake.cause in ("timer", "peer", "news")]
        if len(recent) >= limits.burst:
            yield "burst"
    if wake.cause == "timer" and _gated(ledger, agent, now):
        yield "state_gate"
    if any(run.agent.name == agent.name for run in ledger.open.values()):
        yield "busy"
    if slots_taken(ledger, wake) >= slots(wake, agent):
        yield "slots"


def slots_taken(ledger: Ledger, wake: Wake) -> int:
    return sum(run.pool == POOLS[wake.subject] for run in ledger.open.values())


def slots(wake: Wake, agent: Agent) -> int:
    return agent.limits.sessions if POOLS[wake.subject] == "sessions" else agent.limits.workers


def _paused(ledger: Ledger, wake: Wake, agent: Agent, now: datetime) -> bool:
    scopes = {"fleet", f"agent:{agent.name}", f"agent:{agent.address}", f"source:{wake.source}"}
    return any(scope in scopes and (until is None or until > now) for (scope, _), (until, _) in ledger.pauses.items())


def _peer(ledger: Ledger, wake: Wake, agent: Agent, now: datetime) -> Iterator[str]:
    limits = agent.limits
    others = {id: charge for id, charge in ledger.charges.items() if id != wake.id}
    own = [charge for charge in others.values() if charge.address == agent.address]
    day, _ = ledger.days(agent, now)
    pair = ledger.pair(wake, agent)
    if wake.by_run is not None and _by_run(ledger, wake) >= _allowed(ledger, wake, agent):
        yield "wakes_per_run"
    # The last one in the order of admission; in the future, because the clock was set back, it holds nobody.
    if own and timedelta() <= now - own[-1].at < limits.cooldown:
        yield "cooldown"
    if sum(charge.day == day for charge in own) >= limits.wakes_per_day:
        yield "wakes_per_day"
    if sum(charge.day == day and charge.pair == pair for charge in others.values()) >= limits.wakes_per_pair:
        yield "wakes_per_pair"
    if wake.depth > limits.chain:
        yield "chain"


def _by_run(ledger: Ledger, wake: Wake) -> int:
    """Peer wakes that the same run has had admitted, or that wait."""
    return sum(other != wake.id for other in ledger.by_run[wake.by_run or 0])


def _allowed(ledger: Ledger, wake: Wake, agent: Agent) -> int:
    """What the agent whose run asks lets each of its runs have; what the woken one does, where that agent is gone."""
    asks = ledger.history.runs[wake.by_run or 0].agent
    return (agent if asks in ledger.gone else ledger.agents[asks]).limits.wakes_per_run


def _day(ledger: Ledger, wake: Wake, agent: Agent, now: datetime) -> Iterator[str]:
    limits = agent.limits
    day, fleet_day = ledger.days(agent, now)
    scope = f"agent:{agent.address}"
    bounded = wake.cause in ("peer", "news") or (wake.cause in ("timer", "task") and limits.minutes_declared)
    if bounded and ledger.totals[(scope, day, "ms")] >= limits.minutes_per_day * 60_000:
        yield "minutes_per_day"
    if wake.cause == "operator" or ledger.rests(agent, wake):
        return
    need = reservation(ledger.places[agent.name].costs, limits)
    checks = (
        (scope, day, "usd", need.usd, limits.usd_per_day),
        (scope, day, "tokens", need.tokens, limits.tokens_per_day),
        ("fleet", fleet_day, "usd", need.usd, limits.fleet_usd_per_day),
        ("fleet", fleet_day, "tokens", need.tokens, limits.fleet_tokens_per_day),
    )
    for whose, which, measure, amount, limit in checks:
        if limit is not None and ledger.totals[(whose, which, measure)] + amount > limit:
            yield "spend"
            return


def _gated(ledger: Ledger, agent: Agent, now: datetime) -> bool:
    place = ledger.places[agent.name]
    name, _ = resolved(place.state, place.hits, agent.lifecycle)
    state = next(state for state in agent.lifecycle.states if state.name == name)
    ran = place.gates.get(name)
    if ran is not None and ran <= now:
        if state.min_interval is not None and now < ran + state.min_interval:
            return True
        if state.when_schedule is not None:
            expression = state.when_schedule.expression
            if now < fires_after(expression, ran, agent.timezone):
                return True
    return state.when_window is not None and not within(state.when_window, now, agent.timezone)


def expected_kind(guard: str, wake: Wake, *, tried: bool) -> str:
    """`tried` says that a run of this wake has ended before."""
    if guard in REFUSES:
        return "refuse"
    if guard == "paused":
        return "refuse" if wake.cause == "operator" and not tried else "defer"
    if guard in ("quiet_hours", "minutes_per_day"):
        return "refuse" if wake.cause == "peer" else "defer"
    return "defer"


def check_decision(ledger: Ledger, history: History, event: Event) -> Iterator[Violation]:
    """One decided event, before it is folded."""
    fields = event.fields or {}
    verdict = fields.get("verdict")
    if event.kind is not EventKind.decided or not isinstance(verdict, dict) or event.wake is None:
        return
    ledger.boots_before(history.call(event).order)
    wake, guard, kind = history.wakes[event.wake].wake, verdict.get("guard"), verdict["kind"]
    if guard == "moot":
        if (found := _wrongly_moot(ledger, wake, event)) is not None:
            yield Violation(rule="a wake is moot only when its reason is gone", what=found, rows=(event, wake))
        return
    agent = ledger.agents.get(event.agent or "")
    if agent is None or not ledger.lives(agent.name):
        what = f"{event.agent} is not in the fleet, and was told {kind}"
        yield Violation(rule="only a living agent is woken", what=what, rows=(event,))
        return
    found_guards = list(objections(ledger, wake, agent, event.at))
    wanted = found_guards[0] if found_guards else None
    if kind == "admit" and wake.cause == "timer" and wake.slot == "":
        due = ledger.places[agent.name].due
        if due is None or due > event.at:
            what = f"{agent.name} beat at {event.at}, and was due at {due}"
            yield Violation(rule="no beat before it is due (interval, idle backoff)", what=what, rows=(event,))
    # Whoever waits longer for a slot is served first: a free slot may be somebody else's.
    if guard == wanted or (guard == "slots" and wanted is None):
        tried = guard == "paused" and _tried(history, event)
        if kind != ("admit" if guard is None else expected_kind(guard, wake, tried=tried)):
            yield Violation(rule=RULE, what=f"{guard} must not {kind} a {wake.cause} wake", rows=(event,))
        return
    what = f"{agent.name} was told {kind} by {guard}, and the recount says {wanted or 'admit'}"
    yield Violation(rule=RULE, what=what, rows=(event, wake))


def _tried(history: History, event: Event) -> bool:
    return any(end.wake == event.wake and end.id < event.id for end in history.of(EventKind.ended))


def _wrongly_moot(ledger: Ledger, wake: Wake, event: Event) -> str | None:
    if not ledger.behind(wake):
        return None
    if wake.cause == "timer" and wake.slot == "":
        due = ledger.places[wake.agent or ""].due
        return f"the beat of {wake.agent} was due at {due}" if due is not None and due <= event.at else None
    if wake.slot != "":
        return f"the one-off {wake.slot} was dropped"
    if wake.cause == "operator" and wake.item is None:
        return "an operator's wake was dropped"
    return None
