"""An engine that dies at any moment, and the one after it: nothing is lost, nothing runs twice, nothing overlaps.

The guardians are the witness. What the store says afterwards is compared with what they saw, and the place of each
agent with a fold of its outcomes.
"""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from tests.engine.stage import DAY, MINUTE, SECOND, heading, lived
from wakeful.core.items import Kind, NewItem
from wakeful.core.lifecycle import Position, advance, begin
from wakeful.core.runs import TaskEnd, read_outcome
from wakeful.testing.carrier import LOST
from wakeful.testing.loop import live, passes
from wakeful.testing.runner import Plan, done, failed, no_work

CREW = ("wren", "moss", "finch")
ENDINGS = (done(), done(), no_work(), failed(), done())


def troupe(stage):
    stage.write("lifecycle.org", DAY)
    agents = [heading(name, interval="2m", lifecycle="lifecycle.org") for name in CREW]
    stage.declare(*agents, grace="5s", stagger="10s")
    stage.script = lambda order: Plan(
        duration=SECOND * (20 + 37 * order.run.id % 90), ending=ENDINGS[order.run.id % len(ENDINGS)]
    )


def complaints(stage):
    """Everything in which the store and the guardians do not agree."""
    found = []
    guardians = stage.carrier.runner.guardians
    events = [(event.kind.value, event.run) for event in stage.store.events(limit=100_000)]
    ends = Counter(run for kind, run in events if kind == "ended")
    voids = Counter(run for kind, run in events if kind == "voided")
    for run in stage.store.runs(limit=100_000):
        guardian = guardians.get(run.id)
        if guardian is None:
            if run.state == "running" or ends[run.id] or voids[run.id] != (run.state == "void"):
                found.append(f"{run} never executed")
        elif guardian.alive:
            if run.state != "running":
                found.append(f"{run} is alive")
        elif (ends[run.id], voids[run.id]) != (1, 0) or run.outcome is not read_outcome(guardian.exit or LOST):
            found.append(f"{run} ended {ends[run.id]} times, {guardian.exit}")
    return found + overlaps(guardians.values()) + displaced(stage)


def overlaps(guardians):
    found = []
    for name in CREW:
        mine = sorted((g for g in guardians if g.order.run.agent == name), key=lambda g: g.started)
        pairs = pairwise(mine)
        found += [f"{name} ran twice at once at {b.started}" for a, b in pairs if a.alive or a.ended > b.started]
    moments = sorted(g.started for g in guardians)
    for moment in moments:
        at_once = [g for g in guardians if g.started <= moment and (g.alive or g.ended > moment)]
        if len(at_once) > 2:
            found.append(f"{len(at_once)} runs at {moment}")
    return found


def displaced(stage):
    """The place of each agent, folded from what its guardians saw."""
    found = []
    for name in CREW:
        lifecycle = stage.store.agent(name).lifecycle
        place: Position = begin(lifecycle)
        for run in stage.store.runs(agent=name, limit=100_000):
            guardian = stage.carrier.runner.guardians.get(run.id)
            if guardian is None:
                continue
            if guardian.order.run.position != place:
                found.append(f"run {run.id} began at {guardian.order.run.position}, not at {place}")
            if not guardian.alive:
                place = advance(place, lifecycle, read_outcome(guardian.exit or LOST).value)
        if stage.standing(name).position != place:
            found.append(f"{name} stands at {stage.standing(name).position}, not at {place}")
    return found


async def settled(stage):
    """Long enough for whoever was under way to end and be told."""
    await stage.minutes(9)
    left = [run.id for run in stage.store.runs(open=True) if not stage.carrier.runner.guardians[run.id].alive]
    assert left == []
    assert complaints(stage) == []
    # And the crew is still at work.
    for name in CREW:
        assert stage.beats(name)[-1] > stage.elapsed - 6 * 60


async def dies(stage, hook, moment):
    """An engine up to its `moment`th write: there, before or after the commit, it hears nothing more for ever."""
    dead = asyncio.Event()

    async def at(number):
        if number >= moment:
            dead.set()
            await asyncio.Event().wait()

    started = asyncio.create_task(stage.up(lambda access: setattr(access, hook, at)))
    await dead.wait()
    await stage.crash()
    assert started.done()


@pytest.mark.parametrize("hook", ["before", "after"])
def test_an_engine_may_die_at_any_commit(stages, keeper, hook):
    for moment in range(1, 17, 1 if keeper == "sqlite" else 3):

        async def story(stage, moment=moment):
            troupe(stage)
            await dies(stage, hook, moment)
            # Runs go on, and some end, while nobody is there.
            await passes((0, 3, 25, 200)[moment % 4])
            await stage.up()
            await settled(stage)

        live(lambda: story(stages()))


@pytest.mark.parametrize("hook", ["before", "after"])
@lived
async def test_it_may_die_again_and_again(stage, hook):
    troupe(stage)
    for moment in (1, 1, 2, 3, 4, 5, 2, 7, 4, 8, 6, 3, 9):
        await dies(stage, hook, moment)
        await passes(moment * 7)
    await stage.up()
    await settled(stage)


@pytest.mark.parametrize("around", ["before", "after"])
@pytest.mark.parametrize("which", [1, 2, 4])
@lived
async def test_it_may_die_on_either_side_of_an_execution(stage, around, which):
    """Claimed and not executed: vetoed, void and decided again. Executed and not told: adopted."""
    troupe(stage)
    dead, count = asyncio.Event(), 0

    async def at(order):
        nonlocal count
        count += 1
        if count >= which:
            dead.set()
            await asyncio.Event().wait()

    setattr(stage, around, at)
    await stage.up()
    await dead.wait()
    executed = len(stage.seen)
    assert executed == which - (around == "before")
    await stage.crash()
    setattr(stage, around, None)
    await passes(10)
    await stage.up()
    await settled(stage)
    voided = [run for run in stage.store.runs(limit=1000) if run.state == "void"]
    assert len(voided) == (around == "before")
    # A guardian of it that is still on its way finds that it must not execute.
    assert {run.id for run in voided} <= stage.carrier.runner.vetoed


@lived
async def test_a_store_that_answers_late_changes_nothing(stage):
    """Between each question and its answer there is time for everybody else."""
    troupe(stage)
    await stage.up()
    stage.access.before = lambda number: passes(0.3)
    stage.access.after = lambda number: passes(0.7)
    await stage.minutes(6)
    await stage.tick("wren")
    await settled(stage)


@pytest.mark.parametrize("seconds", [0, 1, 30, 61, 600])
@lived
async def test_what_ended_while_nobody_was_there_is_read_and_not_repeated(stage, seconds):
    stage.canonical()
    stage.all_end(done("written while nobody looked"))
    await stage.up()
    await stage.until(80)
    await stage.crash()
    await passes(seconds)
    await stage.up()
    await stage.minutes(3)
    (run,) = stage.store.runs(agent="wren")[:1]
    assert (run.outcome.value, run.summary) == ("done", "written while nobody looked")
    assert stage.outcomes()[0] == "done"
    await stage.minutes(20)
    assert stage.walk()[:2] == ["wake_add 0", "wake_add 1"]
    assert len(stage.walk()) == len(set(stage.walk()))


@lived
async def test_a_run_whose_guardian_is_gone_is_killed_counted_and_tried_again(stage):
    stage.canonical()
    await stage.up()
    await stage.until(80)
    await stage.crash()
    stage.carrier.lose(stage.seen[0].run)
    await stage.up()
    await stage.until(90)
    run = stage.store.run(stage.seen[0].run)
    assert (run.outcome.value, run.reason) == ("killed", "its guardian was gone without an exit record")
    assert stage.standing().failure_streak == 1
    await stage.until(800)
    assert stage.walk() == ["wake_add 0", "wake_add 0"]


@lived
async def test_everything_that_can_have_become_of_a_run_at_once(stage):
    names = ("alive", "ended", "lost", "unstarted")
    stage.declare(*(heading(name, interval="1h") for name in names), sessions="4", stagger="0s")
    stage.script = lambda order: Plan(duration=(1 if order.run.agent == "ended" else 10) * MINUTE, ending=done())

    async def never(order):
        if order.run.agent == "unstarted":
            await asyncio.Event().wait()

    stage.before = never
    await stage.up()
    await stage.until(70)
    await stage.crash()
    stage.before = None
    stage.carrier.lose(next(seen.run for seen in stage.seen if seen.agent == "lost"))
    await stage.until(200)
    await stage.up()
    await stage.until(205)
    states = {run.agent: (run.state, run.outcome and run.outcome.value) for run in stage.store.runs()}
    assert states == {
        "alive": ("running", None), "ended": ("ended", "done"),
        "lost": ("ended", "killed"), "unstarted": ("void", None),
    }  # fmt: skip
    await stage.until(60 + 660)
    assert stage.outcomes("alive") == ["done"]
    # Decided again, after the grace of a start, for it is timed.
    assert stage.beats("unstarted") == [260]


@lived
async def test_two_who_find_the_same_end_settle_it_once(stage):
    """The exit record was read and told just before the end; the next one reads it again, and is refused."""
    stage.canonical()
    await stage.up()

    async def told_and_gone(number):
        await asyncio.Event().wait()

    await stage.until(100)
    stage.access.after = told_and_gone
    await stage.until(130)
    assert stage.outcomes() == ["done"]
    await stage.crash()
    await stage.up()
    await stage.until(600)
    assert stage.outcomes() == ["done"]
    assert stage.place() == ("wake_add", 1)


@lived
async def test_a_task_of_a_shift_that_was_told_before_a_crash_is_not_told_twice(stage):
    stage.declare("* moss\n:PROPERTIES:\n:HANDLER: package.module:function\n:TASKS: write\n:END:\n")

    def shift(order):
        ends = [(SECOND * 20 * (n + 1), TaskEnd(task=task.id, ending=done())) for n, task in enumerate(order.tasks)]
        return Plan(duration=MINUTE * 5, ending=done(), tasks=tuple(ends))

    stage.script = shift
    await stage.up()
    new = [NewItem(kind=Kind.task, role="write", subject=f"task {n}") for n in range(4)]
    ids = [row.id for row in await stage.access.write(lambda store: store.record(new, stage.now))]
    await stage.until(50)
    states = [stage.store.item(id).state.value for id in ids]
    assert states == ["completed"] * 2 + ["in_progress"] * 2
    await stage.crash()
    await stage.until(90)
    await stage.up()
    await stage.until(400)
    assert [stage.store.item(id).state.value for id in ids] == ["completed"] * 4
    ended = [event.item for event in stage.store.events(limit=1000) if event.kind.value == "task_ended"]
    assert sorted(ended) == sorted(ids)
    assert len(stage.seen) == 1
