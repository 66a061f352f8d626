"""Every operation has its route, and hands on exactly what was said."""

import re

import pytest
from fastapi.routing import APIRoute

from tests.http.served import KEYS
from wakeful.control.callers import OPERATOR
from wakeful.control.operations import OPERATIONS, request
from wakeful.http.app import build
from wakeful.http.entry import OPEN_PATHS
from wakeful.http.page import is_open

# Which tasks.
FILTER = {
    "agent": "wren",
    "role": "writer",
    "tag": "x",
    "causal_key": "c",
    "source": "s",
    "priority": "low",
    "text": "t",
}
# What each operation is asked with here: all of its parameters, none with its default.
SAID = {
    "status": {},
    "agents": {"names": ["wren", "moss"], "after": "moss", "limit": 7},
    "agent": {"agent": "wren"},
    "tick": {"agent": "wren", "reason": "now", "key": "k"},
    "wake": {"agent": "wren", "reason": "now", "body": "look", "key": "k"},
    "send": {
        "agent": "wren",
        "body": "hello",
        "subject": "s",
        "type": "question",
        "priority": "high",
        "key": "k",
        "reply_to": 4,
        "metadata": {"a": [1, None, "x"]},
    },
    "inbox": {
        "agent": "wren",
        "state": "closed",
        "sender": "moss",
        "type": "unblock",
        "priority": "high",
        "thread": 2,
        "after": 3,
        "before": 9,
        "limit": 5,
    },
    "mark_read": {"agent": "wren", "messages": [3, 4]},
    "snooze": {"agent": "wren", "messages": [3], "until": "2h"},
    "at": {"agent": "wren", "when": "in 20m", "reason": "later", "key": "k"},
    "why": {"agent": "wren", "cause": "peer", "at": "2026-01-01T00:00:00Z"},
    "forecast": {"agent": "wren", "n": 3, "outcome": "no_work", "run_length": "5m"},
    "settings": {"agent": "wren"},
    "set": {"agent": "wren", "settings": {"cooldown": "10m", "burst": None}, "version": 3},
    "wake_stats": {"agent": "wren"},
    "pause_agent": {"agent": "wren", "reason": "holiday", "duration": "2h", "now": True},
    "resume_agent": {"agent": "wren", "owner": "operator"},
    "pause": {"reason": "holiday", "duration": "2h", "now": True},
    "resume": {"owner": "operator"},
    "runs": {"agent": "wren", "open": True, "outcome": "failed", "cause": "peer", "before": 9, "limit": 3},
    "show_run": {"run": 12},
    "kill": {"run": 12, "at_once": True},
    "output": {"run": 12, "stream": "stderr", "offset": 10, "limit": 100},
    "blame": {"run": 12},
    "timeline": {"agents": ["wren", "moss"], "since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"},
    "costs": {"days": 3, "agent": "wren"},
    "stuck": {"agent": "wren", "after": "2026-01-01T00:00:00Z/3", "limit": 5},
    "decisions": {
        "agent": "wren",
        "verdict": "refuse",
        "guard": "cooldown",
        "cause": "peer",
        "text": "two words",
        "since": "2026-01-01T00:00:00Z",
        "until": "2026-01-02T00:00:00Z",
        "before": 9,
        "limit": 3,
    },
    "decision": {"wake": 3},
    "events": {"after": 5, "agent": "wren", "kinds": ["ended", "started"], "limit": 2},
    "run": {"agent": "wren", "prompt": "write", "title": "t", "timeout": "5m", "key": "k"},
    "add_task": {
        "agent": "wren",
        "role": "writer",
        "title": "t",
        "description": "d",
        "payload": {"a": [1, None, "x"]},
        "priority": "low",
        "tags": ["x"],
        "key": "k",
        "causal_key": "c",
        "depends_on": [1, "k-2"],
        "not_before": "2026-01-01T00:00:00Z",
        "max_retries": 0,
        "timeout": "5m",
    },
    "add_tasks": {"tasks": [{"title": "t", "agent": "wren"}, {"anything": [1, None]}], "key": "k"},
    "tasks": {**FILTER, "state": ["pending", "failed"], "after": 3, "before": 9, "limit": 5},
    "count_tasks": {**FILTER, "state": ["pending", "failed"]},
    "keyed_task": {"message_id": "a/b?c"},
    "change_tasks": {
        **FILTER,
        "change": "cancel",
        "tasks": [1, 2],
        "all": True,
        "state": ["pending"],
        "reason": "late",
        "result": "r",
        "after": 3,
        "until": 9,
        "limit": 5,
    },
    "task": {"task": 3},
    "cancel_task": {"task": 3, "reason": "late"},
    "retry_task": {"task": 3},
    "complete_task": {"task": 3, "result": "r"},
    "fail_task": {"task": 3, "reason": "late"},
    "remove_task": {"task": 3},
    "dead": {**FILTER, "after": 3, "before": 9, "limit": 5},
    "replay": {"task": 3},
    "discard": {"task": 3},
    "claim_task": {"task": 3},
    "steps": {"task": 3},
    "save_step": {"name": "fetch", "result": {"a": [1, None]}, "begun": True, "task": 3},
    "nodes": {},
    "audit": {},
    "reload": {},
    "stop": {"drain": True},
    "backup": {"path": "copy.db"},
}


def routes(app) -> list[APIRoute]:
    return [route for route in every(app.routes) if getattr(route, "methods", None)]


def every(some):
    for route in some:
        inner = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        yield from every(inner) if inner else [route]


def filled(path: str) -> str:
    """The path with a name or a number for each of its places."""
    return re.sub(r"\{(\w+)\}", lambda found: "wren" if found[1] == "agent" else "1", path)


def test_every_operation_has_its_route(control):
    known = {(method, route.path) for route in routes(build(control, keys=KEYS, hosts=())) for method in route.methods}
    assert {(operation.method, operation.path) for operation in OPERATIONS.values()} <= known
    assert {("GET", "/v1/runs/{run}/log"), ("GET", "/v1/stream"), ("GET", "/healthz"), ("GET", "/readyz")} <= known


def test_every_route_but_health_refuses_whoever_has_no_token(served, control):
    """But hooks, whose signature is looked at by those who know the secret."""
    asked = [(method, filled(route.path)) for route in routes(served.app) for method in route.methods]
    asked = [(method, path) for method, path in asked if not path.startswith("/hooks/")]
    assert len(asked) > len(OPERATIONS)
    refused = {path for method, path in asked if served.ask(method, path, token=None).status == 401}
    assert {path for _, path in asked if not is_open(path)} - refused == OPEN_PATHS
    assert control.asked == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_asked_with_all_that_was_said_and_nothing_else(name, served, control):
    made = request(name, SAID[name])
    answer = served.ask(made.method, made.target, made.body)
    assert answer.status in (200, 201, 202), answer.body
    assert answer.json == {}
    assert control.asked == [(name, OPERATOR, SAID[name])]


@pytest.mark.parametrize(
    "name", ["pause", "resume", "pause_agent", "kill", "reload", "stop", "tick", "wake", "cancel_task", "remove_task"]
)
def test_a_body_that_would_say_nothing_may_be_left_out(name, served, control):
    operation = OPERATIONS[name]
    assert served.ask(operation.method, filled(operation.path)).status in (200, 202)
    assert set(control.asked[0].parameters) <= {"agent", "run", "task"}


def test_an_accepted_wake_is_202_and_a_refused_one_an_answer_like_any_other(served, control):
    for verdict, status in (("admit", 202), ("defer", 202), ("refuse", 200)):
        control.answers["wake"] = {"verdict": verdict}
        assert served.ask("POST", "/v1/agents/wren/wake", {}).status == status


def test_the_idempotency_header_is_the_key_and_two_different_keys_are_a_mistake(served, control):
    named = {"Idempotency-Key": "mine"}
    assert served.ask("POST", "/v1/agents/wren/messages", {"body": "x"}, headers=named).status == 201
    assert control.asked[-1].parameters == {"agent": "wren", "body": "x", "key": "mine"}
    assert served.ask("POST", "/v1/agents/wren/messages", {"body": "x", "key": "mine"}, headers=named).status == 201
    assert served.ask("POST", "/v1/agents/wren/messages", {"body": "x", "key": "other"}, headers=named).status == 400


def test_several_kinds_of_events_may_be_asked_for_in_either_spelling(served, control):
    for target in ("/v1/events?kinds=ended,started", "/v1/events?kinds=ended&kinds=started"):
        assert served.ask("GET", target).status == 200
        assert control.asked[-1].parameters == {"kinds": ["ended", "started"]}


def test_a_source_that_is_named_by_an_address_is_paused_and_resumed(served, control):
    name = "source:snapshot+https://desk.example/list"
    for operation, body in (("pause_agent", {"reason": "noisy"}), ("resume_agent", {})):
        made = request(operation, {"agent": name, **body})
        assert served.ask(made.method, made.target, made.body).status == 200
        assert control.asked[-1].parameters == {"agent": name, **body}
    assert served.ask("POST", "/v1/agents/a%2Fb/pause").status == 404


def test_a_name_with_a_slash_in_it_reaches_no_other_route(served, control):
    assert served.ask("GET", request("agent", {"agent": "../runs"}).target).status == 404
    assert control.asked == []


def test_health_says_nothing_but_whether(served, control):
    assert served.ask("GET", "/healthz", token=None).json == {"status": "alive"}
    assert served.ask("GET", "/readyz", token=None).json == {"status": "ready"}
    control.beside.ready = False
    unready = served.ask("GET", "/readyz", token=None)
    assert (unready.status, unready.json["detail"]) == (503, "")
    assert b"secret" not in unready.body
    control.beside = None
    assert served.ask("GET", "/readyz", token=None).status == 503


def test_a_cursor_is_where_a_list_goes_on_in_whichever_way_it_goes(served, control):
    for target, parameters in (
        ("/v1/agents?cursor=moss", {"after": "moss"}),
        ("/v1/stuck?cursor=x", {"after": "x"}),
        ("/v1/runs?cursor=7&limit=2", {"before": 7, "limit": 2}),
        ("/v1/decisions?cursor=7", {"before": 7}),
        ("/v1/events?cursor=7", {"after": 7}),
        ("/v1/tasks?cursor=7", {"after": 7}),
        ("/v1/tasks?before=99&cursor=7", {"before": 7}),
        ("/v1/dead?cursor=7", {"after": 7}),
    ):
        assert served.ask("GET", target).status == 200, target
        assert control.asked[-1].parameters == parameters, target
    assert served.ask("GET", "/v1/status?cursor=7").status == 400


def test_a_version_is_told_as_an_entity_tag_and_asked_for_by_one(served, control):
    control.answers |= {"settings": {"version": 7}, "set": {"version": 8}}
    target = "/v1/agents/wren/settings"
    assert served.ask("GET", target).headers["etag"] == '"7"'
    for known, status in (('"7"', 304), ('W/"7"', 304), ("*", 304), ('"1", "7"', 304), ('"8"', 200)):
        answer = served.ask("GET", target, headers={"If-None-Match": known})
        assert (answer.status, answer.headers["etag"]) == (status, '"7"'), known
        assert bool(answer.body) == (status == 200)
    body = {"settings": {"cooldown": "10m"}}
    for tag, version in (('"7"', 7), ("*", None), (None, None)):
        changed = served.ask("PATCH", target, body, headers={} if tag is None else {"If-Match": tag})
        assert (changed.status, changed.headers["etag"]) == (200, '"8"'), tag
        assert control.asked[-1].parameters.get("version") == version


@pytest.mark.parametrize(("tag", "status"), [('W/"7"', 412), ('"x"', 412), ("7", 412), ('"6", "7"', 400), ("", 412)])
def test_a_tag_that_is_no_version_changes_nothing(tag, status, served, control):
    body = {"settings": {"cooldown": "10m"}}
    assert served.ask("PATCH", "/v1/agents/wren/settings", body, headers={"If-Match": tag}).status == status
    said = {**body, "version": 6}
    assert served.ask("PATCH", "/v1/agents/wren/settings", said, headers={"If-Match": '"7"'}).status == 400
    assert control.asked == []


def test_the_description_itself_needs_a_token(served):
    assert served.ask("GET", "/openapi.json", token=None).status == 401


def test_what_is_said_here_covers_every_operation():
    assert set(SAID) == set(OPERATIONS)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"title": "t", "role": "writer"}, 201),
        ({"title": 3}, 400),
        ({"titel": "t"}, 400),
        ({"title": "t", "depends_on": [0]}, 400),
        ([], 400),
        (None, 400),
    ],
)
def test_the_short_way_and_the_long_one_give_the_same_answer(body, status, served, control):
    """A header beside the body is read on the long way alone."""
    answers = [served.ask("POST", "/v1/tasks", body, headers=named) for named in ({}, {"Idempotency-Key": "k"})]
    assert [answer.status for answer in answers] == [status, status]
    assert answers[0].json == answers[1].json
    assert [asked.parameters for asked in control.asked] == ([body, {**body, "key": "k"}] if status == 201 else [])
