"""What time it is, and how long to wait: the only two questions that the engine asks of the machine's clocks.

Laws:
- `now` is what the calendar says, and may be set forwards or back under us. `elapsed` only grows, also while the
  machine sleeps.
- No wait is longer than `LONGEST`: a clock that was set, or a machine that woke up, is noticed within that time.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

LONGEST = timedelta(seconds=10)
# Both clocks are read one after the other, and the calendar is slewed a little all the time.
SLACK = timedelta(seconds=1)


class Clock(Protocol):
    def now(self) -> datetime: ...
    def elapsed(self) -> float:
        """Seconds since some instant; suspended time counts."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def elapsed(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Jumps:
    """Says whether the calendar moved otherwise than time went by since it was last asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now, self._elapsed = clock.now(), clock.elapsed()

    def since_last(self) -> timedelta:
        """How far the calendar jumped; zero when it did not."""
        now, elapsed = self._clock.now(), self._clock.elapsed()
        jump = (now - self._now) - timedelta(seconds=elapsed - self._elapsed)
        self._now, self._elapsed = now, elapsed
        return jump if abs(jump) > SLACK else timedelta()


class Nudge:
    """A bell that remembers that it rang: whoever waits for it next does not wait."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()

    async def wait(self, longest: timedelta) -> bool:
        """Until it rings, or for so long; whether it rang."""
        if longest > timedelta():
            try:
                async with asyncio.timeout(longest.total_seconds()):
                    await self._event.wait()
            except TimeoutError:
                return False
        rang = self._event.is_set()
        self._event.clear()
        return rang
