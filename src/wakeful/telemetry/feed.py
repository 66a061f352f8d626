"""The events, heard by whoever counts or traces: each once, in order, with the word whether this node did it.

Laws:
- A feed begins where the events stand when the node starts, and misses none that comes after.
- On a shared store every node reads the events of all, but each decision and each end was made by one: see `owning`.
- While nothing happens, nothing is done; under a storm of commits one look serves many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from wakeful.core.events import Event, EventKind
from wakeful.store.protocol import Access
from wakeful.telemetry.owning import Owned

KINDS = (EventKind.decided.value, EventKind.started.value, EventKind.ended.value)
PAGE = 500
# Seconds between two looks; whoever wants to know to the moment looks by itself.
LULL = 1.0
NEWEST = 1 << 62


class Listener(Protocol):
    async def hear(self, events: Sequence[tuple[Event, bool]]) -> None:
        """Each event with whether it is this node's own doing."""


class Feed:
    name = "feed"

    def __init__(self, access: Access, listeners: Sequence[Listener], owned: Owned | None = None) -> None:
        """Without `owned` everything is this node's own doing."""
        self._access = access
        self._listeners = list(listeners)
        self._owned = owned
        self._last: int | None = None
        self._looking = asyncio.Lock()
        self._changed = asyncio.Event()
        self._watching = False

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def run(self) -> None:
        await self.begin()
        if not self._watching:
            # Nobody can stop watching, and this may be begun again.
            self._access.watch(self._changed.set)
            self._watching = True
        while True:
            self._changed.clear()
            await self.look()
            await self._changed.wait()
            await asyncio.sleep(LULL)

    async def begin(self) -> None:
        """From now on; a second time does nothing."""
        async with self._looking:
            if self._last is None:
                newest = await self._access.read(lambda store: store.events(before=NEWEST, limit=1))
                self._last = newest[0].id if newest else 0

    async def look(self) -> None:
        """Whoever listens has heard of all that is committed when this returns."""
        await self.begin()
        async with self._looking:
            while len(await self._page()) >= PAGE:
                # A store of our own is read without ever waiting; others want their turn.
                await asyncio.sleep(0)

    async def _page(self) -> list[Event]:
        last = self._last or 0
        events = await self._access.read(lambda store: store.events(after=last, kinds=KINDS, limit=PAGE))
        heard = [(event, self._owned is None or self._owned.take(event)) for event in events]
        if heard:
            self._last = events[-1].id
            for listener in self._listeners:
                await listener.hear(heard)
        return events
