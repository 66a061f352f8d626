"""This node among the nodes of its store: it joins, says that it is there, keeps the leases of its runs, and leaves.

Laws:
- A lease counts from before it was asked for: what a guardian is told is never more than what the store has granted.
- A run that is no longer ours is ended at once and followed no further; whatever we would say of it is refused.
- The renewal is the net for hints that were lost: where something is due or has happened, whoever watches here looks.
  Of a node at which nothing happens it is the only call of the store.
- Where there is no other node nothing is renewed: no lease ends, and who has the data folder has its name.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from wakeful.core.errors import Busy, Unknown
from wakeful.engine.absence import in_a_line
from wakeful.engine.clock import Clock
from wakeful.engine.conduct import Conductor
from wakeful.store.protocol import Access, Renewed, Store

log = logging.getLogger("wakeful.engine")

LEASE = timedelta(seconds=20)
# Where a run is fenced from nobody its lease outlasts everything.
ENDLESS = timedelta(days=3650)
# Between two renewals, in seconds, with and without runs.
HOLDING, IDLE = 2.0, 5.0
# What a store may take of our time when we leave.
MOMENT = 2.0


class Presence:
    name = "presence"

    def __init__(
        self,
        access: Access,
        conductor: Conductor,
        clock: Clock,
        node: str,
        *,
        host: str = "",
        url: str = "",
        shared: bool = False,
    ) -> None:
        self._access = access
        self._conductor = conductor
        self._clock = clock
        self._node = node
        self._host = host
        self._url = url
        self._shared = shared
        self._joined = False
        self._last_event: int | None = None
        # Why the last renewal failed, while the store is away.
        self.away = ""

    @property
    def lease(self) -> timedelta:
        return LEASE if self._shared else ENDLESS

    # -- coming and going ---------------------------------------------------------------------------------------
    async def join(self) -> None:
        """Begin under our name; a `Conflict` where another engine has it."""
        await self._access.write(self._join, quiet=True)
        self._joined = True

    def _join(self, store: Store) -> None:
        now = self._clock.now()
        if not self._shared:
            # Whoever had our name had our folder, and is gone: its host may have been called otherwise.
            store.leave(self._node, now)
        store.join(self._node, self._host, self._url, now, self.lease)

    async def alone(self) -> bool:
        """Whether no other node is at work on this store."""
        if not self._shared:
            return True
        rows = await self._access.read(lambda store: store.nodes(self._clock.now()))
        return not any(row.alive for row in rows if row.name != self._node)

    async def leave(self) -> None:
        """Best effort: a node that is silent is soon taken for gone. Its runs go on for a last lease."""
        if not self._joined:
            return
        try:
            async with asyncio.timeout(MOMENT):
                if self._shared:
                    await self.renew()
                await self._access.write(lambda store: store.leave(self._node, self._clock.now()), quiet=True)
        except Exception as error:
            log.warning("the store was not told that this node has left: %s", in_a_line(error))

    # -- being there --------------------------------------------------------------------------------------------
    async def run(self) -> None:
        while True:
            asked = self._clock.elapsed()
            await self.renew()
            every = HOLDING if self._conductor.open else IDLE
            await asyncio.sleep(max(asked + every - self._clock.elapsed(), 0.0))

    async def renew(self) -> None:
        """Say that we are there. The runs that are still ours may go on for a whole lease from before we asked."""
        conducted = self._conductor.open
        asked = self._clock.elapsed()
        try:
            renewed = await self._renew([(each.run, each.epoch) for each in conducted])
        except Busy as away:
            self.away = in_a_line(away)
            raise
        self.away = ""
        ours = set(renewed.runs)
        for each in conducted:
            if each.run in ours:
                self._conductor.extend(each, asked + LEASE.total_seconds())
        for each in conducted:
            if each.run not in ours and not each.over:
                await self._conductor.drop(each)
        self._look(renewed)

    async def _renew(self, runs: list[tuple[int, int]]) -> Renewed:
        def verb(store: Store) -> Renewed:
            now = self._clock.now()
            try:
                return store.renew(self._node, runs, now, LEASE)
            except Unknown:
                # Somebody has put an older store in the place of ours.
                self._join(store)
                return store.renew(self._node, runs, now, LEASE)

        return await self._access.write(verb, quiet=True)

    def _look(self, renewed: Renewed) -> None:
        known, self._last_event = self._last_event, renewed.last_event
        happened = known is not None and known != renewed.last_event
        if happened or (renewed.next_at is not None and renewed.next_at <= self._clock.now()):
            self._access.tell()
