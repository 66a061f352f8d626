"""Shift after shift: what follows one begins in the transaction that ends it, through the same door."""

import pytest

from tests.engine.stage import MINUTE, SECOND, heading, lived
from wakeful.core.items import Kind, NewItem, State
from wakeful.core.runs import TaskEnd
from wakeful.core.wakes import FLEET, Pause
from wakeful.testing.runner import Plan, done

MOSS = heading("moss", handler="deeds:do", tasks="desk")


def work(order):
    """Every task ends with its shift, a minute after it began."""
    ends = tuple((MINUTE - SECOND, TaskEnd(task=task.id, ending=done())) for task in order.tasks)
    return Plan(duration=MINUTE, ending=done(), tasks=ends)


def queue(stage, count=70):
    items = [NewItem(kind=Kind.task, role="desk", subject=str(number)) for number in range(count)]
    return [task.id for task in stage.store.record(items, stage.now)]


def runs(stage):
    return list(reversed(stage.store.runs(before=1 << 62)))


@lived
async def test_the_next_shift_begins_at_the_instant_and_in_the_write_that_ends_the_last(stage):
    stage.script = work
    stage.declare(MOSS)
    tasks = queue(stage)
    await stage.up()
    await stage.until(30)
    writes, seen = [], []

    async def after(number):
        writes.append(number)
        seen.append((len(stage.store.runs(open=True)), len(runs(stage))))

    stage.access.after = after
    await stage.until(65)
    # One write for the tasks that ended before their shift did, and one for its end and all that follows.
    assert seen[:2] == [(1, 1), (1, 2)]
    first, second = runs(stage)
    assert second.started_at == first.ended_at
    await stage.minutes(3)
    assert [len(run.tasks) for run in runs(stage)] == [32, 32, 6]
    assert {stage.store.item(task).state for task in tasks} == {State.completed}
    assert len({seen.run for seen in stage.seen}) == 3


@lived
async def test_what_follows_a_shift_is_admitted_by_the_same_guards(stage):
    stage.script = work
    stage.declare(MOSS)
    queue(stage)
    await stage.up()
    await stage.until(30)
    stage.store.pause(Pause(scope=FLEET, owner="operator", reason="", since=stage.now), stage.now)
    await stage.minutes(5)
    assert [run.outcome for run in runs(stage)] == ["done"]


@lived
async def test_an_engine_that_drains_begins_nothing_after_a_shift(stage):
    stage.script = work
    stage.declare(MOSS)
    queue(stage)
    await stage.up()
    await stage.until(30)
    await stage.down(drain=True)
    assert [run.outcome for run in runs(stage)] == ["done"]


@pytest.mark.parametrize("verb", ["ready", "decide", "claim"])
@lived
async def test_a_shift_ends_although_what_should_follow_it_cannot_be_decided(stage, monkeypatch, verb):
    stage.script = work
    stage.declare(MOSS)
    tasks = queue(stage)
    await stage.up()
    await stage.until(30)

    def broken(*arguments, **named):
        raise RuntimeError("out of order")

    monkeypatch.setattr(stage.store, verb, broken)
    await stage.until(61)
    assert runs(stage)[0].outcome == "done"
    assert {stage.store.item(task).state for task in tasks[:32]} == {State.completed}
    monkeypatch.undo()
    await stage.minutes(5)
    assert [len(run.tasks) for run in runs(stage)] == [32, 32, 6]
