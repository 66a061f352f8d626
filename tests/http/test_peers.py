"""A peer leaves a task: with its own token or none, once for each key, and durable before it is told so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.house import House
from tests.http.served import KEYS, serve
from wakeful.core.errors import Mistake
from wakeful.core.peers import peer_todo, peer_token
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.contracts.store_case import an_agent

PEER = peer_token(KEYS.operator)
TODO = {"token": PEER, "from": "desk-2", "fromName": "Night desk", "message": "Count the pages."}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, "wren", an_agent("moss", roles=("peer-todo",)))
    try:
        with serve(house.control) as house.served:
            yield house
    finally:
        house.writer.close()
        house.writer.store.close()


def left(house, **changes):
    body = {name: value for name, value in {**TODO, **changes}.items() if value is not None}
    return house.ask("POST", "/peer-todo", body, token=None)


def test_a_peer_leaves_a_task_that_says_where_it_comes_from(house):
    answer = left(house)
    assert (answer.status, answer.json["ok"], answer.json["duplicate"]) == (200, True, False)
    task = house.ask("GET", f"/v1/tasks/{answer.json['id']}").json
    assert (task["title"], task["description"]) == ("Peer Todo from Night desk", "Count the pages.")
    assert (task["tags"], task["priority"]) == (["peer-todo", "from-desk-2"], "normal")
    assert (task["origin"], task["from"], task["source"]) == ("external", "peer:desk-2", "peer-todo")
    assert (task["role"], task["state"]) == ("peer-todo", "pending")
    assert left(house, fromName=None).json["ok"]
    assert house.ask("GET", "/v1/tasks").json["items"][-1]["title"] == "Peer Todo from desk-2"


def test_the_events_tell_of_the_operator_where_it_was_the_operators_token(house):
    left(house)
    assert house.writer.store.events(kinds=("acted",)) == []
    for _ in range(2):
        task = left(house, token=KEYS.operator, idempotency_key="k").json["id"]
    (event,) = house.writer.store.events(kinds=("acted",))
    assert (event.item, event.fields) == (task, {"by": "operator", "operation": "peer_todo"})


def test_the_same_key_of_the_same_peer_is_the_same_task(house):
    first = left(house, idempotency_key="k").json
    again = left(house, idempotency_key="k").json
    assert (again["id"], again["duplicate"]) == (first["id"], True)
    assert left(house, idempotency_key="k", **{"from": "desk-3"}).json["id"] != first["id"]
    beside = {"headers": {"Idempotency-Key": "k"}, "token": None}
    assert house.ask("POST", "/peer-todo", TODO, **beside).json["id"] == first["id"]
    assert house.ask("POST", "/peer-todo", {**TODO, "idempotency_key": "j"}, **beside).status == 400
    other = left(house, idempotency_key="k", message="Something else.")
    assert (other.status, other.json["ok"], other.json["type"]) == (409, False, "urn:wakeful:error:conflict")
    assert left(house).json["id"] != left(house).json["id"], "without a key nothing is guessed"


def test_a_peer_is_told_ok_only_once_its_task_is_on_disk(house):
    write, full = house.writer.write, OSError(28, "No space left on device")

    async def refused(*_: object) -> None:
        raise full

    house.writer.write = refused
    assert (left(house).status, house.ask("GET", "/v1/tasks").json["items"]) == (503, [])
    house.writer.write = write
    id = left(house).json["id"]
    again = open_sqlite(house.folder / "wakeful.db", durable=False)
    assert again.item(id).subject == "Peer Todo from Night desk"
    again.close()


WRONG = ["wrong", "", None, 3, "peer.", "ä", "\ud800", PEER + "x", PEER.upper()]


def test_a_wrong_token_is_told_as_such_and_leaves_nothing(house):
    for token in WRONG:
        answer = left(house, token=token)
        assert (answer.status, answer.json["ok"], answer.json["status"]) == (401, False, 401), token
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["error"] and "wakeful token --peer" in answer.json["remedy"]
    for body in (None, b"", b"nonsense", b"[]", b'"x"', b"null", b"[" * 100_000):
        assert house.ask("POST", "/peer-todo", body, token=KEYS.operator).status == 401, body
    assert house.ask("GET", "/v1/tasks").json["items"] == []


def test_wrong_tokens_are_counted_and_the_right_one_is_let_in_at_any_time(house):
    statuses = {left(house, token=f"wrong {number}").status for number in range(25)}
    assert statuses == {401, 429}
    assert left(house).json["ok"]
    assert left(house, token=KEYS.operator).json["ok"]


def test_a_peers_token_opens_nothing_else(house):
    for method, target in (("GET", "/v1/status"), ("POST", "/v1/tasks"), ("POST", "/v1/pause")):
        assert house.ask(method, target, token=PEER).status == 401


MISTAKES: list[dict[str, Any]] = [
    *({"from": ""}, {"from": None}, {"from": 3}, {"from": "x" * 101}, {"from": " \n"}, {"message": ""}),
    *({"message": " "}, {"message": None}, {"message": 3}, {"fromName": 3}, {"idempotency_key": ""}),
    *({"message": "\x00"}, {"from": "\ud800"}, {"idempotency_key": "x" * 256}),
]


def test_what_cannot_be_understood_is_a_mistake_with_a_remedy(house):
    for changes in MISTAKES:
        answer = left(house, **changes)
        assert (answer.status, answer.json["ok"]) == (400, False), (changes, answer.body)
        assert answer.json["detail"] and answer.json["remedy"]
    assert house.ask("GET", "/v1/tasks").json["items"] == []


def test_what_a_newer_peer_says_beside_is_passed_over(house):
    assert left(house, timestamp=12, more={"x": 1}).json["ok"]


def test_a_message_that_is_too_large_is_413_and_another_sites_page_403(house):
    large = left(house, message="x" * 1_100_000)
    foreign = house.ask("POST", "/peer-todo", TODO, headers={"Origin": "https://evil.example"}, token=None)
    plain = house.ask("POST", "/peer-todo", TODO, headers={"Content-Type": "text/plain"}, token=None)
    assert [answer.status for answer in (large, foreign, plain)] == [413, 403, 415]
    for answer in (large, foreign, plain):
        assert (answer.json["ok"], answer.json["error"]) == (False, answer.json["detail"])
    assert house.ask("GET", "/peer-todo", token=KEYS.operator).status == 405


def test_what_peers_leave_can_be_held_without_holding_anything_else(house):
    assert house.ask("POST", "/v1/agents/source:peer-todo/pause", {"reason": "too many"}).status == 200
    task = left(house).json["id"]
    assert "too many" in house.ask("GET", f"/v1/tasks/{task}").json["waiting_for"]
    assert house.ask("POST", "/v1/agents/source:peer-todo/resume").json["resumed"]
    assert "too many" not in str(house.ask("GET", f"/v1/tasks/{task}").json["waiting_for"])


def test_a_name_is_one_line_and_nobody_can_be_called_like_an_agent():
    item = peer_todo("wren", "Night\n\tdesk", "x", None)
    assert (item.subject, item.sender) == ("Peer Todo from Night desk", "peer:wren")
    with pytest.raises(Mistake, match="more than 100"):
        peer_todo("x", "y" * 101, "x", None)


def test_the_token_of_peers_is_another_one_when_the_operators_is_and_does_not_tell_it():
    assert peer_token("first") != peer_token("second")
    assert "first" not in peer_token("first")
