"""What is done to tasks, one by one and many at once."""

import pytest

from tests.control.desk import DONE, FAILED, SECOND, an_agent, caller_of
from wakeful.control.callers import Forbidden
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import Kind, NewItem, Origin

ENDS = {"cancel_task": "cancelled", "complete_task": "completed", "fail_task": "dead_letter"}


def states(desk, *ids):
    return [desk.ask("task", task=id)["state"] for id in ids]


def add(desk, count=1, **more):
    return [desk.ask("add_task", **{"agent": "wren", "title": f"t{number}", **more})["id"] for number in range(count)]


# ---- one


@pytest.mark.parametrize("operation", ENDS)
def test_a_task_is_ended_once_and_stays_as_it_ended(desk, operation):
    desk.declare("wren")
    (task,) = add(desk)
    told = desk.ask(operation, task=task)
    assert (told["state"], told["was"], told["removed"]) == (ENDS[operation], "pending", False)
    for again in ENDS:
        with pytest.raises(Mistake, match=f"task {task} is {ENDS[operation]}"):
            desk.ask(again, task=task)
    assert desk.due() == []


def test_a_result_that_a_person_gives_is_kept(desk):
    desk.declare("wren")
    (task,) = add(desk)
    assert desk.ask("complete_task", task=task, result='{"pages": 3}')["result"] == '{"pages": 3}'


def test_the_reason_is_told_with_the_task_and_in_the_events(desk):
    desk.declare("wren")
    (task,) = add(desk)
    assert desk.ask("fail_task", task=task, reason="the source is gone")["error"] == "the source is gone"
    (event,) = desk.ask("events", kinds=[EventKind.task_changed])["items"]
    assert (event["item_id"], event["fields"]["by"], event["fields"]["change"]) == (task, "operator", "fail")


def test_a_dead_task_is_taken_up_again_with_its_history(desk):
    desk.declare("wren")
    (task,) = add(desk, max_retries=0)
    desk.due()
    desk.end(desk.claim()[0], FAILED)
    for operation in ("retry_task", "replay"):
        told = desk.ask(operation, task=task)
        assert (told["state"], told["was"]) == ("pending", "dead_letter")
        desk.later(SECOND)
        desk.due()
        desk.end(desk.claim()[0], FAILED)
    assert len(desk.ask("task", task=task)["attempts"]) == 3


def test_only_what_has_ended_is_taken_away_and_the_event_tells_it_whole(desk):
    desk.declare("wren")
    (task,) = add(desk, description="what it was about", payload={"page": 3}, max_retries=0)
    with pytest.raises(Mistake, match="pending"):
        desk.ask("remove_task", task=task)
    desk.due()
    desk.end(desk.claim()[0], FAILED)
    told = desk.ask("remove_task", task=task)
    assert (told["id"], told["removed"], len(told["attempts"])) == (task, True, 1)
    with pytest.raises(Unknown):
        desk.ask("task", task=task)
    event = desk.ask("events", kinds=[EventKind.task_changed])["items"][-1]
    assert "what it was about" in str(event["fields"]) and "page" in str(event["fields"])


def test_only_the_dead_are_replayed_and_discarded(desk):
    desk.declare("wren")
    (task,) = add(desk)
    for operation in ("replay", "discard"):
        with pytest.raises(Mistake, match=f"task {task} is pending, not dead"):
            desk.ask(operation, task=task)
    desk.ask("fail_task", task=task)
    assert desk.ask("discard", task=task)["removed"]
    assert desk.ask("tasks")["items"] == []


def test_a_task_under_way_is_taken_from_its_run_which_is_asked_to_end_it(desk):
    desk.declare("wren")
    (task,) = add(desk)
    desk.due()
    (order,) = desk.claim()
    assert desk.ask("cancel_task", task=task)["was"] == "in_progress"
    (stop,) = desk.store.stopping("here")
    assert (stop.run, stop.task, stop.by) == (order.run.id, task, "operator")
    desk.end(order, DONE)
    assert states(desk, task) == ["cancelled"], "the late completion changes nothing"


# ---- many


def test_many_are_changed_a_page_at_a_time_and_what_came_meanwhile_is_left_alone(desk):
    desk.declare("wren", "moss")
    ids, other = add(desk, 5), add(desk, agent="moss")
    asked = {"change": "cancel", "agent": "wren", "until": ids[-1], "limit": 2}
    first = desk.ask("change_tasks", **asked)
    assert first == {"change": "cancel", "changed": ids[:2], "unchanged": [], "next": ids[1]}
    late = add(desk)
    second = desk.ask("change_tasks", **asked, after=first["next"])
    third = desk.ask("change_tasks", **asked, after=second["next"])
    assert (second["changed"], third["changed"], third["next"]) == (ids[2:4], ids[4:], None)
    assert states(desk, *ids, *other, *late) == ["cancelled"] * 5 + ["pending"] * 2


def test_named_tasks_are_changed_where_that_is_possible_and_the_rest_is_told(desk):
    desk.declare("wren")
    one, two, three = add(desk, 3)
    desk.ask("complete_task", task=two)
    told = desk.ask("change_tasks", change="fail", tasks=[three, two, one, 99, 2**70, one], reason="late")
    assert told["changed"] == [one, three]
    assert [(row["id"], row["state"]) for row in told["unchanged"]] == [(two, "completed"), (99, None), (2**70, None)]
    assert desk.ask("task", task=one)["error"] == "late"


def test_named_tasks_may_be_bound_to_a_state(desk):
    desk.declare("wren")
    dead, parent = add(desk, 2)
    (blocked,) = add(desk, depends_on=[parent])
    for task in (dead, parent):
        desk.ask("fail_task", task=task)
    desk.ask("remove_task", task=parent)
    assert states(desk, dead, blocked) == ["dead_letter", "blocked"]
    told = desk.ask("change_tasks", change="retry", tasks=[dead, blocked], state=["dead_letter"])
    assert told["changed"] == [dead]
    assert [row["id"] for row in told["unchanged"]] == [blocked]


def test_many_are_done_with_one_result(desk):
    desk.declare("wren")
    ids = add(desk, 3)
    assert desk.ask("change_tasks", change="done", tasks=ids, result="by hand")["changed"] == ids
    assert [desk.ask("task", task=id)["result"] for id in ids] == ["by hand"] * 3


def test_a_change_of_all_that_leads_nowhere_changes_nothing(desk):
    desk.declare("wren")
    add(desk, 2)
    assert desk.ask("change_tasks", change="remove", all=True)["changed"] == []
    assert desk.ask("change_tasks", change="remove", state=["pending"])["changed"] == []
    assert desk.ask("count_tasks")["counts"] == {"pending": 2}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"change": "cancel"}, "which tasks"),
        ({"change": "bury", "all": True}, "unknown change 'bury'"),
        ({"change": "cancel", "tasks": []}, "1 to 500 tasks, found 0"),
        ({"change": "cancel", "tasks": list(range(1, 502))}, "found 501"),
        ({"change": "cancel", "tasks": [1], "tag": "x"}, "found both"),
        ({"change": "cancel", "tasks": [1], "result": "x"}, "leave the result out"),
        ({"change": "cancel", "all": True, "limit": 0}, "how many"),
        ({"change": "cancel", "all": True, "state": ["dead"]}, "unknown state"),
    ],
)
def test_a_change_that_cannot_be_meant_is_a_mistake(desk, asked, reason):
    desk.declare("wren")
    (task,) = add(desk)
    with pytest.raises(Mistake, match=reason):
        desk.ask("change_tasks", **asked)
    assert states(desk, task) == ["pending"]


# ---- a batch


def test_a_batch_is_recorded_whole_and_its_tasks_may_need_one_another_in_any_order(desk):
    desk.declare("wren", an_agent("moss", roles=("editor",)))
    told = desk.ask(
        "add_tasks",
        tasks=[
            {"title": "second", "agent": "wren", "depends_on": ["first"], "key": "second"},
            {"title": "first", "role": "editor", "key": "first"},
        ],
    )
    second, first = (row["id"] for row in told["items"])
    assert [row["state"] for row in told["items"]] == ["pending", "pending"]
    assert desk.ask("task", task=second)["depends_on"] == [{"id": first, "state": "pending"}]
    again = desk.ask("add_tasks", tasks=[{"title": "first", "role": "editor", "key": "first"}])
    assert again["items"] == [{"id": first, "state": "pending", "duplicate": True, "warning": None}]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"title": " ", "agent": "wren"}, "task 2 of the batch: the task has no title"),
        ({"title": "t", "agnet": "wren"}, r"task 2 of the batch: unknown field 'agnet' of a task \(did you mean agent"),
        ({"title": "t", "agent": "wren", "depends_on": [True]}, "task 2 of the batch"),
        ("a text", "task 2 of the batch: expected a task as an object"),
    ],
)
def test_a_mistake_in_a_batch_is_told_with_its_place_and_nothing_is_kept(desk, wrong, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("add_tasks", tasks=[{"title": "fine", "agent": "wren"}, wrong])
    with pytest.raises(Unknown, match="task 1 of the batch: no agent is called 'wrne'"):
        desk.ask("add_tasks", tasks=[{"title": "t", "agent": "wrne"}])
    assert desk.ask("count_tasks")["total"] == 0


@pytest.mark.parametrize("count", [0, 1_001])
def test_a_batch_has_1_to_1000_tasks(desk, count):
    desk.declare("wren")
    with pytest.raises(Mistake, match=f"found {count:,}"):
        desk.ask("add_tasks", tasks=[{"title": "t", "agent": "wren"}] * count)


def test_what_became_of_a_task_elsewhere_is_for_the_operator_to_say(desk):
    desk.declare("wren")
    told = {"title": "t", "agent": "wren", "past": {"state": "completed", "result": "r"}}
    (row,) = desk.ask("add_tasks", tasks=[told])["items"]
    assert row["state"] == "completed"
    with pytest.raises(Forbidden, match="only the operator"):
        desk.ask("add_tasks", caller_of(desk.begin("wren")), tasks=[told])


# ---- by runs


def test_a_run_ends_what_its_own_agent_added_and_nothing_else(desk):
    desk.declare("wren", an_agent("moss", roles=("editor",)))
    caller = caller_of(desk.begin("moss"))
    for operation, state in ENDS.items():
        mine = desk.ask("add_task", caller, agent="wren", title="mine")["id"]
        assert desk.ask(operation, caller, task=mine)["state"] == state
        given, hidden = add(desk, role="editor", agent=None) + add(desk)
        with pytest.raises(Forbidden, match=f"task {given} is not one of them"):
            desk.ask(operation, caller, task=given)
        with pytest.raises(Forbidden, match=f"and {hidden} is none of them"):
            desk.ask(operation, caller, task=hidden)
        assert states(desk, given, hidden) == ["pending", "pending"]


def test_a_run_does_not_cancel_the_task_that_it_holds(desk):
    desk.declare("wren")
    before = desk.begin("wren")
    task = desk.ask("add_task", caller_of(before), agent="wren", title="to myself")["id"]
    desk.end(before)
    desk.later(SECOND)
    desk.due()
    (order,) = desk.claim()
    assert [item.id for item in order.tasks] == [task]
    with pytest.raises(Mistake, match="complete it, or say that it failed"):
        desk.ask("cancel_task", caller_of(order), task=task)
    assert states(desk, task) == ["in_progress"]


def test_a_run_that_was_shown_something_from_outside_adds_no_batch(desk):
    desk.declare("wren")
    desk.store.record(
        [NewItem(kind=Kind.message, agent="wren", sender="x", origin=Origin.external, subject="s", body="b")], desk.now
    )
    first = desk.begin("wren")
    desk.end(first, FAILED)
    desk.later(SECOND)
    caller = caller_of(desk.begin("wren"))
    with pytest.raises(Forbidden, match="from outside"):
        desk.ask("add_tasks", caller, tasks=[{"title": "t", "role": "editor"}])


# ---- on a store that others share


def test_on_a_shared_store_tasks_are_added_found_and_changed_the_same(shared):
    shared.declare("wren", an_agent("moss", roles=("editor",)))
    told = [{"title": f"t{number}", "agent": "wren", "key": f"k{number}", "tags": ["many"]} for number in range(4)]
    told[0]["depends_on"] = ["k3"]
    ids = [row["id"] for row in shared.ask("add_tasks", tasks=told)["items"]]
    assert shared.ask("keyed_task", message_id="k0")["depends_on"] == [{"id": ids[3], "state": "pending"}]
    caller = caller_of(shared.begin("moss"))
    own = shared.ask("add_task", caller, role="writer", title="own")["id"]
    assert [row["id"] for row in shared.ask("tasks", caller)["items"]] == [own]
    assert shared.ask("complete_task", caller, task=own, result="r")["result"] == "r"
    assert shared.ask("save_step", caller, name="fetch", result="ü")["recorded"]
    first = shared.ask("change_tasks", change="fail", tag="many", state=["pending"], reason="late", limit=3)
    assert (first["changed"], first["next"]) == (ids[:3], ids[2])
    assert shared.ask("count_tasks", tag="many")["counts"] == {"pending": 1, "dead_letter": 3}
    assert [row["error"] for row in shared.ask("dead")["items"]] == ["late"] * 3
    assert shared.ask("change_tasks", change="remove", all=True)["changed"] == [*ids[:3], own]
    assert shared.ask("count_tasks")["total"] == 1
