"""Runs that take only virtual time, behind the seam that the engine knows: scripted guardians that outlive it.

Laws:
- A plan that is longer than the agent's wall clock is ended there, as a guardian would.
- A run whose lease is not extended is ended 5 s before it is over, whether anybody looks or not; what would execute
  later than that never does.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from wakeful.core.agents import Agent
from wakeful.core.orders import Order
from wakeful.core.runs import FENCING, Ending, TaskEnd
from wakeful.runners.protocol import FENCE, Checked, Found, Held
from wakeful.testing.runner import Guardian, Plan, Script, VirtualRunner

T = TypeVar("T")

LOST = Ending(lost=True)
VETOED = Ending(by="veto")
KILLED = Ending(timed_out=True)
NO_BATCHES: tuple[list[TaskEnd], ...] = ()


class VirtualHeld:
    def __init__(self, carrier: VirtualCarrier, guardian: Guardian) -> None:
        self._carrier = carrier
        self._guardian = guardian

    @property
    def run(self) -> int:
        return self._guardian.order.run.id

    @property
    def over(self) -> bool:
        return not self._guardian.alive

    async def wait(self) -> Ending:
        while self._guardian.alive:
            await self._carrier.next_change(self._guardian)
        return self._guardian.exit or LOST

    async def batches(self) -> AsyncIterator[list[TaskEnd]]:
        given = 0
        while True:
            ends = self._guardian.task_exits[given:]
            if ends:
                given += len(ends)
                yield ends
            elif not self._guardian.alive or not self._guardian.plan.tasks:
                return
            else:
                await self._carrier.next_change(self._guardian)

    async def end(self, by: str, *, at_once: bool = False, task: int | None = None) -> None:
        self._carrier.ends.append((self.run, by, at_once))
        if task is not None and len(self._guardian.order.tasks) > 1:
            self._carrier.end_task(self.run, task, by)
        else:
            self._carrier.kill(self.run, by)

    def extend(self, until: float) -> None:
        self._carrier.lease(self.run, until)


class VetoedHeld:
    """A run that a veto kept from executing."""

    def __init__(self, run: int) -> None:
        self.run = run

    @property
    def over(self) -> bool:
        return True

    async def wait(self) -> Ending:
        return VETOED

    async def batches(self) -> AsyncIterator[list[TaskEnd]]:
        for batch in NO_BATCHES:
            yield batch

    async def end(self, by: str, *, at_once: bool = False, task: int | None = None) -> None:
        return

    def extend(self, until: float) -> None:
        return


async def nothing(order: Order) -> None:
    return


class VirtualCarrier:
    """`carried` is told of each order as it executes: the witness of a test. `before` and `after` happen around each
    execution, and may take their time, fail, or never return. It outlives any engine that uses it."""

    def __init__(
        self,
        script: Script,
        *,
        carried: Callable[[Order, float], None] = lambda order, at: None,
        checks: Callable[[Agent], Checked | Awaitable[Checked]] = lambda agent: Checked(wake=True),
        pulls: Callable[[Agent], str | Awaitable[str]] = lambda agent: "",
        before: Callable[[Order], Awaitable[None]] = nothing,
        after: Callable[[Order], Awaitable[None]] = nothing,
    ) -> None:
        self.runner = VirtualRunner(lambda order: _within_wall_clock(script(order), order))
        self._carried = carried
        self._checks = checks
        self._pulls = pulls
        self._before = before
        self._after = after
        self._changed: dict[int, asyncio.Event] = {}
        self._vetoed: dict[int, asyncio.Event] = {}
        # Of each run that is leased, until when, and what ends it there.
        self.leases: dict[int, float] = {}
        self._fences: dict[int, asyncio.TimerHandle] = {}
        self.discarded: list[int] = []
        # What the CHECK of a run had to say, by run; and every end that was asked for: run, by whom, whether at once.
        self.given: dict[int, Any] = {}
        self.ends: list[tuple[int, str, bool]] = []

    async def carry(self, order: Order, check: Any = None, *, leased_until: float | None = None) -> Held:
        run, loop = order.run.id, asyncio.get_running_loop()
        if leased_until is not None:
            self.leases[run] = leased_until
        if self._before is not nothing:
            await self._unless_vetoed(order)
        if run in self.leases and loop.time() >= self.leases[run] - FENCE.total_seconds():
            self.veto(run)
        guardian = self.runner.start(order, timedelta(seconds=loop.time()))
        if guardian is None:
            return await self.adopt(run)
        if run in self.leases:
            self.lease(run, self.leases[run])
        self.given[run] = check
        self._carried(order, loop.time())
        await self._after(order)
        return VirtualHeld(self, guardian)

    async def _unless_vetoed(self, order: Order) -> None:
        """Whatever comes before the execution, which a veto cuts short."""
        veto = self._vetoed.setdefault(order.run.id, asyncio.Event())
        first = [asyncio.ensure_future(self._before(order)), asyncio.ensure_future(veto.wait())]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if first[0].done():
                first[0].result()
        finally:
            for future in first:
                future.cancel()

    def extend(self, run: int, until: float) -> None:
        """Of a run that is being carried and has not executed yet."""
        if run in self.leases and run not in self.runner.guardians:
            self.leases[run] = max(self.leases[run], until)

    def find(self, run: int) -> Found:
        guardian = self.runner.guardians.get(run)
        if guardian is None:
            return Found.unstarted
        self._pass_time()
        if guardian.alive:
            return Found.alive
        return Found.lost if guardian.exit is None else Found.ended

    async def adopt(self, run: int) -> Held:
        self._pass_time()
        if run in self.runner.vetoed:
            return VetoedHeld(run)
        return VirtualHeld(self, self.runner.guardians[run])

    def veto(self, run: int) -> bool:
        if run in self._vetoed:
            self._vetoed[run].set()
        return self.runner.veto(run)

    async def check(self, agent: Agent) -> Checked:
        return await _whole(self._checks(agent))

    async def pull(self, agent: Agent) -> str:
        return await _whole(self._pulls(agent))

    def discard(self, run: int) -> None:
        self.discarded.append(run)

    async def close(self) -> None:
        return

    # -- for the test and for what it holds ---------------------------------------------------------------------
    def lease(self, run: int, until: float) -> None:
        """The run may go on until then; a guardian whose engine is gone ends it all the same. Never taken back."""
        until = self.leases[run] = max(until, self.leases.get(run, until))
        if run in self._fences:
            self._fences[run].cancel()
        if self.runner.guardians[run].alive:
            at = until - FENCE.total_seconds()
            self._fences[run] = asyncio.get_running_loop().call_at(at, self.kill, run, FENCING)

    def kill(self, run: int, by: str) -> None:
        self._pass_time()
        self.runner.kill(run, by, timedelta(seconds=asyncio.get_running_loop().time()))
        self._tell(run)

    def end_task(self, run: int, task: int, by: str) -> None:
        self._pass_time()
        self.runner.end_task(run, task, by)
        self._tell(run)

    def lose(self, run: int) -> None:
        """The guardian dies with its run and leaves no record."""
        self.runner.lose(self.runner.guardians[run], timedelta(seconds=asyncio.get_running_loop().time()))
        self._tell(run)

    def _tell(self, run: int) -> None:
        if run in self._changed:
            self._changed[run].set()

    def _pass_time(self) -> None:
        self.runner.write_exits(timedelta(seconds=asyncio.get_running_loop().time()))

    async def next_change(self, guardian: Guardian) -> None:
        """Until something happens to that run: a task of it ends, it ends, or somebody ends it."""
        now = asyncio.get_running_loop().time()
        event = self._changed.setdefault(guardian.order.run.id, asyncio.Event())
        event.clear()
        try:
            async with asyncio.timeout(max(guardian.next_at.total_seconds() - now, 0.0) + 1e-6):
                await event.wait()
        except TimeoutError:
            self._pass_time()


async def _whole(value: T | Awaitable[T]) -> T:
    return await value if inspect.isawaitable(value) else value


def _within_wall_clock(plan: Plan, order: Order) -> Plan:
    own = order.tasks[0].timeout if len(order.tasks) == 1 else None
    wall_clock = own or order.agent.wall_clock(order.run.subject)
    if plan.duration <= wall_clock:
        return plan
    return Plan(duration=wall_clock, ending=KILLED, acts=plan.acts, tasks=plan.tasks)
