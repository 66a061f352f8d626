"""What a span of a run is called, belongs to and says: one for each run, in the words of OpenTelemetry's `gen_ai`.

Laws:
- All that came of one root is one trace, and the parent of a run is the run that woke it.
- The ids follow from the store, the root and the run alone. So a run can be told its own before there is a span, an
  engine that restarts goes on where another was, and no node need ask another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from wakeful.core.budgets import Bill
from wakeful.core.codec import decode
from wakeful.core.orders import Order
from wakeful.core.runs import Outcome
from wakeful.store.protocol import RunRow, WakeRow

MILLION = 1_000_000
_FAILED = (Outcome.failed, Outcome.killed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """`trace`, `id` and `parent` as numbers of 128, 64 and 64 bits; `error` is empty where it ended well."""

    name: str
    trace: int
    id: int
    parent: int | None
    began: datetime
    ended: datetime
    error: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Ids:
    """`identity` is what tells this store from all others."""

    def __init__(self, identity: str) -> None:
        self._identity = identity

    def trace(self, root: int) -> int:
        return self._number(f"wake {root}", 16)

    def span(self, run: int) -> int:
        return self._number(f"run {run}", 8)

    def traceparent(self, order: Order) -> str:
        """What the run is told, so that what it traces itself belongs to it (W3C Trace Context)."""
        root = (order.wake.root if order.wake is not None else None) or order.run.wake
        return f"00-{self.trace(root):032x}-{self.span(order.run.id):016x}-01"

    def _number(self, what: str, size: int) -> int:
        # Zero is no id.
        return int.from_bytes(hashlib.sha256(f"{self._identity} {what}".encode()).digest()[:size], "big") or 1


def span_of(ids: Ids, run: RunRow, wake: WakeRow, told: Mapping[str, Any]) -> Span:
    """`told` is what the event of its end says."""
    asked, ended = wake.wake, run.ended_at or run.admitted_at
    bill = decode(Bill, told["spend"])
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.agent,
        "gen_ai.agent.id": run.agent,
        "gen_ai.agent.version": str(told["version"]),
        "gen_ai.conversation.id": str(asked.root or run.wake),
        "gen_ai.usage.total_tokens": bill.spend.tokens,
        "gen_ai.usage.cost": bill.spend.usd / MILLION,
        "wakeful.usage.estimated": bill.estimated,
        "wakeful.run.id": run.id,
        "wakeful.wake.id": run.wake,
        "wakeful.cause": run.cause.value,
        "wakeful.subject": run.subject.value,
        "wakeful.outcome": told["outcome"],
        "wakeful.state": told["position"][0],
        "wakeful.attempt": run.attempt,
        "wakeful.node": run.node or "",
    }
    if run.tasks:
        attributes["wakeful.task.ids"] = list(run.tasks)
    if asked.sender:
        attributes["wakeful.sender"] = asked.sender
    failed = told["outcome"] in _FAILED
    if failed:
        attributes["error.type"] = told["outcome"]
    return Span(
        name=f"invoke_agent {run.agent}",
        trace=ids.trace(asked.root or run.wake),
        id=ids.span(run.id),
        parent=None if asked.by_run is None else ids.span(asked.by_run),
        began=run.started_at or run.admitted_at,
        ended=ended,
        error=(told["reason"] or told["outcome"]) if failed else "",
        attributes=attributes,
    )
