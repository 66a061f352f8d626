"""An event loop in which waiting takes no time: the real engine lives through weeks in seconds.

Laws:
- Time moves only when nobody has anything left to do at this instant, and then to the next one that anybody waits for.
- What would be done in a thread is done at once: between two instants nothing happens that was not asked for.
- To wait for what can never come is an error, not a wait.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

TICK = 1e-6


class NothingComes(RuntimeError):
    """Everybody waits, and nothing that they wait for can come."""


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise NothingComes("nothing is scheduled, and somebody waits")
            self.passed += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.passed

    def tick(self) -> None:
        """The least of time goes by."""
        self._virtual.passed += TICK

    def run_in_executor(self, executor: Any, function: Any, *arguments: Any) -> Any:  # type: ignore[override]
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class LoopClock:
    """The engine's clock on a virtual loop; its calendar can be set."""

    def __init__(self, start: datetime) -> None:
        self._wall = start

    def now(self) -> datetime:
        return self._wall + timedelta(seconds=self.elapsed())

    def elapsed(self) -> float:
        return asyncio.get_running_loop().time()

    def set_wall(self, by: timedelta) -> None:
        self._wall += by

    async def until(self, moment: datetime) -> None:
        """Let time go by until the calendar shows that moment."""
        await asyncio.sleep(max((moment - self.now()).total_seconds(), 0.0))


async def passes(seconds: float) -> None:
    """So much time goes by, and costs nothing."""
    await asyncio.sleep(seconds)


def live(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a loop of its own in which time jumps."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())
