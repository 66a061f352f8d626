"""Access of a node to the store that it shares with others.

Laws:
- Nothing here waits for the server on an event loop's thread. One thread writes, a few read, one has the hints.
- A commit that is not quiet is told to whoever watches here at once, and to the other nodes by a hint.
- While the server is away every call is `Busy` within seconds: who waited while it could not be reached shares that
  answer. A connection that is lost in the middle of a commit is `Busy` too, although what was written may be there: who
  says it again must bear to hear that it has been said (`Stale`, or a duplicate).
- The end comes within seconds, also where the server is silent, and leaves neither thread nor connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

from wakeful.store.inline import Inline
from wakeful.store.postgres import Absence, PostgresWriter
from wakeful.store.postgres_hints import Hints, channel_of, cut, send_hint
from wakeful.store.postgres_session import Crowded, PostgresSession, Reader
from wakeful.store.postgres_store import TRIES, PostgresStore, step_aside
from wakeful.store.store import SqlStore

T = TypeVar("T")

READERS = 4
# How long the end waits for what is under way.
GRACE = 3.0


class PostgresAccess(PostgresWriter):
    """`write`, `read` and `watch` from coroutines, `submit` and `tell` from threads. The store stays its owner's."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store)
        self._unread = Absence()
        self._readers: list[Reader] = []
        self._reads: set[Future[Any]] = set()
        self._pool = ThreadPoolExecutor(READERS, "wakeful-reader", self._sit_down)
        self._hints = Hints(store.session.place, channel_of(store.session), self.tell)

    def _sit_down(self) -> None:
        self._readers.append(self.store.session.reader())

    async def read(self, verb: Callable[[SqlStore], T]) -> T:
        """Read on a thread that does nothing else; what nobody waits for any more is not begun."""
        if self._closed:
            raise RuntimeError("the access is closed")
        future = self._pool.submit(self._look, verb, time.monotonic())
        self._reads.add(future)
        future.add_done_callback(self._reads.discard)
        return await asyncio.wrap_future(future)

    def _look(self, verb: Callable[[SqlStore], T], asked: float) -> T:
        self._unread.reach(self.store.session.reader(), asked)
        try:
            return verb(self.store)
        except StopIteration as error:
            # A future of asyncio refuses it, and its caller would wait for ever.
            raise RuntimeError("the call raised StopIteration") from error

    def _committed(self) -> None:
        super()._committed()
        self._hints.send()

    def close(self) -> None:
        """Finish what was queued, as far as the server answers, then stop; a second close does nothing."""
        until = time.monotonic() + GRACE
        self._shut()
        self._thread.join(GRACE)
        # After the last commit, which is told of as well.
        self._hints.stop()
        late = wait(list(self._reads), max(0.0, until - time.monotonic())).not_done
        if late or self._thread.is_alive():
            # A call that writes may also read, so the writing thread has a reader as well.
            _cut(self.store.session)
            for reader in list(self.store.session._readers):
                _cut(reader)
        self._pool.shutdown()
        self._hints.close()
        self._thread.join()
        for reader in self._readers:
            reader.close()


def _cut(link: PostgresSession | Reader) -> None:
    """Whatever it waits for is over, and it is not opened again."""
    link.closed = True
    if link._wire is not None:
        cut(link._wire.connection)


class PostgresInline(Inline):
    """For a command: a call that found others in its way is made again, and nodes at work hear that there was one."""

    store: PostgresStore

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store, hint=lambda: send_hint(store.session))

    def _call(self, verb: Callable[[SqlStore], T]) -> T:
        for turn in range(TRIES - 1):
            with suppress(Crowded):
                return super()._call(verb)
            step_aside(turn)
        return super()._call(verb)
