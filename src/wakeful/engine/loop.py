"""The heart: sleeps until the earliest due instant or a nudge, decides what is due, and begins what was admitted.

Laws:
- Nothing is polled. The store says when to look again; a commit of anybody's is a nudge; a slow resync is the net.
- Deciding and claiming are one transaction: once committed, the start is recorded; only then is there a process.
- Where several nodes share the store, whoever decides also ends the runs whose nodes are gone, in that transaction.
- A turn that fails is told and tried again; the heartbeat is the loop's own progress, and nobody else's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from wakeful.core.admission import admit
from wakeful.core.errors import Busy
from wakeful.core.orders import Order
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.core.wakes import Cause, Wake
from wakeful.engine.absence import in_a_line
from wakeful.engine.clock import LONGEST, Clock, Jumps, Nudge
from wakeful.engine.conduct import Conductor
from wakeful.engine.holds import PauseFile
from wakeful.engine.preparing import Preparing
from wakeful.engine.presence import ENDLESS, LEASE
from wakeful.engine.recurring import Recurring
from wakeful.store.protocol import Access, Due, Finish, Store

log = logging.getLogger("wakeful.engine")

T = TypeVar("T")
Claim = Callable[[Store, datetime], None]

RESYNC = timedelta(minutes=5)
# One instant may take a few rounds (a decision frees what another waits for); more than this is a mistake of ours.
MOST_ROUNDS = 50
# Rest after such a mistake, and between two looks while an agent's CHECK or pull is under way.
BREATH = timedelta(milliseconds=250)
# Meanwhile it is looked for runs whose nodes are gone this often.
UNSEEN = timedelta(seconds=4)


def _due(store: Store, now: datetime) -> Due:
    return store.due(now)


class Loop:
    name = "loop"

    def __init__(
        self,
        access: Access,
        conductor: Conductor,
        preparing: Preparing,
        pause_file: PauseFile,
        clock: Clock,
        node: str,
        clock_set: Callable[[], Awaitable[None]],
        *,
        shared: bool = False,
    ) -> None:
        """`clock_set` is called when somebody has set the calendar: every timer is then looked at anew. In a `shared`
        store runs are leased for a short while, and those of nodes that are gone are ended."""
        self._access = access
        self._clock_set = clock_set
        self._conductor = conductor
        self._preparing = preparing
        self._pause_file = pause_file
        self._clock = clock
        self._node = node
        self._shared = shared
        self._jumps = Jumps(clock)
        self._recurring = Recurring(clock)
        self._draining = False
        self._turning = asyncio.Lock()
        self._takings: set[asyncio.Task[Any]] = set()
        # Something was claimed beside us, and whether it was committed is not known.
        self._missed = False
        self._jumped = False
        self.nudge = Nudge()
        self.turns = 0
        self.last_turn: float = clock.elapsed()
        self._resigned_until = self._decided_at = float("-inf")
        # Why the last turn failed, while the store is away.
        self.away = ""
        access.watch(self.nudge.ring)
        conductor.relay = self.relay

    async def run(self) -> None:
        try:
            await self._live()
        except Busy as away:
            self.away = in_a_line(away)
            raise

    async def _live(self) -> None:
        await self._resync()
        while True:
            async with self._turning:
                next_at = await self.turn()
            self.away = ""
            if await self._rest(next_at) or self._missed:
                await self._resync()

    async def _resync(self) -> None:
        """After a failure of ours, and now and then: a claim may have been committed without our hearing of it."""
        self._missed = False
        self._conductor.look_for(await self._access.read(lambda store: store.runs(open=True, limit=1_000_000)))

    async def only_settle(self) -> None:
        """From now on nothing is decided; ends that are asked for are still passed on. What has been decided in a
        turn under way has begun when this returns."""
        self._draining = True
        self.nudge.ring()
        async with self._turning:
            if self._takings:
                await asyncio.wait(set(self._takings))

    async def turn(self) -> datetime | None:
        """Everything that can be done at this instant; when to look again."""
        if self._jumped:
            await self._clock_set()
        await self._pause_file.obey()
        await self._conductor.stop_asked()
        if self._draining:
            self._progress()
            return None
        for _ in range(MOST_ROUNDS):
            now = self._clock.now()
            due = await self._access.read(partial(_due, now=now))
            wakes = (*due.wakes, *await self._timed_anew(due)) if self._jumped else due.wakes
            self._jumped = False
            ready = await self._preparing.sift(wakes, now)
            self._progress()
            if not ready and not due.unclaimed:
                if due.wakes and not await self._neglected(now):
                    return now + BREATH
                if not due.wakes and not self._overdue(due, now):
                    return due.next_at
                if self._resigned():
                    return None
            asked = self._clock.elapsed()
            self._begin(await self._decide(ready), asked)
        log.error("%d rounds at one instant, and still something is due", MOST_ROUNDS)
        return self._clock.now() + BREATH

    async def _timed_anew(self, due: Due) -> list[Wake]:
        """Beats that wait for an instant of a calendar that somebody has set since: they are decided again, and
        found to be due when their standings, which have been looked at, say so."""
        rows = await self._access.read(lambda store: store.wakes(state="waiting", limit=1_000_000))
        timers = [row.wake for row in rows if row.wake.cause is Cause.timer and not row.wake.one_off]
        known = {wake.id for wake in due.wakes}
        return [wake for wake in timers if wake.id not in known]

    def _overdue(self, due: Due, now: datetime) -> bool:
        """Nothing to decide, but its time has come: of a pause, a lease, or an admission that nobody claimed."""
        return due.next_at is not None and due.next_at <= now

    async def _neglected(self, now: datetime) -> bool:
        """Whether what is no wake waits because what is due is still being prepared: what others left behind, and what
        recurs."""
        unseen = self._clock.elapsed() - self._decided_at
        if self._shared and not self._resigned() and unseen >= UNSEEN.total_seconds():
            return True
        return await self._access.read(partial(self._recurring.overdue, now=now)) if self._recurring.asks() else False

    async def _decide(self, wakes: Sequence[Wake]) -> list[Order]:
        self._decided_at = self._clock.elapsed()

        def verb(store: Store) -> list[Order]:
            now = self._clock.now()
            store.expire(now)
            self._recurring.put(store, now, idle=not wakes)
            if self._shared and not self._resigned():
                self._end_orphans(store, now)
            return self._decide_and_claim(store, wakes, now)

        return await self._access.write(verb)

    def _decide_and_claim(self, store: Store, wakes: Sequence[Wake], now: datetime) -> list[Order]:
        if wakes:
            store.decide(wakes, admit, now)
        return self._claim(store, now)

    async def relay(self, end: Callable[[Store, datetime], None]) -> None:
        """The end of a shift, and in the same transaction the next one, where nothing else is due: its worker waits for
        no turn of ours."""
        asked, orders = self._clock.elapsed(), list[Order]()

        def verb(store: Store) -> None:
            now = self._clock.now()
            end(store, now)
            wakes = [] if self._draining else store.ready(now)
            orders[:] = self._decide_and_claim(store, wakes, now) if wakes else []

        await self._take(lambda: self._access.write(verb), orders, asked)

    def _claim(self, store: Store, now: datetime) -> list[Order]:
        return store.claim(self._node, now, LEASE if self._shared else ENDLESS)

    def _begin(self, orders: Sequence[Order], asked: float) -> None:
        """A lease counts from before it was `asked` for."""
        until = asked + LEASE.total_seconds() if self._shared else None
        for order in orders:
            self._conductor.begin(order, self._preparing.data(order), leased_until=until)

    async def taking(self, write: Callable[[Claim], Awaitable[T]]) -> T:
        """For whoever decides beside us: `write` is given what claims in its own transaction what it admitted; that is
        begun once it has written, also when nobody waits for the answer any more."""
        asked, orders = self._clock.elapsed(), list[Order]()

        def claim(store: Store, now: datetime) -> None:
            # A transaction that is tried again claims again.
            orders[:] = self._claim(store, now)

        return await self._take(lambda: write(claim), orders, asked)

    async def _take(self, write: Callable[[], Awaitable[T]], orders: list[Order], asked: float) -> T:
        async def take() -> T:
            try:
                answer = await write()
            except Exception:
                # It may have been written for all that, and then what it claimed is ours.
                self._missed = bool(orders)
                self.nudge.ring()
                raise
            self._begin(orders, asked)
            return answer

        task = asyncio.get_running_loop().create_task(take())
        self._takings.add(task)
        task.add_done_callback(self._takings.discard)
        return await asyncio.shield(task)

    def _end_orphans(self, store: Store, now: datetime) -> None:
        """Each by itself: one that cannot be settled must not keep the fleet from its work."""
        for run, epoch in store.orphans(now):
            try:
                store.finish([Finish(run=run, epoch=epoch, ending=Ending(orphaned=True))], settle, now)
            except Busy:
                raise
            except Exception:
                log.exception("run %d, whose node is gone, could not be ended", run)
                self._resigned_until = self._clock.elapsed() + LONGEST.total_seconds()

    def _resigned(self) -> bool:
        """Whether there is an orphan that could not be ended, and that we leave alone for a while."""
        return self._clock.elapsed() < self._resigned_until

    def _progress(self) -> None:
        self.turns += 1
        self.last_turn = self._clock.elapsed()

    async def _rest(self, next_at: datetime | None) -> bool:
        """Until something is due, or somebody rings; whether nobody did for so long that it is time for a resync."""
        # Even a loop that never waits must let others have their turn.
        await asyncio.sleep(0)
        until = self._clock.elapsed() + RESYNC.total_seconds()
        while self._clock.elapsed() < until:
            left = LONGEST if next_at is None else min(next_at - self._clock.now(), LONGEST)
            if left <= timedelta():
                return False
            rang = await self.nudge.wait(left)
            self._progress()
            jump = self._jumps.since_last()
            if jump:
                log.warning("the clock was set by %g s", jump.total_seconds())
                self._jumped = True
            if rang or jump:
                return False
        return True
