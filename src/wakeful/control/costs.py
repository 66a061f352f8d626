"""What days have cost, of the fleet and of each agent.

Law: the sums are those that the guards hold against the budgets, what is set aside for open runs included. A day is the
agent's own; the fleet's is the fleet's. Today is the fleet's, and of one agent its own: that may be tomorrow already.
Replicas spend together.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.control.base import Base, bounded, find
from wakeful.control.callers import Caller
from wakeful.control.rows import MILLION, Row
from wakeful.core.agents import Limits
from wakeful.core.past import agent_total
from wakeful.core.wakes import FLEET
from wakeful.core.windows import day_of
from wakeful.store.protocol import Store, Totals

MOST_DAYS = 366


class Costs(Base):
    async def costs(self, caller: Caller, *, days: int = 14, agent: str | None = None) -> Row:
        """What each of the last days has cost. Of the fleet, and of each agent that has spent anything; or of one."""
        most, now = bounded(days, MOST_DAYS), self.clock()
        return await self.access.read(lambda store: _costs(store, agent, most, now))


def _costs(store: Store, name: str | None, most: int, now: datetime) -> Row:
    agents = store.agents() if name is None else [row.agent for row in find(store, name).agents]
    limits = agents[0].limits if agents else Limits()
    zone = limits.fleet_timezone if name is None else agents[0].timezone
    today = date.fromisoformat(day_of(now, ZoneInfo(zone)))
    days = [(today - timedelta(days=back)).isoformat() for back in reversed(range(most))]
    addresses = dict.fromkeys(agent.address for agent in agents)
    scopes = [FLEET, *map(agent_total, addresses)]
    found: dict[str, dict[str, Totals]] = {}
    for total in store.totals(scopes, days[0], days[-1]):
        found.setdefault(total.scope, {})[total.day] = total
    told = [{"agent": address, **_spent(found.get(agent_total(address), {}), days)} for address in addresses]
    usd, tokens = limits.fleet_usd_per_day, limits.fleet_tokens_per_day
    return {
        "days": days,
        "fleet": {
            **_spent(found.get(FLEET, {}), days),
            "of_usd": None if usd is None else usd / MILLION,
            "of_tokens": tokens,
        },
        "agents": [row for row in told if name is not None or any(row["usd"]) or any(row["tokens"])],
    }


def _spent(totals: dict[str, Totals], days: Sequence[str]) -> Row:
    found = [totals.get(day) for day in days]
    return {
        "usd": [each.usd / MILLION if each else 0.0 for each in found],
        "tokens": [each.tokens if each else 0 for each in found],
    }
