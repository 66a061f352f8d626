"""What an agent does in the course of its run, with the rights of that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.control.callers import Caller
from wakeful.core.orders import Order
from wakeful.testing.actions import address, fresh, message_of, task_of

if TYPE_CHECKING:
    from wakeful.testing.station import Station
    from wakeful.testing.world import World


FLOOD = 110


async def act(world: World, station: Station, order: Order, what: str) -> None:
    run, agent = order.run, order.agent
    caller = Caller(name=agent.name, run=run.id, epoch=run.epoch)
    match what:
        case "message":
            await world.ask(station, "send", caller, agent=address(world), **message_of(world))
        case "self":
            await world.ask(station, "send", caller, agent=agent.address, **message_of(world))
        case "wake":
            words = {"reason": world.dice.choice(("blocker", "critical_finding")), "body": fresh(world, "words")}
            await world.ask(station, "wake", caller, agent=address(world), **words)
        case "task":
            await world.ask(station, "add_task", caller, **task_of(world))
        case "edit":
            shelf = world.shelves.of(agent.address)
            if shelf is not None and shelf.things:
                shelf.change(world.clock.wall, rewrite=True)
                if world.dice.random() < 0.5:
                    shelf.hint()
        case "flood":
            # More than one run is shown; and more wakes than anybody may have.
            whom = address(world)
            for number in range(FLOOD):
                said = {**message_of(world), "priority": "normal"}
                await world.ask(station, "send", caller, agent=whom, **said)
                if number % 20 == 0:
                    await world.ask(station, "wake", caller, agent=whom, reason="blocker", body=fresh(world, "words"))
        case "step":
            await save_step(world, station, order, caller)


async def save_step(world: World, station: Station, order: Order, caller: Caller) -> None:
    name, run = f"step {world.dice.randrange(3)}", order.run.id
    task = order.tasks[0].id if order.tasks else None
    known = world.store.steps(run, task=task)
    await world.ask(station, "save_step", caller, name=name, begun=True, task=task)
    await world.ask(station, "save_step", caller, name=name, result=f"made by run {run}", task=task)
    after, kept = world.store.steps(run, task=task), known.get(name)
    if kept is not None and name in after and after[name] != kept:
        world.witness.complain(f"step {name!r} of run {run} was {kept!r} and became {after[name]!r}")
