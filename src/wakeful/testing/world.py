"""One seeded world: a fleet, its agents, its operator, its files, three nodes, and whatever can go wrong with them.

Laws:
- Everything is drawn from the seed; two worlds of one seed leave the same trace.
- Engines, control and store are the real ones; what they know of each other they have from the store. The world asks
  for things through control, as anybody does, and judges nothing: the checkers do.
- Two phases: first everything happens at once; then faults stop, pauses are lifted, and what is left must drain.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from wakeful.control.callers import OPERATOR, Caller
from wakeful.control.rows import Row
from wakeful.core.agents import Fleet
from wakeful.core.errors import WakefulError
from wakeful.core.orders import Order
from wakeful.core.wakes import Verdict, VerdictKind
from wakeful.engine.holds import NAME as PAUSE_FILE
from wakeful.store.protocol import Decision
from wakeful.store.store import SqlStore
from wakeful.testing import acting, actions
from wakeful.testing.clock import TrueClock
from wakeful.testing.faults import Faults
from wakeful.testing.fleets import draw_fleet, draw_start
from wakeful.testing.habits import Habits, draw_habits, draw_plan, flooding, troubles_of
from wakeful.testing.loop import NothingComes, VirtualLoop
from wakeful.testing.pace import PACE, lease, listening, paced
from wakeful.testing.runner import Act, Plan
from wakeful.testing.scribe import Scribe
from wakeful.testing.shared import open_shared
from wakeful.testing.shelves import Shelves
from wakeful.testing.station import WHOSE, Station
from wakeful.testing.witness import Asked, Witness

Open = Callable[[Path, Callable[[], datetime]], SqlStore]

DRAIN = timedelta(hours=2)
NODES = ("ash", "elm", "oak")
SKEWS = (0, 0, 0, 2, -2, 40, -40, 300, -300)
FIVE_MINUTES = timedelta(minutes=5)


class World:
    def __init__(
        self,
        seed: int,
        path: Path,
        open_store: Open = open_shared,
        *,
        days: float | None = None,
        pace: float = PACE,
        fleet: Fleet | None = None,
        tell_time: Callable[[SqlStore, datetime], None] | None = None,
    ) -> None:
        """`fleet` is one to begin with, unless it is drawn. `tell_time` is for a store that does not read the clock of
        the leases by itself."""
        self.seed = seed
        self.pace = pace
        self.folder = path.with_name(f"nodes of {path.stem}")
        self.dice = Random(f"{seed}:world")
        self.shape = shape = Random(f"{seed}:shape")
        self.start = draw_start(shape)
        self.clock = TrueClock(self.start)
        self.witness = Witness(self.clock)
        self.scribe = Scribe(self.witness)
        # What the file says.
        drawn = draw_fleet(shape, self.start)
        self.fleet: Fleet = fleet or drawn
        self.length = timedelta(days=days or shape.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 3)))
        self.faults = Faults(Random(f"{seed}:faults"), shape)
        self.shelves = Shelves(seed, self.faults.count)
        self.plan = actions.draw_schedule(shape, actions.draw_kinds(shape), self.length)
        self.store: SqlStore = open_store(path, lambda: self.clock.wall)
        self._tell_time = tell_time
        self.stations: list[Station] = []
        self.requests: list[actions.Request] = []
        self._habits: dict[str, Habits] = {}
        self._acts: dict[int, tuple[Act, ...]] = {}
        self._doing: dict[asyncio.Task[None], None] = {}

    @property
    def known(self) -> Fleet:
        return self.fleet

    def tell_time(self) -> None:
        if self._tell_time is not None:
            self._tell_time(self.store, self.clock.wall)

    # -- the two phases -----------------------------------------------------------------------------------------
    def run(self) -> None:
        runner = asyncio.Runner(loop_factory=VirtualLoop)
        with paced(self.pace), listening(self.witness.complain), runner:
            runner.run(self._live())

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.set_task_factory(self._owned_task)
        self.clock.begin(loop)
        try:
            await self._happen()
            await self._drain()
        finally:
            self._witness_guardians()
            self.clock.end()
            self.faults.on = False
            for task in list(self._doing):
                task.cancel()
            for station in self.stations:
                station.crash()
            await asyncio.sleep(0)

    async def _happen(self) -> None:
        for name in NODES:
            skew = timedelta(seconds=self.shape.choice(SKEWS))
            self.stations.append(Station(self, name, skew))
            if abs(skew) >= FIVE_MINUTES:
                self.faults.count("clock off by five minutes")
        loop = asyncio.get_running_loop()
        for station in self.stations[1:]:
            wait = self.shape.choice((0.0, 0.0, 1.0, 3600.0))
            loop.call_later(wait, station.begin)
            if wait > 60:
                self.faults.count("node joined later")
        self.stations[0].begin()
        for after, kind in self.plan:
            await self._until(after)
            self.witness.note("action", kind)
            self.faults.count(f"somebody did: {kind}")
            self.do(actions.ACTIONS[kind](self))
        await self._until(self.length)

    async def _until(self, elapsed: timedelta) -> None:
        await asyncio.sleep(max((elapsed - self.clock.elapsed).total_seconds(), 0.0))

    async def _drain(self) -> None:
        """Faults stop, every node comes up, nobody is paused; what waits must then go through by itself."""
        self.witness.note("drain")
        self.faults.on = False
        for station in self.stations:
            station.away = station.deaf = False
            station.thawed.set()
            station.clock.skew = timedelta()
            (station.data / PAUSE_FILE).unlink(missing_ok=True)
        for _ in range(DRAIN // timedelta(minutes=1)):
            if all(station.up for station in self.stations):
                break
            for station in self.stations:
                station.begin()
            await asyncio.sleep(60)
        else:
            down = {station.name: station.trouble for station in self.stations if not station.up}
            raise NothingComes(f"nodes that do not come up again: {down}")
        # Until what was set is noticed, and what the dead had is taken.
        await asyncio.sleep(lease() * 1.5)
        self.shelves.heal()
        self.witness.drained = self.clock.elapsed
        await self._lift_pauses()
        if self.seed % 8 == 0:
            self.witness.early_events = self.store.events(limit=100_000)
        end = self.clock.elapsed + DRAIN
        for _ in range(2):
            # In peace a run that is to end hears of it soon.
            await asyncio.sleep(DRAIN.total_seconds() / 5)
            for run in self.store.runs(open=True):
                await self.ask(self.dice.choice(self.stations), "kill", run=run.id)
        await self._until(end)

    async def _lift_pauses(self) -> None:
        station = self.stations[0]
        assert station.access is not None
        for pause in self.store.pauses():
            now = station.clock.now()
            await station.access.write(
                lambda store, pause=pause, now=now: store.resume(pause.scope, "operator", now, owner=pause.owner)  # type: ignore[misc]
            )

    # -- who does what ------------------------------------------------------------------------------------------
    def _owned_task(self, loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **named)
        station = next((station for station in self.stations if station.name == WHOSE.get()), None)
        if station is not None:
            station.tasks[task] = None
            task.add_done_callback(lambda done: station.tasks.pop(done, None))
        return task

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Somebody does something, and takes as long as it takes."""
        task = asyncio.get_running_loop().create_task(work)
        self._doing[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._doing.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.witness.complain("".join(traceback.format_exception(error)))

    async def ask(
        self, station: Station, operation: str, caller: Caller = OPERATOR, **parameters: Any
    ) -> Row | WakefulError | None:
        """What control answers; what it refused; or None where no answer came."""
        if not station.up or station.control is None:
            return None
        asking = station.owned(getattr(station.control, operation)(caller, **parameters))
        await asyncio.wait({asking})
        if asking.cancelled():
            return None
        error = asking.exception()
        if error is not None and not isinstance(error, WakefulError):
            self.witness.complain(f"{operation}: {''.join(traceback.format_exception(error))}")
            return None
        answer: Row | WakefulError = asking.result() if error is None else error
        self.witness.note("answer", operation, type(error).__name__)
        if isinstance(answer, dict):
            self._heard(operation, answer)
            self._acknowledged(operation, answer, parameters)
        return answer

    def _acknowledged(self, operation: str, answer: Row, parameters: dict[str, Any]) -> None:
        if operation == "send":
            self.witness.acknowledged[answer["message"]["id"]] = parameters["body"]
        elif operation == "add_task":
            self.witness.acknowledged[answer["id"]] = parameters["title"]
        elif operation == "run":
            self.witness.acknowledged[answer["task_id"]] = parameters["prompt"]

    def _heard(self, operation: str, answer: Row) -> None:
        """The verdict in an answer, where there is one and it is this request's own."""
        row = answer if operation in ("tick", "wake", "run") else answer.get("wake") if operation == "send" else None
        if not row or row["duplicate"] or (row["verdict"] == "defer" and not row["guard"] and row["joined"] is None):
            return
        verdict = Verdict(kind=VerdictKind(row["verdict"]), guard=row["guard"])
        decision = Decision(wake=row["wake_id"], verdict=verdict, run=row["run_id"], joined=row["joined"])
        self.witness.asked.append(Asked(operation=operation, decision=decision))

    def hint(self, sender: Station) -> None:
        """A commit of one node's is heard of by the others, late, twice or not at all."""
        loop = asyncio.get_running_loop()
        for station in self.stations:
            if station is sender or station.access is None:
                continue
            for delay in self.faults.hints() if not station.deaf else ():
                loop.call_later(delay, self._tell, station, station.life)

    def _tell(self, station: Station, life: int) -> None:
        if station.access is not None and station.life == life:
            station.access.tell()

    def fell(self, station: Station) -> None:
        """It is down, and somebody brings it up again."""
        wait = self.dice.choice((2.0, 40.0, 0.5 * lease(), 3 * lease()))
        asyncio.get_running_loop().call_later(wait, self._rise, station, station.life)

    def _rise(self, station: Station, life: int) -> None:
        if station.life == life and station.access is None:
            station.begin()

    # -- runs ---------------------------------------------------------------------------------------------------
    def script(self, order: Order) -> Plan:
        name = order.agent.address
        if name not in self._habits:
            self._habits[name] = draw_habits(Random(f"{self.seed}:habits:{name}"))
        plan = flooding(self.seed, draw_plan(self.dice, self._habits[name], order), order)
        for kind in troubles_of(plan):
            self.faults.count(kind)
        self._acts[order.run.id] = plan.acts
        return replace(plan, acts=())

    def began(self, station: Station, order: Order) -> None:
        run = order.run.id
        self.witness.executions[run].started = self.clock.elapsed
        self.witness.note("started", run, station.name)
        loop = asyncio.get_running_loop()
        for act in self._acts.pop(run):
            loop.call_later(act.after.total_seconds(), self._act, station, order, act.what)

    def _act(self, station: Station, order: Order, what: str) -> None:
        guardian = station.carrier.runner.guardians[order.run.id]
        if guardian.alive and guardian.ends > self.clock.elapsed and self.faults.on:
            self.do(acting.act(self, station, order, what))

    def _witness_guardians(self) -> None:
        """How each run truly went, from those who held it; and what is there outside."""
        self.witness.lease = timedelta(seconds=lease())
        for shelf in self.shelves.all.values():
            self.witness.shelves[shelf.source] = {id: thing.fingerprint for id, thing in shelf.things.items()}
        for station in self.stations:
            for run, guardian in station.carrier.runner.guardians.items():
                execution = self.witness.executions[run]
                execution.started, execution.exit = guardian.started, guardian.exit
                over = guardian.ends if guardian.alive and guardian.ends <= self.clock.elapsed else None
                execution.ended = over if guardian.alive else guardian.ended
