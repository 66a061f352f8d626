"""From one row of scalars to the facts that the guards read, and to what an admission will need."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from wakeful.core.agents import Agent, Limits
from wakeful.core.budgets import reserve
from wakeful.core.facts import Facts
from wakeful.core.lifecycle import Kind, Position, gate_opens_at, resolve
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import (
    Cause,
    Pause,
    Pool,
    Subject,
    Wake,
    agent_scope,
    source_scope,
)
from wakeful.core.windows import day_of
from wakeful.store.rows import from_micros, moment_or_none, to_micros, to_standing
from wakeful.store.session import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The facts of one wake for one agent, with what the writer of the verdict needs beside them."""

    agent: Agent
    version: int
    facts: Facts
    standing: Standing
    position: Position
    beat: int
    attempt: int
    day: str
    fleet_day: str
    pair: str


def agent_total(address: str) -> str:
    return f"agent:{address}"


def pair_total(one: str | None, other: str) -> str:
    """The unordered pair: who woke whom does not matter."""
    return "pair:" + "|".join(sorted((one or "", other)))


def days(agent: Agent, now: datetime) -> tuple[str, str]:
    """The agent's calendar day and the fleet's."""
    return day_of(now, ZoneInfo(agent.timezone)), day_of(now, ZoneInfo(agent.limits.fleet_timezone))


def slot_limit(limits: Limits, pool: Pool) -> int:
    return limits.sessions if pool is Pool.sessions else limits.workers


def fact_parameters(wake: Wake, agent: Agent, pair: str, now: datetime) -> Row:
    limits = agent.limits
    day, fleet_day = days(agent, now)
    return {
        "agent": agent.name,
        "address": agent.address,
        "place": wake.agent or wake.role,
        "wake": wake.id,
        "by_run": wake.by_run,
        "task": wake.task,
        "pool": wake.pool.value,
        "requested_at": to_micros(wake.requested_at),
        "slots": slot_limit(limits, wake.pool),
        "burst_since": to_micros(now - limits.burst_window),
        # What lies further ahead was told by a clock that has been set back since, and holds nobody for a day.
        "burst_until": to_micros(now + limits.burst_window),
        "agent_total": agent_total(agent.address),
        "pair_total": pair,
        "day": day,
        "fleet_day": fleet_day,
        "pause_agent": agent_scope(agent.name),
        "pause_address": agent_scope(agent.address),
        "pause_source": source_scope(wake.source) if wake.source else "",
        "now": to_micros(now),
    }


def gather(
    row: Row, asked: Row, wake: Wake, agent: Agent, agent_row: Row, sender: Agent | None, now: datetime
) -> Gathered:
    """From what was found for the parameters that were asked; `sender` is the agent whose run asks."""
    standing = to_standing(row)
    zone = ZoneInfo(agent.timezone)
    position = resolve(standing.position, agent.lifecycle)
    state = agent.lifecycle.state(position.state)
    gate = gate_opens_at(state, standing.ran_at(position.state), now, zone) if state else None
    resting = wake.subject is Subject.beat and state is not None and state.kind is Kind.rem
    day = asked["day"]
    counted = int(wake.charged and row["charged_day"] == day)
    facts = Facts(
        now=now,
        timezone=agent.timezone,
        moot=why_moot(row, wake, standing, agent_row, now),
        pause=_pause(row),
        wakes_by_run=row["wakes_by_run"],
        wakes_allowed=None if sender is None else sender.limits.wakes_per_run,
        last_peer_wake_at=moment_or_none(row["last_peer_wake_at"]),
        # A wake that is tried again was charged before: it does not stand in its own way.
        wakes_today=max((row["wakes_today"] or 0) - counted, 0),
        pair_wakes_today=max((row["pair_wakes_today"] or 0) - counted, 0),
        seconds_today=(row["ms_today"] or 0) / 1000,
        spent=Spend(usd=row["usd_today"] or 0, tokens=row["tokens_today"] or 0),
        fleet_spent=Spend(usd=row["fleet_usd"] or 0, tokens=row["fleet_tokens"] or 0),
        reserve=None if resting else reserve(standing.costs, agent.limits),
        burst_starts=row["burst_starts"],
        gate_opens_at=gate,
        gate_state=position.state if gate else None,
        open_run=row["busy_with"],
        slots_taken=row["slots_open"] + row["slots_ahead"],
    )
    return Gathered(
        agent=agent,
        version=agent_row["version"],
        facts=facts,
        standing=standing,
        position=position,
        beat=row["beat"],
        attempt=_attempt(row, wake, standing),
        day=day,
        fleet_day=asked["fleet_day"],
        pair=asked["pair_total"],
    )


def asks(row: Row) -> tuple[str, int] | None:
    """The agent whose run asks, and its version; None where no run does, or its agent is gone."""
    if row["asks"] is None:
        return None
    name, version = json.loads(row["asks"])
    return str(name), int(version)


def _attempt(row: Row, wake: Wake, standing: Standing) -> int:
    """Which try at its subject this would be."""
    if wake.subject is Subject.task:
        return int(row["task_attempts"] or 0) + 1
    return standing.failure_streak + 1 if wake.subject is Subject.beat else wake.attempt


def _pause(row: Row) -> Pause | None:
    """The widest pause that holds this wake."""
    for column in ("fleet_pause", "agent_pause", "address_pause", "source_pause"):
        if row[column] is not None:
            scope, owner, reason, since, until = json.loads(row[column])
            return Pause(scope=scope, owner=owner, reason=reason, since=from_micros(since), until=moment_or_none(until))
    return None


def why_moot(row: Row, wake: Wake, standing: Standing, agent_row: Row, now: datetime) -> str | None:
    """Why the reason for a wake no longer stands, or None while it does."""
    name = agent_row["name"]
    if agent_row["removed_at"] is not None:
        return f"{name} was removed from the fleet"
    if not agent_row["enabled"]:
        return f"{name} is disabled"
    if wake.cause is Cause.timer and not wake.one_off and (standing.due_at is None or standing.due_at > now):
        return "the beat has been run or moved since"
    rung = wake.cause in (Cause.peer, Cause.news) or (wake.cause is Cause.operator and wake.item is not None)
    if rung and not row["rings"]:
        return "what rang has been dealt with since"
    if wake.subject is Subject.task:
        return _why_task_moot(row, wake, now)
    return None


def _why_task_moot(row: Row, wake: Wake, now: datetime) -> str | None:
    if row["task_state"] not in ("pending", "failed"):
        return f"task {wake.task} is {row['task_state'] or 'gone'}"
    if row["task_waits_for"]:
        return f"task {wake.task} waits for other tasks"
    if row["task_not_before"] is not None and row["task_not_before"] > to_micros(now):
        return f"task {wake.task} is not due yet"
    if row["task_behind"] is not None:
        return f"task {wake.task} comes after task {row['task_behind']} of the same key"
    if row["task_before"] is not None:
        # It has waited, and a better one came meanwhile: that is asked for in its stead.
        return f"task {row['task_before']} stands before task {wake.task}"
    return None
