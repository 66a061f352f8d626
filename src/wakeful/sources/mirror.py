"""What the sources of a list have in common: a look, when to look again, and what of it is worth telling.

Laws:
- Looks are taken one after the other, and numbered: what is told later was seen later.
- What was acknowledged is told again once a minute: the truth is what the store has, not what it was told. In between
  an unchanged list costs it nothing.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import suppress

from wakeful.core.items import Observation
from wakeful.sources.aside import GOING, Aside, Unreadable
from wakeful.sources.protocol import Batch

# Seconds after which what was acknowledged is told again.
AGAIN = 60.0


class Mirror(ABC):
    def __init__(self, name: str, agent: str) -> None:
        self.name = name
        self.agent = agent
        self._aside = Aside()
        self._looking = asyncio.Lock()
        self._stopped = asyncio.Event()
        self._taken = 0
        self._acknowledged: Batch | None = None
        self._acknowledged_at = 0.0

    @abstractmethod
    async def _see(self, *, patient: bool) -> tuple[Observation, ...]:
        """Everything that is pending; raises `Unreadable`. With `patient` it waits for what is being written."""

    @abstractmethod
    async def _until_more(self, *, again: bool) -> None:
        """Until something may have changed, or it is stopped; `again` says that the last batch was not taken."""

    async def batches(self) -> AsyncIterator[Batch]:
        while not self._stopped.is_set():
            batch = await self._look(patient=False)
            if self._stopped.is_set():
                return
            if batch != self._acknowledged or self._elapsed() - self._acknowledged_at >= AGAIN:
                yield batch
            await self._until_more(again=batch != self._acknowledged)

    async def acknowledge(self, batch: Batch) -> None:
        if self._acknowledged is None or batch.taken > self._acknowledged.taken:
            self._acknowledged, self._acknowledged_at = batch, self._elapsed()

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time()

    async def look(self) -> Batch:
        return await self._look(patient=True)

    async def _look(self, *, patient: bool) -> Batch:
        async with self._looking:
            self._taken += 1
            observed: tuple[Observation, ...] | None = None
            why = ""
            try:
                observed = await self._see(patient=patient)
            except Unreadable as error:
                why = str(error)
            return Batch(source=self.name, agent=self.agent, observed=observed, why=why, taken=self._taken)

    async def stop(self) -> None:
        self._stopped.set()
        self._aside.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(GOING), self._looking:
                return

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return False
        return True
