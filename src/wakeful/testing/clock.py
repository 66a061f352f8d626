"""Time that stands still until it is told to move.

Laws:
- `elapsed` only grows, and is what waits are measured with; the wall can be set, forward and back.
- No two readings of the wall are the same instant: each act has a time of its own, so that what the store wrote can
  be laid beside what the world saw.
"""

from __future__ import annotations

from datetime import datetime, timedelta

TICK = timedelta(microseconds=1)


class VirtualClock:
    def __init__(self, start: datetime) -> None:
        self.elapsed = timedelta()
        self._offset = start
        self._given: set[datetime] = set()

    @property
    def wall(self) -> datetime:
        """What the wall shows, without the reading being counted as one."""
        return self._offset + self.elapsed

    def now(self) -> datetime:
        """A reading of the wall, later than any before it unless the wall was set back, and never one of them."""
        self.elapsed += TICK
        while self.wall in self._given:
            self.elapsed += TICK
        self._given.add(self.wall)
        return self.wall

    def advance_to(self, elapsed: timedelta) -> None:
        self.elapsed = max(self.elapsed, elapsed)

    def advance(self, by: timedelta) -> None:
        self.advance_to(self.elapsed + by)

    def set_wall(self, by: timedelta) -> None:
        """Somebody sets the clock on the wall; nothing has elapsed."""
        self._offset += by

    def until(self, moment: datetime) -> timedelta:
        """When, in elapsed time, the wall will show that moment if nobody sets it."""
        return max(moment - self._offset, self.elapsed)
