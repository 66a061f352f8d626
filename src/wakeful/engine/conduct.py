"""Runs under way on this node: each from its order to its settlement.

Laws:
- What a run came to is told to the store until the store has taken it; the exit record in the run's folder waits.
- A start that failed half-way is settled by the veto: it has executed and is followed, or it never will and has
  failed, which is bounded as every failure is.
- A run that was lost sight of, because a folder could not be read for one, is looked for again.
- A run that the store has taken from us is ended at once, and nothing more is said of it.
- Nothing here is the only one to know a thing: whoever begins anew finds it in the store and in the folders.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from wakeful.core.errors import Stale
from wakeful.core.items import Item
from wakeful.core.orders import Order
from wakeful.core.redacting import Hide, redacted_end, redacted_ending
from wakeful.core.runs import FENCING, Ending, Result, TaskEnd
from wakeful.core.settlement import settle
from wakeful.engine.absence import FIRST_REST, LONGEST_REST, in_a_line
from wakeful.engine.clock import Clock
from wakeful.runners.protocol import Carrier, Found, Held
from wakeful.store.protocol import Access, Finish, RunRow, Stop, Store

log = logging.getLogger("wakeful.engine")

Relay = Callable[[Callable[[Store, datetime], None]], Awaitable[None]]

# Seconds that what is half done is given when we leave: a turn of the loop, the starts under way.
PATIENCE = 5.0
# Seconds that a run which is no longer ours is given to hear of it; its fence is near in any case.
MOMENT = 2.0
# A run that a veto of ours kept from executing ends like this.
VETO = "veto"


@dataclass(slots=True, eq=False)
class Conducted:
    """A run that this engine follows; `held` is None until it has executed."""

    run: int
    epoch: int
    agent: str
    held: Held | None = None
    # That somebody wanted it ended before there was anything to end; or tasks of it.
    unheard: Stop | None = None
    unheard_tasks: list[Stop] = field(default_factory=list)
    told: set[Stop] = field(default_factory=set)
    # How many tasks it has, and how many it might have had; None where that is not known.
    tasks: int | None = None
    shift: int | None = None
    # Until when it may go on, in seconds since boot; None where there is nobody to fence it from.
    leased_until: float | None = None
    # Whether this engine itself began it, and nobody published anything of it before.
    fresh: bool = False
    # What it was shown that is mirrored from elsewhere, see `mirrored`; None where only the store knows.
    shown: Mapping[tuple[str, str], set[str]] | None = None
    # Its end is being told.
    over: bool = False
    # The store has given it to nobody or to another: it is no longer ours.
    taken: bool = False
    following: asyncio.Task[None] | None = None


def mirrored(items: Iterable[Item]) -> dict[tuple[str, str], set[str]]:
    """What is mirrored from elsewhere: the source and the address, and which things of it these are."""
    found: dict[tuple[str, str], set[str]] = {}
    for item in items:
        if item.source is not None and item.agent is not None and item.external_id is not None:
            found.setdefault((item.source, item.agent), set()).add(item.external_id)
    return found


def _finish(store: Store, end: Finish, now: datetime) -> None:
    store.finish([end], settle, now)


async def nothing_more(conducted: Conducted) -> None:
    return


class Conductor:
    def __init__(
        self,
        access: Access,
        carrier: Carrier,
        clock: Clock,
        node: str,
        *,
        barred: Callable[[], bool] = lambda: False,
        looked: Callable[[Conducted], Awaitable[None]] = nothing_more,
        published: Callable[[Conducted], Awaitable[None]] = nothing_more,
        shared: bool = False,
        hide: Hide = str,
    ) -> None:
        """`barred` is asked once more before each start: a PAUSE file may have come since the decision. `looked` and
        `published` are awaited before a run's end is told: what it did to what it was shown, and what it printed. In a
        `shared` store only the runs of this node are ours. `hide` takes out of what a run said what is secret."""
        self._access = access
        self._carrier = carrier
        self._clock = clock
        self._node = node
        self._barred = barred
        self._looked = looked
        self._published = published
        self._shared = shared
        self._hide = hide
        self._open: dict[int, Conducted] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Future[None]] = set()
        self._leaving = False
        # Ends a shift and begins what follows it, in one transaction; set by whoever decides.
        self.relay: Relay | None = None

    @property
    def open(self) -> list[Conducted]:
        return list(self._open.values())

    # -- beginning ----------------------------------------------------------------------------------------------
    def begin(self, order: Order, check: Any = None, *, leased_until: float | None = None) -> None:
        """Carry out an order that was claimed. Returns at once; `starts_settled` waits."""
        run = order.run
        shown = mirrored(order.items)
        conducted = Conducted(run.id, run.epoch, run.agent, leased_until=leased_until, fresh=True, shown=shown)
        conducted.tasks, conducted.shift = len(order.tasks), order.agent.shift
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._starting.add(started)
        self._follow(conducted, self._conduct(conducted, order, check, started))

    def _follow(self, conducted: Conducted, work: Any) -> None:
        self._open[conducted.run] = conducted
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=f"run {conducted.run}")
        conducted.following = task
        self._following.add(task)
        task.add_done_callback(lambda done: self._ended(conducted, done))

    def _ended(self, conducted: Conducted, task: asyncio.Task[None]) -> None:
        self._following.discard(task)
        self._open.pop(conducted.run, None)
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("run %d was lost sight of, and is looked for again", conducted.run, exc_info=error)
        if not self._leaving:
            self._follow(conducted, self._find_again(conducted))

    def look_for(self, rows: Sequence[RunRow]) -> None:
        """Runs of ours that are open in the store, and of which we may never have heard: an answer can get lost."""
        for conducted in self._unknown(rows):
            self._follow(conducted, self._find_again(conducted))

    def _unknown(self, rows: Sequence[RunRow]) -> list[Conducted]:
        ours = [row for row in rows if not self._shared or row.node == self._node]
        return [
            Conducted(row.id, row.epoch, row.agent)
            for row in ours
            if row.id not in self._open and row.state == "running"
        ]

    async def _find_again(self, conducted: Conducted) -> None:
        await asyncio.sleep(LONGEST_REST)
        if self._never_starts(conducted):
            await self._void(conducted)
        else:
            await self._adopt(conducted)

    async def _conduct(self, conducted: Conducted, order: Order, check: Any, started: asyncio.Future[None]) -> None:
        try:
            held = await self._start(conducted, order, check)
        finally:
            self._starting.discard(started)
            started.set_result(None)
        if held is None:
            await self._void(conducted)
        elif isinstance(held, Ending):
            await self._settle(conducted, held)
        else:
            await self._see_through(conducted, held)

    async def _start(self, conducted: Conducted, order: Order, check: Any) -> Held | Ending | None:
        """The run under way; None when a PAUSE file came first, and an ending when it could not be started."""
        run = conducted.run
        if self._barred() and self._carrier.veto(run):
            return None
        try:
            return await self._carrier.carry(order, check, leased_until=conducted.leased_until)
        except Exception as error:
            log.exception("run %d could not be started", run)
            if not self._carrier.veto(run):
                return await self._carrier.adopt(run)
            return Ending(result=Result(error=f"it could not be started: {error}"))

    async def starts_settled(self) -> None:
        """Until every start that is under way now has executed or been vetoed."""
        if self._starting:
            await asyncio.wait(set(self._starting))

    # -- recovering ---------------------------------------------------------------------------------------------
    async def recover(self, rows: Sequence[RunRow]) -> None:
        """Runs that are open in the store and that nobody follows: adopted, read, or vetoed and void."""
        void = []
        for conducted in self._unknown(rows):
            if self._never_starts(conducted):
                void.append(conducted)
            else:
                self._follow(conducted, self._adopt(conducted))
        if void:
            await self._void(*void)

    def _never_starts(self, conducted: Conducted) -> bool:
        """Whether it has not executed and never will."""
        run = conducted.run
        found = self._carrier.find(run)
        log.info("recovered", extra={"fields": {"run": run, "agent": conducted.agent, "found": found.value}})
        return found is Found.unstarted and self._carrier.veto(run)

    async def _adopt(self, conducted: Conducted) -> None:
        await self._see_through(conducted, await self._carrier.adopt(conducted.run))

    # -- following ----------------------------------------------------------------------------------------------
    async def _see_through(self, conducted: Conducted, held: Held) -> None:
        conducted.held = held
        if conducted.leased_until is not None:
            # What was renewed while it was adopted has not reached it yet.
            held.extend(conducted.leased_until)
        if conducted.taken:
            await held.end(FENCING, at_once=True)
            return
        for stop in (conducted.unheard, *conducted.unheard_tasks):
            if stop is not None:
                await self._pass_on(conducted, stop)
        last: list[TaskEnd] = []
        async for batch in held.batches():
            if held.over:
                # Told with the end of the whole, in one transaction.
                last += batch
            else:
                await self._settle_tasks(conducted, batch)
        ending = await held.wait()
        if ending.by != VETO:
            await self._looked(conducted)
            await self._published(conducted)
            await self._settle(conducted, ending, last)
        elif conducted.unheard is not None:
            await self._settle(conducted, Ending(by=conducted.unheard.by))
        else:
            await self._void(conducted)

    async def _void(self, *conducted: Conducted) -> None:
        for each in conducted:
            each.over = True

        def verb(store: Store) -> None:
            for each in conducted:
                try:
                    store.void(each.run, each.epoch, self._clock.now())
                except Stale as refused:
                    log.warning("an older word was refused: %s", refused)

        await self._insist(verb)

    async def _settle(self, conducted: Conducted, ending: Ending, tasks: Sequence[TaskEnd] = ()) -> None:
        conducted.over = True
        ending, ended = redacted_ending(ending, self._hide), tuple(redacted_end(each, self._hide) for each in tasks)
        end = Finish(run=conducted.run, epoch=conducted.epoch, ending=ending, tasks=ended)
        if self.relay is not None and conducted.tasks and (conducted.shift or 0) > 1:
            try:
                await self.relay(lambda store, now: _finish(store, end, now))
                return
            except Exception as error:
                # Told by itself, then: whoever else is in the way of what comes next is not in the way of that.
                log.debug("run %d is ended without what follows it: %s", conducted.run, in_a_line(error))
        await self._insist(lambda store: store.finish([end], settle, self._clock.now()))

    async def _settle_tasks(self, conducted: Conducted, batch: list[TaskEnd]) -> None:
        """Of what was told before a restart, or is no longer this run's to do, the store knows better."""
        run, epoch = conducted.run, conducted.epoch
        ended = [redacted_end(each, self._hide) for each in batch]
        await self._insist(lambda store: store.finish_tasks(run, epoch, ended, self._clock.now()))

    async def _insist(self, verb: Callable[[Store], Any]) -> None:
        """A store that is away for a while, or a full disk, must not cost a result."""
        rest = FIRST_REST
        while True:
            try:
                await self._access.write(verb)
                return
            except Stale as refused:
                log.warning("an older word was refused: %s", refused)
                return
            except Exception as error:
                log.error("the store did not take the end of a run, trying again in %g s: %s", rest, in_a_line(error))
            await asyncio.sleep(rest)
            rest = min(rest * 2, LONGEST_REST)

    # -- leases -------------------------------------------------------------------------------------------------
    def extend(self, conducted: Conducted, until: float) -> None:
        """It may go on until then, in seconds since boot."""
        conducted.leased_until = until
        if conducted.held is not None:
            conducted.held.extend(until)
        else:
            self._carrier.extend(conducted.run, until)

    async def drop(self, conducted: Conducted) -> None:
        """It is no longer ours: it is ended at once, and followed no further."""
        if not conducted.taken:
            log.warning("run %d of %s is no longer ours, and is ended here", conducted.run, conducted.agent)
        conducted.taken = True
        try:
            if conducted.held is None:
                # What has not executed never will; what has is ended as soon as we hold it.
                self._carrier.veto(conducted.run)
                return
            async with asyncio.timeout(MOMENT):
                await conducted.held.end(FENCING, at_once=True)
        except Exception as error:
            log.warning("run %d could not be told, and is left to its fence: %s", conducted.run, in_a_line(error))
        if conducted.held is not None and conducted.following is not None:
            conducted.following.cancel()

    # -- ending -------------------------------------------------------------------------------------------------
    async def stop_asked(self) -> None:
        """End the runs that somebody wants ended; each is told once, and once more when it is to be at once."""
        if not self._open:
            return
        stops: list[Stop] = await self._access.read(lambda store: store.stopping(self._node))
        for stop in stops:
            conducted = self._open.get(stop.run)
            if conducted is not None and stop not in conducted.told:
                await self._pass_on(conducted, stop)

    async def _pass_on(self, conducted: Conducted, stop: Stop) -> None:
        if conducted.held is None:
            # A start may take its time. What has not executed never will; what has is told as soon as we hold it.
            if stop.task is None or conducted.tasks == 1:
                conducted.unheard = stop
                self._carrier.veto(conducted.run)
            elif stop not in conducted.unheard_tasks:
                conducted.unheard_tasks.append(stop)
            return
        conducted.told.add(stop)
        try:
            await conducted.held.end(stop.by, at_once=stop.at_once, task=stop.task)
        except BaseException:
            conducted.told.discard(stop)
            raise

    async def drained(self) -> None:
        """Until nothing is under way."""
        while self._following:
            await asyncio.wait(set(self._following))

    async def let_go(self) -> None:
        """Follow nothing more: the runs go on under their guardians. Starts under way are settled first, the slow ones
        by a veto."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self.starts_settled()
        for conducted in self.open:
            if conducted.held is None:
                self._carrier.veto(conducted.run)
        await self.starts_settled()
        self._leaving = True
        following = list(self._following)
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
