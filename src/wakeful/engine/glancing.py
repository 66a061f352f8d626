"""Looks for which the end of a run waits.

Laws:
- They take 2 s at most, whatever hangs: one that takes longer is no longer waited for.
- One at a time for each source. While one hangs there is no other, and nobody waits for it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from wakeful.sources.protocol import Batch

log = logging.getLogger("wakeful.engine")

# Seconds for a look at the end of a run.
GLANCE = 2.0

Name = tuple[str, str]


class Glances:
    def __init__(self) -> None:
        self._under_way: dict[Name, asyncio.Task[Batch]] = {}
        self._hanging: set[asyncio.Task[Batch]] = set()

    async def take(self, name: Name, look: Callable[[], Awaitable[Batch]], until: float) -> Batch | None:
        """What is seen now; None when that is not known by then, in the time of the loop."""
        while (other := self._under_way.get(name)) is not None:
            # It may have begun before the last doings of this run.
            if other in self._hanging or not await self._over(other, until):
                return None
        task = self._under_way[name] = asyncio.ensure_future(_looked(look))
        task.add_done_callback(lambda done: self._forget(name, done))
        if await self._over(task, until):
            return task.result()
        self._hanging.add(task)
        log.info("%s of %s took too long for a look at the end of a run", *name)
        return None

    async def _over(self, task: asyncio.Task[Batch], until: float) -> bool:
        await asyncio.wait({task}, timeout=max(0.0, until - asyncio.get_running_loop().time()))
        return task.done()

    def _forget(self, name: Name, task: asyncio.Task[Batch]) -> None:
        del self._under_way[name]
        self._hanging.discard(task)
        # Whoever waited has heard it; of one that was given up it is no news.
        if not task.cancelled():
            task.exception()

    async def close(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _looked(look: Callable[[], Awaitable[Batch]]) -> Batch:
    return await look()
