"""Folders and lists that live outside: the truth that the store mirrors.

A watcher may be late or blind; a resync (at boot, and after each run) always comes. A source that cannot be read
is told as None, never as empty; but a mount that is away shows an empty folder, and is back with what was there.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from wakeful.core.items import Observation
from wakeful.testing.faults import Crash
from wakeful.testing.fleets import minutes
from wakeful.testing.witness import Observed

if TYPE_CHECKING:
    from wakeful.testing.world import World


# One look in so many is at a mount that is away.
AWAY = 3


class Mirrors:
    def __init__(self, dice: Random) -> None:
        self._dice = dice
        # For each agent, its things: id -> (fingerprint, not before).
        self.things: dict[str, dict[str, Observation]] = {}
        self._made = 0
        self._looks = 0

    def change(self, world: World, agent: str) -> None:
        """Somebody adds, rewrites or removes a thing; the watcher sees it at once, later, or not at all."""
        self._touch(world, agent)
        if self._dice.random() < 0.75:
            self.observe(world, agent, blind=self._dice.random() < 0.1, away=self._is_away())

    def edit(self, world: World, agent: str) -> None:
        """The agent changes its own things in the course of its run."""
        self._touch(world, agent, rewrite=True)
        if self._dice.random() < 0.5:
            self.observe(world, agent, away=self._is_away())

    def _is_away(self) -> bool:
        self._looks += 1
        return self._looks % AWAY == 0

    def _touch(self, world: World, agent: str, rewrite: bool = False) -> None:
        things = self.things.setdefault(agent, {})
        known = sorted(things)
        what = self._dice.choice(("new", "change", "gone")) if not rewrite else "change"
        fresh = what == "new" or not known
        id = f"note-{self._dice.randrange(6)}.txt" if fresh else self._dice.choice(known)
        if what == "gone" and known:
            del things[id]
            return
        self._made += 1
        later = self._dice.random() < 0.1
        things[id] = Observation(
            external_id=id,
            fingerprint=f"generation {self._made}",
            subject=id,
            not_before=world.clock.wall + minutes(self._dice.choice((10, 90))) if later else None,
            lasting=True,
        )

    def observe(self, world: World, agent: str, *, blind: bool = False, away: bool = False) -> None:
        call = world.witness.call("observe")
        things = None if blind else () if away else tuple(self.things.get(agent, {}).values())
        source = f"folder of {agent}"
        observed = Observed(source=source, agent=agent, things=things, call=call)
        world.witness.observed.append(observed)
        try:
            world.store.observe(source, agent, things, call.at)
            observed.committed = True
        except Crash as crash:
            observed.committed = crash.committed
            raise

    def resync(self, world: World, agent: str) -> None:
        if agent in self.things and world.known.agent(agent) is not None:
            self.observe(world, agent)

    def resync_all(self, world: World) -> None:
        for agent in list(self.things):
            self.resync(world, agent)

    def settle(self, world: World) -> None:
        """The last look before the drain, in which nothing changes any more."""
        self.resync_all(world)
