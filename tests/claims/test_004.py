"""Document 004: the queue, its leases, its retries and its dead letters, told to a real store."""

from datetime import timedelta

import pytest

from tests.claims.desk import DONE, FAILED, HOUR, KILLED, LOST, MINUTE, SECOND, Desk, agent, on_sqlite, why_not
from wakeful.core.agents import RetryPolicy
from wakeful.core.errors import Busy, Stale, WakefulError
from wakeful.core.items import State
from wakeful.core.retries import delay, retry_or_bury
from wakeful.core.runs import Ending, Outcome, Result
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.store.protocol import TaskEnd

EXACT = RetryPolicy(jitter=0.0)
WAITS = [30, 60, 120, 240, 480]


def moss(**more):
    return agent("moss", every=None, retries=EXACT, **more)


def state(desk, task):
    return desk.store.item(task).state


def fail_until_dead(desk, ending=FAILED):
    """Every attempt fails. Returns the seconds between the end of one attempt and the start of the next."""
    waits: list[float] = []
    ended = None
    for _ in range(50):
        orders = desk.begin()
        if not orders:
            due = desk.store.due(desk.now).next_at
            if due is None:
                return waits
            desk.until(due)
            continue
        (order,) = orders
        if ended is not None:
            waits.append((desk.now - ended).total_seconds())
        desk.later(SECOND)
        desk.end(order, ending)
        ended = desk.now
    raise AssertionError("retried for ever")


# ---- retries


def test_the_retry_table(desk):
    """Five retries after the first try: six runs, 930 seconds of waiting, then dead."""
    assert [delay(EXACT, n).total_seconds() for n in range(1, 6)] == WAITS
    assert sum(WAITS) == 930
    assert (RetryPolicy().base, RetryPolicy().max_retries) == (15 * SECOND, 5)
    for n in range(1, 6):
        # Jitter only lengthens, by a tenth at most.
        bare = timedelta(seconds=WAITS[n - 1])
        assert bare <= delay(RetryPolicy(), n, "a task") <= bare * 1.1
    assert retry_or_bury(5, EXACT, desk.now).at == desk.now + 480 * SECOND
    assert retry_or_bury(6, EXACT, desk.now).dead

    desk.declare(moss())
    task = desk.task("index the archive")
    assert fail_until_dead(desk) == WAITS
    assert len(desk.store.runs(agent="moss")) == 6
    assert state(desk, task) is State.dead_letter
    desk.later(24 * HOUR)
    assert desk.begin() == []


def test_a_dead_letter_keeps_its_whole_history(desk):
    desk.declare(moss())
    task = desk.task("index the archive", body="all of it, from 1998 on")
    errors = [f"disk {n} is full" for n in range(6)]
    endings = [Ending(exit_code=1, result=Result(error=error)) for error in errors]
    for ending in endings:
        (order,) = desk.begin()
        desk.end(order, ending)
        desk.later(HOUR)
    dead = desk.store.item(task)
    assert dead.state is State.dead_letter
    assert (dead.subject, dead.body) == ("index the archive", "all of it, from 1998 on")
    assert (dead.attempts, dead.error) == (6, errors[-1])
    history = desk.store.attempts(task)
    assert [one.error for one in history] == errors
    assert {(one.exit_code, one.outcome, one.counted) for one in history} == {(1, "failed", True)}


def test_a_task_past_its_wall_clock_is_retried_like_any_other_failure(desk):
    desk.declare(moss())
    task = desk.task()
    (order,) = desk.begin()
    assert order.deadline == desk.now + 30 * MINUTE
    desk.later(30 * MINUTE)
    assert desk.end(order, KILLED) is Outcome.killed
    assert (state(desk, task), desk.store.item(task).attempts) == (State.failed, 1)
    assert desk.store.runs(open=True) == []
    desk.later(30 * SECOND)
    (order,) = desk.begin()
    assert [held.id for held in order.tasks] == [task]


def test_a_worker_that_could_not_be_started_counts_as_an_attempt(desk):
    desk.declare(moss())
    task = desk.task(max_retries=1)
    cannot = Ending(exit_code=127, result=Result(error="no such program"))
    assert fail_until_dead(desk, cannot) == [30]
    dead = desk.store.item(task)
    assert (dead.state, dead.attempts, dead.error) == (State.dead_letter, 2, "no such program")


def test_a_task_whose_run_was_lost_is_retried_and_the_loss_counts(desk):
    desk.declare(moss())
    task = desk.task(max_retries=2)
    assert fail_until_dead(desk, LOST) == [30, 60]
    dead = desk.store.item(task)
    assert (dead.state, dead.attempts) == (State.dead_letter, 3)


def test_a_run_without_an_exit_record_is_killed_and_never_done(desk):
    desk.declare(moss())
    task = desk.task()
    (order,) = desk.begin()
    assert desk.end(order, LOST) is Outcome.killed
    assert state(desk, task) is State.failed


# ---- leases


def test_one_task_is_leased_to_one_worker(desk):
    desk.declare(*(agent(name, every=None, roles=("clerk",)) for name in ("a", "b", "c")))
    task = desk.task(to=None, role="clerk")
    (order,) = desk.begin()
    for _ in range(3):
        desk.later(MINUTE)
        assert desk.begin() == []
    assert [held.id for held in order.tasks] == [task]
    desk.end(order)
    desk.later(HOUR)
    assert desk.begin() == []


def test_a_run_is_recorded_before_anything_is_started(desk):
    desk.declare(moss())
    task = desk.task()
    assert state(desk, task) is State.pending
    desk.tick()
    (row,) = desk.store.runs(open=True)
    assert (row.state, row.started_at, row.tasks) == ("admitted", None, (task,))
    (order,) = desk.claim()
    assert (state(desk, task), order.run.epoch > 0) == (State.in_progress, True)
    (row,) = desk.store.runs(open=True)
    assert (row.state, row.started_at) == ("running", desk.now)


def test_a_completed_task_is_closed_with_its_result_in_one_step(desk):
    desk.declare(moss())
    task = desk.task()
    (order,) = desk.begin()
    desk.end(order, DONE, [TaskEnd(task=task, ending=DONE, result="412 pages")])
    done = desk.store.item(task)
    assert (done.state, done.closed_at, done.result) == (State.completed, desk.now, "412 pages")
    assert desk.store.runs(open=True) == []
    with pytest.raises(Stale):
        desk.end(order, FAILED)
    assert state(desk, task) is State.completed


def test_in_progress_becomes_completed_failed_or_cancelled(desk):
    desk.declare(moss())
    for ending, expected in ((DONE, State.completed), (FAILED, State.failed)):
        task = desk.task()
        (order,) = desk.begin()
        assert state(desk, task) is State.in_progress
        desk.end(order, ending)
        assert state(desk, task) is expected
    task = desk.task()
    (order,) = desk.begin()
    desk.store.change_task(task, "cancel", "operator", desk.now)
    assert state(desk, task) is State.cancelled
    # What the worker says afterwards changes nothing, and it gives its slot back.
    desk.end(order, DONE)
    assert state(desk, task) is State.cancelled
    assert desk.store.runs(open=True) == []


def test_a_terminal_state_never_changes(desk):
    desk.declare(moss())
    task = desk.task()
    desk.store.change_task(task, "cancel", "operator", desk.now)
    for change in ("complete", "fail", "cancel", "retry"):
        with pytest.raises(WakefulError):
            desk.store.change_task(task, change, "operator", desk.now)
    assert state(desk, task) is State.cancelled


def test_three_workers_run_three_tasks_and_the_fourth_waits(desk):
    desk.declare(*(agent(name, every=None, roles=("clerk",)) for name in "abcd"))
    tasks = [desk.task(f"task {n}", to=None, role="clerk") for n in range(4)]
    assert [why_not(decision) for decision in desk.tick()] == [("admit", None)] * 3
    fourth = Wake(
        agent=None, role="clerk", cause=Cause.task, subject=Subject.task, task=tasks[3], requested_at=desk.now
    )
    (decision,) = desk.decide(fourth)
    assert why_not(decision) == ("defer", "slots")
    assert decision.verdict.numbers == {"pool": "workers", "taken": 3, "limit": 3}
    orders = desk.claim()
    assert len({order.run.agent for order in orders}) == len(orders) == 3
    desk.end(orders[0])
    desk.later(SECOND)
    assert len(desk.begin()) == 1


def test_a_task_has_a_wall_clock_of_thirty_minutes():
    assert moss().wall_clock(Subject.task) == 30 * MINUTE


# ---- crash recovery


def test_the_queue_is_restored_from_disk(desk):
    desk.declare(moss())
    tasks = [desk.task(f"task {n}", body="body " * n) for n in range(5)]
    (order,) = desk.begin()
    before = desk.store.items(kind="task")
    desk.restart()
    assert desk.store.items(kind="task") == before
    assert [task.id for task in before] == tasks
    desk.end(order)
    assert state(desk, tasks[0]) is State.completed


@on_sqlite
def test_a_second_process_cannot_write_the_same_queue(desk):
    with pytest.raises(Busy):
        Desk(desk.folder.path)
    desk.declare(moss())
    assert state(desk, desk.task()) is State.pending


def test_dependents_of_a_dead_task_are_blocked_and_say_so(desk):
    desk.declare(moss())
    first = desk.task(max_retries=0)
    second = desk.task(depends_on=(first,))
    (order,) = desk.begin()
    desk.end(order, FAILED)
    blocked = desk.store.item(second)
    assert (state(desk, first), blocked.state) == (State.dead_letter, State.blocked)
    assert str(first) in blocked.error
    # Once what it needs is completed after all, it goes on.
    desk.store.change_task(first, "retry", "anna", desk.now)
    for _ in range(2):
        (order,) = desk.begin()
        desk.end(order, DONE)
        desk.later(SECOND)
    assert {state(desk, first), state(desk, second)} == {State.completed}
