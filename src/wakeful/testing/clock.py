"""What the clocks of a world show.

Laws:
- One clock is right. That of a node is off by its skew, and can be set; what has elapsed is the same for all.
- No two readings of any of them are the same instant: each act has a time of its own, so that what the store wrote can
  be laid beside what the world saw.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from wakeful.testing.loop import VirtualLoop

NOTHING = timedelta()


class TrueClock:
    """The time of a whole world, on a virtual loop; it stands still once the loop has ended."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._loop: VirtualLoop | None = None
        self._stopped = timedelta()
        self._given: set[datetime] = set()

    def begin(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def end(self) -> None:
        self._stopped, self._loop = self.elapsed, None

    @property
    def elapsed(self) -> timedelta:
        return self._stopped if self._loop is None else timedelta(seconds=self._loop.time())

    def seconds(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    @property
    def wall(self) -> datetime:
        return self._start + self.elapsed

    def now(self, skew: timedelta = NOTHING) -> datetime:
        assert self._loop is not None
        while True:
            self._loop.tick()
            shown = self.wall + skew
            if shown not in self._given:
                self._given.add(shown)
                return shown


class SkewedClock:
    """The clock of one node, as its engine reads it; it can be set."""

    def __init__(self, true: TrueClock, skew: timedelta) -> None:
        self._true = true
        self.skew = skew

    def now(self) -> datetime:
        return self._true.now(self.skew)

    @property
    def wall(self) -> datetime:
        return self._true.wall + self.skew

    def elapsed(self) -> float:
        return self._true.seconds()
