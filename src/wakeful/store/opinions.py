"""What was decided on a wake, and the rows that say so."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from wakeful.core.agents import Limits
from wakeful.core.codec import encode
from wakeful.core.facts import Facts
from wakeful.core.standing import NOTHING
from wakeful.core.wakes import Cause, Verdict, VerdictKind, Wake
from wakeful.store.facts import Gathered
from wakeful.store.protocol import Admit
from wakeful.store.rows import micros_or_none, to_micros, wake_parameters
from wakeful.store.session import Row

_STATES = {VerdictKind.admit: "admitted", VerdictKind.defer: "waiting", VerdictKind.refuse: "refused"}


class Opinion:
    """What was decided on a wake, and for whom, before any of it is written."""

    __slots__ = ("admitted", "agent", "charges", "gathered", "refused", "state", "verdict", "wake")

    def __init__(self, wake: Wake, gathered: Gathered | None, verdict: Verdict) -> None:
        self.wake = wake
        self.gathered = gathered
        self.verdict = verdict
        self.agent = gathered.agent.name if gathered else wake.agent
        # Of its wake.
        self.state = _STATES[verdict.kind]
        self.refused = verdict.kind is VerdictKind.refuse
        self.admitted = verdict.kind is VerdictKind.admit and gathered is not None
        self.charges = self.admitted and wake.cause is Cause.peer and not wake.charged


def opinion_on(wake: Wake, gathered: Gathered | None, admit: Admit, now: datetime) -> Opinion:
    named, limits = wake, Limits() if gathered is None else gathered.agent.limits
    facts = Facts(now=now, moot=f"no agent answers to {target_of(wake)}") if gathered is None else gathered.facts
    if gathered is not None and gathered.agent.name != wake.agent:
        named = replace(wake, agent=gathered.agent.name)
    return Opinion(wake, gathered, admit(named, facts, limits))


def counts_money(opinion: Opinion) -> bool:
    """Whether its wake may have waited for money."""
    if opinion.gathered is None:
        return True
    limits = opinion.gathered.agent.limits
    budgets = (limits.usd_per_day, limits.tokens_per_day, limits.fleet_usd_per_day, limits.fleet_tokens_per_day)
    return any(budget is not None for budget in budgets)


def wake_row(
    wake: Wake,
    state: str,
    verdict: Verdict,
    now: datetime,
    *,
    charged: bool = False,
    joined: int | None = None,
    retry: datetime | None = None,
) -> Row:
    at = retry or verdict.until
    return {
        **wake_parameters(wake),
        "state": state,
        "charged": int(charged),
        "joined": joined,
        "guard": verdict.guard or None,
        "verdict": verdict.reason,
        "retry_at": micros_or_none(at) if state == "waiting" else None,
        "decided_at": to_micros(now),
    }


def run_row(id: int, wake: Wake, gathered: Gathered, charged: int, now: datetime) -> Row:
    agent, reserved = gathered.agent, gathered.facts.reserve or NOTHING
    return {
        "agent": agent.name,
        "address": agent.address,
        "wake": id,
        "cause": wake.cause.value,
        "subject": wake.subject.value,
        "pool": wake.pool.value,
        "version": gathered.version,
        "position": gathered.position.state,
        "hits": gathered.position.hits,
        "beat": gathered.beat,
        "attempt": gathered.attempt,
        "charged": charged,
        "pair": gathered.pair,
        "day": gathered.day,
        "fleet_day": gathered.fleet_day,
        "reserved_usd": reserved.usd,
        "reserved_tokens": reserved.tokens,
        "now": to_micros(now),
    }


def traced(wake: Wake, row: Row | None) -> Wake:
    """Root, depth and cost of the chain come from our own rows, never from the caller."""
    if row is None:
        unled = wake.root is None and wake.depth == 0 and wake.lineage_usd == 0
        return wake if unled else replace(wake, root=None, depth=0, lineage_usd=0)
    return replace(wake, root=row["root"] or row["id"], depth=row["depth"] + 1, lineage_usd=row["cost"])


def taken_up(wake: Wake) -> tuple[str, Row] | None:
    """The question whether what gave a wake, as `due` found it, has asked for another one meanwhile."""
    if wake.cause is Cause.timer and not wake.one_off:
        return "asked_standing", {"agent": wake.agent}
    if wake.cause in (Cause.news, Cause.task):
        return "asked_item", {"item": wake.task or wake.item}
    return None


def like(wake: Wake) -> Row:
    """Of those that are alike in this, one waits."""
    return {
        "agent": wake.agent,
        "cause": wake.cause.value,
        "subject": wake.subject.value,
        "task": wake.task,
        "slot": wake.slot,
    }


def asked_fields(wake: Wake, answers: str | None) -> Row:
    return {
        "cause": wake.cause.value,
        "subject": wake.subject.value,
        "from": wake.sender,
        "to": wake.agent if wake.agent != answers else None,
        "role": wake.role,
        "source": wake.source,
        "by_run": wake.by_run,
        "depth": wake.depth or None,
        "slot": wake.slot or None,
        "attempt": wake.attempt if wake.attempt > 1 else None,
        "requested_at": encode(wake.requested_at),
    }


def target_of(wake: Wake) -> str:
    return wake.agent if wake.agent is not None else f"the role {wake.role}"
