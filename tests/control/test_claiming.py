"""A run claims tasks of its own queues, and says how those that it holds ended."""

import pytest

from tests.control.desk import DONE, FAILED, MINUTE, an_agent, caller_of
from wakeful.control.callers import Forbidden
from wakeful.control.claiming import NOTHING_READY
from wakeful.core.errors import Mistake
from wakeful.core.items import Kind, NewItem, Origin


@pytest.fixture
def beat(desk):
    """moss at its beat: the order, and who asks in it."""
    desk.declare(an_agent("moss", roles=("editor",)), "wren")
    order = desk.begin("moss")
    return order, caller_of(order)


def add(desk, title="proofread", **more):
    return desk.ask("add_task", title=title, **({"role": "editor"} | more))["id"]


def state(desk, task):
    return desk.ask("task", task=task)["state"]


def test_a_beat_claims_a_task_of_its_role_with_all_that_is_known_of_it(desk, beat):
    order, caller = beat
    task = add(desk, description="every line", payload={"page": 3})
    claimed = desk.ask("claim_task", caller)
    assert (claimed["held"], claimed["reason"]) == ([task], None)
    told = claimed["task"]
    assert (told["id"], told["title"], told["description"], told["payload"]) == (
        task,
        "proofread",
        "every line",
        {"page": 3},
    )
    assert told["state"] == "in_progress" and [each["run_id"] for each in told["attempts"]] == [order.run.id]
    assert desk.ask("show_run", run=order.run.id)["task_ids"] == [task]


def test_without_a_ready_task_the_answer_says_so(desk, beat):
    _, caller = beat
    add(desk, role=None, agent="wren")
    assert desk.ask("claim_task", caller) == {"task": None, "held": [], "reason": NOTHING_READY}


def test_a_pause_is_told_as_the_reason(desk, beat):
    _, caller = beat
    add(desk)
    desk.ask("pause", reason="on holiday")
    assert desk.ask("claim_task", caller)["reason"] == "moss is paused by operator: on holiday"


def test_completing_closes_it_with_its_result_and_the_run_goes_on(desk, beat):
    order, caller = beat
    task = add(desk)
    desk.ask("claim_task", caller)
    desk.later(MINUTE)
    done = desk.ask("complete_task", caller, task=task, result="42 commas")
    assert (done["state"], done["was"], done["result"]) == ("completed", "in_progress", "42 commas")
    (attempt,) = done["attempts"]
    assert (attempt["outcome"], attempt["duration_ms"]) == ("done", 60_000)
    with pytest.raises(Mistake, match=f"task {task} is completed already"):
        desk.ask("complete_task", caller, task=task, result="43")
    desk.end(order, FAILED)
    assert state(desk, task) == "completed" and desk.ask("audit")["adds_up"]


def test_failing_ends_the_attempt_and_the_task_is_tried_again(desk, beat):
    _, caller = beat
    task = add(desk)
    desk.ask("claim_task", caller)
    failed = desk.ask("fail_task", caller, task=task, reason="the page is missing")
    assert (failed["state"], failed["error"]) == ("failed", "the page is missing")
    assert failed["due_at"] is not None
    assert desk.ask("claim_task", caller, task=task)["reason"] == (
        f"this run has tried task {task} already: a later one may take it"
    )


def test_what_is_held_when_the_run_ends_goes_back(desk, beat):
    order, caller = beat
    task = add(desk)
    desk.ask("claim_task", caller)
    desk.end(order, DONE)
    assert state(desk, task) == "failed"
    desk.later(MINUTE)
    again = caller_of(desk.begin("moss"))
    assert desk.ask("claim_task", again)["task"]["id"] == task and desk.ask("audit")["adds_up"]


def test_a_task_is_claimed_by_its_number_and_naming_it_twice_is_the_same(desk, beat):
    _, caller = beat
    add(desk)
    second, later = add(desk), add(desk, not_before="in 2h")
    once = desk.ask("claim_task", caller, task=second)
    assert once["task"]["id"] == second
    assert desk.ask("claim_task", caller, task=second) == once
    refused = desk.ask("claim_task", caller, task=later)
    assert refused["task"] is None and refused["reason"].startswith(f"task {later} is pending, and waits for its time")


def test_a_run_about_a_task_gets_the_one_that_it_holds_and_may_complete_it(desk):
    desk.declare("wren")
    task = add(desk, role=None, agent="wren")
    desk.due()
    (order,) = desk.claim()
    caller = caller_of(order)
    add(desk, role=None, agent="wren")
    claimed = desk.ask("claim_task", caller)
    assert (claimed["task"]["id"], claimed["held"]) == (task, [task])
    assert desk.ask("complete_task", caller, task=task, result="written")["state"] == "completed"
    none = desk.ask("claim_task", caller)
    assert none["task"] is None and "its next run" in none["reason"]
    desk.end(order, FAILED)
    told = desk.ask("task", task=task)
    assert (told["state"], told["result"]) == ("completed", "written") and desk.ask("audit")["adds_up"]


def test_what_was_cancelled_meanwhile_is_told_to_whoever_completes_it(desk, beat):
    _, caller = beat
    task = add(desk)
    desk.ask("claim_task", caller)
    desk.ask("cancel_task", task=task)
    with pytest.raises(Mistake, match=f"task {task} is cancelled: it was taken from this run"):
        desk.ask("complete_task", caller, task=task)


def test_nobody_claims_for_another_and_the_operator_claims_nothing(desk, beat):
    _, caller = beat
    foreign = add(desk, role=None, agent="wren")
    with pytest.raises(Forbidden):
        desk.ask("claim_task", caller, task=foreign)
    with pytest.raises(Mistake, match="claimed by a run"):
        desk.ask("claim_task")


def test_nothing_is_claimed_once_the_run_has_ended(desk, beat):
    order, caller = beat
    task = add(desk)
    desk.end(order)
    with pytest.raises(Forbidden):
        desk.ask("claim_task", caller)
    assert state(desk, task) == "pending"


def test_a_run_that_claims_what_came_from_outside_may_wake_nobody_after_it(desk, beat):
    _, caller = beat
    desk.store.record([NewItem(kind=Kind.task, agent="moss", origin=Origin.external, subject="from a hook")], desk.now)
    desk.ask("claim_task", caller)
    with pytest.raises(Forbidden, match="something from outside"):
        desk.ask("wake", caller, agent="wren", reason="blocker", body="come at once")


def test_steps_of_a_claimed_task_are_found_by_the_run_that_claims_it_next(desk, beat):
    order, caller = beat
    task = add(desk)
    desk.ask("claim_task", caller)
    desk.ask("save_step", caller, name="fetch", result=[1, 2], task=task)
    desk.end(order, FAILED)
    desk.later(MINUTE)
    claimed = desk.ask("claim_task", caller_of(desk.begin("moss")))["task"]
    assert claimed["steps"] == [{"name": "fetch", "recorded": True, "result": [1, 2]}]
