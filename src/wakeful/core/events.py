"""The append-only events: one row for every notable act, written in the transaction of what it tells.

Streams, `why --at`, the audit and every recount read these, never the counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EventKind(StrEnum):
    booted = "booted"
    declared = "declared"
    removed = "removed"
    set = "set"
    paused = "paused"
    resumed = "resumed"
    asked = "asked"
    decided = "decided"
    started = "started"
    stopped = "stopped"
    voided = "voided"
    ended = "ended"
    task_taken = "task_taken"
    task_ended = "task_ended"
    task_changed = "task_changed"
    passed_over = "passed_over"
    marked_read = "marked_read"
    snoozed = "snoozed"
    outage = "outage"
    restored = "restored"
    gone = "gone"
    returned = "returned"
    acted = "acted"
    denied = "denied"
    tainted = "tainted"
    step_saved = "step_saved"


# What no other row tells: what the operator did, what nobody was let do, and that a run has read what is from outside.
NOTES = frozenset({EventKind.acted, EventKind.denied, EventKind.tainted})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`fields` carries the row's own names; what an event says can be checked against the row."""

    kind: EventKind
    at: datetime
    id: int = 0
    agent: str | None = None
    wake: int | None = None
    run: int | None = None
    item: int | None = None
    fields: dict[str, object] | None = None
