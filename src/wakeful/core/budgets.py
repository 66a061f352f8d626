"""Money is reserved before a run starts and settled when it ends.

Laws:
- The reservation is a high quantile of the agent's own past runs, so that runs under way together cannot
  jointly overshoot; without a past it is the declared RESERVE, else a tenth of the budget. It is never more than the
  whole of a budget, or one dear run would keep the agent from ever running again.
- Unknown cost is never zero: a run that does not report its usage settles at its reservation, flagged.
"""

from __future__ import annotations

from dataclasses import dataclass

from wakeful.core.agents import Limits
from wakeful.core.guards import amount_in_words
from wakeful.core.standing import Spend

# How many past runs an agent's reservation is drawn from, and which of them it is.
MEMORY = 20
QUANTILE = 0.9


def quantile(values: tuple[int, ...], share: float = QUANTILE) -> int:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    index = -(-len(ordered) * share // 1)
    return ordered[max(int(index) - 1, 0)]


def _reserve_one(past: tuple[int, ...], declared: int | None, budgets: tuple[int | None, ...]) -> int:
    bounds = [budget for budget in budgets if budget is not None]
    if not bounds:
        return 0
    unproven = declared if declared is not None else -(-min(bounds) // 10)
    wanted = quantile(past) if past else unproven
    # Where there is a budget nothing is free, or a used-up one would stop nobody.
    return max(min(wanted, *bounds), 1)


def reserve(costs: tuple[Spend, ...], limits: Limits) -> Spend:
    """What a run must be able to afford before it starts; nothing where nothing is limited."""
    usd_budgets = (limits.usd_per_day, limits.fleet_usd_per_day)
    token_budgets = (limits.tokens_per_day, limits.fleet_tokens_per_day)
    usd = _reserve_one(tuple(cost.usd for cost in costs), limits.reserve_usd, usd_budgets)
    tokens = _reserve_one(tuple(cost.tokens for cost in costs), limits.reserve_tokens, token_budgets)
    return Spend(usd=usd, tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a run is charged in the end; `estimated` when it did not say what it used."""

    spend: Spend
    estimated: bool


def settle_spend(reserved: Spend, reported: Spend | None) -> Bill:
    if reported is None:
        return Bill(spend=reserved, estimated=True)
    # Tokens without dollars, or the other way round: the unit that was not told costs what was reserved for it.
    usd = reported.usd or (reserved.usd if reported.tokens else 0)
    tokens = reported.tokens or (reserved.tokens if reported.usd else 0)
    billed = Spend(usd=usd, tokens=tokens)
    return Bill(spend=billed, estimated=billed != reported)


def over_limit(used: Spend, limits: Limits) -> str | None:
    """What is to be said of a run that used more than one run may."""
    for unit, amount, limit in (
        ("usd", used.usd, limits.usd_per_run),
        ("tokens", used.tokens, limits.tokens_per_run),
    ):
        if limit is not None and amount > limit:
            return f"it used {amount_in_words(unit, amount)}, a run may use {amount_in_words(unit, limit)}"
    return None


def remember(costs: tuple[Spend, ...], bill: Bill) -> tuple[Spend, ...]:
    """An estimate is not a memory: it would feed on itself."""
    return costs if bill.estimated else (*costs, bill.spend)[-MEMORY:]
