"""One seeded world: a fleet, its agents, its operator, its files, and everything that can go wrong with them.

Laws:
- Everything is drawn from the seed; two worlds of one seed leave the same trace.
- The world acts only through the store's verbs and the driver, and writes what it saw into the witness. It judges
  nothing: the checkers do.
- Two phases: first everything happens at once; then faults stop, pauses are lifted, and what is left must drain.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

from wakeful.core.agents import Fleet
from wakeful.core.errors import Conflict
from wakeful.core.items import NewItem
from wakeful.core.orders import Order
from wakeful.core.wakes import Pause
from wakeful.store.protocol import Recorded, Store
from wakeful.testing import actions
from wakeful.testing.clock import VirtualClock
from wakeful.testing.driver import Driver
from wakeful.testing.faults import Crash, Faults
from wakeful.testing.fleets import draw_fleet, draw_start, minutes
from wakeful.testing.habits import Habits, draw_habits, draw_plan
from wakeful.testing.mirrors import Mirrors
from wakeful.testing.runner import Guardian, Plan, VirtualRunner
from wakeful.testing.witness import Accepted, Held, Released, Witness

Open = Callable[[Path, Callable[[str, str], None]], Store]

DRAIN = timedelta(hours=2)


class World:
    def __init__(self, seed: int, path: Path, open_store: Open, *, days: float | None = None) -> None:
        self.seed = seed
        self.dice = Random(f"{seed}:world")
        shape = Random(f"{seed}:shape")
        self.start = draw_start(shape)
        self.clock = VirtualClock(self.start)
        self.witness = Witness(self.clock)
        # What the file says, and what the engine last read of it.
        self.fleet: Fleet = draw_fleet(shape, self.start)
        self.known: Fleet = self.fleet
        self.length = timedelta(days=days or shape.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 3)))
        self.habits: dict[str, Habits] = {}
        self.runner = VirtualRunner(self._script)
        self.faults = Faults(Random(f"{seed}:faults"), shape.choice((0.0, 0.0005, 0.002, 0.006)))
        self.mirrors = Mirrors(Random(f"{seed}:mirrors"))
        self.kinds = actions.draw_kinds(shape)
        self.plan = actions.draw_schedule(shape, self.kinds, self.length)
        self._open = partial(open_store, path, self.faults.probe)
        self.store = self._open()
        self.driver: Driver | None = None
        self.up_at: timedelta | None = timedelta()
        self.look_at: timedelta | None = None

    # -- the two phases ---------------------------------------------------------------------------------------
    def run(self) -> None:
        self._live_until(self.length)
        self._drain()

    def _drain(self) -> None:
        """Faults stop, the engine comes up, nobody is paused; what waits must then go through by itself."""
        self.faults.on = False
        self.plan = []
        if self.driver is None:
            self.up_at = self.clock.elapsed
        self._live_until(self.clock.elapsed + timedelta(seconds=1))
        for pause in self.store.pauses():
            self.resume(pause.scope, pause.owner)
        self.mirrors.settle(self)
        if self.seed % 8 == 0:
            self.witness.early_events = self.store.events(limit=100_000)
        self._nudge()
        self._live_until(self.clock.elapsed + DRAIN)

    def _live_until(self, end: timedelta) -> None:
        while (following := self._next_at()) is not None and following <= end:
            self.clock.advance_to(following)
            self._happen()
        self.clock.advance_to(end)

    def _next_at(self) -> timedelta | None:
        times = [self.runner.next_at(), self.up_at, self.look_at if self.driver else None]
        if self.plan:
            times.append(self.plan[0][0])
        return min((time for time in times if time is not None), default=None)

    def _happen(self) -> None:
        """Everything whose time has come, each thing apart: a crash of one does not undo another."""
        now = self.clock.elapsed
        for guardian, act in self.runner.acts_due(now):
            if self.driver is not None:
                self.attempt(partial(actions.act, self, guardian, act.what))
        for guardian in self.runner.write_exits(now):
            self._saw_end(guardian)
            if self.driver is not None:
                self.attempt(partial(self.mirrors.resync, self, guardian.order.run.agent))
        if self.plan and self.plan[0][0] <= now:
            _, name = self.plan.pop(0)
            self.witness.note("action", name)
            # A fleet that no start has managed to declare yet cannot be asked for anything.
            if any(declared.committed for declared in self.witness.declared):
                self.attempt(partial(actions.ACTIONS[name], self))
        if self.up_at is not None and self.up_at <= now:
            self.boot()
        self._nudge()

    def _nudge(self) -> None:
        if self.driver is not None:
            self.look_at = None
            self.attempt(self._turn)

    def _turn(self) -> None:
        assert self.driver is not None
        self.look_at = self.driver.turn()

    # -- the engine's life ------------------------------------------------------------------------------------
    def attempt(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Crash as crash:
            self.crash(str(crash))

    def boot(self) -> None:
        self.up_at = None
        driver = Driver(self.store, self.runner, self.witness, self.faults, self._meanwhile)
        try:
            driver.boot(self.fleet)
            self.known = self.fleet
        except Crash as crash:
            self.crash(str(crash))
            return
        self.driver = driver
        self.attempt(partial(self.mirrors.resync_all, self))

    def _meanwhile(self) -> None:
        """Now and then an operator pauses somebody whose run has been admitted and not yet started."""
        if self.faults.on and "pause" in self.kinds and self.dice.random() < 0.01:
            actions.pause(self)

    def crash(self, where: str) -> None:
        """All memory is gone. Now and then the whole machine is, and every guardian with it."""
        self.witness.note("crash", where)
        self.down(self.dice.choice((timedelta(seconds=2), timedelta(seconds=40), minutes(10), minutes(150))))
        share = self.dice.choice((0.0, 0.0, 0.3, 1.0))
        for guardian in self.runner.alive():
            if self.dice.random() < share:
                self.runner.lose(guardian, self.clock.elapsed)
                self._saw_end(guardian)
        self.store.close()
        self.store = self._open()

    def down(self, wait: timedelta) -> None:
        self.driver = None
        self.up_at = self.clock.elapsed + wait

    def _saw_end(self, guardian: Guardian) -> None:
        execution = self.witness.executions.get(guardian.order.run.id)
        if execution is not None:
            execution.ended = guardian.ended

    def _script(self, order: Order) -> Plan:
        name = order.agent.address
        if name not in self.habits:
            self.habits[name] = draw_habits(Random(f"{self.seed}:habits:{name}"))
        return draw_plan(self.dice, self.habits[name], order)

    def kill(self, run: int, by: str) -> None:
        """Somebody ends a live run on purpose; the engine hears of it at its next turn."""
        if self.runner.kill(run, by, self.clock.elapsed):
            self._saw_end(self.runner.guardians[run])

    # -- what everybody asks of the store ---------------------------------------------------------------------
    def record(self, *items: NewItem) -> list[Recorded]:
        call = self.witness.call("record")
        try:
            answers = self.store.record(items, call.at)
        except Crash:
            self.witness.lost.extend(items)
            raise
        for item, answer in zip(items, answers, strict=True):
            self.witness.accepted.append(Accepted(id=answer.id, item=item, call=call, duplicate=answer.duplicate))
            self.witness.note("accepted", answer.id, answer.duplicate)
        return answers

    def record_conflict(self, item: NewItem) -> None:
        """The same key with another body must be refused, loudly."""
        with suppress(Conflict):
            answer = self.record(item)[0]
            self.witness.complain(f"item {answer.id} took another body under the key {item.dedupe}")

    def pause(self, pause: Pause) -> None:
        call = self.witness.call("pause")
        held = Held(pause=replace(pause, since=call.at), call=call)
        self.witness.held.append(held)
        self.store.pause(held.pause, call.at)
        held.returned = True

    def resume(self, scope: str, owner: str | None = None) -> None:
        call = self.witness.call("resume")
        # Noted whether or not it returns: from here on a start in that scope is no surprise.
        self.witness.released.append(Released(scope=scope, owner=owner, call=call))
        self.store.resume(scope, "operator", call.at, owner=owner)
