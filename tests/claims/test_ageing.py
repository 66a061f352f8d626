"""What keeps a queue just and a schedule exact, told to a real store in time that jumps."""

from datetime import timedelta
from itertools import count

from tests.claims.desk import DONE, FAILED, HOUR, MINUTE, NOON, SECOND, agent
from wakeful.core.cron import parse_schedule
from wakeful.core.items import HEAD_START, Priority, State
from wakeful.core.recurrences import Overlap, Recurrence
from wakeful.store.protocol import TaskFilter

BACKLOG = 5
EVERY = 15 * MINUTE


def until_it_begins(desk, task, fresh, longest=24 * HOUR):
    """One clerk, who does a task each quarter of an hour, in which a fresh one comes; how long this one waited."""
    since, numbers = desk.now, count()
    for _ in range(BACKLOG):
        desk.task(f"fresh {next(numbers)}", priority=fresh)
    while desk.now - since < longest:
        desk.task(f"fresh {next(numbers)}", priority=fresh)
        for order in desk.begin():
            if order.tasks[0].id == task:
                return desk.now - since
            desk.end(order, DONE)
        desk.later(EVERY)
    raise AssertionError(f"not within {longest}")


def test_a_low_task_is_done_although_urgent_ones_never_cease(desk):
    desk.declare(agent("moss", every=None))
    low = desk.task("low", priority=Priority.low)
    waited = until_it_begins(desk, low, Priority.urgent)
    # Those that came within its three hours, and the backlog, are before it.
    assert 3 * HEAD_START <= waited <= 3 * HEAD_START + 2 * BACKLOG * EVERY


def test_of_two_that_came_together_the_urgent_one_is_first(desk):
    desk.declare(agent("moss", every=None))
    for priority in ("low", "urgent", "normal", "high"):
        desk.task(priority, priority=Priority(priority))
    seen = []
    for _ in range(4):
        (order,) = desk.begin()
        seen.append(order.tasks[0].subject)
        desk.end(order, DONE)
        desk.later(SECOND)
    assert seen == ["urgent", "high", "normal", "low"]


# ---- schedules


def hourly(**more):
    return Recurrence(name="sweep", title="sweep the desk", schedule=parse_schedule("0 * * * *"), agent="moss", **more)


def added(desk):
    return [item.dedupe.rpartition(":sweep:")[2] for item in desk.store.tasks(TaskFilter())]


def test_each_instant_of_a_schedule_adds_one_task_however_often_and_by_whomever_it_is_looked_at(desk):
    desk.declare(agent("moss", every=None), recurrences=(hourly(overlap=Overlap.queue),))
    for hour in range(1, 4):
        desk.until(NOON + hour * HOUR)
        first = desk.store.recur(desk.now)
        desk.restart()
        assert desk.store.recur(desk.now) == []
        assert [desk.store.item(row.id).subject for row in first] == ["sweep the desk"]
        # A clock that was set back finds the same instants again.
        assert desk.store.recur(desk.now - 30 * MINUTE) == []
    assert len(added(desk)) == len(set(added(desk))) == 3
    desk.finish_all()
    assert desk.store.tasks(TaskFilter())[0].state is State.completed


def test_a_schedule_does_not_pile_up_on_a_task_that_is_still_open(desk):
    desk.declare(agent("moss", every=None), recurrences=(hourly(overlap=Overlap.skip),))
    desk.until(NOON + HOUR)
    (row,) = desk.store.recur(desk.now)
    for hour in (2, 3):
        desk.until(NOON + hour * HOUR)
        assert [new for new in desk.store.recur(desk.now) if new.id != row.id] == []
    assert len(added(desk)) == 1
    desk.finish_all()
    desk.until(NOON + 4 * HOUR)
    assert [new.id != row.id for new in desk.store.recur(desk.now)] == [True]


def test_what_a_schedule_missed_while_nobody_was_there_is_one_task(desk):
    desk.declare(agent("moss", every=None), recurrences=(hourly(overlap=Overlap.queue),))
    desk.later(timedelta(hours=9, minutes=30))
    assert len(desk.store.recur(desk.now)) == 1
    assert desk.store.recur(desk.now) == []


def test_a_failed_task_of_a_schedule_is_tried_again_like_any_other(desk):
    desk.declare(agent("moss", every=None), recurrences=(hourly(),))
    desk.until(NOON + HOUR)
    (row,) = desk.store.recur(desk.now)
    desk.finish_all(FAILED)
    assert desk.store.item(row.id).state is State.failed
    desk.later(MINUTE)
    desk.finish_all()
    assert desk.store.item(row.id).state is State.completed
