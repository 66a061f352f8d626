"""What was used today, and of how much.

Laws:
- The numbers are those that the guards compare, and so hold what is set aside for runs under way. A day is the agent's
  own, of the fleet's money the fleet's. Replicas share what is used behind their address.
- Of many agents it is one read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from wakeful.control.rows import MILLION, Row, usage
from wakeful.core.agents import Limits
from wakeful.core.past import agent_total
from wakeful.core.standing import Spend
from wakeful.core.wakes import FLEET, Cause, Subject, Wake
from wakeful.core.windows import day_of
from wakeful.store.protocol import AgentRow, Store, Totals


def spent_today(store: Store, row: AgentRow, now: datetime) -> Row:
    wake = Wake(agent=row.agent.name, cause=Cause.timer, subject=Subject.beat, requested_at=now)
    why = store.why(wake, now)
    return _row(why.facts.spent, why.limits.usd_per_day, why.limits.tokens_per_day)


def fleet_spent(store: Store, limits: Limits, now: datetime) -> Row:
    """`limits` are those of any agent: what holds for the fleet stands in each."""
    day = day_of(now, ZoneInfo(limits.fleet_timezone))
    spent = Spend(usd=store.total(FLEET, day, "usd"), tokens=store.total(FLEET, day, "tokens"))
    return _row(spent, limits.fleet_usd_per_day, limits.fleet_tokens_per_day)


def used_today(store: Store, rows: Sequence[AgentRow], now: datetime) -> dict[str, Row]:
    """By agent: wakes, minutes, dollars and tokens, each with its limit; null where there is none."""
    if not rows:
        return {}
    days = {zone: day_of(now, ZoneInfo(zone)) for zone in {row.agent.timezone for row in rows}}
    scopes = [agent_total(row.agent.address) for row in rows]
    found = {(each.scope, each.day): each for each in store.totals(scopes, min(days.values()), max(days.values()))}
    return {
        row.agent.name: _used(found.get((scope, days[row.agent.timezone])), row.agent.limits)
        for scope, row in zip(scopes, rows, strict=True)
    }


def _used(total: Totals | None, limits: Limits) -> Row:
    wakes, ms, usd, tokens = (total.wakes, total.ms, total.usd, total.tokens) if total else (0, 0, 0, 0)
    of_usd = None if limits.usd_per_day is None else limits.usd_per_day / MILLION
    return {
        "wakes": {"used": wakes, "of": limits.wakes_per_day},
        "minutes": {"used": round(ms / 60_000, 1), "of": limits.minutes_per_day},
        "usd": {"used": usd / MILLION, "of": of_usd},
        "tokens": {"used": tokens, "of": limits.tokens_per_day},
    }


def _row(spent: Spend, usd: int | None, tokens: int | None) -> Row:
    return {**usage(spent), "of_usd": None if usd is None else usd / MILLION, "of_tokens": tokens}
