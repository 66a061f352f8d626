"""What the fleet did before now: two weeks in a few seconds, by the real engine in time that jumps.

Laws:
- Relative to now it is always the same: nothing in it is left to chance or to the clock on the wall.
- Nothing of it is under way when it ends; who takes the store up afterwards finds agents that wait for their next beat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.engine.stage import Stage
from wakeful.control.callers import OPERATOR, Caller
from wakeful.control.control import Control
from wakeful.core.orders import Order
from wakeful.core.runs import Ending
from wakeful.core.standing import Spend
from wakeful.testing.loop import LoopClock, live, passes
from wakeful.testing.runner import Plan, done, failed, no_work

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))

# Of the days before, each agent is up for a moment only: what they cost is all that is shown of them.
DAYS, MOMENT, LATELY = 13, 20 * MINUTE, 7 * HOUR + 30 * MINUTE

WORDS = {
    "moss": "read the new lines, two mistakes mended",
    "jay": "forty pages of the archive read",
    "flint": "three letters weighed",
    "owl": "the night was quiet",
    "lark": "the morning's headlines",
    "fern": "a new letter answered",
}
COST = {"wren": 31_000, "moss": 12_000, "jay": 140_000, "flint": 120_000, "owl": 4_000, "lark": 9_000, "fern": 6_000}
# One run of each of the days before stands for so many.
WORTH = {"wren": 25, "moss": 20, "jay": 6, "owl": 10, "lark": 20, "fern": 40}
LENGTH = {"wren": 100, "moss": 150, "jay": 700, "flint": 240, "owl": 60, "lark": 120, "kit": 45}


def lived(folder: Path, fleet: str, now: datetime) -> None:
    """Leaves the data folder of a fleet that was at work until now."""
    logging.getLogger("wakeful").setLevel(logging.CRITICAL)
    try:
        # Whoever drives a browser in this thread has a loop there.
        with ThreadPoolExecutor(1) as aside:
            aside.submit(live, lambda: Past(folder, fleet, now).live()).result()
    finally:
        logging.getLogger("wakeful").setLevel(logging.NOTSET)


@dataclass
class Past:
    folder: Path
    fleet: str
    now: datetime
    acts: set[asyncio.Task[None]] = field(default_factory=set)

    async def live(self) -> None:
        stage = self.stage = Stage(self.folder)
        stage.node = "desk"
        (stage.data / "node").write_text("desk\n")
        stage.clock = LoopClock(self.now - (DAYS + 1) * DAY)
        stage.script = self._plan
        stage.after = self._begun
        stage.write("fleet.org", self.fleet)
        for day in range(DAYS, 0, -1):
            await self._era(self.now - day * DAY, MOMENT)
        await self._era(self.now - LATELY, LATELY, self._events())
        stage.store.close()

    async def _era(self, begin: datetime, length: timedelta, *events: Coroutine[Any, Any, None]) -> None:
        """An engine from then on, for so long."""
        await self.stage.clock.until(begin)
        await self.stage.up()
        happening = [asyncio.ensure_future(event) for event in events]
        await self.stage.clock.until(begin + length)
        await asyncio.gather(*happening)
        await self.stage.down(drain=True)

    @property
    def control(self) -> Control:
        stage = self.stage
        return Control(stage.access, runs=stage.data / "runs", clock=stage.clock.now, beside=stage.engine, node="desk")

    # ---- what agents do

    def _before_now(self) -> timedelta:
        return self.now - self.stage.clock.now()

    def _plan(self, order: Order) -> Plan:
        name = order.agent.name
        left = self._before_now()
        length = LENGTH.get(name, 75) * SECOND
        return Plan(duration=min(length, max(left - SECOND, SECOND)), ending=self._ending(order, left))

    def _ending(self, order: Order, left: timedelta) -> Ending:
        name = order.agent.name
        usd = COST.get(name, 0)
        if left > DAY / 2:
            usd = usd * WORTH.get(name, 1) * (4 + round(left / DAY) * 5 % 7) // 8
        usage = Spend(usd=usd, tokens=usd // 8)
        if name == "thorn" and left < 45 * MINUTE:
            return failed("the printer is on fire", usage)
        if name == "fern" and left < 24 * MINUTE:
            return no_work(Spend(usd=400, tokens=60))
        if order.tasks and "torn" in (order.tasks[0].subject or ""):
            return failed("the page is torn", usage)
        if order.tasks:
            return done(f"filed: {order.tasks[0].subject}", Spend(usd=2_000, tokens=300))
        state = order.run.position.state
        return done(f"{state}: one line more" if name == "wren" else WORDS.get(name, "nothing special"), usage)

    async def _begun(self, order: Order) -> None:
        task = asyncio.ensure_future(self._acts(order))
        self.acts.add(task)
        task.add_done_callback(self.acts.discard)

    async def _acts(self, order: Order) -> None:
        """What it prints, and whom it wakes, half a minute later."""
        run, name = order.run, order.agent.name
        folder = self.stage.data / "runs" / str(run.id)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stdout").write_text(f"{name} began\n{WORDS.get(name, 'a line more')}\n")
        await passes(30)
        caller = Caller(name=name, run=run.id, epoch=run.epoch)
        if name == "wren" and run.position.state == "write" and run.subject.value == "beat":
            await self._wakes(caller, "moss", "a new line is there", "critical_finding")
        elif name == "jay" and run.subject.value == "beat":
            await self._wakes(caller, "wren", "page 12 of the archive says otherwise", "blocker")
        elif name == "moss" and run.subject.value == "inbox":
            await self.control.send(caller, agent="wren", subject="two mistakes", body="mended, please look again")

    async def _wakes(self, caller: Caller, agent: str, body: str, reason: str) -> None:
        await self.control.wake(caller, agent=agent, body=body, reason=reason)

    # ---- what the operator did

    async def _events(self) -> None:
        at = self.stage.clock.until
        await at(self.now - 6 * HOUR)
        for number in range(1, 9):
            await self.control.add_task(OPERATOR, title=f"file page {number}", role="filing", tags=["pages"])
        await self.control.add_task(OPERATOR, title="file a torn page of 1911", role="filing", tags=["pages"])
        await at(self.now - 3 * HOUR)
        await self.control.pause(OPERATOR, reason="a new prompt for everybody", duration="20m")
        await at(self.now - 2 * HOUR)
        await self.control.send(OPERATOR, agent="moss", subject="the first page", body="please read it with care")
        await at(self.now - 50 * MINUTE)
        await self.control.pause_agent(OPERATOR, agent="lark", reason="lunch", duration="3h")
