"""Steps of a run, asked for by any process in it."""

import pytest

from tests.control.desk import DONE, FAILED, HOUR, MINUTE, an_agent, caller_of
from wakeful.control.answering import answer
from wakeful.control.callers import Forbidden
from wakeful.control.checkpoints import LONGEST_RESULT
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.wakes import Cause, Subject, Wake


def at_task(desk, **more):
    """A task under way: its number, and the order."""
    task = desk.ask("add_task", **{"agent": "wren", "title": "t", **more})["id"]
    return task, again(desk)


def again(desk):
    desk.later(MINUTE)
    desk.due()
    (order,) = desk.claim()
    return order


def recorded(desk, caller, **asked):
    return {row["name"]: row["result"] for row in desk.ask("steps", caller, **asked)["items"] if row["recorded"]}


def test_a_step_is_begun_then_recorded_and_the_next_attempt_finds_it(desk):
    desk.declare("wren")
    task, order = at_task(desk)
    caller = caller_of(order)
    begun = desk.ask("save_step", caller, name="fetch", begun=True)
    assert begun == {"name": "fetch", "recorded": False, "result": None, "task": task}
    assert desk.ask("steps", caller) == {
        "items": [{"name": "fetch", "recorded": False, "result": None}],
        "next": None,
        "task": task,
    }
    desk.ask("save_step", caller, name="fetch", result={"pages": [1, None]})
    desk.ask("save_step", caller, name="send", begun=True)
    desk.end(order, FAILED)
    caller = caller_of(again(desk))
    assert recorded(desk, caller) == {"fetch": {"pages": [1, None]}}
    assert [row["name"] for row in desk.ask("steps", caller)["items"]] == ["fetch", "send"]


def test_what_is_recorded_is_never_replaced_and_is_what_the_second_is_told(desk):
    desk.declare("wren")
    _, order = at_task(desk)
    caller = caller_of(order)
    desk.ask("save_step", caller, name="fetch", result="first")
    assert desk.ask("save_step", caller, name="fetch", result="second")["result"] == "first"
    assert desk.ask("save_step", caller, name="fetch", begun=True)["recorded"]
    assert recorded(desk, caller) == {"fetch": "first"}


def test_a_result_of_nothing_is_a_result(desk):
    desk.declare("wren")
    _, order = at_task(desk)
    assert desk.ask("save_step", caller_of(order), name="fetch")["recorded"]
    assert recorded(desk, caller_of(order)) == {"fetch": None}


def test_a_handler_and_a_process_see_the_same_steps(desk):
    desk.declare("wren")
    task, order = at_task(desk)
    told = {"verb": "step", "name": "fetch", "result": '{"a": 1}', "task": task}
    assert desk.runner.run(answer(desk.control, order.run.id, told)) == {"recorded": '{"a": 1}'}
    begun = {**told, "result": None}
    assert desk.runner.run(answer(desk.control, order.run.id, begun)) == {"recorded": '{"a": 1}'}
    assert recorded(desk, caller_of(order)) == {"fetch": {"a": 1}}
    long = {**told, "name": "long", "result": '"' + "x" * LONGEST_RESULT + '"'}
    assert "more than 1 MB" in desk.runner.run(answer(desk.control, order.run.id, long))["error"]


def test_steps_of_a_task_are_its_own_and_gone_when_it_is_done(desk):
    desk.declare("wren")
    first, order = at_task(desk)
    desk.ask("save_step", caller_of(order), name="fetch", result="x")
    assert [row["name"] for row in desk.ask("task", task=first)["steps"]] == ["fetch"]
    with pytest.raises(Unknown, match=f"task {first + 7} is not one of run"):
        desk.ask("save_step", caller_of(order), name="fetch", result="y", task=first + 7)
    desk.end(order, DONE)
    _, order = at_task(desk)
    assert recorded(desk, caller_of(order)) == {}


def test_a_beat_keeps_its_steps_until_it_is_settled(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    told = desk.ask("save_step", caller_of(order), name="fetch", result="x")
    assert told["task"] is None
    with pytest.raises(Mistake, match="about the beat"):
        desk.ask("steps", caller_of(order), task=1)
    desk.end(order, FAILED)
    order = desk.begin("wren")
    assert recorded(desk, caller_of(order)) == {"fetch": "x"}
    desk.end(order, DONE)
    assert recorded(desk, caller_of(desk.begin("wren"))) == {}


def test_an_inbox_run_has_none_and_says_so(desk):
    desk.declare("wren")
    desk.decide(Wake(agent="wren", cause=Cause.operator, subject=Subject.inbox, requested_at=desk.now))
    (order,) = desk.claim()
    for operation, given in (("steps", {}), ("save_step", {"name": "fetch", "result": 1})):
        with pytest.raises(Mistake, match="an inbox run keeps no steps"):
            desk.ask(operation, caller_of(order), **given)


def test_in_a_shift_the_task_must_be_named(desk):
    from wakeful.core.agents import Runner

    desk.declare(an_agent("wren", runner=Runner.handler, target="m:f", every=HOUR))
    one, two = (desk.ask("add_task", agent="wren", title="t")["id"] for _ in range(2))
    caller = caller_of(again(desk))
    with pytest.raises(Mistake, match="name the one that the step belongs to"):
        desk.ask("steps", caller)
    desk.ask("save_step", caller, name="fetch", result=2, task=two)
    assert recorded(desk, caller, task=two) == {"fetch": 2}
    assert recorded(desk, caller, task=one) == {}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"name": " "}, "the name of a step"),
        ({"name": "n" * 256}, "the name of a step"),
        ({"name": "a\0"}, "U\\+0000"),
        ({"result": "x" * LONGEST_RESULT}, "more than 1 MB"),
        ({"result": "\ud800"}, "U\\+D800"),
        ({"result": 1, "begun": True}, "no result yet"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_step_is_done(desk, given, reason):
    desk.declare("wren")
    _, order = at_task(desk)
    with pytest.raises(Mistake, match=reason):
        desk.ask("save_step", caller_of(order), **{"name": "fetch", **given})
    assert desk.ask("steps", caller_of(order))["items"] == []


def test_a_run_that_has_ended_records_nothing_more(desk):
    desk.declare("wren")
    _, order = at_task(desk)
    desk.end(order, FAILED)
    with pytest.raises(Forbidden, match="not under way"):
        desk.ask("save_step", caller_of(order), name="fetch", result="late")


def test_the_operator_sees_the_steps_of_a_task_and_takes_none(desk):
    desk.declare("wren")
    task, order = at_task(desk)
    desk.ask("save_step", caller_of(order), name="fetch", result="x")
    assert desk.ask("steps", task=task)["items"] == [{"name": "fetch", "recorded": True, "result": "x"}]
    waiting = desk.ask("add_task", agent="wren", title="later")["id"]
    assert desk.ask("steps", task=waiting)["items"] == []
    with pytest.raises(Mistake, match="which task"):
        desk.ask("steps")
    with pytest.raises(Mistake, match="belongs to a run"):
        desk.ask("save_step", name="fetch", result="x")
