"""What is told of a stored thing, in the words and the order of the contract; more may stand at the end of a row.

Law: a row holds only what JSON holds. Times are RFC 3339 in UTC; money is in dollars; what is not there is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wakeful.core.admission import Opinion
from wakeful.core.agents import Agent
from wakeful.core.codec import decode, write_time
from wakeful.core.durations import format_duration
from wakeful.core.events import Event
from wakeful.core.forecast import Expected
from wakeful.core.items import Item, State
from wakeful.core.lifecycle import SINGLE, Lifecycle, resolve
from wakeful.core.standing import Spend
from wakeful.core.wakes import FLEET, Pause, Verdict, VerdictKind, Wake
from wakeful.store.protocol import AgentRow, NodeRow, RunRow, SourceRow, WakeRow

Row = dict[str, Any]

MILLION = 1_000_000
QUARANTINE = "quarantine"
CHECK = "check"
_NEVER = datetime.max.replace(tzinfo=UTC)

STATES = ("running", "waiting", "idle", "paused", "quarantined", "disabled")

# The verdict that a recorded wake stands under.
VERDICTS = {
    "admitted": VerdictKind.admit,
    "waiting": VerdictKind.defer,
    "joined": VerdictKind.defer,
    "refused": VerdictKind.refuse,
}


def time_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else write_time(moment)


def numbers_of(verdict: Verdict | None) -> Row:
    """The numbers of a verdict; the core counts money in millionths of a dollar."""
    told: Row = dict(verdict.numbers) if verdict else {}
    if not str(told.get("unit", "")).endswith("usd"):
        return told
    return {name: value / MILLION if isinstance(value, (int, float)) else value for name, value in told.items()}


def listing(items: Iterable[Row], next: object = None) -> Row:
    return {"items": list(items), "next": next}


def usage(spend: Spend) -> Row:
    return {"tokens": spend.tokens, "usd": spend.usd / MILLION}


# ---- agents


def agent_state(row: AgentRow, now: datetime) -> str:
    """The strongest of what holds; an agent that is paused may still be in the run that it was in. One that is disabled
    would not run after the fleet's pause either."""
    pauses = held_by(row, now)
    if any(pause.owner == QUARANTINE for pause in pauses):
        return "quarantined"
    if any(row.agent.enabled or pause.scope != FLEET for pause in pauses):
        return "paused"
    if not row.agent.enabled:
        return "disabled"
    if row.run is not None:
        return "running"
    # What its own CHECK keeps back has nothing to do.
    return "waiting" if row.waiting is not None and row.waiting.guard != CHECK else "idle"


def held_by(row: AgentRow, now: datetime) -> list[Pause]:
    """What holds longest first. A pause that has run out holds nobody, also before somebody lifts it."""
    holding = [pause for pause in row.pauses if pause.until is None or pause.until > now]
    return sorted(holding, key=lambda pause: (pause.until or _NEVER, pause.scope != FLEET), reverse=True)


def agent_row(row: AgentRow, now: datetime, sources: Mapping[str, Sequence[SourceRow]]) -> Row:
    """`sources` are those of the whole fleet, by agent or address."""
    agent, standing = row.agent, row.standing
    position = resolve(standing.position, agent.lifecycle)
    state = agent.lifecycle.state(position.state)
    pauses, run = held_by(row, now), row.run
    names = dict.fromkeys((agent.name, agent.address))
    return {
        "name": agent.name,
        "state": agent_state(row, now),
        "position": {"state": position.state, "hits": position.hits, "kind": state.kind.value if state else None},
        "idle_streak": standing.idle_streak,
        "due_at": time_or_none(standing.due_at),
        "run": run.id if run else None,
        "last": {"outcome": standing.last_outcome, "ended_at": time_or_none(standing.last_ended_at)},
        "paused": pause_row(pauses[0]) if pauses else None,
        "node": run.node if run else None,
        "address": agent.address,
        "enabled": agent.enabled,
        "failure_streak": standing.failure_streak,
        "waiting": waiting_row(row.waiting) if row.waiting else None,
        "unread": row.unread,
        "open_tasks": row.open_tasks,
        "cadence": cadence_in_words(agent),
        "overrides": list(row.overrides),
        "run_started_at": write_time(run.started_at or run.admitted_at) if run else None,
        "wall_clock": agent.wall_clock(run.subject).total_seconds() if run else None,
        "sources": [source_row(each) for name in names for each in sources.get(name, ())],
        "day": day_row(agent.lifecycle),
    }


def whole_agent_row(row: AgentRow, now: datetime, sources: Mapping[str, Sequence[SourceRow]]) -> Row:
    """One agent, with what a listing leaves out."""
    agent = row.agent
    return {
        **agent_row(row, now, sources),
        "pauses": [pause_row(pause) for pause in held_by(row, now)],
        "under_way": run_row(row.run) if row.run else None,
        "runner": agent.runner.value if agent.runner else None,
        "definition": agent.definition,
        "roles": list(agent.roles),
        "timezone": agent.timezone,
        "max_failures": agent.max_failures,
        "lifecycle": [
            {
                "state": state.name,
                "kind": state.kind.value,
                "repeat": state.repeat,
                "next": state.next,
                "last_done_at": time_or_none(row.standing.ran_at(state.name)),
            }
            for state in agent.lifecycle.states
        ],
    }


def day_row(lifecycle: Lifecycle) -> list[Row]:
    """The states of its day in their order; an agent that only ever beats has none."""
    if lifecycle == SINGLE:
        return []
    return [{"state": state.name, "kind": state.kind.value, "repeat": state.repeat} for state in lifecycle.states]


def cadence_in_words(agent: Agent) -> str | None:
    cadence = agent.cadence
    if cadence.schedule is not None:
        return f"at {cadence.schedule.expression}"
    if cadence.base is None:
        return None
    return ("continuous, with a breather of " if cadence.continuous else "every ") + format_duration(cadence.base)


def pause_row(pause: Pause) -> Row:
    return {
        "scope": pause.scope,
        "owner": pause.owner,
        "reason": pause.reason,
        "since": write_time(pause.since),
        "until": time_or_none(pause.until),
    }


def source_row(row: SourceRow) -> Row:
    return {
        "source": row.source,
        "agent": row.agent,
        "node": row.node,
        "outage": row.outage,
        "since": time_or_none(row.since),
    }


def chain_row(wake: Wake) -> Row:
    """Where a wake stands in what came of one root."""
    return {"root": wake.root or wake.id, "depth": wake.depth}


def waiting_row(row: WakeRow) -> Row:
    return {
        "wake_id": row.wake.id,
        "cause": row.wake.cause.value,
        "subject": row.wake.subject.value,
        "guard": row.guard,
        "reason": row.reason,
        "next_eligible": time_or_none(row.retry_at),
        "requested_at": write_time(row.wake.requested_at),
    }


# ---- runs


def run_row(row: RunRow) -> Row:
    return {
        "id": row.id,
        "agent": row.agent,
        "cause": row.cause.value,
        "subject": row.subject.value,
        "state": row.state,
        "outcome": row.outcome.value if row.outcome else None,
        "started_at": time_or_none(row.started_at),
        "ended_at": time_or_none(row.ended_at),
        "attempt": row.attempt,
        "epoch": row.epoch,
        "node": row.node,
        "summary": row.summary,
        "usage": usage(row.spend),
        "wake_id": row.wake,
        "task_ids": list(row.tasks),
        "shown": list(row.shown),
        "reason": row.reason,
        "admitted_at": write_time(row.admitted_at),
        # Nobody said what it used: `usage` is what was set aside for it.
        "estimated": row.estimated,
    }


# ---- nodes


def node_row(row: NodeRow, state: str, here: str | None) -> Row:
    return {
        "name": row.name,
        "state": state,
        "url": row.url,
        "since": write_time(row.since),
        "seen_at": write_time(row.seen_at),
        "runs": row.runs,
        "here": row.name == here,
        "left_at": time_or_none(row.left_at),
    }


# ---- messages


def message_row(item: Item, now: datetime, shown_in: int | None = None, chain: Row | None = None) -> Row:
    """`chain` is where the wake of the run stands that sent it."""
    opened = item.state is not State.closed
    snoozed = opened and item.not_before is not None and item.not_before > now
    return {
        "id": item.id,
        "from": item.sender,
        "to": item.agent,
        "subject": item.subject,
        "body": item.body,
        "type": item.type.value,
        "priority": item.priority.value,
        "origin": item.origin.value,
        "state": "open" if opened else "closed",
        "shown_in": shown_in,
        "created_at": write_time(item.created_at),
        "metadata": json.loads(item.metadata),
        "reply_to": item.reply_to,
        "thread": item.thread,
        "run_id": item.by_run,
        "chain": chain,
        "snoozed_until": time_or_none(item.not_before) if snoozed else None,
        # As `unread` of an agent counts it: what a run that failed was shown is put before the next one.
        "unread": opened and not snoozed and (item.shown != item.fingerprint or item.unanswered > 0),
        "unanswered": item.unanswered,
        "source": item.source,
        "closed_at": time_or_none(item.closed_at),
    }


# ---- decisions and events


def decision_row(wake: WakeRow | None, event: Event | None) -> Row:
    """A verdict as it was reached: the event tells it whole, the wake as it stands now."""
    told: Mapping[str, Any] = (event.fields if event else None) or {}
    verdict = verdict_of(wake, event)
    return {
        "wake_id": event.wake if event else wake.wake.id if wake else None,
        "agent": (event.agent if event else None) or (wake.wake.agent if wake else None),
        "cause": told.get("cause") or (wake.wake.cause.value if wake else None),
        "from": told.get("from") or (wake.wake.sender if wake else None),
        "verdict": verdict.kind.value,
        "guard": verdict.guard or None,
        "reason": verdict.reason,
        "numbers": numbers_of(verdict),
        "next_eligible": time_or_none(verdict.until),
        "at": write_time(event.at) if event else write_time(wake.wake.requested_at) if wake else None,
        "run_id": event.run if event else wake.run if wake else None,
        "subject": told.get("subject") or (wake.wake.subject.value if wake else None),
        "joined": told.get("joined") or (wake.joined if wake else None),
        "event_id": event.id if event else None,
    }


def verdict_of(wake: WakeRow | None, event: Event | None) -> Verdict:
    """What joined another wake, or was withdrawn, was never put before the guards: its event has no verdict."""
    told: Mapping[str, Any] = (event.fields if event else None) or {}
    if "verdict" in told:
        return decode(Verdict, told["verdict"])
    if wake is None:
        return Verdict(kind=VerdictKind.refuse, reason="the wake is gone")
    return Verdict(kind=VERDICTS[wake.state], guard=wake.guard, reason=wake.reason, until=wake.retry_at)


def event_row(event: Event) -> Row:
    return {
        "id": event.id,
        "kind": event.kind.value,
        "at": write_time(event.at),
        "agent": event.agent,
        "wake_id": event.wake,
        "run_id": event.run,
        "item_id": event.item,
        "fields": event.fields or {},
    }


def opinion_row(opinion: Opinion) -> Row:
    verdict = opinion.verdict
    return {
        "guard": opinion.guard,
        "verdict": verdict.kind.value if verdict else None,
        "reason": verdict.reason if verdict else "",
        "numbers": numbers_of(verdict),
        "until": time_or_none(verdict.until) if verdict else None,
    }


def expected_row(expected: Expected) -> Row:
    return {
        "at": write_time(expected.at),
        "state": expected.state,
        "hits": expected.hits,
        "kind": expected.kind.value,
        "assumption": expected.assumption,
    }
