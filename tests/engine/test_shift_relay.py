"""Shift after shift: what follows one begins in the transaction that ends it, through the same door."""

import pytest

from tests.engine.stage import SECOND, heading, lived
from wakeful.core.items import Kind, NewItem, State
from wakeful.core.runs import TaskEnd
from wakeful.core.wakes import FLEET, Cause, Pause, Subject, Wake
from wakeful.testing.runner import Plan, done

# Of 70 tasks, at so long each shift.
SIZES = [4, 10, 26, 30]
MOSS = heading("moss", handler="deeds:do", tasks="desk")


def work(order):
    """Every task ends with its shift, soon after it began: each shift takes more than the last one did."""
    ends = tuple((SECOND * 0.7, TaskEnd(task=task.id, ending=done())) for task in order.tasks)
    return Plan(duration=SECOND * 0.75, ending=done(), tasks=ends)


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
    await stage.until(0.5)
    writes, seen = [], []

    async def after(number):
        writes.append(number)
        seen.append((len(stage.store.runs(open=True)), len(runs(stage))))

    stage.access.after = after
    await stage.until(0.8)
    # One write for the tasks that ended before their shift did, and one for its end and all that follows.
    assert seen[:2] == [(1, 1), (1, 2)]
    first, second = runs(stage)
    assert second.started_at == first.ended_at
    await stage.minutes(3)
    assert [len(run.tasks) for run in runs(stage)] == SIZES
    assert {stage.store.item(task).state for task in tasks} == {State.completed}
    assert len({seen.run for seen in stage.seen}) == len(SIZES)


@lived
async def test_what_follows_a_shift_is_admitted_by_the_same_guards(stage):
    stage.script = work
    stage.declare(MOSS)
    queue(stage)
    await stage.up()
    await stage.until(0.5)
    stage.store.pause(Pause(scope=FLEET, owner="operator", reason="", since=stage.now), stage.now)
    await stage.minutes(5)
    assert [run.outcome for run in runs(stage)] == ["done"]


@lived
async def test_an_engine_that_drains_begins_nothing_after_a_shift(stage):
    stage.script = work
    stage.declare(MOSS)
    queue(stage)
    await stage.up()
    await stage.until(0.5)
    await stage.down(drain=True)
    assert [run.outcome for run in runs(stage)] == ["done"]


@pytest.mark.parametrize("verb", ["ready", "decide", "claim"])
@lived
async def test_a_shift_ends_although_what_should_follow_it_cannot_be_decided(stage, monkeypatch, verb):
    stage.script = work
    stage.declare(MOSS)
    tasks = queue(stage)
    await stage.up()
    await stage.until(0.5)

    def broken(*arguments, **named):
        raise RuntimeError("out of order")

    monkeypatch.setattr(stage.store, verb, broken)
    await stage.until(0.8)
    assert runs(stage)[0].outcome == "done"
    assert {stage.store.item(task).state for task in tasks[:4]} == {State.completed}
    monkeypatch.undo()
    await stage.minutes(5)
    assert [len(run.tasks) for run in runs(stage)] == SIZES


@lived
async def test_whoever_wakes_a_busy_handler_comes_after_the_shift_and_before_the_rest_of_the_queue(stage):
    stage.script = work
    stage.declare(MOSS)
    queue(stage)
    await stage.up()
    await stage.until(0.5)
    asked = Wake(agent="moss", cause=Cause.operator, subject=Subject.inbox, requested_at=stage.now)
    stage.store.ask([asked], stage.now)
    await stage.minutes(5)
    assert [(run.subject, len(run.tasks)) for run in runs(stage)][:3] == [("task", 4), ("inbox", 0), ("task", 10)]
