"""The tasks of a shift, as its worker is told of them.

Law: what goes without saying (`wakeful.run.UNSAID`) is not said. There are many tasks in a shift, and of most of them
it is all the same; whoever asks for the whole gets it filled in.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from wakeful.core.codec import write_time
from wakeful.core.items import Item, MessageType, Origin, Priority
from wakeful.core.orders import Order
from wakeful.core.settlement import INBOX_RETRIES
from wakeful.core.tasks import message_id
from wakeful.core.wakes import Subject
from wakeful.run import UNREAD

TRUST = {Origin.operator: "trusted", Origin.agent: "limited", Origin.external: "untrusted"}


def attempts(order: Order, task: Item | None = None) -> tuple[int, int]:
    """Which try this is, and how many there are before somebody has to look."""
    if task is not None:
        retries = order.agent.retries.max_retries if task.max_retries is None else task.max_retries
        return task.attempts + 1, max(retries, task.attempts) + 1
    most = order.agent.max_failures if order.run.subject is Subject.beat else INBOX_RETRIES + 1
    return order.run.attempt, max(most, order.run.attempt)


def in_short(order: Order) -> list[dict[str, Any]]:
    written: dict[datetime, str] = {}
    told = []
    for task in order.tasks:
        attempt, most = attempts(order, task)
        made = task.created_at
        if made not in written:
            written[made] = write_time(made)
        short: dict[str, Any] = {"id": task.id, "title": task.subject, "created_at": written[made]}
        short["attempt"] = {"number": attempt, "of": most}
        if task.role is not None:
            short["role"] = task.role
        if task.payload is not None:
            short[UNREAD] = task.payload
        if not _plain(task):
            short |= _more(task)
        told.append(short)
    return told


def _plain(task: Item) -> bool:
    said = task.sender or task.body or task.key or task.dedupe or task.source or task.tags or task.error or task.timeout
    usual = task.origin is Origin.external and task.priority is Priority.normal and task.type is MessageType.info
    return usual and not said


def _more(task: Item) -> dict[str, Any]:
    return {
        "from": task.sender,
        "origin": task.origin,
        "trust": TRUST[task.origin],
        "source": task.source,
        "type": task.type,
        "priority": task.priority,
        "key": message_id(task),
        "causal_key": task.key,
        "body": task.body,
        "tags": task.tags,
        "timeout": None if task.timeout is None else task.timeout.total_seconds(),
        "error": task.error,
    }
