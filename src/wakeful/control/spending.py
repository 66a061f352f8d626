"""What was spent today, and of how much.

Law: the numbers are those that the guard `spend` compares, and so hold what is set aside for runs under way. A day is
the agent's own, of the fleet's money the fleet's.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from wakeful.control.rows import MILLION, Row, usage
from wakeful.core.agents import Limits
from wakeful.core.standing import Spend
from wakeful.core.wakes import FLEET, Cause, Subject, Wake
from wakeful.core.windows import day_of
from wakeful.store.protocol import AgentRow, Store


def spent_today(store: Store, row: AgentRow, now: datetime) -> Row:
    wake = Wake(agent=row.agent.name, cause=Cause.timer, subject=Subject.beat, requested_at=now)
    why = store.why(wake, now)
    return _row(why.facts.spent, why.limits.usd_per_day, why.limits.tokens_per_day)


def fleet_spent(store: Store, limits: Limits, now: datetime) -> Row | None:
    """None where the fleet has no budget."""
    if limits.fleet_usd_per_day is None and limits.fleet_tokens_per_day is None:
        return None
    day = day_of(now, ZoneInfo(limits.fleet_timezone))
    spent = Spend(usd=store.total(FLEET, day, "usd"), tokens=store.total(FLEET, day, "tokens"))
    return _row(spent, limits.fleet_usd_per_day, limits.fleet_tokens_per_day)


def _row(spent: Spend, usd: int | None, tokens: int | None) -> Row:
    return {**usage(spent), "of_usd": None if usd is None else usd / MILLION, "of_tokens": tokens}
