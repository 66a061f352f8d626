"""A new item as the row that it becomes.

Laws:
- A message rings or is silent; a task stands in a queue, at its place.
- What a task was elsewhere is kept: what had ended there has ended here; what was alive there waits here, with its
  attempts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from wakeful.core.errors import Mistake
from wakeful.core.items import (
    PRIORITY_RANKS,
    TERMINAL,
    Kind,
    MessageType,
    NewItem,
    Origin,
    Past,
    Priority,
    Ring,
    State,
    place,
)
from wakeful.store.rows import from_micros, micros_or_none, to_micros
from wakeful.store.session import Row

# How long a silent message to an agent without a timer waits for some other run to show it.
SWEEP = timedelta(minutes=30)

# Queue items have one generation; mirrored ones get the fingerprint of their source.
FIRST_GENERATION = "1"

_MICROSECOND = timedelta(microseconds=1)
_INSTANT = datetime(2000, 1, 1, tzinfo=UTC)
# What no run adds.
_TOP: tuple[int, str | None] = (0, None)
_ENDED = TERMINAL - {State.closed}
# What a name of a closed vocabulary is written as: to ask it for its value takes several times longer.
_WORDS: Mapping[str, str] = {name: name.value for names in (Origin, MessageType, Ring) for name in names}
# How far before its instant a task of that priority stands, in microseconds.
_HEAD_STARTS = {priority: to_micros(_INSTANT) - to_micros(place(priority, _INSTANT)) for priority in Priority}


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
        "origin": _WORDS[item.origin],
        "subject": item.subject,
        "body": item.body,
        "type": _WORDS[item.type],
        "priority": PRIORITY_RANKS[item.priority],
        "ring": _WORDS[item.ring],
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


def task_rows(items: Sequence[NewItem], now: datetime, depths: Mapping[int, tuple[int, str | None]]) -> list[Row]:
    """`depths` has the runs that add some of these: how deep those stand, and why they may not begin, if so."""
    micros = to_micros(now)
    places = {priority: micros - worth for priority, worth in _HEAD_STARTS.items()}
    keys: set[str] = set()
    rows = []
    for item in items:
        depth, blocked = _TOP if item.by_run is None else depths.get(item.by_run, _TOP)
        rows.append(_task_row(item, micros, places, depth, blocked))
        if item.key is not None:
            # Behind one of the same batch; whether it is behind others is for the store to see.
            rows[-1]["behind"] = int(item.key in keys)
            keys.add(item.key)
    return rows


def _task_row(item: NewItem, micros: int, places: Mapping[Priority, int], depth: int, blocked: str | None) -> Row:
    row: Row = {
        "state": "pending" if blocked is None else "blocked",
        "agent": item.agent,
        "role": item.role,
        "target": item.agent or role_target(item.role),
        "sender": item.sender,
        "origin": _WORDS[item.origin],
        "subject": item.subject,
        "body": item.body,
        "type": _WORDS[item.type],
        "priority": PRIORITY_RANKS[item.priority],
        "dedupe": item.dedupe,
        "source": item.source,
        "max_retries": item.max_retries,
        "key": item.key,
        "not_before": None,
        "tags": json.dumps(item.tags) if item.tags else "[]",
        "by_run": item.by_run,
        "metadata": item.metadata,
        "place": places[item.priority],
        "timeout": None if item.timeout is None else item.timeout // _MICROSECOND,
        "payload": item.payload,
        "attempts": 0,
        "result": None,
        "error": blocked,
        "created_at": micros,
        "closed_at": None,
        "depth": depth,
        "behind": 0,
    }
    if item.not_before is not None:
        row["not_before"] = to_micros(item.not_before)
        row["place"] = max(row["place"], to_micros(place(item.priority, item.not_before)))
    if item.past is not None:
        row.update(_as_it_was(item, item.past, row, from_micros(micros)))
    return row


def _as_it_was(item: NewItem, past: Past, row: Row, now: datetime) -> Row:
    began = min(past.created_at or now, now)
    created = to_micros(began)
    # It has stood in line since it was added there.
    stands = to_micros(place(item.priority, max(began, item.not_before or began)))
    known = {"attempts": past.attempts, "created_at": created, "place": stands}
    if past.state not in _ENDED:
        return {**known, "error": row["error"] or past.error}
    closed = max(created, to_micros(past.closed_at or now))
    ended = {"state": past.state.value, "result": past.result, "error": past.error, "closed_at": closed}
    return {**known, **ended, "not_before": None}


def is_task(item: NewItem) -> bool:
    return item.kind is Kind.task
