"""One scrape: the counts to this very moment, and what is open in the store.

Law: to look at what is open costs more the more there is. A look that took long is used again, so that scrapes together
never take more than a twentieth of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime

from wakeful.store.protocol import Access, Backlog, Store
from wakeful.telemetry.exposition import exposition
from wakeful.telemetry.feed import Feed
from wakeful.telemetry.tally import Tally

SHARE = 20


class Scrape:
    def __init__(
        self, access: Access, feed: Feed, tally: Tally, clock: Callable[[], datetime], *, node: str, shared: bool
    ) -> None:
        self._access = access
        self._feed = feed
        self._tally = tally
        self._clock = clock
        self._node = node
        self._shared = shared
        self._seen: Backlog | None = None
        self._again_at = 0.0

    async def __call__(self) -> str:
        await self._feed.look()
        now = self._clock()
        leads = not self._shared or await self._access.read(lambda store: self._is_first(store, now))
        backlog = await self._backlog(now) if leads else None
        return exposition(self._tally, backlog, now.timestamp())

    def _is_first(self, store: Store, now: datetime) -> bool:
        up = [row.name for row in store.nodes(now) if row.alive]
        return min(up, default=self._node) == self._node

    async def _look(self, now: datetime) -> Backlog:
        if self._shared:
            return await self._access.read(lambda store: store.backlog(now))
        # A store of our own is read on the thread that asks, and this one has others to serve.
        store = await self._access.read(lambda store: store)
        return await asyncio.to_thread(store.backlog, now)

    async def _backlog(self, now: datetime) -> Backlog:
        begun = time.monotonic()
        if self._seen is None or begun >= self._again_at:
            self._seen = await self._look(now)
            ended = time.monotonic()
            self._again_at = ended + SHARE * (ended - begun)
        return self._seen
