"""Work that may take long, beside the event loop, in a thread of its own.

Laws:
- A thread for each piece of work, and none that waits for more: one that hangs in the kernel (a dead mount, a resolver)
  holds up no other source, and not our own end.
- Whoever no longer waits for the work aborts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Thread
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
U = TypeVar("U")
Made = TypeVar("Made", covariant=True)

THREAD = "wakeful source"
# Seconds that aborted work is given to be gone.
GOING = 2.0


class Unreadable(Exception):
    """What was to be read could not be; the text says why, to a person."""


class Work(Protocol[Made]):
    def do(self) -> Made:
        """In its thread; raises `Unreadable` where that is what it comes to."""

    def abort(self) -> None:
        """From any thread, at any time: `do` is to end as soon as it can."""


class Then(Generic[T, U]):
    """Work, and what is made of it in the same thread."""

    def __init__(self, work: Work[T], make: Callable[[T], U]) -> None:
        self._work = work
        self._make = make

    def do(self) -> U:
        return self._make(self._work.do())

    def abort(self) -> None:
        self._work.abort()


class _Threads(Executor):
    # An executor, because a loop in which time is virtual does the work of executors at once.
    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    made = function(*arguments, **named)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(made)

        Thread(target=work, name=THREAD, daemon=True).start()
        return future


class Aside:
    """One piece of work at a time. While one that was given up still hangs, there is no other."""

    def __init__(self) -> None:
        self._threads = _Threads()
        self._work: Work[Any] | None = None
        self._begun: asyncio.Future[Any] | None = None

    async def do(self, work: Work[T]) -> T:
        if self._begun is not None and not self._begun.done():
            raise Unreadable("an earlier look has not come back yet")
        begun = asyncio.get_running_loop().run_in_executor(self._threads, work.do)
        begun.add_done_callback(_heard)
        self._begun, self._work = begun, work
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError:
            work.abort()
            await asyncio.wait({begun}, timeout=GOING)
            raise
        finally:
            self._work = None

    def abort(self) -> None:
        if self._work is not None:
            self._work.abort()


def _heard(begun: asyncio.Future[Any]) -> None:
    """Whoever asked may be gone; that a given-up piece of work has failed is no news."""
    if not begun.cancelled():
        begun.exception()
