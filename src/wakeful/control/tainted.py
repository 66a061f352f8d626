"""What a run may still ask for once it has something from outside before it.

Laws:
- Whoever reads what a stranger wrote may be doing the stranger's will. Such a run keeps the right to wake others, and
  to give them tasks, only where its agent's GRANT says so; what it sends is kept, and rings for nobody.
- It makes no difference how it came to read it: put before it at its start, taken as a task, told by an answer, or
  told of an earlier run that had read it. Of an answer it is written down before the answer is given.
"""

from __future__ import annotations

from datetime import datetime

from wakeful.control.callers import Caller, Forbidden
from wakeful.control.rows import Row
from wakeful.core.events import Event, EventKind
from wakeful.core.items import Origin
from wakeful.store.protocol import Store

WAKE, TASK = "wake", "task"
SILENCED = "this run has read something from outside: the message waits for the next run, and rings for nobody"

_DOING = {WAKE: "wake others", TASK: "give tasks to others"}


def may(store: Store, caller: Caller, right: str) -> bool:
    """Whether a run has that right. The operator always has."""
    if caller.run is None:
        return True
    agent = store.agent(caller.name)
    return (agent is not None and right in agent.grants) or not store.is_tainted(caller.run)


def must_have(store: Store, caller: Caller, right: str) -> None:
    if not may(store, caller, right):
        raise Forbidden(
            f"{caller.name} may not {_DOING[right]} in this run: it has read something from outside",
            f"send a message of normal priority; the operator can allow it with GRANT: {right}",
        )


def from_outside(answer: Row) -> int | None:
    """The first thing from outside that an answer tells: itself, in its list, or what was taken or sent."""
    for row in (answer, answer.get("task"), answer.get("message"), *(answer.get("items") or ())):
        if isinstance(row, dict) and row.get("origin") == Origin.external:
            return int(row["id"])
    return None


def whose_briefing(answer: Row) -> int | None:
    """The run that an answer tells of as a whole: what that one had read from outside is then read by whoever asks."""
    return int(answer["id"]) if "briefing" in answer else None


def taint(store: Store, caller: Caller, operation: str, now: datetime, *, item: int | None, run: int | None) -> None:
    """By that item, or else by what that other run was told."""
    fields: dict[str, object] = {"operation": operation} | ({"of_run": run} if item is None else {})
    store.note([Event(kind=EventKind.tainted, at=now, agent=caller.name, run=caller.run, item=item, fields=fields)])
