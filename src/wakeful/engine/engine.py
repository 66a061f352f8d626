"""The engine: everything that runs as long as the fleet is kept at work, begun and ended in order.

Laws:
- At a start we join the other nodes and the fleet is declared, then every open run of ours is adopted, read or vetoed;
  only then is anything decided.
- A store that is away is waited for, at a start as well; whatever else is wrong with a start is raised.
- To stop is to let go: runs go on under their guardians, and the next engine finds them. Only a drain waits for them.
- The heartbeat is the loop's own progress. An engine whose loop stands still says that it is not ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from wakeful.core.codec import write_time
from wakeful.engine.absence import outwait
from wakeful.engine.clock import LONGEST, Clock
from wakeful.engine.conduct import PATIENCE, Conductor, nothing_more
from wakeful.engine.declarations import Declarations
from wakeful.engine.dropping import Dropping
from wakeful.engine.holds import OWNER, PauseFile, owner_at
from wakeful.engine.loop import Claim, Loop
from wakeful.engine.preparing import Preparing
from wakeful.engine.presence import Presence
from wakeful.engine.publishing import Publishing
from wakeful.engine.retention import Retention
from wakeful.engine.services import Lasting, Service, Services
from wakeful.engine.sourcing import Sources, Sourcing, no_sources
from wakeful.engine.telling import Teller
from wakeful.engine.watching import Watch
from wakeful.fleet.watch import FleetFile
from wakeful.runners.protocol import Carrier
from wakeful.sources.protocol import DropFolder
from wakeful.store.protocol import Access, RunRow

T = TypeVar("T")

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
        *,
        host: str = "",
        url: str = "",
        shared: bool = False,
        sources: Sources = no_sources,
        drop: DropFolder | None = None,
        hide: Callable[[str], str] = str,
    ) -> None:
        """`host` and `url` are where this node is, for the others; `shared` is a store with other nodes than this.
        `sources` are what agents declare to be looked at, with the help of hints; `drop` takes tasks as files, and
        `hide` what is secret out of a text."""
        self._access = access
        self._carrier = carrier
        self._clock = clock
        self.node = node
        self._since = clock.now()
        self._watch = Watch()
        folders = [file.path.absolute().parent, data]
        self.pause_file = PauseFile(access, folders, clock, owner_at(node) if shared else OWNER)
        self.declarations = Declarations(access, file, self._watch, clock, told=lambda: self.sourcing.edited())
        fed = (lambda agents: sources(agents, self._watch), lambda: self.declarations.adopted)
        self.sourcing = Sourcing(access, clock, node, *fed, shared=shared, hide=hide)
        publishing = Publishing(access, data / "runs", lambda: self.conductor.open)
        self.conductor = Conductor(
            access,
            carrier,
            clock,
            node,
            barred=lambda: self.pause_file.present() is not None,
            looked=self.sourcing.look,
            published=publishing.finish if shared else nothing_more,
            shared=shared,
            hide=hide,
        )
        self.presence = Presence(access, self.conductor, clock, node, host=host, url=url, shared=shared)
        self._preparing = Preparing(access, carrier, self.nudge, self._reread)
        hands = (self.conductor, self._preparing, self.pause_file)
        self.loop = Loop(access, *hands, clock, node, self._clock_set, shared=shared)
        self._watch.folders(folders, self.nudge)
        retention = Retention(access, carrier, data / "runs", clock, self._retention)
        self._dropping = None if drop is None else Dropping(access, drop, self._watch, clock, hide=hide)
        among_others = [Lasting(Presence.name, self.presence.run), Lasting(Publishing.name, publishing.run)]
        self._services = Services(
            [
                *(among_others if shared else []),
                Lasting(Teller.name, Teller(access).run),
                self._watch,
                self.sourcing,
                Lasting(Declarations.name, self.declarations.run),
                Lasting(Loop.name, self.loop.run),
                Lasting(Retention.name, retention.run),
                *([Lasting(Dropping.name, self._dropping.run)] if self._dropping is not None else []),
            ]
        )
        self._shared = shared
        self._leaving = asyncio.Event()
        self._drain = False
        self.ready = False

    # -- its life -----------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Returns when it is at work; or without having begun, when somebody wants it to leave while it waits."""
        if await self._unless_leaving(self._take_up()):
            await self._services.start()
            self.ready = True

    async def _take_up(self) -> None:
        await outwait(self.presence.join)
        # The grace is for the start of a fleet: one node more must not put off what the others are about to do.
        alone = await outwait(self.presence.alone)
        await outwait(lambda: self.declarations.declare(boot=alone))
        await outwait(self.pause_file.obey)
        # Before any run ends here: what it was shown is looked at first.
        await outwait(self.sourcing.adopt)
        rows = await outwait(self._open_runs)
        await self.conductor.recover(rows)
        if self._shared:
            # What was adopted has had no word since the last engine's.
            await outwait(self.presence.renew)

    async def _open_runs(self) -> list[RunRow]:
        return await self._access.read(lambda store: store.runs(open=True, limit=1_000_000))

    async def _unless_leaving(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether that was done; it is given up when somebody wants us to leave."""
        working = asyncio.ensure_future(work)
        left = asyncio.ensure_future(self._leaving.wait())
        try:
            await asyncio.wait({working, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            given_up = working.cancel()
            await asyncio.gather(working, left, return_exceptions=True)
        if given_up:
            return False
        working.result()
        return True

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
        await self.presence.leave()
        await self._preparing.stop()
        await self.conductor.let_go()
        await self.sourcing.close()
        await self._carrier.close()

    async def taking(self, write: Callable[[Claim], Awaitable[T]]) -> T:
        return await self.loop.taking(write)

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
        away = self.loop.away or self.presence.away
        fleet = self.declarations.fleet
        return {
            "node": self.node,
            "since": write_time(self._since),
            "ready": self.ready and not stuck and not away,
            "why_not": away or self._why_not(age if stuck else None),
            "heartbeat_age": round(age, 3),
            "turns": self.loop.turns,
            "title": fleet.title if fleet else "",
            "holding": [conducted.run for conducted in self.conductor.open],
            "diagnostics": [*self.declarations.diagnostics, *(self._dropping.diagnostics if self._dropping else ())],
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
