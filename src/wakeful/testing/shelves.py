"""Folders outside, as agents have them: what is there, and sources that tell of it late, twice, in part or not at all.

Laws:
- What is on a shelf is the truth; a source of it may miss a hint, show a folder that is away as empty or not to be
  read, and say old things again.
- A look at the end of a run, and the look now and then, see what is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from wakeful.core.agents import Agent
from wakeful.core.items import Observation
from wakeful.sources.protocol import Batch, Declared, Hints

if TYPE_CHECKING:
    from wakeful.sources.protocol import Source

# Seconds between two looks of a source that hears nothing.
LOOK = 1800.0
MOST_THINGS = 6


class Shelf:
    """What one agent has outside."""

    def __init__(self, address: str, dice: Random, count: Callable[[str], None]) -> None:
        self.address = address
        self.count = count
        self.source = f"folder-of-{address}"
        self._dice = dice
        self.things: dict[str, Observation] = {}
        self.sources: list[VirtualSource] = []
        self._made = 0
        # Whether it cannot be read, or only seems to be empty, for now.
        self.blind = False
        self.away = False

    def change(self, now: datetime, *, rewrite: bool = False) -> None:
        """Somebody adds, rewrites or removes a thing."""
        known = sorted(self.things)
        what = "change" if rewrite else self._dice.choice(("new", "change", "gone"))
        fresh = what == "new" or not known
        id = f"note-{self._dice.randrange(MOST_THINGS)}.txt" if fresh else self._dice.choice(known)
        if what == "gone" and known:
            del self.things[id]
            return
        self._made += 1
        later = now + timedelta(minutes=self._dice.choice((10, 90))) if self._dice.random() < 0.1 else None
        self.things[id] = Observation(
            external_id=id, fingerprint=f"generation {self._made}", subject=id, not_before=later, lasting=True
        )

    def hint(self) -> None:
        for source in list(self.sources):
            source.nudge.set()

    def seen(self, taken: int) -> Batch:
        if self.blind:
            return Batch(source=self.source, agent=self.address, taken=taken, why="it cannot be read")
        things = () if self.away else tuple(self.things.values())
        return Batch(source=self.source, agent=self.address, taken=taken, observed=things)


class VirtualSource:
    def __init__(self, shelf: Shelf, repeats: bool) -> None:
        self.shelf = shelf
        self.name, self.agent = shelf.source, shelf.address
        self.nudge = asyncio.Event()
        self._repeats = repeats
        self._taken = 0
        self._over = False
        shelf.sources.append(self)

    async def batches(self) -> AsyncIterator[Batch]:
        last: Batch | None = None
        stale: Batch | None = None
        while not self._over:
            self.nudge.clear()
            batch = await self.look()
            yield batch
            stale = stale if batch == last else last
            last = batch
            if self._repeats and stale is not None:
                # What was otherwise before, once more, and too late.
                self.shelf.count("old things told again")
                yield stale
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self.nudge.wait()

    async def acknowledge(self, batch: Batch) -> None:
        return

    async def look(self) -> Batch:
        self._taken += 1
        return self.shelf.seen(self._taken)

    async def stop(self) -> None:
        self._over = True
        self.nudge.set()
        with suppress(ValueError):
            self.shelf.sources.remove(self)


class Shelves:
    def __init__(self, seed: int, count: Callable[[str], None] = lambda kind: None) -> None:
        self._seed = seed
        self._count = count
        self._dice = Random(f"{seed}:shelves")
        self.all: dict[str, Shelf] = {}

    def of(self, address: str) -> Shelf | None:
        """Whether somebody has one is drawn once, for each name."""
        if address not in self.all and Random(f"{self._seed}:shelf:{address}").random() < 0.5:
            self.all[address] = Shelf(address, self._dice, self._count)
        return self.all.get(address)

    def declared(self, agents: Sequence[Agent], hints: Hints) -> list[Declared]:
        found: dict[str, Declared] = {}
        for agent in agents:
            shelf = self.of(agent.address) if agent.enabled else None
            if shelf is not None and agent.address not in found:
                make = partial(self._make, shelf)
                found[agent.address] = Declared(source=shelf.source, agent=agent.address, make=make)
        return list(found.values())

    def _make(self, shelf: Shelf) -> Source:
        return VirtualSource(shelf, self._dice.random() < 0.3)

    def heal(self) -> None:
        for shelf in self.all.values():
            shelf.blind = shelf.away = False
            shelf.hint()
