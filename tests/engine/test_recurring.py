"""Recurring tasks: each instant of a schedule gives one task, whoever looks and however often."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.engine.stage import HOUR, MINUTE, START, heading, lived
from wakeful.core.errors import Unknown
from wakeful.core.items import Origin, Priority, State
from wakeful.core.runs import Result
from wakeful.engine.recurring import Recurring
from wakeful.runners.protocol import Checked
from wakeful.store.protocol import TaskFilter
from wakeful.testing.loop import passes
from wakeful.testing.runner import Plan, done, failed

WREN = heading("wren", tasks="sweeping")
NO_KEY = Result(error="no key", error_class="config")


def task(name="sweep", **keys):
    return heading(name, **{"task": "", "schedule": "0 * * * *", "role": "sweeping", **keys})


def tasks(stage):
    return stage.store.tasks(TaskFilter())


def due(stage):
    """The instants that tasks were added for, in hours after the beginning."""
    return [(datetime.fromisoformat(item.dedupe.rpartition("sweep:")[2]) - START) / HOUR for item in tasks(stage)]


@lived
async def test_a_recurring_task_is_put_into_its_queue_at_each_instant_and_done(stage):
    keys = {"priority": "high", "tags": "a, b", "payload": '{"floor": 2}', "timeout": "5m", "max_retries": "1"}
    stage.declare(WREN, task(task="Sweep the floor", **keys) + "Under the desks too.\n")
    await stage.up()
    await stage.hours(3.5)
    found = tasks(stage)
    assert due(stage) == [1, 2, 3]
    assert {item.state for item in found} == {State.completed}
    assert stage.beats("wren") == [3600, 7200, 10800]
    first = found[0]
    assert (first.subject, first.body, first.payload) == ("Sweep the floor", "Under the desks too.", '{"floor": 2}')
    assert (first.priority, first.tags, first.timeout, first.max_retries) == (
        Priority.high,
        ("a", "b"),
        5 * MINUTE,
        1,
    )
    assert (first.source, first.origin) == ("schedule:sweep", Origin.operator)
    assert (first.role, first.agent) == ("sweeping", None)


@lived
async def test_what_was_missed_while_nobody_was_up_is_made_up_for_once(stage):
    stage.declare(WREN, task())
    await stage.up()
    await stage.hours(1.5)
    await stage.crash()
    await stage.hours(5)
    await stage.up()
    await stage.hours(1)
    assert due(stage) == [1, 6, 7]


@lived
async def test_a_restart_at_the_very_instant_adds_nothing_twice(stage):
    stage.declare(WREN, task())
    await stage.up()
    await stage.until(3600)
    for _ in range(3):
        await stage.crash()
        await stage.up()
    await stage.minutes(30)
    assert due(stage) == [1]


@pytest.mark.parametrize(("overlap", "expected"), [("skip", [1, 4, 7]), ("queue", [1, 2, 3, 4, 5, 6, 7])])
@lived
async def test_a_task_that_is_still_open_is_not_put_beside_itself_unless_it_may_queue(stage, overlap, expected):
    stage.declare(WREN, task(overlap=overlap, timeout="4h"), workers="1")
    stage.all_end(done(), 2.5 * HOUR)
    await stage.up()
    await stage.hours(7.2)
    assert due(stage) == expected


def test_a_loop_that_always_has_something_to_decide_looks_once_a_second():
    class Clock:
        at = 0.0

        def elapsed(self):
            return self.at

    class Looked:
        times = 0

        def recur(self, now):
            self.times += 1

    clock, store = Clock(), Looked()
    recurring = Recurring(clock)
    for tenth in range(35):
        clock.at = tenth / 10
        recurring.put(store, START, idle=False)
    assert store.times == 4
    recurring.put(store, START, idle=True)
    recurring.put(store, START, idle=True)
    assert store.times == 6


@lived
async def test_a_schedule_is_kept_while_the_check_of_somebody_else_takes_long(stage):
    async def slow(agent):
        await passes(60)
        return Checked(wake=False)

    stage.checks = slow
    stage.declare(WREN, heading("moss", offset="50s", check="true"), task(schedule="* * * * *"), grace="0s")
    await stage.up()
    await stage.until(80)
    assert [item.state for item in tasks(stage)] == [State.in_progress]
    assert 60 <= stage.beats("wren")[0] < 62


@lived
async def test_one_that_cannot_recur_goes_on_with_its_next_instant_and_the_others_have_theirs(stage, monkeypatch):
    record = stage.store.record_all

    def refuse(items, now):
        made = record(items, now)
        if any(item.sender == "schedule:mend" for item in items) and stage.elapsed < 5000:
            raise Unknown("no agent is called nobody")
        return made

    stage.declare(WREN, task("mend"), task())
    monkeypatch.setattr(stage.store, "record_all", refuse)
    await stage.up()
    await stage.hours(2.5)
    assert [(item.source, item.dedupe[-16:-14]) for item in tasks(stage)] == [
        ("schedule:sweep", "01"),
        ("schedule:mend", "02"),
        ("schedule:sweep", "02"),
    ]


@lived
async def test_a_schedule_that_a_blocked_task_silences_says_so(stage, caplog):
    stage.declare(WREN, task())
    stage.script = lambda order: Plan(duration=MINUTE, ending=replace(failed(), result=NO_KEY))
    await stage.up()
    await stage.hours(2.5)
    (item,) = tasks(stage)
    assert item.state is State.blocked
    said = [record.getMessage() for record in caplog.records if "does not recur" in record.getMessage()]
    assert said == [f"sweep does not recur at 2026-03-02 02:00:00+00:00: task {item.id} of it is blocked"]


@lived
async def test_a_clock_that_is_set_back_beside_an_edit_holds_up_no_other_schedule(stage, deaf):
    stage.declare(WREN, task(overlap="queue"), task("mend", overlap="queue"))
    await stage.up()
    await stage.hours(2.1)
    stage.declare(WREN, task(task="Sweep well", overlap="queue"), task("mend", overlap="queue"))
    stage.clock.set_wall(-2 * HOUR)
    await stage.hours(3)
    assert Counter(item.source for item in tasks(stage)) == {"schedule:sweep": 3, "schedule:mend": 3}
    assert stage.engine.loop.away == ""


@lived
async def test_an_edit_changes_when_it_recurs_and_a_removal_ends_it(stage, deaf):
    stage.declare(WREN, task())
    await stage.up()
    await stage.hours(1.1)
    stage.declare(WREN, task(schedule="30 * * * *"))
    await stage.hours(1)
    assert due(stage) == [1, 1.5]
    stage.declare(WREN)
    await stage.hours(3)
    assert due(stage) == [1, 1.5]
    assert stage.store.recurrences() == []


@lived
async def test_two_nodes_add_each_instant_once(company):
    one, two = company.nodes
    company.declare(WREN, task(schedule="* * * * *", overlap="queue"))
    minutes = [minute / 60 for minute in range(1, 5)]
    await company.up()
    await one.until(150)
    assert due(one) == minutes[:2]
    await one.crash()
    await two.until(270)
    assert due(two) == minutes


@pytest.mark.parametrize(
    ("start", "schedule", "expected"),
    [
        # A local time that is skipped in spring fires once, at the end of the gap.
        (datetime(2026, 3, 28, 20, tzinfo=UTC), "30 2 * * *", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        # One that is repeated in autumn fires once.
        (datetime(2026, 10, 24, 20, tzinfo=UTC), "30 2 * * *", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ],
)
@lived
async def test_a_local_time_is_kept_through_the_change_of_the_clocks(stage, start, schedule, expected):
    stage.clock.set_wall(start - stage.now)
    stage.declare(WREN, task(schedule=schedule, timezone="Europe/Berlin"))
    await stage.up()
    await stage.hours(36)
    assert [item.dedupe.rpartition("sweep:")[2][:16] for item in tasks(stage)] == expected


@lived
async def test_a_clock_that_is_set_back_neither_repeats_nor_silences_a_schedule(stage):
    stage.declare(WREN, task())
    await stage.up()
    await stage.hours(2.1)
    stage.clock.set_wall(-2 * HOUR)
    await stage.hours(3)
    # The instants that come by again have had their task.
    assert due(stage) == [1, 2, 3]


@lived
async def test_one_that_fails_is_tried_again_and_the_next_instant_stands_for_itself(stage):
    stage.declare(WREN, task(max_retries="1", overlap="queue"))
    stage.script = lambda order: Plan(duration=MINUTE, ending=failed("no"))
    await stage.up()
    await stage.hours(2.5)
    assert [(item.state, item.attempts) for item in tasks(stage)] == [(State.dead_letter, 2)] * 2
