"""Tasks for an agent or a role, and the one-off that is done at once."""

import pytest

from tests.control.desk import DONE, FAILED, HOUR, MINUTE, NOON, SECOND, an_agent, caller_of, replicas
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.core.runs import Ending
from wakeful.core.windows import parse_window

TASK = ["id", "key", "title", "state", "agent", "role", "priority", "attempts", "result", "created_at", "due_at"]
NIGHT = Limits(quiet_hours=(parse_window("11:00-13:00"),))
DAY = Lifecycle("add", (State("add", repeat=3, next="audit"), State("audit", next="add")))


# ---- run


def test_a_one_off_is_a_task_without_retries_that_is_decided_at_once(desk):
    desk.declare("wren")
    answer = desk.ask("run", agent="wren", prompt="count the files\nin the folder")
    assert (answer["verdict"], answer["message_id"]) == ("admit", None)
    task = desk.ask("task", task=answer["task_id"])
    assert (task["title"], task["state"], task["max_retries"]) == ("count the files", "in_progress", 0)
    assert (task["priority"], task["origin"]) == ("high", "operator")
    run = desk.ask("show_run", run=answer["run_id"])
    assert (run["subject"], run["task_ids"], run["wake_id"]) == ("task", [answer["task_id"]], answer["wake_id"])


def test_a_one_off_that_waits_is_told_so_and_nothing_of_a_message(desk):
    desk.declare("wren")
    desk.begin("wren")
    answer = desk.ask("run", agent="wren", prompt="one thing")
    assert (answer["verdict"], answer["guard"], answer["message_id"]) == ("defer", "busy", None)
    assert answer["advice"] == "it is decided again when that run has ended, and need not be asked for twice"


def test_a_one_off_never_moves_the_position(desk):
    desk.declare(an_agent("wren", lifecycle=DAY))
    for ending in (DONE, FAILED, Ending(exit_code=0, output="NO-WORK")):
        desk.ask("run", agent="wren", prompt="one thing")
        desk.end(desk.claim()[0], ending)
    assert desk.ask("agent", agent="wren")["position"] == {"state": "add", "hits": 0, "kind": "wake"}


def test_a_one_off_that_fails_is_dead_and_not_tried_again(desk):
    desk.declare("wren")
    answer = desk.ask("run", agent="wren", prompt="one thing")
    desk.end(desk.claim()[0], FAILED)
    task = desk.ask("task", task=answer["task_id"])
    assert (task["state"], [attempt["exit_code"] for attempt in task["attempts"]]) == ("dead_letter", [1])
    desk.later(10 * MINUTE)
    assert desk.due() == []


def test_a_one_off_passes_quiet_hours_where_any_other_task_waits(desk):
    desk.declare(an_agent("wren", limits=NIGHT))
    desk.ask("add_task", agent="wren", title="in the morning")
    assert [decision.verdict.guard for decision in desk.due()] == ["quiet_hours"]
    assert desk.ask("run", agent="wren", prompt="now")["verdict"] == "admit"


def test_a_one_off_that_was_recorded_without_an_engine_passes_quiet_hours_too(desk):
    desk.declare(an_agent("wren", limits=NIGHT))
    desk.engine_stops()
    answer = desk.ask("run", agent="wren", prompt="now")
    assert (answer["verdict"], answer["run_id"]) == ("defer", None)
    (decision,) = desk.due()
    assert (decision.wake, decision.verdict.kind) == (answer["wake_id"], "admit")


def test_a_one_off_that_a_pause_ended_passes_quiet_hours_when_it_is_taken_up_again(desk):
    desk.declare(an_agent("wren", limits=NIGHT))
    desk.ask("run", agent="wren", prompt="now")
    desk.end(desk.claim()[0], Ending(signal=15, by="operator"))
    desk.later(MINUTE)
    assert [decision.verdict.kind for decision in desk.due()] == ["admit"]


def test_a_one_off_waits_while_its_agent_is_busy_and_then_runs(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    answer = desk.ask("run", agent="wren", prompt="now")
    assert (answer["verdict"], answer["guard"]) == ("defer", "busy")
    desk.end(order)
    desk.later(SECOND)
    assert [decision.wake for decision in desk.due() if decision.run] == [answer["wake_id"]]


def test_a_one_off_for_an_address_is_taken_by_a_replica_that_is_free(desk):
    desk.declare(*replicas("moss", 2))
    desk.begin("moss-1")
    assert desk.ask("run", agent="moss", prompt="now")["agent"] == "moss-2"


def test_the_same_key_runs_one_off_once(desk):
    desk.declare("wren")
    first = desk.ask("run", agent="wren", prompt="now", key="k")
    desk.end(desk.claim()[0])
    again = desk.ask("run", agent="wren", prompt="now", key="k")
    assert [again[name] for name in ("task_id", "wake_id", "run_id")] == [
        first[name] for name in ("task_id", "wake_id", "run_id")
    ]
    assert len(desk.store.runs()) == 1
    with pytest.raises(Conflict):
        desk.ask("run", agent="wren", prompt="something else", key="k")


def test_a_one_off_may_have_a_limit_of_its_own(desk):
    desk.declare("wren")
    answer = desk.ask("run", agent="wren", prompt="now", timeout="90s")
    assert desk.ask("task", task=answer["task_id"])["timeout"] == "1m30s"


@pytest.mark.parametrize(
    ("given", "reason"), [({"prompt": "  "}, "the prompt is empty"), ({"timeout": "5"}, "a duration with a unit")]
)
def test_a_one_off_that_cannot_be_run_as_asked_is_a_mistake(desk, given, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("run", **{"agent": "wren", "prompt": "now", **given})
    assert desk.store.items() == []


# ---- tasks


def test_a_task_is_recorded_with_everything_that_was_said_of_it(desk):
    desk.declare("wren")
    first = desk.ask("add_task", agent="wren", title="first")
    assert list(first)[: len(TASK)] == TASK
    assert (first["state"], first["attempts"], first["due_at"], first["duplicate"]) == ("pending", [], None, False)
    second = desk.ask(
        "add_task",
        role="editor",
        title="second",
        description="read it",
        priority="urgent",
        tags=["book"],
        key="k",
        causal_key="chapter-3",
        depends_on=[first["id"]],
        not_before="in 1h",
        max_retries=2,
    )
    assert (second["agent"], second["role"]) == (None, "editor")
    assert (second["key"], second["message_id"], second["causal_key"]) == ("k", "k", "chapter-3")
    assert (first["key"], first["message_id"], first["causal_key"]) == (None, None, None)
    assert (second["description"], second["priority"], second["max_retries"]) == ("read it", "urgent", 2)
    assert second["due_at"] == write_time(NOON + HOUR)
    listed = desk.ask("tasks")
    assert [task["title"] for task in listed["items"]] == ["first", "second"] and listed["next"] is None


def test_a_payload_is_handed_on_as_json(desk):
    desk.declare("wren")
    payload = {"page": 3, "name": "Übung"}
    task = desk.ask("add_task", agent="wren", title="t", payload=payload, description="read it")
    assert (task["payload"], task["description"]) == (payload, "read it")
    shown = desk.ask("task", task=task["id"])
    assert (shown["payload"], shown["description"]) == (payload, "read it")


def test_a_task_from_a_run_is_from_its_agent(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    task = desk.ask("add_task", caller_of(order), role="editor", title="read this")
    assert (task["from"], task["origin"]) == ("wren", "agent")


def test_a_task_with_a_key_is_recorded_once(desk):
    desk.declare("wren")
    first = desk.ask("add_task", agent="wren", title="t", key="k")
    again = desk.ask("add_task", agent="wren", title="t", key="k")
    assert (again["id"], again["duplicate"]) == (first["id"], True)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"agent": None}, "for an agent or for a role"),
        ({"role": "editor"}, "only one"),
        ({"title": " "}, "no title"),
        ({"priority": "soon"}, "unknown priority"),
        ({"not_before": "20m"}, "write: in 20m"),
        ({"max_retries": -1}, "number of retries"),
        ({"agent": None, "role": "Big Editor"}, "a role"),
    ],
)
def test_a_task_that_cannot_be_meant_is_a_mistake(desk, given, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("add_task", **{"agent": "wren", "title": "t", **given})
    assert desk.store.items() == []


def test_a_task_for_an_agent_that_was_taken_out_of_the_fleet_is_unknown(desk):
    desk.declare("wren", "moss")
    desk.declare("wren")
    with pytest.raises(Unknown, match="no agent is called 'moss'"):
        desk.ask("add_task", agent="moss", title="t")


@pytest.mark.parametrize("more", [{}, {"payload": [1, None], "key": "k", "timeout": "5m", "not_before": "in 1h"}])
def test_what_is_told_of_a_task_when_it_is_added_is_what_is_told_of_it_then(desk, more):
    desk.declare("wren")
    for whom in ({"agent": "wren"}, {"role": "editor", "tags": ["a"], "causal_key": "c", "max_retries": 2}):
        key = {"key": f"k{len(whom)}"} if "key" in more else {}
        told = desk.ask("add_task", title="t", description="d", **whom, **{**more, **key})
        assert told.pop("duplicate") is False
        del told["warning"]
        then = desk.ask("task", task=told["id"])
        del then["waiting_for"]
        assert then == told


def test_a_task_that_depends_on_nothing_known_is_unknown(desk):
    desk.declare("wren")
    with pytest.raises(Unknown, match="no task 9"):
        desk.ask("add_task", agent="wren", title="t", depends_on=[9])


def test_tasks_are_listed_by_agent_and_state_a_page_at_a_time(desk):
    desk.declare(*replicas("moss", 2), "wren")
    ids = [desk.ask("add_task", agent=name, title=name)["id"] for name in ("moss", "wren", "moss-1", "moss")]
    moss = [ids[0], ids[2], ids[3]]
    assert [task["id"] for task in desk.ask("tasks", agent="moss")["items"]] == moss
    first = desk.ask("tasks", agent="moss", limit=2)
    assert ([task["id"] for task in first["items"]], first["next"]) == (moss[:2], moss[1])
    rest = desk.ask("tasks", agent="moss", after=first["next"], limit=2)
    assert ([task["id"] for task in rest["items"]], rest["next"]) == (moss[2:], None)
    assert desk.ask("tasks", state=["completed"])["items"] == []
    with pytest.raises(Mistake, match="unknown state of tasks"):
        desk.ask("tasks", state=["pending", "open"])


def test_a_message_is_no_task(desk):
    desk.declare("wren")
    message = desk.ask("send", agent="wren", body="x")["message"]["id"]
    with pytest.raises(Unknown, match="no task"):
        desk.ask("task", task=message)
