"""The shift that a worker has on its hands: what is still to do, until when, and what is told of each task."""

from __future__ import annotations

import json
import time
from typing import Any

from wakeful.runners.lease import Lease, veto
from wakeful.runners.link import PART, SHIFT
from wakeful.runners.record import VERSION, Page, Record, line
from wakeful.runners.whole import now

# In seconds: how long the end of a task may be left unsaid while the next one is under way.
UNSAID = 0.05


class Duty:
    def __init__(self, control: bytes, body: bytes, worker: str) -> None:
        order: dict[str, Any] = json.loads(control)
        self.tasks: list[int | None] = order["tasks"]
        self.todo = list(range(len(self.tasks)))
        self._limit, self._limits = float(order["limit"]), order.get("limits") or {}
        self.grace = float(order["grace"])
        self.patience = float(order["patience"])
        self.output_limit = int(order["output_limit"])
        hidden: list[str] = order.pop("hidden", [])
        self.secrets: list[str] = [*order["secrets"], *hidden]
        # The process that does it is told of its own secrets alone.
        self._parts = (json.dumps(order).encode() if hidden else control, body)
        self.by: str | None = None
        self.taken_back: dict[int, str] = {}
        self.call: dict[str, Any] | None = None
        self.record = Record(order["folder"], order["run"], order["epoch"], self.tasks, worker)
        self._base = now()
        self.lease = Lease(order["folder"], order["leased_until"], order["fence"])

    def claim(self, worker: str) -> bool:
        """Whether the run is ours to begin. One whose lease is over never begins."""
        if self.lease.over():
            veto(self.record.folder)
            return False
        return self.record.claim(worker)

    def message(self) -> bytes:
        """For the process that does what is still to do."""
        self._base = now()
        control, body = self._parts
        todo = b",".join(b"%d" % index for index in self.todo)
        return b"%s%s%s%s%s%s\n" % (SHIFT, todo, PART, control, PART, body)

    def replay(self) -> bytes:
        """What everybody but the newcomer has heard."""
        return self.record.replay({self.tasks[index] for index in self.todo})

    def due(self, page: Page) -> float:
        """When the task at hand must have ended."""
        if not self.todo:
            return float("inf")
        began = page.began(self.todo[0])
        return (began if began > 0 else self._base) + self.limit(self.todo[0])

    def unsaid_at(self, page: Page) -> float:
        """When to look for the end of a task behind which the next has begun: it is told a little later."""
        began = page.began(self.todo[1]) if len(self.todo) > 1 else 0.0
        return began + UNSAID if began > 0 else float("inf")

    def limit(self, index: int) -> float:
        """How long one of its tasks may take, in seconds."""
        return float(self._limits.get(str(self.tasks[index]), self._limit)) if self._limits else self._limit

    def end(self, index: int, content: bytes) -> None:
        """A task has ended."""
        self.todo.remove(index)
        self._base = now()
        if self.tasks[index] is None:
            self.call = json.loads(content)

    def ending(self, index: int, told: dict[str, Any], page: Page, printed: str = "") -> bytes:
        """The line for a task that could not say itself how it ended."""
        began = page.began(index)
        record = {
            "version": VERSION,
            "task": self.tasks[index],
            **told,
            "elapsed": round(now() - began, 6) if began > 0 else 0.0,
            "ended_at": round(time.time(), 3),
        }
        if printed:
            record["output"] = printed
        content = line(record)
        self.end(index, content)
        return content
