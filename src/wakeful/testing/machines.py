"""What befalls whole nodes: their clocks, their way to the store, their hearing, their lives."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from wakeful.testing.fleets import minutes
from wakeful.testing.pace import lease

if TYPE_CHECKING:
    from wakeful.testing.station import Station
    from wakeful.testing.world import World


# How many of the jumps of a clock are as far as a day.
FAR = 0.3


def somebody(world: World) -> Station:
    """Most often one that holds a run: what befalls the others matters less."""
    holding = [station for station in world.stations if station.carrier.runner.alive()]
    return world.dice.choice(holding if holding and world.dice.random() < 0.8 else world.stations)


async def jump(world: World) -> None:
    """Somebody sets the clock of one node, by a day at most; now and then, and always after such a jump, it is put
    right again."""
    station, dice = world.dice.choice(world.stations), world.dice
    by = minutes(dice.choice((-180, -45, -3, 3, 45, 180)) * dice.random())
    luck = Random(f"{world.seed}:jump:{dice.getstate()[1][-1]}:{world.clock.elapsed}")
    far = luck.random() < FAR
    if far:
        by = timedelta(days=1) * luck.choice((-1, 1)) * luck.uniform(0.9, 1.0)
    world.faults.count("clock set by a day" if far else "clock set")
    station.clock.skew += by
    if dice.random() < 0.6 or far:
        await asyncio.sleep(dice.choice((30.0, 1000.0, 3 * lease())))
        if world.faults.on:
            station.clock.skew -= by


def _while(world: World) -> float:
    """Seconds: so little that no lease ends, or so long that all do."""
    return world.dice.choice((2.0, 60.0)) if world.dice.random() < 0.4 else world.dice.choice((0.5, 0.8, 2.0)) * lease()


async def away(world: World) -> None:
    """The store cannot be reached from one node, or from none."""
    chosen = [somebody(world)] if world.dice.random() < 0.7 else list(world.stations)
    world.faults.count("store away")
    for station in chosen:
        station.away = station.access is not None
    await asyncio.sleep(_while(world))
    for station in chosen:
        station.away = False


async def freeze(world: World) -> None:
    station = somebody(world)
    world.faults.count("node frozen")
    station.thawed.clear()
    await asyncio.sleep(_while(world))
    station.thawed.set()


async def deaf(world: World) -> None:
    station = world.dice.choice(world.stations)
    world.faults.count("node deaf")
    station.deaf = True
    await asyncio.sleep(world.dice.choice((600.0, 20000.0)))
    station.deaf = False


async def leave(world: World) -> None:
    world.faults.count("node left")
    await somebody(world).leave(drain=world.dice.random() < 0.3)


async def crash(world: World) -> None:
    world.faults.count("node crashed")
    somebody(world).crash()


async def machine(world: World) -> None:
    station = somebody(world)
    world.faults.count("machine lost")
    station.crash()
    station.lose_all()
