"""The hooks that other loops know: /hooks/wake and /hooks/agent, with the operator's token."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.http.hooked import BODY, House, Standing, ci, hooked, standing
from tests.http.served import KEYS, Answer
from wakeful.http.auth import run_token
from wakeful.testing.contracts.store_case import NOW


@pytest.fixture(scope="module")
def server() -> Iterator[Standing]:
    with standing() as server:
        yield server


@pytest.fixture
def house(server: Standing, tmp_path: Path) -> Iterator[House]:
    with hooked(server, tmp_path) as house:
        yield house


def ask(house: House, path: str, body: Any, **more: Any) -> Answer:
    return house.served.ask("POST", path, body, **more)


def test_a_line_rings_now_and_the_answer_has_the_run(house):
    answer = ask(house, "/hooks/wake", {"text": "New mail\nfrom Ada", "mode": "now", "agentId": "wren"})
    assert answer.status == 202
    assert answer.json["ok"] and answer.json["mode"] == "now" and answer.json["verdict"] == "admit"
    run = house.writer.store.run(answer.json["run_id"])
    assert (run.agent, run.cause, run.subject) == ("wren", "news", "inbox")
    (message,) = house.inbox("wren")
    assert (message.id, message.origin, message.subject) == (answer.json["message_id"], "external", "New mail")


def test_a_line_may_wait_for_the_next_run(house):
    answer = ask(house, "/hooks/wake", {"text": "x", "mode": "next-heartbeat", "agentId": "wren"})
    assert (answer.status, answer.json["verdict"], answer.json["run_id"]) == (202, None, None)
    assert not [wake for wake in house.writer.store.due(NOW).wakes if wake.item]
    assert house.told() == {"wren": 1, "moss": 0}


@pytest.mark.parametrize(
    ("path", "body", "operation"),
    [
        ("/hooks/wake", {"text": "x", "mode": "now", "agentId": "wren"}, "hook_wake"),
        ("/hooks/wake", {"text": "x", "mode": "next-heartbeat", "agentId": "wren"}, "hook_wake"),
        ("/hooks/agent", {"message": "x", "agentId": "wren"}, "hook_agent"),
    ],
)
def test_the_events_tell_that_it_was_the_operator_who_said_it_once(house, path, body, operation):
    for _ in range(2):
        answer = ask(house, path, body, headers={"Idempotency-Key": "k"}).json
    (event,) = house.writer.store.events(kinds=("acted",))
    assert (event.agent, event.fields) == ("wren", {"by": "operator", "operation": operation})
    assert event.item == answer.get("task_id", answer.get("message_id"))


def test_who_is_not_named_is_the_only_one_or_the_one_called_main(house):
    answer = ask(house, "/hooks/wake", {"text": "x"})
    assert answer.status == 400 and "moss, wren" in answer.json["remedy"]
    house.declare({"main": (), "wren": ()})
    assert ask(house, "/hooks/wake", {"text": "x"}).json["agent"] == "main"
    house.declare({"wren": ()})
    assert ask(house, "/hooks/wake", {"text": "x"}).json["agent"] == "wren"


def test_a_turn_by_itself_is_a_one_off_from_outside(house):
    body = {
        "message": "Sum up",
        "name": "Mail",
        "agentId": "moss",
        "timeoutSeconds": 120,
        "deliver": True,
        "model": "x",
    }
    answer = ask(house, "/hooks/agent", body)
    assert answer.status == 202 and answer.json["ok"]
    assert answer.json["runId"] == answer.json["run_id"] is not None
    assert answer.json["ignored"] == ["deliver", "model"]
    task = house.writer.store.item(answer.json["task_id"])
    assert (task.subject, task.body, task.origin, task.max_retries) == ("Mail", "Sum up", "external", 0)
    assert task.timeout == timedelta(minutes=2)


@pytest.mark.parametrize(
    ("path", "body", "id"),
    [
        ("/hooks/wake", {"text": "x", "agentId": "wren"}, "message_id"),
        ("/hooks/agent", {"message": "x", "agentId": "wren"}, "task_id"),
    ],
)
def test_the_same_key_finds_what_it_asked_for(house, path, body, id):
    first, again = (ask(house, path, body, headers={"Idempotency-Key": "k"}).json for _ in range(2))
    assert (again[id], again["run_id"]) == (first[id], first["run_id"])
    assert again["duplicate"] and not first["duplicate"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/hooks/wake", {}),
        ("/hooks/wake", {"text": ""}),
        ("/hooks/wake", {"text": "  ", "agentId": "wren"}),
        ("/hooks/wake", {"text": "x", "mode": "soon"}),
        ("/hooks/wake", {"txt": "x"}),
        ("/hooks/agent", {"message": "", "agentId": "wren"}),
        ("/hooks/agent", {"message": "x", "agentId": "wren", "timeoutSeconds": -1}),
    ],
)
def test_what_cannot_be_understood_is_400(house, path, body):
    assert ask(house, path, body).status == 400
    assert house.told() == {"wren": 0, "moss": 0}


@pytest.mark.parametrize("path", ["/hooks/wake", "/hooks/agent", "/hooks/cloudevents"])
def test_they_are_the_operators(house, path):
    run, epoch = house.begin("wren")
    body = {"text": "x", "message": "x", "agentId": "wren"}
    assert ask(house, path, body, token=None).status == 401
    assert ask(house, path, body, token="wrong").status == 401
    assert ask(house, f"{path}?token={KEYS.operator}", body, token=None).status == 401
    named = {"text": "x", "agentId": "wren"} if path.endswith("wake") else {"message": "x", "agentId": "wren"}
    assert ask(house, path, named, token=run_token(KEYS, run, epoch, house.now)).status == 403
    assert house.told() == {"wren": 0, "moss": 0}


def test_what_is_answered_is_what_the_description_says(house):
    paths = house.served.app.openapi()["paths"]
    asked = {
        "/hooks/wake": ask(house, "/hooks/wake", {"text": "x", "agentId": "wren", "mode": "next-heartbeat"}),
        "/hooks/agent": ask(house, "/hooks/agent", {"message": "x", "agentId": "wren"}),
        "/hooks/{source}": house.send("/hooks/ci", BODY, ci()),
    }
    for path, answer in asked.items():
        told = paths[path]["post"]["responses"][str(answer.status)]["content"]["application/json"]
        checked = jsonschema_rs.validator_for(told["schema"])
        assert checked.is_valid(answer.json) and checked.is_valid(told["example"]), (path, answer)
        assert told["example"].keys() <= answer.json.keys()
