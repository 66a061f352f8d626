"""The drop folder: tasks that somebody moved in as files, recorded and then removed.

Laws:
- All tasks of a file are recorded, or none. What can be read is recorded in the order of the files' names.
- A file is recorded under keys of its own: however often we crash between its record and its removal, once. A task that
  brings its own key is found by it, as if the operator had added it by a command.
- What cannot be recorded is refused in the words of everybody else who may add a task, and the others go on.
- Hints make it quick, a look once a minute makes it right.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.errors import Busy, Mistake, WakefulError
from wakeful.core.items import NewItem, Origin
from wakeful.core.tasks import UTC_ZONE, Sender, read_task, unknown_agent
from wakeful.engine.clock import Clock, Nudge
from wakeful.sources.protocol import DropFolder, Dropped, Hints
from wakeful.store.protocol import Access, Store

log = logging.getLogger("wakeful.engine")

Read = tuple[Dropped, list[NewItem]]

SOURCE = "drop"
SENDER = Sender("operator", Origin.operator, source=SOURCE)
HEARING, DEAF = timedelta(minutes=1), timedelta(seconds=2)
# A look at what somebody may still be writing; whoever closes a file is heard of sooner.
UNSETTLED = timedelta(milliseconds=500)


class Dropping:
    name = "drop"

    def __init__(self, access: Access, folder: DropFolder, hints: Hints, clock: Clock) -> None:
        self._access = access
        self._folder = folder
        self._hints = hints
        self._clock = clock
        self._nudge = Nudge()

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self._folder.make)
            # First to listen, then to look: what comes in between is heard of.
            self._hints.folders([self._folder.path], self._nudge.ring)
            haul = await asyncio.to_thread(self._folder.take, self._clock.elapsed())
            if haul.files:
                await self._deal(haul.files)
            if not haul.more:
                idle = HEARING if self._hints.hears else DEAF
                await self._nudge.wait(min(idle, UNSETTLED) if haul.unsettled else idle)

    async def _deal(self, files: Sequence[Dropped]) -> None:
        now = self._clock.now()
        zones = await self._access.read(_zones)
        good: list[Read] = []
        bad: list[tuple[Dropped, str]] = []
        for file in files:
            try:
                good.append((file, _items(file, now, zones)))
            except WakefulError as error:
                bad.append((file, str(error)))
        recorded = await self._record(good, now, bad)
        await asyncio.to_thread(self._folder.remove, recorded)
        for file, why in bad:
            await asyncio.to_thread(self._folder.refuse, file, why)
            log.warning("%r in the drop folder is refused: %s", file.name, why)

    async def _record(self, good: Sequence[Read], now: datetime, bad: list[tuple[Dropped, str]]) -> list[Dropped]:
        """Those that were recorded: all at once, which is quick, or else each by itself, to find out which is bad."""
        together = [item for _, items in good for item in items]
        if len(good) > 1:
            try:
                await self._access.write(lambda store: store.record(together, now))
                return [file for file, _ in good]
            except Busy:
                raise
            except WakefulError:
                log.debug("not all of %d files can be recorded: one by one", len(good))
        recorded = []
        for file, items in good:
            try:
                await self._access.write(lambda store, items=items: store.record(items, now))  # type: ignore[misc]
                recorded.append(file)
            except Busy:
                raise
            except WakefulError as error:
                bad.append((file, str(error)))
        return recorded


def _zones(store: Store) -> dict[str, ZoneInfo]:
    """Everybody whom a task may be for, with the wall clock that a time of day is read by."""
    return {name: ZoneInfo(agent.timezone) for agent in store.agents() for name in (agent.name, agent.address)}


def _items(file: Dropped, now: datetime, zones: Mapping[str, ZoneInfo]) -> list[NewItem]:
    if file.why:
        raise Mistake(file.why)
    items = []
    for number, fields in enumerate(file.tasks, 1):
        try:
            items.append(_item(f"{SOURCE}:{file.id}:{number}", fields, now, zones))
        except WakefulError as error:
            raise Mistake(f"task {number}: {error}" if len(file.tasks) > 1 else str(error)) from None
    return items


def _item(key: str, fields: object, now: datetime, zones: Mapping[str, ZoneInfo]) -> NewItem:
    agent = fields.get("agent") if isinstance(fields, Mapping) else None
    zone = zones.get(agent, UTC_ZONE) if isinstance(agent, str) else UTC_ZONE
    item = read_task(fields, now, SENDER, zone)
    if item.agent is not None and item.agent not in zones:
        raise unknown_agent(item.agent, zones)
    return item if item.dedupe is not None else replace(item, dedupe=key)
