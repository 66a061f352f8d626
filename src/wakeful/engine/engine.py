"""The engine: everything that runs as long as the fleet is kept at work, begun and ended in order.

Laws:
- At a start the fleet is declared, then every open run is adopted, read or vetoed; only then is anything decided.
- To stop is to let go: runs go on under their guardians, and the next engine finds them. Only a drain waits for them.
- The heartbeat is the loop's own progress. An engine whose loop stands still says that it is not ready.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from wakeful.core.codec import write_time
from wakeful.engine.clock import LONGEST, Clock
from wakeful.engine.conduct import PATIENCE, Conductor
from wakeful.engine.declarations import Declarations
from wakeful.engine.holds import PauseFile
from wakeful.engine.loop import Loop
from wakeful.engine.preparing import Preparing
from wakeful.engine.retention import Retention
from wakeful.engine.services import Lasting, Service, Services
from wakeful.engine.telling import Teller
from wakeful.engine.watching import Watch
from wakeful.fleet.watch import FleetFile
from wakeful.runners.protocol import Carrier
from wakeful.store.protocol import Access

# A loop that has not moved for this long is stuck: it wakes at least every `LONGEST`.
STUCK = LONGEST * 3


class Engine:
    def __init__(
        self,
        access: Access,
        carrier: Carrier,
        file: FleetFile,
        clock: Clock,
        node: str,
        data: Path,
    ) -> None:
        self._access = access
        self._carrier = carrier
        self._clock = clock
        self.node = node
        self._since = clock.now()
        self._watch = Watch()
        folders = [file.path.absolute().parent, data]
        self.pause_file = PauseFile(access, folders, clock)
        self.declarations = Declarations(access, file, self._watch, clock)
        self.conductor = Conductor(access, carrier, clock, node, barred=lambda: self.pause_file.present() is not None)
        self._preparing = Preparing(access, carrier, self.nudge, self._reread)
        self.loop = Loop(access, self.conductor, self._preparing, self.pause_file, clock, node, self._clock_set)
        self._watch.folders(folders, self.nudge)
        retention = Retention(access, carrier, data / "runs", clock, self._retention)
        self._services = Services(
            [
                Lasting(Teller.name, Teller(access).run),
                self._watch,
                Lasting(Declarations.name, self.declarations.run),
                Lasting(Loop.name, self.loop.run),
                Lasting(Retention.name, retention.run),
            ]
        )
        self._leaving = asyncio.Event()
        self._drain = False
        self.ready = False

    # -- its life -----------------------------------------------------------------------------------------------
    async def start(self) -> None:
        await self.declarations.declare(boot=True)
        await self.pause_file.obey()
        await self.conductor.recover(await self._access.read(lambda store: store.runs(open=True, limit=1_000_000)))
        await self._services.start()
        self.ready = True

    def add(self, service: Service) -> None:
        """One more, which comes last and goes first: whatever lets others ask, an HTTP server for one."""
        self._services.add(service)

    async def stayed(self) -> None:
        """Until somebody wants it to leave."""
        await self._leaving.wait()

    @property
    def leaving(self) -> bool:
        return self._leaving.is_set()

    def leave(self, *, drain: bool = False) -> None:
        self._drain = drain
        self._leaving.set()

    async def stop(self) -> None:
        """With a drain nothing new begins, and what is under way ends first."""
        self.ready = False
        with suppress(TimeoutError):
            async with asyncio.timeout(None if self._drain else PATIENCE):
                await self.loop.only_settle()
        if self._drain:
            await self.conductor.starts_settled()
            await self.conductor.drained()
        await self._services.stop()
        await self._preparing.stop()
        await self.conductor.let_go()
        await self._carrier.close()

    def nudge(self) -> None:
        self.loop.nudge.ring()

    async def _reread(self) -> None:
        await self.declarations.look()

    async def _clock_set(self) -> None:
        await self.declarations.declare(boot=True)

    def _retention(self) -> timedelta:
        fleet = self.declarations.fleet
        return fleet.retention if fleet is not None else timedelta(days=30)

    # -- what it can be asked -----------------------------------------------------------------------------------
    def health(self) -> dict[str, object]:
        age = self._clock.elapsed() - self.loop.last_turn
        stuck = age > STUCK.total_seconds()
        fleet = self.declarations.fleet
        return {
            "node": self.node,
            "since": write_time(self._since),
            "ready": self.ready and not stuck,
            "why_not": self._why_not(age if stuck else None),
            "heartbeat_age": round(age, 3),
            "turns": self.loop.turns,
            "title": fleet.title if fleet else "",
            "holding": [conducted.run for conducted in self.conductor.open],
            "diagnostics": self.declarations.diagnostics,
        }

    def _why_not(self, stuck_for: float | None) -> str:
        if stuck_for is not None:
            return f"the loop has not moved for {stuck_for:.0f} s"
        return "" if self.ready else "starting or stopping"

    async def reload(self) -> dict[str, object]:
        changed: list[str] = await self.declarations.look()
        return {"changed": changed, "diagnostics": self.declarations.diagnostics}

    async def starts_settled(self) -> None:
        await self.conductor.starts_settled()
