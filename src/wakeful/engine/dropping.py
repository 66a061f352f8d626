"""The drop folder: tasks that somebody moved in as files, recorded and then removed.

Laws:
- All tasks of a file are recorded, or none. What can be read is recorded in the order of the files' names.
- A file is recorded under keys of its own: however often we crash between its record and its removal, once. A task that
  brings its own key is found by it, as if the operator had added it by a command.
- What cannot be recorded is refused in the words of everybody else who may add a task, and the others go on. So they
  do when a file fails for a reason that nobody thought of: it is tried again, and then refused.
- A few thousand tasks are recorded at once, for others wait for the store meanwhile.
- Hints make it quick, a look once a minute makes it right.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.errors import Busy, Mistake, WakefulError
from wakeful.core.items import NewItem, Origin
from wakeful.core.redacting import redacted_item
from wakeful.core.tasks import UTC_ZONE, Sender, read_task, unknown_agent
from wakeful.core.wording import quoted
from wakeful.engine.clock import Clock, Nudge
from wakeful.sources.protocol import DropFolder, Dropped, Haul, Hints
from wakeful.store.protocol import Access, Store

log = logging.getLogger("wakeful.engine")

Read = tuple[Dropped, list[NewItem]]
Refusal = tuple[Dropped, str]

SOURCE = "drop"
SENDER = Sender("operator", Origin.operator, source=SOURCE)
HEARING, DEAF = timedelta(minutes=1), timedelta(seconds=2)
# A look at what somebody may still be writing; whoever closes a file is heard of sooner.
UNSETTLED = timedelta(milliseconds=500)
# A folder that cannot be looked at is tried again after this.
BARRED = timedelta(seconds=10)
# Of one transaction, unless a single file has more.
MOST_AT_ONCE = 2_000
# How often a file is tried that fails for no reason of its own.
MOST_TRIES = 3
# What Python says of a value that cannot be kept; it will not get better.
HOPELESS = (ValueError, TypeError, ArithmeticError, RecursionError)


class Dropping:
    name = "drop"

    def __init__(
        self, access: Access, folder: DropFolder, hints: Hints, clock: Clock, *, hide: Callable[[str], str] = str
    ) -> None:
        """`hide` takes out of a text what is secret."""
        self._access = access
        self._hide = hide
        self._folder = folder
        self._hints = hints
        self._clock = clock
        self._nudge = Nudge()
        self._tries: dict[str, int] = {}
        self._barred = ""
        self._stuck: tuple[tuple[str, str], ...] = ()
        self._told: set[tuple[str, str]] = set()
        self._refused = 0

    @property
    def diagnostics(self) -> list[str]:
        """What somebody should look after, a line each."""
        where = self._folder.path
        lines = [f"{where}: {self._barred}"] if self._barred else []
        lines += [f"{where}: {quoted(name)}: {why}" for name, why in self._stuck]
        if self._refused:
            number = "1 file was" if self._refused == 1 else f"{self._refused:,} files were"
            lines.append(f"{where}: {number} refused (see {where / 'refused'}; mend and drop again, or remove)")
        return lines

    async def run(self) -> None:
        while True:
            haul = await self._haul()
            if haul.files:
                await self._deal(haul.files)
            if haul.more:
                continue
            idle = HEARING if self._hints.hears else DEAF
            if self._barred:
                idle = BARRED
            await self._nudge.wait(min(idle, UNSETTLED) if haul.unsettled else idle)

    async def _haul(self) -> Haul:
        try:
            await asyncio.to_thread(self._folder.make)
            # First to listen, then to look: what comes in between is heard of.
            self._hints.folders([self._folder.path], self._nudge.ring)
            haul = await asyncio.to_thread(self._folder.take, self._clock.elapsed())
            self._refused = await asyncio.to_thread(self._folder.refused)
        except OSError as error:
            self._bar(f"cannot be worked: {error}")
            return Haul()
        self._barred = ""
        self._stick(haul)
        return haul

    def _bar(self, why: str) -> None:
        if why != self._barred:
            self._barred = why
            log.error("the drop folder %s", why)

    def _stick(self, haul: Haul) -> None:
        """Each is told once, however often it is tried."""
        self._stuck = haul.stuck
        for name, why in set(haul.stuck) - self._told:
            log.error("%r in the drop folder: %s", name, why)
        tried = {file.name for file in haul.files}
        self._told = {*haul.stuck, *(pair for pair in self._told if pair[0] in tried)}

    async def _deal(self, files: Sequence[Dropped]) -> None:
        zones = await self._access.read(_zones)
        for part in _parts(files):
            now = self._clock.now()
            good, bad = await asyncio.to_thread(_read, part, now, zones, self._hide)
            recorded = await self._record(good, now, bad)
            refused = await asyncio.to_thread(self._folder.remove, recorded)
            refused += [(file, why) for file, why in bad if await asyncio.to_thread(self._folder.refuse, file, why)]
            for file, why in refused:
                log.warning("%r in the drop folder is refused: %s", file.name, why)
                self._tries.pop(file.id, None)
            self._refused += len(refused)

    async def _record(self, good: Sequence[Read], now: datetime, bad: list[Refusal]) -> list[Dropped]:
        """Those that were recorded: all at once, which is quick, or else each by itself, to find out which is bad."""
        together = [item for _, items in good for item in items]
        if len(good) > 1:
            try:
                await self._access.write(lambda store: store.record(together, now))
                return [file for file, _ in good]
            except Busy:
                raise
            except Exception as error:
                log.debug("not all of %d files can be recorded, so one by one: %s", len(good), error)
        recorded = []
        for file, items in good:
            try:
                await self._access.write(lambda store, items=items: store.record(items, now))  # type: ignore[misc]
                recorded.append(file)
                self._tries.pop(file.id, None)
            except Busy:
                raise
            except WakefulError as error:
                bad.append((file, str(error)))
            except HOPELESS as error:
                bad.append((file, _unforeseen(error)))
            except Exception as error:
                await self._try_again(file, _unforeseen(error), bad)
        return recorded

    async def _try_again(self, file: Dropped, why: str, bad: list[Refusal]) -> None:
        """It may be the store that is in trouble, or the file that is trouble for it."""
        self._tries[file.id] = self._tries.get(file.id, 0) + 1
        if self._tries[file.id] >= MOST_TRIES:
            bad.append((file, why))
        else:
            await asyncio.to_thread(self._folder.leave, file, why)


def _unforeseen(error: Exception) -> str:
    return f"it cannot be recorded: {type(error).__name__}: {error}"


def _parts(files: Iterable[Dropped]) -> Iterator[list[Dropped]]:
    """A file is never divided."""
    part: list[Dropped] = []
    size = 0
    for file in files:
        if part and size + len(file.tasks) > MOST_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(file)
        size += len(file.tasks)
    if part:
        yield part


def _read(
    files: Iterable[Dropped], now: datetime, zones: Mapping[str, ZoneInfo], hide: Callable[[str], str]
) -> tuple[list[Read], list[Refusal]]:
    good: list[Read] = []
    bad: list[Refusal] = []
    for file in files:
        try:
            good.append((file, [redacted_item(item, hide) for item in _items(file, now, zones)]))
        except WakefulError as error:
            bad.append((file, str(error)))
        except Exception as error:
            log.exception("%r in the drop folder cannot be read", file.name)
            bad.append((file, _unforeseen(error)))
    return good, bad


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
