"""Document 002 told to a real store: the queue that owns its tasks, idempotency, and the dead letters."""

import pytest

from tests.claims.desk import DONE, FAILED, HOUR, LOST, MINUTE, NO_WORK, SECOND, agent
from wakeful.core.agents import RetryPolicy
from wakeful.core.errors import Conflict, Stale
from wakeful.core.items import Kind, NewItem, State
from wakeful.core.lifecycle import Lifecycle, Position
from wakeful.core.lifecycle import State as DayState
from wakeful.core.runs import Ending, Result
from wakeful.store.protocol import TaskEnd

EVENT_RETRIES = 3


def operator(name="operator", **more):
    return agent(name, every=None, retries=RetryPolicy(jitter=0.0), **more)


def event(desk, message_id, body="{}", **more):
    new = NewItem(
        kind=Kind.task,
        agent="operator",
        body=body,
        dedupe=message_id,
        source="agent-tasks",
        max_retries=EVENT_RETRIES,
        **more,
    )
    return desk.store.record([new], desk.now)[0]


def test_a_redelivered_message_is_the_same_task(desk):
    desk.declare(operator())
    first = event(desk, "m-1")
    again = event(desk, "m-1")
    assert (again.id, first.duplicate, again.duplicate) == (first.id, False, True)
    (order,) = desk.begin()
    desk.end(order)
    # Redelivered after a restart, long after the work was done: no second run.
    desk.restart()
    desk.later(HOUR)
    assert event(desk, "m-1").id == first.id
    assert desk.begin() == []
    assert len(desk.store.runs()) == 1


def test_the_same_message_id_with_another_body_is_a_conflict(desk):
    desk.declare(operator())
    event(desk, "m-1", body="one")
    with pytest.raises(Conflict):
        event(desk, "m-1", body="other")
    assert [item.body for item in desk.store.items(kind="task")] == ["one"]


def test_a_burst_is_buffered_whole(desk):
    desk.declare(operator())
    batch = [NewItem(kind=Kind.task, agent="operator", dedupe=f"m-{n}") for n in range(500)]
    desk.store.record(batch, desk.now)
    desk.restart()
    assert len(desk.store.items(kind="task", state="pending", limit=1_000)) == 500


def test_events_of_one_document_are_handed_out_one_at_a_time_in_order(desk):
    desk.declare(*(agent(name, every=None, roles=("indexer",)) for name in ("a", "b", "c")))
    for act in ("upload", "delete", "upload again"):
        desk.task(act, to=None, role="indexer", key="document-7")
    seen = []
    for _ in range(3):
        (order,) = desk.begin()
        seen += [task.subject for task in order.tasks]
        desk.later(MINUTE)
        assert desk.begin() == [], "the next one waits for this one's outcome"
        desk.end(order)
        desk.later(2 * SECOND)
    assert seen == ["upload", "delete", "upload again"]


def test_another_document_does_not_wait(desk):
    desk.declare(*(agent(name, every=None, roles=("indexer",)) for name in ("a", "b", "c")))
    for document in ("document-7", "document-7", "document-8"):
        desk.task(document, to=None, role="indexer", key=document)
    orders = desk.begin()
    assert sorted(task.key for order in orders for task in order.tasks) == ["document-7", "document-8"]


def test_a_task_in_progress_is_still_there_after_the_process_died(desk):
    desk.declare(operator())
    task = desk.task(to="operator")
    (order,) = desk.begin()
    desk.restart()
    assert desk.store.item(task).state is State.in_progress
    (row,) = desk.store.runs(open=True)
    assert (row.id, row.epoch) == (order.run.id, order.run.epoch)


def test_the_store_owns_a_task_until_its_outcome_is_written(desk):
    desk.declare(operator())
    task = desk.task(to="operator")
    (order,) = desk.begin()
    for _ in range(5):
        desk.later(MINUTE)
        assert desk.store.item(task).state is State.in_progress
    desk.end(order)
    assert desk.store.item(task).state is State.completed


def test_a_result_and_the_end_of_its_task_are_written_together(desk):
    desk.declare(operator())
    task = desk.task(to="operator")
    (order,) = desk.begin()
    desk.end(order, DONE, [TaskEnd(task=task, ending=DONE, result='{"pages": 7}')])
    desk.restart()
    done = desk.store.item(task)
    assert (done.state, done.result) == (State.completed, '{"pages": 7}')
    assert desk.store.run(order.run.id).outcome == "done"


def test_a_second_completion_is_refused(desk):
    desk.declare(operator())
    task = desk.task(to="operator")
    (order,) = desk.begin()
    desk.end(order)
    closed = desk.store.item(task)
    for ending in (DONE, FAILED, NO_WORK):
        with pytest.raises(Stale):
            desk.end(order, ending)
    assert desk.store.item(task) == closed


def test_a_run_lost_with_its_process_is_retried_and_counts_as_an_attempt(desk):
    desk.declare(operator())
    task = desk.task(to="operator")
    (order,) = desk.begin()
    desk.end(order, LOST)
    assert (desk.store.item(task).state, desk.store.item(task).attempts) == (State.failed, 1)
    desk.later(30 * SECOND)
    (order,) = desk.begin()
    assert [(held.id, held.attempts) for held in order.tasks] == [(task, 1)]


def test_a_failed_task_comes_back_with_its_attempts_counted(desk):
    desk.declare(operator())
    desk.task(to="operator")
    seen = []
    for wait in (30, 60, 120):
        (order,) = desk.begin()
        seen += [held.attempts for held in order.tasks]
        desk.end(order, FAILED)
        desk.restart()
        desk.later((wait - 1) * SECOND)
        assert desk.begin() == [], "also after a restart it waits its time"
        desk.later(SECOND)
    assert seen == [0, 1, 2]


def bury(desk):
    """One message that always fails, among others that do not. Returns how often it was tried."""
    tries = 0
    for _ in range(20):
        for order in desk.begin():
            bad = any("poison" in task.body for task in order.tasks)
            tries += bad
            error = Result(error=f"cannot read the poison, try {tries}")
            desk.end(order, Ending(exit_code=1, result=error) if bad else DONE)
        desk.later(MINUTE)
    return tries


def test_a_broker_event_is_buried_after_three_retries(desk):
    desk.declare(operator())
    message = event(desk, "m-1", body="poison")
    assert bury(desk) == 1 + EVENT_RETRIES
    assert desk.store.item(message.id).state is State.dead_letter


def test_a_poison_message_does_not_hold_up_the_others(desk):
    desk.declare(operator())
    poison = event(desk, "m-0", body="poison").id
    good = [event(desk, f"m-{n}").id for n in range(1, 6)]
    bury(desk)
    assert {desk.store.item(id).state for id in good} == {State.completed}
    kept = desk.store.item(poison)
    assert (kept.state, kept.body) == (State.dead_letter, "poison")


def test_a_dead_letter_keeps_the_message_its_errors_and_their_times(desk):
    desk.declare(operator())
    start = desk.now
    message = event(desk, "m-1", body="poison")
    bury(desk)
    dead = desk.store.item(message.id)
    assert (dead.body, dead.source, dead.created_at) == ("poison", "agent-tasks", start)
    assert (dead.attempts, dead.error) == (4, "cannot read the poison, try 4")
    tries = desk.store.attempts(dead.id)
    assert [one.error for one in tries] == [f"cannot read the poison, try {n}" for n in (1, 2, 3, 4)]
    times = [one.ended_at for one in tries]
    assert times == sorted(times) and times[0] == start and times[-1] == dead.closed_at


def test_a_run_nobody_claimed_goes_back_to_waiting(desk):
    desk.declare(operator())
    task = desk.task(to="operator")
    desk.tick()
    # The process that was to start it died here.
    desk.restart()
    desk.later(6 * SECOND)
    desk.store.expire(desk.now)
    assert desk.store.runs(open=True) == []
    (order,) = desk.begin()
    assert [(held.id, held.attempts) for held in order.tasks] == [(task, 0)]


def test_the_agent_is_its_state_not_its_process(desk):
    day = Lifecycle("read", (DayState("read", next="write"), DayState("write", repeat=2, next="read")))
    desk.declare(agent("scribe", lifecycle=day))
    for _ in range(2):
        desk.until(desk.standing("scribe").due_at)
        (order,) = desk.begin()
        desk.end(order)
        desk.restart()
    before = desk.standing("scribe")
    assert before.position == Position("write", 1)
    desk.restart()
    assert desk.standing("scribe") == before


def test_a_recorded_step_comes_back_in_the_next_attempt_and_is_never_replaced(desk):
    desk.declare(operator())
    task = desk.task(to="operator")
    (order,) = desk.begin()
    held = (order.run.id, order.run.epoch)
    desk.store.save_step(*held, "fetch", "412 pages", desk.now, task=task)
    desk.store.save_step(*held, "send", None, desk.now, task=task)
    desk.store.save_step(*held, "fetch", "another answer", desk.now, task=task)
    desk.restart()
    desk.end(order, LOST)
    desk.later(HOUR)
    (again,) = desk.begin()
    # Sending was meant and not confirmed; fetching need not be done again.
    assert desk.store.steps(again.run.id, task=task) == {"fetch": "412 pages", "send": None}
    with pytest.raises(Stale):
        desk.store.save_step(*held, "send", "late", desk.now, task=task)


def test_a_dead_letter_can_be_replayed_and_keeps_its_history(desk):
    desk.declare(operator())
    message = event(desk, "m-1", body="poison").id
    bury(desk)
    assert desk.store.item(message).state is State.dead_letter
    desk.store.change_task(message, "retry", "anna", desk.now)
    (order,) = desk.begin()
    desk.end(order, DONE)
    done = desk.store.item(message)
    assert (done.state, done.body) == (State.completed, "poison")
    assert [one.outcome for one in desk.store.attempts(message)] == [*["failed"] * 4, "done"]
