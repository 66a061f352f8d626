"""What happens to a fleet of several nodes: everything that an operator, an agent, a clock, a file or a machine may do.

Law: whatever is asked for is asked of control, at some node, as anybody would; what is not an answer is no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.control.callers import OPERATOR, Caller
from wakeful.core.agents import Fleet
from wakeful.core.errors import Conflict, WakefulError
from wakeful.core.items import Kind, NewItem, Origin, Priority, ring_of
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.engine.holds import NAME as PAUSE_FILE
from wakeful.store.protocol import Finish
from wakeful.testing import machines
from wakeful.testing.fleets import ROLES, edit_fleet, minutes

if TYPE_CHECKING:
    from wakeful.testing.station import Station
    from wakeful.testing.world import World

Deed = Callable[["World"], Coroutine[Any, Any, None]]

# How often each kind is drawn when a seed has it at all.
WEIGHTS = {
    "message": 10,
    "webhook": 6,
    "wake": 4,
    "tick": 4,
    "file": 8,
    "task": 8,
    "repeat": 3,
    "change_task": 3,
    "read": 1,
    "snooze": 1,
    "pause": 2,
    "pause_file": 1,
    "resume": 4,
    "setting": 2,
    "edit": 3,
    "kill": 3,
    "stale": 1,
    "jump": 2,
    "away": 3,
    "freeze": 4,
    "deaf": 1,
    "leave": 3,
    "crash": 4,
    "machine": 2,
}


class Request(NamedTuple):
    """Something that was asked for under a key."""

    operation: str
    parameters: dict[str, Any]


def draw_kinds(dice: Random) -> list[str]:
    """Most kinds, not all: a rare one is not drowned by the common ones in every seed."""
    return [kind for kind in WEIGHTS if dice.random() < 0.75] or list(WEIGHTS)


def draw_schedule(dice: Random, kinds: list[str], length: timedelta) -> list[tuple[timedelta, str]]:
    """In clusters: what matters happens while something else is under way."""
    weights = [WEIGHTS[kind] * dice.choice((1, 1, 4)) for kind in kinds]
    found = []
    for _ in range(dice.randint(4, 14)):
        begin = length * dice.random()
        width = minutes(dice.choice((0.2, 5, 60)))
        for kind in dice.choices(kinds, weights, k=dice.randint(1, 10)):
            found.append((min(begin + width * dice.random(), length), kind))
    return sorted(found)


# -- who and what ---------------------------------------------------------------------------------------------
def somewhere(world: World) -> Station:
    """A node that is up, if there is one."""
    up = [station for station in world.stations if station.up]
    return world.dice.choice(up or world.stations)


def someone(world: World) -> str:
    return world.dice.choice(world.fleet.agents).name


def address(world: World) -> str:
    """Everybody writes to the first one: limits are met only by those who are much asked for."""
    agents = world.fleet.agents
    return (agents[0] if world.dice.random() < 0.3 else world.dice.choice(agents)).address


def fresh(world: World, prefix: str) -> str:
    return f"{prefix}-{world.dice.randrange(10**9)}"


async def keyed(world: World, operation: str, caller: Caller = OPERATOR, **parameters: Any) -> None:
    """Asked for under a key, most times; the answer may never come."""
    if world.dice.random() < 0.6:
        parameters["key"] = fresh(world, "key")
        if caller is OPERATOR:
            world.requests.append(Request(operation, parameters))
    await world.ask(somewhere(world), operation, caller, **parameters)


def message_of(world: World) -> dict[str, Any]:
    return {"body": fresh(world, "words"), "subject": "a word", "priority": world.dice.choice(list(Priority)).value}


def task_of(world: World) -> dict[str, Any]:
    dice = world.dice
    to_role = dice.random() < 0.5
    known = [kept.id for kept in world.witness.accepted[-20:] if kept.item.kind is Kind.task]
    given: dict[str, Any] = {
        "title": fresh(world, "task"),
        "role": dice.choice(ROLES) if to_role else None,
        "agent": None if to_role else address(world),
        "priority": dice.choice(list(Priority)).value,
        "causal_key": f"line-{dice.randrange(3)}" if dice.random() < 0.3 else None,
        "not_before": dice.choice(("5m", "1h")) if dice.random() < 0.2 else None,
        "depends_on": [dice.choice(known)] if known and dice.random() < 0.3 else None,
        "max_retries": dice.randint(0, 2) if dice.random() < 0.4 else None,
    }
    return {name: value for name, value in given.items() if value is not None}


# -- from outside ---------------------------------------------------------------------------------------------
async def message(world: World) -> None:
    await keyed(world, "send", agent=address(world), **message_of(world))


async def webhook(world: World) -> None:
    """Somebody whom nobody knows; it is recorded by whichever node it reaches."""
    station, dice = somewhere(world), world.dice
    priority = dice.choice(list(Priority))
    item = NewItem(
        kind=Kind.message,
        agent=address(world),
        sender="webhook",
        origin=Origin.external,
        subject="from outside",
        body=fresh(world, "words"),
        priority=priority,
        ring=ring_of(Origin.external, priority),
        dedupe=fresh(world, "delivery"),
    )
    for time in range(dice.choice((1, 1, 2))):
        if time:
            world.faults.count("delivered twice")
        access = station.access
        if access is not None and station.up:
            now = station.clock.now()
            recording = station.owned(access.write(lambda store, now=now: store.record([item], now)))  # type: ignore[misc]
            await asyncio.wait({recording})
            if not recording.cancelled():
                recording.exception()
        # Whoever heard no answer says it again, elsewhere and later.
        await asyncio.sleep(dice.choice((0.0, 5.0, 700.0)))
        station = somewhere(world)


async def wake(world: World) -> None:
    body = fresh(world, "words") if world.dice.random() < 0.5 else None
    await keyed(world, "wake", agent=address(world), reason="a look", body=body)


async def tick(world: World) -> None:
    await keyed(world, "tick", agent=someone(world))


async def task(world: World) -> None:
    if world.dice.random() < 0.2:
        many = [task_of(world) for _ in range(5)]
        await world.ask(somewhere(world), "add_tasks", tasks=many)
    elif world.dice.random() < 0.2:
        await keyed(world, "run", agent=address(world), prompt=fresh(world, "prompt"))
    else:
        await keyed(world, "add_task", **task_of(world))


async def repeat(world: World) -> None:
    """A caller that did not hear the answer says it again; another one takes the same key for something else."""
    if not world.requests:
        return
    known = world.dice.choice(world.requests[-20:])
    if world.dice.random() < 0.7:
        await world.ask(somewhere(world), known.operation, **known.parameters)
        return
    told = {"send": "body", "add_task": "title", "run": "prompt"}.get(known.operation)
    if told is None:
        return
    other = {**known.parameters, told: "other words"}
    kept = any(item.item.dedupe == f"operator:{known.parameters['key']}" for item in world.witness.accepted)
    answer = await world.ask(somewhere(world), known.operation, **other)
    if kept and answer is not None and not isinstance(answer, Conflict | WakefulError):
        world.witness.complain(f"{known.operation} took other words under the key {known.parameters['key']}: {answer}")


async def file(world: World) -> None:
    """Somebody changes what is on a shelf; whoever watches hears of it, later or not at all. A mount may be away."""
    shelf, dice = world.shelves.of(address(world)), world.dice
    if shelf is None:
        return
    for _ in range(dice.choice((1, 1, 3))):
        shelf.change(world.clock.wall)
    if dice.random() < 0.15:
        shelf.blind, shelf.away = dice.choice(((True, False), (False, True)))
        asyncio.get_running_loop().call_later(dice.choice((1.0, 300.0, 4000.0)), _back, shelf)
    if dice.random() < 0.7:
        shelf.hint()


def _back(shelf: Any) -> None:
    shelf.blind = shelf.away = False
    shelf.hint()


async def change_task(world: World) -> None:
    tasks = [kept.id for kept in world.witness.accepted if kept.item.kind is Kind.task]
    if tasks:
        change = world.dice.choice(("cancel_task", "retry_task", "complete_task", "fail_task"))
        await world.ask(somewhere(world), change, task=world.dice.choice(tasks[-12:]))


async def read(world: World) -> None:
    await _of_inbox(world, "mark_read")


async def snooze(world: World) -> None:
    await _of_inbox(world, "snooze", until=world.dice.choice(("10m", "3h")))


async def _of_inbox(world: World, operation: str, **more: Any) -> None:
    messages = [kept for kept in world.witness.accepted if kept.item.kind is Kind.message]
    if messages:
        chosen = world.dice.choice(messages[-12:])
        await world.ask(somewhere(world), operation, agent=chosen.item.agent, messages=[chosen.id], **more)


# -- the operator ---------------------------------------------------------------------------------------------
async def pause(world: World) -> None:
    dice = world.dice
    given: dict[str, Any] = {"reason": "a look", "duration": dice.choice((None, "20m", "200m"))}
    given["now"] = dice.random() < 0.2
    if dice.random() < 0.3:
        await world.ask(somewhere(world), "pause", **given)
    else:
        await world.ask(somewhere(world), "pause_agent", agent=someone(world), **given)


async def pause_file(world: World) -> None:
    """A file in the folder of one node; after a while somebody removes it."""
    station = world.dice.choice(world.stations)
    path = station.data / PAUSE_FILE
    path.write_text("a look", encoding="utf-8")
    _look(station)
    await asyncio.sleep(world.dice.choice((2.0, 600.0, 6000.0)))
    path.unlink(missing_ok=True)
    _look(station)


def _look(station: Station) -> None:
    if station.up:
        station.engine.nudge()


async def resume(world: World) -> None:
    pauses = world.store.pauses()
    if not pauses:
        return
    chosen = world.dice.choice(pauses)
    owner = chosen.owner if world.dice.random() < 0.5 else None
    if chosen.scope.startswith("agent:"):
        agent = chosen.scope.removeprefix("agent:")
        await world.ask(somewhere(world), "resume_agent", agent=agent, owner=owner)
    else:
        await world.ask(somewhere(world), "resume", owner=owner)


async def setting(world: World) -> None:
    dice, name = world.dice, someone(world)
    drawn = {
        "cooldown": dice.choice(("0s", "2m", "30m")),
        "max-wakes-per-day": str(dice.randint(0, 6)),
        "max-wakes-per-pair": str(dice.randint(0, 4)),
        "max-minutes-per-day": dice.choice(("5", "60", "300")),
        "max-retries": str(dice.randint(0, 4)),
        "max-failures": str(dice.randint(1, 5)),
    }
    chosen = dice.sample(sorted(drawn), dice.randint(1, 2))
    settings = {key: None if dice.random() < 0.25 else drawn[key] for key in chosen}
    await world.ask(somewhere(world), "set", agent=name, settings=settings)


async def edit(world: World) -> None:
    """The file is changed on every node; each hears of it, or is told to look, or looks by itself in a while."""
    running = [run.agent for run in world.store.runs(open=True)]
    before, world.fleet = world.fleet, edit_fleet(world.dice, world.fleet, world.start, running)
    _count_edit(world, before)
    for station in world.stations:
        if station.up and world.dice.random() < 0.8:
            await world.ask(station, "reload")


def _count_edit(world: World, before: Fleet) -> None:
    if world.fleet != before:
        world.faults.count("fleet edited")
    for agent in world.fleet.agents:
        standing, known = world.store.standing(agent.name), before.agent(agent.name)
        here = standing.position.state if standing is not None else None
        if known is not None and known.lifecycle.state(here or "") and not agent.lifecycle.state(here or ""):
            world.faults.count("current state removed")


async def kill(world: World) -> None:
    runs = [run.id for run in world.store.runs(open=True)]
    if runs:
        await world.ask(somewhere(world), "kill", run=world.dice.choice(runs), at_once=world.dice.random() < 0.5)


async def stale(world: World) -> None:
    """Somebody who was fenced writes late: with an old epoch to an open run, or again to an ended one."""
    station, executions = somewhere(world), list(world.witness.executions.values())[-10:]
    if not executions or station.access is None or not station.up:
        return
    chosen = world.dice.choice(executions)
    run, epoch = chosen.run, chosen.order.run.epoch - (0 if chosen.settled else 1)
    now, end = station.clock.now(), Finish(run=run, epoch=epoch, ending=Ending(exit_code=0))
    writing = station.owned(station.access.write(lambda store: store.finish([end], settle, now)))
    await asyncio.wait({writing})
    if not writing.cancelled() and writing.exception() is None:
        world.witness.complain(f"a late write to run {run} with epoch {epoch} was accepted")


ACTIONS: dict[str, Deed] = {
    "message": message,
    "webhook": webhook,
    "wake": wake,
    "tick": tick,
    "file": file,
    "task": task,
    "repeat": repeat,
    "change_task": change_task,
    "read": read,
    "snooze": snooze,
    "pause": pause,
    "pause_file": pause_file,
    "resume": resume,
    "setting": setting,
    "edit": edit,
    "kill": kill,
    "stale": stale,
    "jump": machines.jump,
    "away": machines.away,
    "freeze": machines.freeze,
    "deaf": machines.deaf,
    "leave": machines.leave,
    "crash": machines.crash,
    "machine": machines.machine,
}
