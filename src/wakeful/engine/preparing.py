"""What an agent wants done before its beat is decided: its work tree brought up to date, its CHECK asked.

Laws:
- Nothing is prepared for a beat that the guards would hold back anyway.
- What is prepared is not recorded: an engine that dies meanwhile prepares again.
- A preparation that fails costs nothing: the beat is decided without it. One that met a store that is away is made
  again when it is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from wakeful.core.admission import admit, explain
from wakeful.core.agents import Agent
from wakeful.core.errors import Busy, Unknown
from wakeful.core.orders import Order
from wakeful.core.settlement import skip_beat
from wakeful.core.wakes import Cause, Wake
from wakeful.engine.absence import in_a_line
from wakeful.runners.protocol import Carrier, Checked
from wakeful.store.protocol import Access

log = logging.getLogger("wakeful.engine")

_WAKE = Checked(wake=True)

# A beat of the cadence, or one that was asked for by its instant: the agent, and that instant.
Beat = tuple[str, str]


class Preparing:
    def __init__(
        self,
        access: Access,
        carrier: Carrier,
        ready: Callable[[], None],
        reread: Callable[[], Awaitable[None]],
    ) -> None:
        """`ready` is called when something has been prepared; `reread` after a work tree has moved."""
        self._access = access
        self._carrier = carrier
        self._ready = ready
        self._reread = reread
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._prepared: dict[Beat, Checked] = {}
        self._data: dict[Beat, Any] = {}

    async def sift(self, wakes: Sequence[Wake], now: datetime) -> list[Wake]:
        """The wakes that may be decided now; the others are being prepared, or were skipped."""
        beats = {_beat(wake) for wake in wakes if wake.cause is Cause.timer and wake.agent}
        # What was prepared for a beat that is no longer due says nothing about a later one.
        self._prepared = {beat: checked for beat, checked in self._prepared.items() if beat in beats}
        if not beats:
            return list(wakes)
        timers = {agent for agent, _ in beats}
        wanting = await self._access.read(
            lambda store: {name: agent for name in timers if (agent := store.agent(name)) and _wants(agent)}
        )
        return [wake for wake in wakes if wake.agent not in wanting or await self._is_ready(wake, wanting, now)]

    async def _is_ready(self, wake: Wake, wanting: dict[str, Agent], now: datetime) -> bool:
        if wake.cause is not Cause.timer:
            return True
        agent = wanting[wake.agent or ""]
        if agent.name in self._under_way:
            return False
        checked = self._prepared.pop(_beat(wake), None)
        self._data.pop(_beat(wake), None)
        if checked is None:
            if not await self._would_be_admitted(wake, now):
                return True
            self._begin(agent, wake)
            return False
        if checked.wake:
            self._data[_beat(wake)] = checked.data
            return True
        await self._access.write(lambda store: store.skip(wake, checked.reason, admit, skip_beat, now))
        return False

    async def _would_be_admitted(self, wake: Wake, now: datetime) -> bool:
        try:
            why = await self._access.read(lambda store: store.why(wake, now))
        except Unknown:
            return False
        return all(opinion.verdict is None for opinion in explain(why.wake, why.facts, why.limits))

    def _begin(self, agent: Agent, wake: Wake) -> None:
        task = asyncio.get_running_loop().create_task(self._prepare(agent, wake), name=f"preparing {agent.name}")
        self._under_way[agent.name] = task

    async def _prepare(self, agent: Agent, wake: Wake) -> None:
        checked = _WAKE
        try:
            if agent.gitops:
                in_the_way = await self._carrier.pull(agent)
                if in_the_way:
                    log.warning("%s: its work tree stays as it is: %s", agent.name, in_the_way)
                await self._reread()
                pulled: Agent | None = await self._access.read(lambda store: store.agent(agent.name))
                agent = pulled or agent
            if agent.check and not wake.one_off:
                checked = await self._carrier.check(agent)
        except Busy as away:
            # Its beat is still due, and the loop looks again in a breath.
            log.warning("%s is prepared again when the store is back: %s", agent.name, in_a_line(away))
            return
        except Exception:
            log.exception("what %s wants done before its beat failed", agent.name)
        finally:
            self._under_way.pop(agent.name, None)
        self._prepared[_beat(wake)] = checked
        self._ready()

    def data(self, order: Order) -> Any:
        """What the CHECK of that agent had to say for the beat that begins now."""
        if order.wake is None or order.wake.cause is not Cause.timer:
            return None
        return self._data.pop(_beat(order.wake), None)

    async def stop(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _beat(wake: Wake) -> Beat:
    return wake.agent or "", wake.slot


def _wants(agent: Agent) -> bool:
    return agent.gitops or agent.check is not None
