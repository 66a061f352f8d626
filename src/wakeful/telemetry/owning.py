"""Which of the events on a shared store are this node's own doing, so that a sum over the nodes counts each once.

Laws:
- An event does not say who wrote it. What passes through this node's access on its way to the store does: a decision is
  known by its wake and its instant, an end by its run.
- It is noted before the commit and taken when the event is read: what was never committed is never counted, and what
  was committed without our hearing of it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from wakeful.core.events import Event, EventKind
from wakeful.core.runs import Outcome
from wakeful.core.wakes import Wake
from wakeful.store.protocol import Access, Admit, Decision, Finish, Settle, Skip, Store

T = TypeVar("T")
Deed = tuple[str, int, datetime | None]

# What is never told of is forgotten: it was rolled back.
MOST = 100_000


class Owned:
    """Written to by the thread that writes to the store, read by the one that reads the events."""

    def __init__(self, most: int = MOST) -> None:
        self._deeds: dict[Deed, None] = {}
        self._most = most
        self._lock = threading.Lock()

    def note(self, deed: Deed) -> None:
        with self._lock:
            self._deeds[deed] = None
            while len(self._deeds) > self._most:
                del self._deeds[next(iter(self._deeds))]

    def take(self, event: Event) -> bool:
        if event.kind is EventKind.decided:
            deed: Deed = ("decided", event.wake or 0, event.at)
        elif event.kind is EventKind.ended:
            deed = ("ended", event.run or 0, None)
        else:
            return False
        with self._lock:
            return self._deeds.pop(deed, self) is None


class Owning:
    """An access that notes what its node does."""

    def __init__(self, access: Access, owned: Owned) -> None:
        self._access = access
        self._owned = owned

    async def write(self, verb: Callable[[Store], T], *, quiet: bool = False) -> T:
        return await self._access.write(lambda store: verb(cast(Store, _Noting(store, self._owned))), quiet=quiet)

    async def read(self, verb: Callable[[Store], T]) -> T:
        return await self._access.read(verb)

    def watch(self, told: Callable[[], None]) -> None:
        self._access.watch(told)

    def tell(self) -> None:
        self._access.tell()


class _Noting:
    """A store, of which only what decides and what ends is looked at."""

    __slots__ = ("_owned", "_store")

    def __init__(self, store: Store, owned: Owned) -> None:
        self._store = store
        self._owned = owned

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def decide(self, wakes: Sequence[Wake], admit: Admit, now: datetime) -> list[Decision]:
        decisions = self._store.decide(wakes, admit, now)
        for decision in decisions:
            self._owned.note(("decided", decision.wake, now))
        return decisions

    def skip(self, wake: Wake, reason: str, admit: Admit, skip: Skip, now: datetime) -> Decision:
        decision = self._store.skip(wake, reason, admit, skip, now)
        self._owned.note(("decided", decision.wake, now))
        return decision

    def finish(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[Outcome]:
        for end in ends:
            self._owned.note(("ended", end.run, None))
        return self._store.finish(ends, settle, now)
