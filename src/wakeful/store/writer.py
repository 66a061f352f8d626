"""Access by group commit: one thread writes, and whoever asks while it commits shares the next commit.

Laws:
- A call is answered only after the commit that holds it: durable first, then told.
- Each call is a part of its own: one that fails is rolled back alone and harms nobody else in its group.
- A database in trouble fails the calls that met the trouble; the writer outlives it.
- The group is a matter of speed only. The same store, called inline, does the same thing (see `inline`).
- Whoever watches is told of a group in which something was committed that is not quiet.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from wakeful.store.session import CALL
from wakeful.store.store import SqlStore

T = TypeVar("T")

# A group is bounded, so that the first in it need not wait for a flood behind it.
MOST_IN_GROUP = 512

Verb = Callable[[SqlStore], Any]
Answer = tuple[Any, BaseException | None]


class _Call:
    __slots__ = ("asked", "future", "loop", "quiet", "verb")

    def __init__(self, verb: Verb, future: Any, loop: asyncio.AbstractEventLoop | None, quiet: bool) -> None:
        self.verb = verb
        self.future = future
        self.loop = loop
        self.quiet = quiet
        self.asked = time.monotonic()


class _Watcher:
    """Somebody on an event loop who wants to hear of commits; those it has not heard of yet are told as one."""

    __slots__ = ("loop", "pending", "told")

    def __init__(self, told: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        self.told = told
        self.loop = loop
        self.pending = False

    def tell(self) -> bool:
        """From any thread; False when there is no loop left to tell."""
        if not self.pending:
            self.pending = True
            try:
                self.loop.call_soon_threadsafe(self._hear)
            except RuntimeError:
                return False
        return True

    def _hear(self) -> None:
        # Lowered first: a commit that comes while we tell is told again.
        self.pending = False
        self.told()


class Writer:
    """The one writing thread of a store. `write` and `read` from coroutines, `submit` from threads."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self._watchers: list[_Watcher] = []
        self._queue: SimpleQueue[_Call | None] = SimpleQueue()
        self._door = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="wakeful-writer", daemon=True)
        self._thread.start()

    def submit(self, verb: Callable[[SqlStore], T], *, quiet: bool = False) -> Future[T]:
        """Queue a call of the store; the future is set after its commit."""
        future: Future[T] = Future()
        self._put(_Call(verb, future, None, quiet))
        return future

    async def write(self, verb: Callable[[SqlStore], T], *, quiet: bool = False) -> T:
        """Await a call of the store, committed; nobody is told of a `quiet` one."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._put(_Call(verb, future, loop, quiet))
        return await future

    async def read(self, verb: Callable[[SqlStore], T]) -> T:
        """Read on the caller's own thread: it never waits for the writer."""
        return verb(self.store)

    def watch(self, told: Callable[[], None]) -> None:
        """`told` is called on the running loop after commits; several that it has not heard of are told as one."""
        self._watchers.append(_Watcher(told, asyncio.get_running_loop()))

    def tell(self) -> None:
        """From any thread: whoever watches here is told, as after a commit."""
        for watcher in list(self._watchers):
            if not watcher.tell():
                # Another thread may have found the same.
                with suppress(ValueError):
                    self._watchers.remove(watcher)

    def _put(self, call: _Call) -> None:
        with self._door:
            if self._closed:
                raise RuntimeError("the writer is closed")
            self._queue.put(call)

    def close(self) -> None:
        """Finish what was queued, then stop; a second close does nothing."""
        self._shut()
        self._thread.join()

    def _shut(self) -> None:
        with self._door:
            self._closed = True
            self._queue.put(None)

    def _work(self) -> None:
        queue, open_ended = self._queue, True
        while open_ended:
            group = [queue.get()]
            group += [queue.get() for _ in range(min(queue.qsize(), MOST_IN_GROUP - 1))]
            open_ended = None not in group
            calls = [call for call in group if call is not None]
            if calls:
                answers = self._commit(calls)
                _deliver(calls, answers)
                if any(error is None and not call.quiet for call, (_, error) in zip(calls, answers, strict=True)):
                    self._committed()

    def _committed(self) -> None:
        self.tell()

    def _commit(self, calls: list[_Call]) -> list[Answer]:
        answers: list[Answer] = []
        session = self.store.session
        try:
            with session.transaction("group"):
                for call in calls:
                    try:
                        with session.transaction(CALL):
                            value = call.verb(self.store)
                        answers.append((value, None))
                    except BaseException as error:
                        if not session.alive:
                            raise
                        answers.append((None, error))
        except BaseException as error:
            # Also what is no ordinary error: were this thread to end, every later caller would wait for ever.
            return [(None, error)] * len(calls)
        return answers


def _deliver(calls: list[_Call], answers: list[Answer]) -> None:
    """One wake-up of each event loop for its whole share of the group."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[_Call, Answer]]] = {}
    for call, answer in zip(calls, answers, strict=True):
        if call.loop is None:
            if call.future.set_running_or_notify_cancel():
                _set(call.future, answer)
        else:
            loops.setdefault(call.loop, []).append((call, answer))
    for loop, share in loops.items():
        # A loop that has closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_set_all, share)


def _set_all(share: list[tuple[_Call, Answer]]) -> None:
    for call, answer in share:
        if not call.future.done():
            _set(call.future, answer)


def _set(future: Any, answer: Answer) -> None:
    value, error = answer
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):
        # A future of asyncio refuses it, and the rest of its group would never hear.
        future.set_exception(RuntimeError("the call raised StopIteration"))
    else:
        future.set_exception(error)
