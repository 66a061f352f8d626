"""A new item as the row that it becomes.

Laws:
- A message rings or is silent; a task stands in a queue, at its place.
- What a task was elsewhere is kept: what had ended there has ended here; what was alive there waits here, with its
  attempts.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from wakeful.core.errors import Mistake
from wakeful.core.items import HEAD_START, PRIORITY_RANKS, TERMINAL, Kind, NewItem, Past, Ring, State
from wakeful.store.rows import micros_or_none, to_micros
from wakeful.store.session import Row

# How long a silent message to an agent without a timer waits for some other run to show it.
SWEEP = timedelta(minutes=30)

# Queue items have one generation; mirrored ones get the fingerprint of their source.
FIRST_GENERATION = "1"

_MICROSECOND = timedelta(microseconds=1)
_HEAD_START = HEAD_START // _MICROSECOND
_ENDED = TERMINAL - {State.closed}


def role_target(role: str | None) -> str:
    return f"role:{role}"


def message_row(item: NewItem, now: datetime) -> Row:
    if item.agent is None:
        raise Mistake("a message needs an agent", "name the agent that it is for")
    silent = item.ring is Ring.silent
    micros = to_micros(now)
    return {
        "agent": item.agent,
        "sender": item.sender,
        "origin": item.origin.value,
        "subject": item.subject,
        "body": item.body,
        "type": item.type.value,
        "priority": PRIORITY_RANKS[item.priority],
        "ring": item.ring.value,
        "ring_at": None if silent else micros_or_none(item.not_before) or micros,
        "sweep_at": to_micros(now + SWEEP) if silent else None,
        "dedupe": item.dedupe,
        "source": item.source,
        "external_id": None,
        "fingerprint": FIRST_GENERATION,
        "not_before": micros_or_none(item.not_before),
        "tags": json.dumps(item.tags) if item.tags else "[]",
        "reply_to": item.reply_to,
        "by_run": item.by_run,
        "metadata": item.metadata,
        "now": micros,
    }


def task_row(item: NewItem, micros: int, blocked: str | None = None) -> Row:
    """`blocked` says why it may not begin."""
    not_before = None if item.not_before is None else to_micros(item.not_before)
    rank = PRIORITY_RANKS[item.priority]
    row = {
        "state": "pending" if blocked is None else "blocked",
        "agent": item.agent,
        "role": item.role,
        "target": item.agent or role_target(item.role),
        "sender": item.sender,
        "origin": item.origin.value,
        "subject": item.subject,
        "body": item.body,
        "type": item.type.value,
        "priority": rank,
        "dedupe": item.dedupe,
        "source": item.source,
        "max_retries": item.max_retries,
        "key": item.key,
        "not_before": not_before,
        "tags": json.dumps(item.tags) if item.tags else "[]",
        "by_run": item.by_run,
        "metadata": item.metadata,
        "place": (micros if not_before is None or not_before < micros else not_before) - rank * _HEAD_START,
        "timeout": None if item.timeout is None else item.timeout // _MICROSECOND,
        "payload": item.payload,
        "attempts": 0,
        "result": None,
        "error": blocked,
        "created_at": micros,
        "closed_at": None,
    }
    if item.past is not None:
        row.update(_as_it_was(item.past, row, micros))
    return row


def _as_it_was(past: Past, row: Row, now: int) -> Row:
    created = min(micros_or_none(past.created_at) or now, now)
    # It has stood in line since it was added there.
    since = max(created, row["not_before"] or created)
    known = {"attempts": past.attempts, "created_at": created, "place": since - row["priority"] * _HEAD_START}
    if past.state not in _ENDED:
        return {**known, "error": row["error"] or past.error}
    closed = max(created, micros_or_none(past.closed_at) or now)
    ended = {"state": past.state.value, "result": past.result, "error": past.error, "closed_at": closed}
    return {**known, **ended, "not_before": None}


def is_task(item: NewItem) -> bool:
    return item.kind is Kind.task
