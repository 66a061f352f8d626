"""One node of a world: a real engine with its control, guardians that outlive it, a clock of its own, and bad luck.

Laws:
- A crash takes everybody of the node at whatever they await, and nothing of it does anything afterwards. Its guardians
  live on, and what it had committed stays.
- Every call of the store may meet trouble: before its commit, after it, or so that nobody knows; the node's own death
  among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from wakeful.control.control import Control
from wakeful.core.agents import Fleet
from wakeful.core.errors import Busy, Sick
from wakeful.core.orders import Order
from wakeful.engine.engine import Engine
from wakeful.store.inline import Inline
from wakeful.store.session import CALL
from wakeful.store.store import SqlStore
from wakeful.testing.carrier import VirtualCarrier
from wakeful.testing.clock import SkewedClock
from wakeful.testing.scribe import SeenStore, Told

if TYPE_CHECKING:
    from wakeful.testing.world import World

T = TypeVar("T")

# Whose the task is that is being made.
WHOSE: ContextVar[str] = ContextVar("whose", default="")
AWAY = "the database is away: connection refused"
FULL = "database or disk is full"
# What a trouble of the world makes an engine say.
EXPECTED = (Busy,)


class VirtualFile:
    """The fleet file as one node has read it; what it says now is the world's to say."""

    def __init__(self, written: Callable[[], Fleet]) -> None:
        self.path = Path("/nowhere/fleet.org")
        self._written = written
        self.fleet: Fleet | None = written()
        self.diagnostics: tuple[Any, ...] = ()
        self.broken = False

    def folders(self) -> set[Path]:
        return set()

    def changed(self) -> bool:
        return self._written() is not self.fleet

    def refresh(self) -> bool:
        changed, self.fleet = self.changed(), self._written()
        return changed


class VirtualWatch:
    """Hints of files, in the place of the kernel's: whoever listens is told when the world says so."""

    name = "watch"

    def __init__(self) -> None:
        self._told: dict[Callable[[], None], None] = {}
        self.hears = True

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        self._told.clear()

    def folders(self, folders: Iterable[Path], told: Callable[[], None]) -> None:
        self._told[told] = None

    def tell(self) -> None:
        for told in list(self._told):
            told()


class StationAccess(Inline):
    """The store as one life of a node reaches it."""

    def __init__(self, store: SqlStore, station: Station) -> None:
        super().__init__(store)
        self._station = station
        self._dead = False

    def die(self) -> None:
        self._dead = True
        self._watchers.clear()

    async def write(self, verb: Callable[[SqlStore], T], *, quiet: bool = False) -> T:
        await self._reach("read")
        told: list[Told] = []
        trouble = self._station.world.faults.at_commit(1 if quiet else 8)
        with self.store.session.transaction(CALL):
            value = verb(SeenStore(self.store, told))  # type: ignore[arg-type]
            site = told[-1].verb if told else "a word of its own"
            if trouble in ("crash before", "away before", "full"):
                self._strike(trouble, site)
        self._station.world.scribe.commit(told)
        if trouble in ("crash after", "away after"):
            if not quiet:
                self._station.world.hint(self._station)
            self._strike(trouble, site)
        if not quiet:
            self.tell()
            self._station.world.hint(self._station)
        return value

    async def read(self, verb: Callable[[SqlStore], T]) -> T:
        await self._reach("read")
        return verb(self.store)

    async def _reach(self, what: str) -> None:
        station = self._station
        if self._dead:
            raise asyncio.CancelledError
        if station.away:
            raise Busy(AWAY)
        if not station.thawed.is_set():
            await station.thawed.wait()
        station.world.tell_time()
        if station.world.faults.at_await():
            self._strike("crash", what)

    def _strike(self, trouble: str, site: str) -> NoReturn:
        self._station.world.faults.note(trouble, site)
        if trouble.startswith("crash"):
            self._station.crash()
            raise asyncio.CancelledError
        if trouble == "full":
            raise Sick(FULL)
        raise Busy(AWAY)


class Station:
    def __init__(self, world: World, name: str, skew: timedelta) -> None:
        self.world = world
        self.name = name
        self.clock = SkewedClock(world.clock, skew)
        self.carrier = VirtualCarrier(world.script, carried=self._carried, before=self._before)
        self.data = world.folder / name
        self.data.mkdir(parents=True)
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.away = self.deaf = False
        self.thawed = asyncio.Event()
        self.thawed.set()
        self.access: StationAccess | None = None
        self._engine: Engine | None = None
        self.control: Control | None = None
        # Counts its lives: what was meant for one of them is not for the next.
        self.life = 0
        # Why it could not begin, the last time.
        self.trouble: Exception | None = None

    @property
    def up(self) -> bool:
        return self._engine is not None and self._engine.ready

    @property
    def engine(self) -> Engine:
        assert self._engine is not None
        return self._engine

    # -- its life -----------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """A new engine, which knows nothing but what the last one left."""
        if self._engine is not None:
            return
        self.life += 1
        self.world.witness.note("up", self.name)
        self.access = StationAccess(self.world.store, self)
        self.owned(self._start(self.access))

    async def _start(self, access: StationAccess) -> None:
        self._engine = engine = Engine(
            access,
            self.carrier,
            VirtualFile(lambda: self.world.fleet),  # type: ignore[arg-type]
            self.clock,
            self.name,
            self.data,
            host=self.name,
            shared=True,
            sources=self.world.shelves.declared,
        )
        runs, clock = self.data / "runs", self.clock.now
        self.control = Control(access, runs=runs, clock=clock, beside=engine, node=self.name, shared=True)
        try:
            await engine.start()
        except EXPECTED as error:
            self.trouble = error
            # As a process that ends with an error, and is begun again.
            self.crash()

    def crash(self) -> None:
        """Everybody of it stops where they are; whoever brings it up again finds what was committed."""
        if self.access is None:
            return
        self.world.witness.note("crash", self.name)
        self.access.die()
        self.access = self._engine = self.control = None
        for task in list(self.tasks):
            task.cancel()
        self.away = False
        self.thawed.set()
        self.world.fell(self)

    async def leave(self, *, drain: bool) -> None:
        """It is stopped, as a person stops it."""
        engine, life = self._engine, self.life
        if engine is None or not engine.ready:
            return
        self.world.witness.note("leave", self.name, drain)
        engine.leave(drain=drain)
        stopping = self.owned(engine.stop())
        await asyncio.wait({stopping})
        if self.life == life and self._engine is engine:
            self.crash()

    def owned(self, work: Any) -> asyncio.Task[Any]:
        """A task that dies with this node; and so does whatever it begins."""
        before = WHOSE.set(self.name)
        try:
            return asyncio.get_running_loop().create_task(work)
        finally:
            WHOSE.reset(before)

    # -- its guardians ------------------------------------------------------------------------------------------
    async def _before(self, order: Order) -> None:
        """To start a process takes a moment, now and then a long one; and the node may die of it."""
        faults = self.world.faults
        if faults.at_await(20):
            faults.note("crash", "before a start")
            self.crash()
            raise asyncio.CancelledError
        wait = faults.slow_start()
        if wait:
            await asyncio.sleep(wait)

    def _carried(self, order: Order, at: float) -> None:
        self.world.began(self, order)

    def lose_all(self) -> None:
        """The machine is gone, and every guardian with it."""
        for guardian in self.carrier.runner.alive():
            self.carrier.lose(guardian.order.run.id)
