"""The fleet file as it is edited while the fleet is at work.

Laws:
- A change is adopted as soon as it is noticed, between beats: a run keeps the version that it began with.
- A broken edit keeps the last good version, and what is wrong with it is shown until it is mended.
- What was read and not yet adopted, because the store did not take it, is adopted at the next look.
- Noticing is a hint of the system's (see `watching`), or a look at the files' stamps now and then where there is none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from wakeful.core.agents import Agent, Fleet
from wakeful.engine.clock import Clock, Nudge
from wakeful.engine.watching import Watch
from wakeful.fleet.watch import FleetFile
from wakeful.store.protocol import Access

log = logging.getLogger("wakeful.engine")

# A look at the stamps although nothing was heard; where nothing can be heard it is the only way, and more frequent.
DEAF, HEARING = timedelta(seconds=2), timedelta(minutes=5)
# An editor writes a file in several steps: what changes together is read together.
SETTLED = 0.05


class Declarations:
    name = "declarations"

    def __init__(
        self,
        access: Access,
        file: FleetFile,
        watch: Watch,
        clock: Clock,
        *,
        told: Callable[[], None] = lambda: None,
    ) -> None:
        """`told` is called when another version was adopted."""
        self._access = access
        self._file = file
        self._watch = watch
        self._clock = clock
        self._told = told
        self._one_at_a_time = asyncio.Lock()
        # What is at work; None until the first is adopted.
        self.adopted: Fleet | None = None
        self.changed: list[str] = []
        self._nudge = Nudge()

    @property
    def fleet(self) -> Fleet | None:
        return self._file.fleet

    @property
    def diagnostics(self) -> list[str]:
        """What is wrong with the file as it is now, as a person reads it."""
        return [str(diagnostic) for diagnostic in self._file.diagnostics]

    async def declare(self, *, boot: bool = False) -> list[str]:
        """Adopt the last good version; which agents changed by that."""
        async with self._one_at_a_time:
            return await self._adopt(boot=boot)

    async def _adopt(self, *, boot: bool) -> list[str]:
        fleet = self._file.fleet
        if fleet is None:
            return []
        changed = await self._access.write(lambda store: store.declare(fleet, self._clock.now(), boot=boot))
        self.adopted = fleet
        self.changed = changed
        self._told()
        self._listen()
        return changed

    async def look(self) -> list[str]:
        """Read the file again if it changed, and adopt what is new."""
        async with self._one_at_a_time:
            if await asyncio.to_thread(self._file.changed):
                await self._read()
            return [] if self._file.fleet is self.adopted else await self._adopt(boot=False)

    async def _read(self) -> None:
        was_broken = self._file.broken
        await asyncio.to_thread(self._file.refresh)
        self._listen()
        if self._file.broken:
            for line in self.diagnostics:
                log.error("%s", line)
            log.error("%s is broken: the last good version stays in use", self._file.path)
        elif was_broken:
            log.info("%s is whole again", self._file.path)

    def _listen(self) -> None:
        self._watch.folders(self._file.folders(), self._nudge.ring)

    async def run(self) -> None:
        self._listen()
        while True:
            # First a look: what was edited before anybody listened, or what the store did not take last time.
            changed = await self.look()
            if changed:
                log.info("declared", extra={"fields": {"changed": changed[:20], "count": len(changed)}})
            if await self._nudge.wait(HEARING if self._watch.hears else DEAF):
                await asyncio.sleep(SETTLED)


def unrunnable(fleet: Fleet) -> list[Agent]:
    """Enabled agents that nobody said how to run."""
    return [agent for agent in fleet.agents if agent.enabled and agent.runner is None]
