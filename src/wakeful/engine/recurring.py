"""Recurring tasks, put into their queues in the transaction of a decision.

Laws:
- A loop that has nothing else to decide woke up for this, or for something like it: then it is looked at once.
- A loop that always has something to decide looks once a second: a busy fleet starves no schedule, and pays nothing
  for those that are not due. One that waits for a check reads as often, and writes only what recurs.
- Whether an instant has had its task is for the store to say: several nodes may look at once.
"""

from __future__ import annotations

from datetime import datetime

from wakeful.engine.clock import Clock
from wakeful.store.protocol import Store

# Seconds between two looks of a loop that has other things to do.
BESIDES = 1.0


class Recurring:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked_at = self._asked_at = float("-inf")

    def asks(self) -> bool:
        """Whether it is time to read what is overdue; who is told so reads it."""
        elapsed = self._clock.elapsed()
        if elapsed - max(self._looked_at, self._asked_at) < BESIDES:
            return False
        self._asked_at = elapsed
        return True

    def overdue(self, store: Store, now: datetime) -> bool:
        return any(at <= now for _, at in store.recurrences())

    def put(self, store: Store, now: datetime, *, idle: bool) -> None:
        elapsed = self._clock.elapsed()
        if idle or elapsed - self._looked_at >= BESIDES:
            self._looked_at = elapsed
            store.recur(now)
