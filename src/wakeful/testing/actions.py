"""What happens to a fleet: the table of everything that an operator, a peer, a clock or a file may do to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from wakeful.core.errors import Mistake, Stale
from wakeful.core.items import Kind, NewItem, Origin, Priority, Ring, ring_of
from wakeful.core.wakes import FLEET, Cause, Pause, Subject, Wake, agent_scope
from wakeful.testing.fleets import ROLES, edit_fleet, minutes
from wakeful.testing.runner import Guardian
from wakeful.testing.witness import Asked, Setting

if TYPE_CHECKING:
    from wakeful.testing.world import World

# How often each kind of trouble is drawn when a seed has it at all.
WEIGHTS = {
    "message": 10,
    "peer_wake": 6,
    "operator_wake": 3,
    "tick": 3,
    "file": 8,
    "task": 8,
    "repeat": 2,
    "change_task": 2,
    "pause": 2,
    "resume": 4,
    "setting": 2,
    "edit": 2,
    "kill": 2,
    "stale": 1,
    "jump": 1,
    "outage": 1,
    "crash": 1,
}


def draw_kinds(dice: Random) -> list[str]:
    """Most kinds of trouble, not all: a rare one is not drowned by the common ones in every seed."""
    return [kind for kind in WEIGHTS if dice.random() < 0.75] or list(WEIGHTS)


def draw_schedule(dice: Random, kinds: list[str], length: timedelta) -> list[tuple[timedelta, str]]:
    """Troubles come in clusters: what matters happens while something else is under way."""
    weights = [WEIGHTS[kind] * dice.choice((1, 1, 4)) for kind in kinds]
    found = []
    for _ in range(dice.randint(4, 14)):
        begin = length * dice.random()
        width = minutes(dice.choice((0.2, 5, 60)))
        for kind in dice.choices(kinds, weights, k=dice.randint(1, 10)):
            found.append((min(begin + width * dice.random(), length), kind))
    return sorted(found)


# -- who and what ---------------------------------------------------------------------------------------------
def someone(world: World) -> str:
    return world.dice.choice(world.known.agents).name


def address(world: World) -> str:
    """Everybody writes to the first one: limits are met only by those who are much asked for."""
    agents = world.known.agents
    return (agents[0] if world.dice.random() < 0.3 else world.dice.choice(agents)).address


def _fresh(world: World, prefix: str) -> str:
    return f"{prefix}-{len(world.witness.accepted)}-{len(world.witness.lost)}-{world.dice.randrange(10**6)}"


def draw_message(world: World, origin: Origin, target: str, **lineage: int | None) -> NewItem:
    priority = world.dice.choice(list(Priority))
    sender = {Origin.operator: "operator", Origin.external: "webhook"}.get(origin) or someone(world)
    return NewItem(
        kind=Kind.message,
        agent=target,
        sender=sender,
        origin=origin,
        subject=_fresh(world, "message"),
        body="words",
        priority=priority,
        ring=ring_of(origin, priority),
        dedupe=_fresh(world, "key") if world.dice.random() < 0.6 else None,
        by_run=lineage.get("by_run"),
    )


def draw_task(world: World, sender: str, by_run: int | None = None) -> NewItem:
    dice = world.dice
    to_role = dice.random() < 0.5
    known = [kept.id for kept in world.witness.accepted[-20:] if kept.item.kind is Kind.task]
    return NewItem(
        kind=Kind.task,
        agent=None if to_role else address(world),
        role=dice.choice(ROLES) if to_role else None,
        sender=sender,
        origin=Origin.operator if by_run is None else Origin.agent,
        subject=_fresh(world, "task"),
        body="work",
        priority=dice.choice(list(Priority)),
        dedupe=_fresh(world, "key") if dice.random() < 0.5 else None,
        key=f"line-{dice.randrange(3)}" if dice.random() < 0.3 else None,
        not_before=world.clock.wall + minutes(dice.choice((5, 60))) if dice.random() < 0.2 else None,
        depends_on=(dice.choice(known),) if known and dice.random() < 0.3 else (),
        max_retries=dice.randint(0, 2) if dice.random() < 0.4 else None,
        by_run=by_run,
    )


# -- from outside ---------------------------------------------------------------------------------------------
def message(world: World) -> None:
    origin = world.dice.choice(list(Origin))
    world.record(draw_message(world, origin, address(world)))


def task(world: World) -> None:
    world.record(*(draw_task(world, "operator") for _ in range(world.dice.choice((1, 1, 1, 5)))))


def repeat(world: World) -> None:
    """A caller that did not hear the answer says it again; another one takes the same key for something else."""
    accepted = [kept.item for kept in world.witness.accepted if kept.item.dedupe is not None]
    keyed = accepted + [item for item in world.witness.lost if item.dedupe is not None]
    if keyed and world.dice.random() < 0.7:
        world.record(world.dice.choice(keyed))
    elif accepted:
        world.record_conflict(replace(world.dice.choice(accepted), body="other words"))


def ask(world: World, wake: Wake) -> None:
    """Ask an engine that lives; or leave the request for the next one."""
    if world.driver is None:
        world.witness.left.add(wake.requested_at)
        world.store.ask([wake], wake.requested_at)
        return
    decision = world.driver.decide([wake])[0]
    world.witness.asked.append(Asked(wake=wake, decision=decision))


def peer_wake(world: World, guardian: Guardian | None = None) -> None:
    """The message first, always; then the request, whose answer the caller is told."""
    target, sender, by_run = address(world), someone(world), None
    if guardian is not None:
        sender, by_run = guardian.order.agent.address, guardian.order.run.id
    note = draw_message(world, Origin.agent, target, by_run=by_run)
    item = world.record(replace(note, sender=sender, ring=Ring.peer))[0].id
    wake = Wake(
        agent=target,
        cause=Cause.peer,
        subject=Subject.inbox,
        requested_at=world.witness.call("ask").at,
        sender=sender,
        item=item,
        by_run=by_run,
    )
    ask(world, wake)


def operator_wake(world: World) -> None:
    at = world.witness.call("ask").at
    ask(world, Wake(agent=address(world), cause=Cause.operator, subject=Subject.inbox, requested_at=at))


def tick(world: World) -> None:
    at = world.witness.call("ask").at
    ask(world, Wake(agent=someone(world), cause=Cause.operator, subject=Subject.beat, requested_at=at))


def file(world: World) -> None:
    world.mirrors.change(world, someone(world))


def change_task(world: World) -> None:
    tasks = [kept.id for kept in world.witness.accepted if kept.item.kind is Kind.task]
    if not tasks:
        return
    chosen = world.dice.choice(tasks[-12:])
    change = world.dice.choice(("cancel", "retry", "complete", "fail"))
    call = world.witness.call("change_task")
    try:
        world.store.change_task(chosen, change, "operator", call.at)
    except Mistake:
        world.witness.note("refused", change, chosen)


# -- the operator ---------------------------------------------------------------------------------------------
def pause(world: World) -> None:
    scope = FLEET if world.dice.random() < 0.3 else agent_scope(someone(world))
    wait = world.dice.choice((None, minutes(20), minutes(200)))
    until = None if wait is None else world.clock.wall + wait
    owner = world.dice.choice(("operator", "file"))
    world.pause(Pause(scope=scope, owner=owner, reason="a look", since=world.clock.wall, until=until))
    if world.driver is not None and world.dice.random() < 0.2:
        for guardian in world.runner.alive():
            if scope in (FLEET, agent_scope(guardian.order.run.agent)):
                world.kill(guardian.order.run.id, "pause")


def resume(world: World) -> None:
    pauses = world.store.pauses()
    if pauses:
        chosen = world.dice.choice(pauses)
        world.resume(chosen.scope, chosen.owner if world.dice.random() < 0.5 else None)


def setting(world: World) -> None:
    dice, name = world.dice, someone(world)
    drawn: dict[str, object] = {
        "cooldown": timedelta(minutes=dice.choice((0, 2, 30))),
        "wakes_per_day": dice.randint(0, 6),
        "wakes_per_pair": dice.randint(0, 4),
        "minutes_per_day": float(dice.choice((5, 60, 300))),
        "max_retries": dice.randint(0, 4),
        "max_failures": dice.randint(1, 5),
    }
    chosen = dice.sample(sorted(drawn), dice.randint(1, 2))
    settings = {key: None if dice.random() < 0.25 else drawn[key] for key in chosen}
    call = world.witness.call("set")
    world.witness.settings.append(Setting(agent=name, settings=settings, call=call))
    world.store.set(name, settings, "operator", call.at)


def edit(world: World) -> None:
    """The file is changed; the engine reads it again at once, or only when it is next started."""
    running = [guardian.order.run.agent for guardian in world.runner.alive()]
    world.fleet = edit_fleet(world.dice, world.fleet, world.start, running)
    if world.driver is not None and world.dice.random() < 0.8:
        world.driver.declare(world.fleet)
        world.known = world.fleet


def kill(world: World) -> None:
    alive = world.runner.alive()
    if alive and world.driver is not None:
        world.kill(world.dice.choice(alive).order.run.id, "operator")


def stale(world: World) -> None:
    """A fenced or repeated engine writes late: with an old epoch to an open run, or again to an ended one."""
    if world.driver is None or not world.witness.executions:
        return
    execution = world.dice.choice(list(world.witness.executions.values())[-10:])
    guardian = world.runner.guardians[execution.run]
    if not guardian.alive and execution.settled is None:
        return
    epoch = execution.order.run.epoch - (1 if guardian.alive else 0)
    if not world.driver.finish_again(execution.run, epoch, guardian.plan.ending):
        world.witness.complain(f"a late write to run {execution.run} with epoch {epoch} was accepted")


def jump(world: World) -> None:
    """Somebody sets the clock, by at most a few hours; an engine that is up notices, and looks at its timers as if
    it had just been started."""
    world.clock.set_wall(minutes(world.dice.choice((-180, -45, -3, 3, 45, 180)) * world.dice.random()))
    if world.driver is not None:
        world.driver.declare(world.known, boot=True)


def outage(world: World) -> None:
    """The engine is stopped, and stays away; its runs go on."""
    if world.driver is not None:
        world.down(minutes(world.dice.choice((1, 45, 400))))


def crash(world: World) -> None:
    if world.driver is not None:
        world.crash("between two commits")


ACTIONS: dict[str, Callable[[World], None]] = {
    "message": message,
    "peer_wake": peer_wake,
    "operator_wake": operator_wake,
    "tick": tick,
    "file": file,
    "task": task,
    "repeat": repeat,
    "change_task": change_task,
    "pause": pause,
    "resume": resume,
    "setting": setting,
    "edit": edit,
    "kill": kill,
    "stale": stale,
    "jump": jump,
    "outage": outage,
    "crash": crash,
}


# -- from inside a run ----------------------------------------------------------------------------------------
def act(world: World, guardian: Guardian, what: str) -> None:
    run = guardian.order.run
    match what:
        case "message":
            note = draw_message(world, Origin.agent, address(world), by_run=run.id)
            world.record(replace(note, sender=guardian.order.agent.address))
        case "wake":
            peer_wake(world, guardian)
        case "task":
            world.record(draw_task(world, guardian.order.agent.address, by_run=run.id))
        case "edit":
            world.mirrors.edit(world, run.agent)
        case "self":
            note = draw_message(world, Origin.agent, guardian.order.agent.address, by_run=run.id)
            world.record(replace(note, sender=guardian.order.agent.address))
        case "step":
            save_step(world, guardian)


def save_step(world: World, guardian: Guardian) -> None:
    run = guardian.order.run
    name = f"step {world.dice.randrange(3)}"
    task = guardian.order.tasks[0].id if guardian.order.tasks else None
    known = world.store.steps(run.id, task=task)
    for result in (None, f"made by run {run.id}"):
        call = world.witness.call("save_step")
        with suppress(Stale):
            world.store.save_step(run.id, run.epoch, name, result, call.at, task=task)
    after = world.store.steps(run.id, task=task)
    kept = known.get(name)
    if kept is not None and after.get(name) != kept:
        world.witness.complain(f"step {name!r} of run {run.id} was {kept!r} and became {after.get(name)!r}")
