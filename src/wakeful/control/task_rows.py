"""What is told of a task: the contract's fields first, then what else is known of it.

Law: a list tells each task without what its attempts printed and what exactly it depends on; one task is told whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wakeful.control.rows import Row, time_or_none
from wakeful.core.codec import write_time
from wakeful.core.durations import format_duration
from wakeful.core.items import Item, NewItem, State
from wakeful.core.tasks import message_id
from wakeful.store.protocol import Attempt, Store


def listed_task(item: Item, attempts: Sequence[Attempt], waiting_for: str | None) -> Row:
    return {**_task_row(item, [_attempt_row(attempt) for attempt in attempts]), "waiting_for": waiting_for}


def whole_task(store: Store, item: Item) -> Row:
    attempts = store.attempts(item.id)
    steps = store.steps(attempts[-1].run, task=item.id) if attempts else {}
    return {
        **_task_row(item, [{**_attempt_row(attempt), "output": attempt.output} for attempt in attempts]),
        "depends_on": [{"id": id, "state": state} for id, state in store.dependencies(item.id)],
        "steps": step_rows(steps),
    }


def added_task(item: NewItem, id: int, now: datetime) -> Row:
    """Of a task that was recorded just now and waits for nobody, the same without looking at it again."""
    return {
        "id": id,
        "key": message_id(item),
        "title": item.subject,
        "state": State.pending.value,
        "agent": item.agent,
        "role": item.role,
        "priority": item.priority.value,
        "attempts": [],
        "result": None,
        "created_at": write_time(now),
        "due_at": time_or_none(item.not_before),
        "from": item.sender,
        "origin": item.origin.value,
        "description": item.body,
        "payload": _payload(item),
        "tags": list(item.tags),
        "timeout": None if item.timeout is None else format_duration(item.timeout),
        # The same as `key`, by the name that other queues have for it.
        "message_id": message_id(item),
        "causal_key": item.key,
        "error": None,
        "max_retries": item.max_retries,
        "waits_for": 0,
        "run_id": item.by_run,
        "source": item.source,
        "closed_at": None,
        "depends_on": [],
        "steps": [],
    }


def _task_row(item: Item, attempts: Sequence[Row]) -> Row:
    return {
        "id": item.id,
        "key": message_id(item),
        "title": item.subject,
        "state": item.state.value,
        "agent": item.agent,
        "role": item.role,
        "priority": item.priority.value,
        "attempts": list(attempts),
        "result": item.result,
        "created_at": write_time(item.created_at),
        "due_at": time_or_none(item.not_before),
        "from": item.sender,
        "origin": item.origin.value,
        "description": item.body,
        "payload": _payload(item),
        "tags": list(item.tags),
        "timeout": None if item.timeout is None else format_duration(item.timeout),
        # The same as `key`, by the name that other queues have for it.
        "message_id": message_id(item),
        "causal_key": item.key,
        "error": item.error,
        "max_retries": item.max_retries,
        # How many of the tasks that it depends on are not completed.
        "waits_for": item.waits_for,
        "run_id": item.by_run,
        "source": item.source,
        "closed_at": time_or_none(item.closed_at),
    }


def _payload(item: Item | NewItem) -> Any:
    return None if item.payload is None else json.loads(item.payload)


def _attempt_row(attempt: Attempt) -> Row:
    took = None if attempt.ended_at is None else (attempt.ended_at - attempt.started_at).total_seconds()
    return {
        "error": attempt.error,
        "exit_code": attempt.exit_code,
        "started_at": write_time(attempt.started_at),
        "ended_at": time_or_none(attempt.ended_at),
        "outcome": attempt.outcome.value if attempt.outcome else None,
        "counted": attempt.counted,
        "run_id": attempt.run,
        "duration_ms": None if took is None else round(took * 1_000),
    }


def step_rows(steps: dict[str, str | None]) -> list[Row]:
    """In the order of their names; what was begun and never recorded has no result."""
    return [
        {"name": name, "recorded": result is not None, "result": None if result is None else json.loads(result)}
        for name, result in sorted(steps.items())
    ]
