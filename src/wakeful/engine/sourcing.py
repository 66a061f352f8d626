"""What is pending outside, mirrored into the store: the sources that the fleet declares, as long as they are ours.

Laws:
- Where nodes share the store, one of them tends a source, under a lease. Whoever has lost it says no more of it. Where
  it was another's in between, or another told of a run's doings, it is begun anew: what was seen before is not told.
- What was seen sooner never undoes what was seen later, whoever saw it, and whichever of them reaches us first.
- What was seen is acknowledged when the store has it. A store that is away is waited for.
- Before the end of a run is told there is a look at the sources of what it was shown, so that what the agent did to its
  own things is not news to it; at those that another node tends too. That takes 2 s at most, and a run that was shown
  nothing of the kind pays nothing.
- What nobody declares any more is closed. Of an agent that is only switched off it stays as it is. What another node
  tends is its own, whatever our fleet file says.
- A pause of anything is no matter of ours: what is pending is seen, and rings when it may.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Any

from wakeful.core.agents import Agent, Fleet
from wakeful.core.errors import Busy, Stale
from wakeful.core.items import Observation
from wakeful.core.ledger import Edges
from wakeful.core.outages import same_reason
from wakeful.core.redacting import Hide, redacted_observation
from wakeful.engine.absence import FIRST_REST, LONGEST_REST, outwait
from wakeful.engine.clock import Clock, Nudge
from wakeful.engine.conduct import Conducted, mirrored
from wakeful.engine.glancing import GLANCE, Glances, Name
from wakeful.engine.presence import LEASE
from wakeful.engine.services import Lasting
from wakeful.sources.protocol import Batch, Declared, Hints, Source
from wakeful.store.protocol import Access, Store

log = logging.getLogger("wakeful.engine")

# Between two words of ours that we are still there; where nobody else is, only an edit is waited for.
TEND, ALONE = timedelta(seconds=5), timedelta(hours=1)
# Seconds between two lines of a log on one outage.
REPEATED = 60.0

Sources = Callable[[Sequence[Agent], Hints], Sequence[Declared]]


def no_sources(agents: Sequence[Agent], hints: Hints) -> Sequence[Declared]:
    return ()


class Tended:
    """One source, while it is ours."""

    def __init__(
        self,
        declared: Declared,
        access: Access,
        clock: Clock,
        node: str | None,
        tenure: int | None,
        told: Callable[[], None],
        hide: Hide = str,
    ) -> None:
        """`told` is called when it is no longer ours, or not in this tenure; `hide` takes out what is secret."""
        self._hide = hide
        self.declared = declared
        self.tenure = tenure
        self._access = access
        self._clock = clock
        self._node = node
        self._told_lost = told
        self._source = declared.make()
        self._following = Lasting(f"{declared.source} of {declared.agent}", self._follow)
        self._one_at_a_time = asyncio.Lock()
        self._taken = 0
        self._over = False
        # Another node has it, or had a word to say of it.
        self.lost = False
        # What was told last.
        self._last: Batch | None = None
        # Why it cannot be read, while it cannot, as it was logged.
        self._outage = ""
        self._logged_at = 0.0

    async def begin(self) -> None:
        await self._following.start()

    async def rest(self) -> None:
        """It is no longer followed; it can still be looked at."""
        await self._following.stop()

    async def end(self) -> None:
        """Nothing is said of it once this has returned."""
        async with self._one_at_a_time:
            self._over = True
        await self._following.stop()
        await self._source.stop()

    async def _follow(self) -> None:
        batches: Any = self._source.batches()
        async with aclosing(batches):
            async for batch in batches:
                await self._tell(batch)
                if self.lost:
                    return

    async def look(self, glances: Glances, until: float) -> bool:
        """At the end of a run. Whether it is ours to look at."""
        batch = await glances.take((self.declared.source, self.declared.agent), self._source.look, until)
        if batch is not None:
            await self._tell(batch)
        return not self.lost

    async def _tell(self, batch: Batch) -> None:
        rest = FIRST_REST
        while not await self._told(batch):
            # That the store is away is said by those who need it for more.
            await asyncio.sleep(rest)
            rest = min(rest * 2, LONGEST_REST)

    async def _told(self, batch: Batch) -> bool:
        """Whether that is done with; False while the store is away."""
        async with self._one_at_a_time:
            if not (self._over or self.lost) and batch.taken > self._taken:
                try:
                    await self._observe(batch)
                except Busy:
                    return False
                except Stale as refused:
                    log.info("%s of %s is ours no more, or anew: %s", batch.source, batch.agent, refused)
                    self.lost = True
                    self._told_lost()
                    return True
                self._taken, self._last = batch.taken, batch
                self._say(batch)
            await self._source.acknowledge(batch)
        return True

    async def _observe(self, batch: Batch) -> None:
        # What was told before is told once more, to a store that most often has it; or an outage is put in other words.
        # Nobody need hear of that.
        again = self._last is not None and (batch == self._last or (batch.outage and self._last.outage))
        found = await self._access.write(partial(self._observed, batch), quiet=again)
        if again and (found.new or found.changed or found.gone):
            self._access.tell()

    def _observed(self, batch: Batch, store: Store) -> Edges:
        now = self._clock.now()
        fenced: dict[str, Any] = {"node": self._node, "tenure": self.tenure, "why": batch.why}
        seen = None if batch.observed is None else [redacted_observation(each, self._hide) for each in batch.observed]
        return store.observe(batch.source, batch.agent, seen, now, **fenced)

    def _say(self, batch: Batch) -> None:
        """When it begins, when the reason is another one, not more than once a minute, and when it is over."""
        now, before = self._clock.elapsed(), self._outage
        if batch.outage:
            if not before or (not same_reason(batch.why, before) and now - self._logged_at >= REPEATED):
                log.warning("%s of %s cannot be read: %s", batch.source, batch.agent, batch.why)
                self._outage, self._logged_at = batch.why, now
        elif before:
            log.info("%s of %s can be read again", batch.source, batch.agent)
            self._outage = ""


class Sourcing:
    name = "sources"

    def __init__(
        self,
        access: Access,
        clock: Clock,
        node: str,
        declared: Callable[[Sequence[Agent]], Sequence[Declared]],
        fleet: Callable[[], Fleet | None],
        *,
        shared: bool = False,
        hide: Hide = str,
    ) -> None:
        """`declared` are the sources of these agents, `fleet` is what was adopted last, `hide` takes out of a text
        what is secret."""
        self._hide = hide
        self._access = access
        self._clock = clock
        self._node = node
        self._of = declared
        self._fleet = fleet
        self._shared = shared
        self._keeping = Lasting(self.name, self._keep)
        self._one_at_a_time = asyncio.Lock()
        self._adopted: tuple[Fleet | None] | None = None
        self._declared: dict[Name, Declared] = {}
        self._switched_off: set[str] = set()
        self._tended: dict[Name, Tended] = {}
        # Some that we do not declare are another node's.
        self._left = False
        self._glances = Glances()
        # Those of other nodes that could not be read from here.
        self._unread: dict[Name, tuple[Declared, Source]] = {}
        self._begun = False
        self._nudge = Nudge()

    # -- its life -----------------------------------------------------------------------------------------------
    async def start(self) -> None:
        self._begun = True
        for each in self._tended.values():
            await each.begin()
        await self._keeping.start()

    async def stop(self) -> None:
        """Nothing is followed any more. Until the runs are let go of, there may still be looks."""
        self._begun = False
        await self._keeping.stop()
        # One that hangs holds up no other.
        await asyncio.gather(*(each.rest() for each in self._tended.values()))

    async def close(self) -> None:
        await asyncio.gather(self._glances.close(), self._drop(self._tended))
        await asyncio.gather(*(source.stop() for _, source in self._unread.values()))
        self._unread.clear()

    def edited(self) -> None:
        """Another fleet was adopted."""
        self._nudge.ring()

    async def _keep(self) -> None:
        while True:
            await self.adopt()
            await self._nudge.wait(TEND if self._shared and (self._declared or self._left) else ALONE)

    # -- which are ours -----------------------------------------------------------------------------------------
    async def adopt(self) -> None:
        """Tend what is declared, as far as it is ours, and nothing else."""
        async with self._one_at_a_time:
            if self._adopted != (fleet := self._fleet(),):
                await self._declare(fleet)
            elif self._left:
                await self._abandon()
            ours = await self._ours()
            await self._drop(
                name
                for name, each in self._tended.items()
                if each.lost or name not in ours or each.tenure != ours[name]
            )
            for name in sorted(ours.keys() - self._tended.keys()):
                tended = self._tended[name] = self._new(self._declared[name], ours[name])
                if self._begun:
                    await tended.begin()

    def _new(self, declared: Declared, tenure: int | None) -> Tended:
        node = self._node if self._shared else None
        return Tended(declared, self._access, self._clock, node, tenure, self._nudge.ring, self._hide)

    async def _declare(self, fleet: Fleet | None) -> None:
        # Without a fleet that can be read, what was declared last is at work.
        agents = await self._access.read(lambda store: store.agents()) if fleet is None else fleet.agents
        self._declared = {(each.source, each.agent): each for each in self._of(agents)}
        await self._drop(name for name, each in self._tended.items() if each.declared != self._declared.get(name))
        self._switched_off = {agent.address for agent in agents if not agent.enabled}
        await self._abandon()
        # Only now: what failed half-way is done again.
        self._adopted = (fleet,)

    async def _abandon(self) -> None:
        def known(store: Store) -> set[Name]:
            return {*store.mirrored_sources(), *((row.source, row.agent) for row in store.sources())}

        unknown = await self._access.read(known) - self._declared.keys()
        gone = sorted(name for name in unknown if name[1] not in self._switched_off)
        self._left = bool(gone and await self._access.write(partial(self._abandoned, gone), quiet=self._left))

    def _abandoned(self, gone: Sequence[Name], store: Store) -> list[Name]:
        return store.abandon(gone, self._clock.now(), node=self._node)

    async def _ours(self) -> Mapping[Name, int | None]:
        names = list(self._declared)
        if not self._shared or not names:
            return dict.fromkeys(names)
        return await self._access.write(partial(self._tend, names), quiet=True)

    def _tend(self, names: Sequence[Name], store: Store) -> Mapping[Name, int]:
        return store.tend(names, self._node, self._clock.now(), LEASE)

    async def _drop(self, names: Iterable[Name]) -> None:
        dropped = list(names)
        await asyncio.gather(*(self._tended[name].end() for name in dropped))
        # Only now: whoever is interrupted here ends them at another time.
        for name in dropped:
            del self._tended[name]

    # -- looking ------------------------------------------------------------------------------------------------
    async def look(self, conducted: Conducted) -> None:
        """At the sources of what a run was shown that has ended. Whatever is wrong with them, its end is told."""
        if not self._declared or conducted.shown == {}:
            return
        shown = conducted.shown
        if shown is None:
            shown = await outwait(partial(self._access.read, partial(_shown, conducted.run)))
        looks = [self._look(name, things) for name, things in shown.items() if name in self._declared]
        for trouble in await asyncio.gather(*looks, return_exceptions=True):
            if isinstance(trouble, Exception):
                log.error("what run %d was shown could not be looked at", conducted.run, exc_info=trouble)

    async def _look(self, name: Name, things: set[str]) -> None:
        until = asyncio.get_running_loop().time() + GLANCE
        tended, declared = self._tended.get(name), self._declared[name]
        if tended is not None and await tended.look(self._glances, until):
            return
        if self._shared:
            await self._amend(declared, things, until)

    async def _amend(self, declared: Declared, things: set[str], until: float) -> None:
        """Another node tends it: of what the run was shown, and of nothing else, it is told what is seen from here."""
        name = declared.source, declared.agent
        batch = await self._glances.take(name, partial(self._seen_from_here, declared), until)
        found = [thing for thing in (batch.observed or () if batch else ()) if thing.external_id in things]
        seen = [redacted_observation(thing, self._hide) for thing in found]
        if seen:
            amend = partial(self._amended, declared, seen)
            await outwait(partial(self._access.write, amend, quiet=True))

    async def _seen_from_here(self, declared: Declared) -> Batch:
        """One that could not be read is kept: a look of it may hang, and while it does there is no second."""
        name = declared.source, declared.agent
        made, source = self._unread.pop(name, (declared, None))
        if source is None or made != declared:
            if source is not None:
                await source.stop()
            source = declared.make()
        batch: Batch | None = None
        try:
            batch = await source.look()
            return batch
        finally:
            if batch is not None and batch.outage:
                self._unread[name] = declared, source
            else:
                await source.stop()

    def _amended(self, declared: Declared, seen: Sequence[Observation], store: Store) -> None:
        store.amend(declared.source, declared.agent, seen, self._clock.now())


def _shown(run: int, store: Store) -> dict[Name, set[str]]:
    """Of a run that an engine before us began."""
    row = store.run(run)
    items = [store.item(id) for id in row.shown] if row is not None else []
    return mirrored(item for item in items if item is not None)
