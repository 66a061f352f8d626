"""An item: a message or a task, addressed to an agent or a role.

Laws:
- An item is unshown while `fingerprint != shown`; `shown` moves only with the outcome of a run that saw it.
- An item rings as peer, news or operator, or not at all; one generation of it asks for one wake.
- A mirrored item (a file, an entry of a list) closes when its source no longer has it, never by a run. A lasting one
  that comes back as it was opens again, and rings only if nobody has answered it.
- A task's terminal states are immutable; a dead one may be taken up again, with its history.
- Priority is a head start: a task stands in its queue as if it had come so much earlier, so nothing starves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from wakeful.core.errors import Mistake


class Kind(StrEnum):
    message = "message"
    task = "task"


class Origin(StrEnum):
    external = "external"
    agent = "agent"
    operator = "operator"


class Priority(StrEnum):
    low = "low"
    normal = "normal"
    high = "high"
    urgent = "urgent"


PRIORITY_RANKS = {Priority.low: 0, Priority.normal: 1, Priority.high: 2, Priority.urgent: 3}


class MessageType(StrEnum):
    info = "info"
    review_request = "review_request"
    help_request = "help_request"
    unblock = "unblock"
    work_assignment = "work_assignment"


class Ring(StrEnum):
    silent = "silent"
    news = "news"
    peer = "peer"
    operator = "operator"


class State(StrEnum):
    """Messages and mirrored items are open or closed; tasks have the whole set but open and closed."""

    open = "open"
    closed = "closed"
    pending = "pending"
    in_progress = "in_progress"
    failed = "failed"
    blocked = "blocked"
    completed = "completed"
    cancelled = "cancelled"
    dead_letter = "dead_letter"


TERMINAL = frozenset({State.closed, State.completed, State.cancelled, State.dead_letter})


# What each rank of priority is worth: a task that has waited so much longer is done before one of the next rank.
HEAD_START = timedelta(hours=1)


def place(priority: Priority, since: datetime) -> datetime:
    """Where a task stands in its queue, the earliest first; `since` is when it could first have begun."""
    return since - HEAD_START * PRIORITY_RANKS[priority]


def read_priority(text: str) -> Priority:
    """`critical` is what other systems call urgent."""
    try:
        return Priority("urgent" if text == "critical" else text)
    except ValueError:
        raise Mistake(f"unknown priority {text!r}", f"use one of {', '.join(Priority)}") from None


def ring_of(origin: Origin, priority: Priority) -> Ring:
    """High and urgent messages ask for a wake by themselves; the rest cost nothing until the next run."""
    if PRIORITY_RANKS[priority] < PRIORITY_RANKS[Priority.high]:
        return Ring.silent
    return {Origin.agent: Ring.peer, Origin.operator: Ring.operator, Origin.external: Ring.news}[origin]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Of a task that comes from another queue: how it stood there. A live one is pending here, with its attempts."""

    state: State
    attempts: int = 0
    error: str | None = None
    result: str | None = None
    created_at: datetime | None = None
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """What is handed to the store to be recorded; `dedupe` is the caller's idempotency key."""

    kind: Kind
    agent: str | None = None
    role: str | None = None
    sender: str | None = None
    origin: Origin = Origin.external
    subject: str = ""
    body: str = ""
    type: MessageType = MessageType.info
    priority: Priority = Priority.normal
    ring: Ring = Ring.silent
    dedupe: str | None = None
    source: str | None = None
    key: str | None = None
    not_before: datetime | None = None
    depends_on: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    max_retries: int | None = None
    reply_to: int | None = None
    by_run: int | None = None
    # A JSON object of the sender's own, kept as it was written.
    metadata: str = "{}"
    # What a task is about, as JSON; None where there is only the text.
    payload: str | None = None
    # How long one attempt may take; None is the agent's own limit.
    timeout: timedelta | None = None
    # Idempotency keys of tasks that must be completed first: of this batch, or recorded before.
    needs: tuple[str, ...] = ()
    # What became of a task elsewhere, before it was handed to us.
    past: Past | None = None
    # The key alone says which one it is: whatever came first under it stands, also where this one differs.
    once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item as the store keeps it."""

    id: int
    kind: Kind
    state: State
    agent: str | None
    role: str | None
    sender: str | None
    origin: Origin
    subject: str
    body: str
    type: MessageType
    priority: Priority
    ring: Ring
    fingerprint: str
    shown: str | None
    unanswered: int
    attempts: int
    max_retries: int | None
    key: str | None
    source: str | None
    external_id: str | None
    not_before: datetime | None
    result: str | None
    error: str | None
    created_at: datetime
    closed_at: datetime | None
    metadata: str = "{}"
    reply_to: int | None = None
    # The first message of the conversation: itself, unless it answers another.
    thread: int | None = None
    # The run that sent it.
    by_run: int | None = None
    payload: str | None = None
    timeout: timedelta | None = None
    tags: tuple[str, ...] = ()
    # The idempotency key that it was recorded under, as the store has it.
    dedupe: str | None = None
    # How many of the tasks that it depends on are not completed.
    waits_for: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One pending thing of a mirrored list, as its source sees it now."""

    external_id: str
    fingerprint: str
    subject: str = ""
    body: str = ""
    not_before: datetime | None = None
    # Its fingerprint is of it alone and of one moment: what comes back with the same one was never really gone.
    lasting: bool = False
