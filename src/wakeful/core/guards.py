"""The ordered table of guards: the only opinions on whether a run may begin.

Laws:
- A guard is a pure function of the wake, the facts and the limits; None means no objection.
- The order is part of the contract: the first objection is the answer, and is told with its numbers.
- Refuse ends the wake and keeps its item; defer leaves the wake waiting until its reason can have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.agents import Limits
from wakeful.core.facts import Facts
from wakeful.core.wakes import (
    FLEET,
    ONE_OFF,
    Cause,
    Pause,
    Pool,
    Verdict,
    VerdictKind,
    Wake,
    agent_scope,
    defer,
    refuse,
)
from wakeful.core.windows import inside_until, next_day, spread

# Guards that object to who asks, and to nothing about who is asked: another's wake may pass where this one did not.
ABOUT_SENDER = frozenset({"wakes_per_run", "wakes_per_pair", "chain"})

Objection = Callable[[Wake, Facts, Limits], Verdict | None]

# What was held back until midnight is let go over this long, not all at once.
MORNING = timedelta(minutes=10)
# And what a pause held back, over this long: a pause holds many, and those of one quota end together.
RELEASE = timedelta(minutes=1)


def morning_after(wake: Wake, facts: Facts, timezone: str | None = None) -> datetime:
    """The start of the next day, the agent's own unless said otherwise, plus its own stable share of the morning."""
    return next_day(facts.now, ZoneInfo(timezone or facts.timezone)) + spread(wake.agent or "", MORNING)


def moot(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if facts.moot is None:
        return None
    return refuse("moot", f"the reason no longer stands: {facts.moot}")


def paused(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    pause = facts.pause
    if pause is None:
        return None
    whom = "the fleet is" if pause.scope == FLEET else f"{pause.scope.replace(':', ' ')} is"
    reason = f"{whom} paused by {pause.owner}: {pause.reason}"
    # A person who asks hears a no at once. What is tried again after a failed run asks for nobody who would hear it.
    if wake.cause is Cause.operator and wake.attempt == 1:
        return refuse("paused", reason, until=pause.until, scope=pause.scope)
    until = None if pause.until is None else pause.until + spread(wake.agent or "", RELEASE)
    return defer("paused", reason, until=until, scope=pause.scope)


def quiet_hours(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    asked_for = wake.cause is Cause.operator or wake.one_off or wake.source == ONE_OFF
    if asked_for or not limits.quiet_hours:
        return None
    until = inside_until(limits.quiet_hours, facts.now, ZoneInfo(facts.timezone))
    if until is None:
        return None
    reason = f"quiet hours until {until.isoformat()}"
    if wake.cause is Cause.peer:
        return refuse("quiet_hours", reason, until=until)
    return defer("quiet_hours", reason, until=until)


def wakes_per_run(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    # The one guard that asks for the limit of the sender: all the others hold whoever is to be woken to its own.
    limit = limits.wakes_per_run if facts.wakes_allowed is None else facts.wakes_allowed
    if wake.cause is not Cause.peer or wake.by_run is None or facts.wakes_by_run < limit:
        return None
    return refuse(
        "wakes_per_run",
        f"run {wake.by_run} has used its {limit} wakes",
        used=facts.wakes_by_run,
        limit=limit,
    )


def cooldown(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if wake.cause is not Cause.peer or facts.last_peer_wake_at is None:
        return None
    since = facts.now - facts.last_peer_wake_at
    # A wake in the future: the clock was set back. One early wake is better than a day without any.
    if since >= limits.cooldown or since < timedelta():
        return None
    return refuse(
        "cooldown",
        f"woken {since.total_seconds():.0f} s ago, cooldown is {limits.cooldown.total_seconds():.0f} s",
        until=facts.now + limits.cooldown - since,
        seconds=since.total_seconds(),
        limit=limits.cooldown.total_seconds(),
    )


def wakes_per_day(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if wake.cause is not Cause.peer or facts.wakes_today < limits.wakes_per_day:
        return None
    return refuse(
        "wakes_per_day",
        f"woken {facts.wakes_today} times today, the limit is {limits.wakes_per_day}",
        until=next_day(facts.now, ZoneInfo(facts.timezone)),
        used=facts.wakes_today,
        limit=limits.wakes_per_day,
    )


def wakes_per_pair(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if wake.cause is not Cause.peer or facts.pair_wakes_today < limits.wakes_per_pair:
        return None
    return refuse(
        "wakes_per_pair",
        f"{wake.sender} and {wake.agent} woke each other {facts.pair_wakes_today} times today, "
        f"the limit is {limits.wakes_per_pair}",
        until=next_day(facts.now, ZoneInfo(facts.timezone)),
        used=facts.pair_wakes_today,
        limit=limits.wakes_per_pair,
    )


def chain(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if wake.cause is not Cause.peer or wake.depth <= limits.chain:
        return None
    return refuse(
        "chain",
        f"this wake is {wake.depth} wakes away from its root, the limit is {limits.chain}",
        depth=wake.depth,
        limit=limits.chain,
    )


def minutes_per_day(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    always = wake.cause in (Cause.peer, Cause.news)
    declared = wake.cause in (Cause.timer, Cause.task) and limits.minutes_declared
    if not (always or declared) or facts.seconds_today < limits.minutes_per_day * 60:
        return None
    reason = f"ran {facts.seconds_today / 60:.1f} minutes today, the limit is {limits.minutes_per_day:g}"
    numbers = {"minutes": round(facts.seconds_today / 60, 1), "limit": limits.minutes_per_day}
    if wake.cause is Cause.peer:
        until = next_day(facts.now, ZoneInfo(facts.timezone))
        return refuse("minutes_per_day", reason, until=until, **numbers)
    return defer("minutes_per_day", reason, until=morning_after(wake, facts), **numbers)


def spend(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    need = facts.reserve
    if wake.cause is Cause.operator or need is None:
        return None
    checks = (
        ("usd", facts.spent.usd, need.usd, limits.usd_per_day),
        ("tokens", facts.spent.tokens, need.tokens, limits.tokens_per_day),
        ("fleet_usd", facts.fleet_spent.usd, need.usd, limits.fleet_usd_per_day),
        ("fleet_tokens", facts.fleet_spent.tokens, need.tokens, limits.fleet_tokens_per_day),
    )
    for unit, spent, reserve, limit in checks:
        if limit is not None and spent + reserve > limit:
            told = [amount_in_words(unit, amount) for amount in (spent, reserve, limit)]
            return defer(
                "spend",
                f"{told[0]} spent or reserved today and {told[1]} needed, the limit is {told[2]}{_whose(unit)}",
                until=morning_after(wake, facts, limits.fleet_timezone if unit.startswith("fleet") else None),
                unit=unit,
                spent=spent,
                reserve=reserve,
                limit=limit,
            )
    return None


def amount_in_words(unit: str, amount: int) -> str:
    return f"${amount / 1_000_000:.2f}" if unit.endswith("usd") else f"{amount} tokens"


def _whose(unit: str) -> str:
    return " for the fleet" if unit.startswith("fleet") else ""


def burst(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if wake.cause not in (Cause.timer, Cause.peer, Cause.news) or facts.burst_starts < limits.burst:
        return None
    until = facts.now + limits.burst_pause
    minutes = limits.burst_window.total_seconds() / 60
    reason = f"{facts.burst_starts} starts in {minutes:g} minutes"
    scope = agent_scope(wake.agent or "")
    trip = Pause(scope=scope, owner="burst", reason=reason, since=facts.now, until=until)
    numbers: dict[str, float | str] = {"starts": facts.burst_starts, "limit": limits.burst}
    return Verdict(kind=VerdictKind.defer, guard="burst", reason=reason, numbers=numbers, until=until, trip=trip)


def state_gate(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if wake.cause is not Cause.timer or facts.gate_opens_at is None:
        return None
    reason = f"the gate of {facts.gate_state} opens at {facts.gate_opens_at.isoformat()}"
    return defer("state_gate", reason, until=facts.gate_opens_at, state=facts.gate_state or "")


def busy(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    if facts.open_run is None:
        return None
    return defer("busy", f"{wake.agent} is in run {facts.open_run}", run=facts.open_run)


def slots(wake: Wake, facts: Facts, limits: Limits) -> Verdict | None:
    limit = limits.sessions if wake.pool is Pool.sessions else limits.workers
    if facts.slots_taken < limit:
        return None
    reason = f"{facts.slots_taken} of {limit} {wake.pool} are taken or waited for"
    return defer("slots", reason, pool=wake.pool.value, taken=facts.slots_taken, limit=limit)


@dataclass(frozen=True, slots=True)
class Guard:
    name: str
    objection: Objection


GUARDS: tuple[Guard, ...] = tuple(
    Guard(objection.__name__, objection)
    for objection in (
        moot,
        paused,
        quiet_hours,
        wakes_per_run,
        cooldown,
        wakes_per_day,
        wakes_per_pair,
        chain,
        minutes_per_day,
        spend,
        burst,
        state_gate,
        busy,
        slots,
    )
)
