"""Who may ask what: the operator everything, a run what OPERATIONS opens to it, and of that only its own."""

import inspect
import json
from typing import Any

import pytest

from tests.control.desk import caller_of, replicas
from wakeful.control.base import Base
from wakeful.control.callers import OPERATOR, Caller, Forbidden
from wakeful.control.control import Control
from wakeful.control.operations import OPERATIONS, request
from wakeful.core.errors import Mistake, Unknown

# What an operation cannot do without, by the names of its parameters.
SAMPLES = {
    "agent": "wren",
    "body": "hello",
    "change": "cancel",
    "message_id": "k",
    "name": "fetch",
    "tasks": [{"title": "a title", "role": "editor"}],
    "messages": [1],
    "path": "/nowhere/copy",
    "prompt": "say hello",
    "run": 1,
    "settings": {"cooldown": "10m"},
    "task": 1,
    "title": "a title",
    "until": "2h",
    "wake": 1,
    "when": "in 20m",
}
BY_RUNS = [name for name, operation in OPERATIONS.items() if operation.by_runs]
OPERATORS_ALONE = [name for name in OPERATIONS if name not in BY_RUNS]


def needed(operation: str) -> dict[str, Any]:
    """Sample values of the parameters that have no default."""
    parameters = list(inspect.signature(getattr(Control, operation)).parameters.values())[2:]
    return {each.name: SAMPLES[each.name] for each in parameters if each.default is inspect.Parameter.empty}


def public_coroutines(kind: type) -> set[str]:
    found = inspect.getmembers(kind, inspect.iscoroutinefunction)
    return {name for name, _ in found if not name.startswith("_")}


def test_every_operation_is_a_method_of_control_and_every_method_an_operation():
    beside = {"caller_of_run", "wait_for_change", "denied", "acted", "judge"}
    # For those who are neither operator nor run: what they send proves itself in a way of its own.
    of_others = {"leave_todo", "hook_wake", "hook_agent", "deliver", "take_events", "is_signed", "one_off"}
    assert public_coroutines(Control) - beside - of_others == set(OPERATIONS)
    assert public_coroutines(Base) == beside


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_takes_its_caller_and_keywords_and_has_what_stands_in_its_path(operation):
    _, caller, *rest = inspect.signature(getattr(Control, operation)).parameters.values()
    assert caller.name == "caller"
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in rest)
    names = {each.name for each in rest}
    in_path = {part[1:-1] for part in OPERATIONS[operation].path.split("/") if part.startswith("{")}
    assert in_path <= names


def test_two_operations_never_share_a_method_and_a_path():
    spelled = [(operation.method, operation.path) for operation in OPERATIONS.values()]
    assert len(set(spelled)) == len(spelled)


@pytest.mark.parametrize("operation", OPERATORS_ALONE)
def test_a_run_may_not_ask_for_what_is_the_operators(desk, operation):
    desk.declare("wren")
    caller = caller_of(desk.begin("wren"))
    with pytest.raises(Forbidden, match="only the operator"):
        desk.ask(operation, caller, **needed(operation))


def test_what_a_run_may_ask_for_is_this_and_nothing_else():
    looks = {"status", "agents", "agent", "inbox", "why", "forecast", "wake_stats", "show_run"}
    tasks = {"tasks", "task", "keyed_task", "add_task", "add_tasks", "cancel_task", "complete_task", "fail_task"}
    tasks |= {"claim_task"}
    assert set(BY_RUNS) == looks | tasks | {"send", "wake", "mark_read", "snooze", "steps", "save_step"}


@pytest.mark.parametrize("operation", BY_RUNS)
def test_a_run_is_answered_while_it_is_under_way_and_not_after_its_end(desk, operation):
    desk.declare("wren", "moss")
    order = desk.begin("wren")
    desk.ask("add_task", caller_of(order), agent="wren", title="a title", key="k")
    message = desk.ask("send", agent="wren", body="hello")["message"]["id"]
    more: dict[str, dict[str, Any]] = {
        "wake": {"agent": "moss", "reason": "blocker", "body": "look"},
        "mark_read": {"messages": [message]},
        "snooze": {"messages": [message]},
        "add_task": {"role": "editor"},
        "task": {"task": 1},
    }
    caller, given = caller_of(order), needed(operation) | more.get(operation, {})
    assert json.dumps(desk.ask(operation, caller, **given))
    desk.end(order)
    with pytest.raises(Forbidden, match="not under way"):
        desk.ask(operation, caller, **given)


def test_a_run_cannot_speak_with_an_older_epoch_or_under_another_name(desk):
    desk.declare("wren", "moss")
    order = desk.begin("wren")
    for strange in (
        Caller(name="wren", run=order.run.id, epoch=order.run.epoch + 1),
        Caller(name="moss", run=order.run.id, epoch=order.run.epoch),
        Caller(name="wren", run=999, epoch=1),
    ):
        with pytest.raises(Forbidden, match="not under way"):
            desk.ask("status", strange)


@pytest.mark.parametrize("operation", ["inbox", "mark_read", "snooze", "why", "forecast", "wake_stats"])
def test_a_run_sees_what_is_its_own_and_nobody_elses(desk, operation):
    desk.declare("wren", "moss")
    for name in ("wren", "moss"):
        desk.ask("send", agent=name, body="hello")
    caller, given = caller_of(desk.begin("wren")), needed(operation)
    assert desk.ask(operation, caller, **given)
    with pytest.raises(Forbidden, match="not of moss"):
        desk.ask(operation, caller, **{**given, "agent": "moss"})


def test_a_run_sees_its_agents_runs_and_nobody_elses(desk):
    desk.declare("wren", "moss")
    other = desk.begin("moss")
    own = desk.begin("wren")
    assert desk.ask("show_run", caller_of(own), run=own.run.id)["agent"] == "wren"
    with pytest.raises(Forbidden, match="not of moss"):
        desk.ask("show_run", caller_of(own), run=other.run.id)


def test_the_token_of_a_run_stands_for_its_agent_while_the_run_is_open_in_that_epoch(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    find = desk.control.caller_of_run
    assert desk.runner.run(find(order.run.id, order.run.epoch)) == caller_of(order)
    assert desk.runner.run(find(order.run.id, order.run.epoch + 1)) is None
    assert desk.runner.run(find(99, 1)) is None
    desk.end(order)
    assert desk.runner.run(find(order.run.id, order.run.epoch)) is None


NAMED = [name for name in OPERATIONS if "agent" in needed(name) or "{agent}" in OPERATIONS[name].path]


@pytest.mark.parametrize(
    "operation", [*NAMED, "runs", "decisions", "events", "tasks", "count_tasks", "dead", "change_tasks", "stuck"]
)
def test_an_agent_that_nobody_declared_is_unknown_and_the_nearest_name_is_told(desk, operation):
    desk.declare("wren", "moss")
    with pytest.raises(Unknown, match=r"no agent is called 'wrne'; did you mean wren\?"):
        desk.ask(operation, **{**needed(operation), "agent": "wrne"})


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("show_run", {"run": 7}),
        ("kill", {"run": 7}),
        ("output", {"run": 7}),
        ("blame", {"run": 7}),
        ("mark_read", {"agent": "wren", "messages": [7]}),
        ("snooze", {"agent": "wren", "messages": [7], "until": "2h"}),
        ("decision", {"wake": 7}),
        *((name, {"task": 7}) for name in OPERATIONS if "{task}" in OPERATIONS[name].path),
        ("keyed_task", {"message_id": "k-7"}),
        ("steps", {"task": 7}),
        ("send", {"agent": "wren", "body": "x", "reply_to": 7}),
    ],
)
def test_a_number_that_nothing_has_is_unknown(desk, operation, given):
    desk.declare("wren")
    with pytest.raises(Unknown, match="7"):
        desk.ask(operation, **given)


@pytest.mark.parametrize("operation", ["agents", "runs", "decisions", "events", "tasks", "dead", "inbox", "stuck"])
def test_a_list_of_no_length_is_a_mistake(desk, operation):
    desk.declare("wren")
    with pytest.raises(Mistake, match="how many"):
        desk.ask(operation, limit=0, **needed(operation))


def test_an_address_of_replicas_is_no_agent_where_only_one_of_them_can_be_meant(desk):
    desk.declare(*replicas("moss", 3), "wren")
    for operation in ("agent", "forecast"):
        with pytest.raises(Mistake, match="moss-1, moss-2, moss-3"):
            desk.ask(operation, agent="moss")


def test_a_request_puts_its_parameters_where_http_looks_for_them():
    asked = request("events", {"after": 3, "agent": "wren", "kinds": ["set", "paused"], "limit": None})
    assert (asked.method, asked.body) == ("GET", None)
    assert asked.target == "/v1/events?after=3&agent=wren&kinds=set%2Cpaused"
    told = request("tick", {"agent": "a/b", "reason": "now"})
    assert (told.method, told.target, told.body) == ("POST", "/v1/agents/a%2Fb/tick", {"reason": "now"})


def test_the_operator_has_no_run():
    assert OPERATOR.is_operator and OPERATOR.run is None
