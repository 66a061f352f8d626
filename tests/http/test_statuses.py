"""What the status says: that something has ended is not that it cannot be understood, and who may not is told so."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.house import House
from tests.http.served import KEYS, head, raw, serve
from tests.http.test_entry import kind
from wakeful.http.auth import run_token


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    try:
        with serve(house.control) as house.served:
            yield house
    finally:
        house.writer.close()
        house.writer.store.close()


# ---- HEAD


def test_the_head_of_what_can_be_got_is_that_of_getting_it_without_its_body(house):
    statuses = []
    for path in ("/healthz", "/readyz", "/v1/status", "/v1/tasks?limit=3", "/v1/nothing", "/v1/stop"):
        got, headed = (house.ask(method, path) for method in ("GET", "HEAD"))
        # A second may pass in between.
        assert headed.headers.pop("date") and got.headers.pop("date")
        assert (headed.status, headed.headers, headed.body) == (got.status, got.headers, b""), path
        assert int(got.headers["content-length"]) == len(got.body) > 0
        statuses.append(got.status)
    assert statuses == [200, 200, 200, 200, 404, 405]
    assert got.headers["allow"] == "POST"


def test_without_a_token_the_head_of_anything_is_refused_too(house):
    assert house.ask("HEAD", "/v1/status", token=None).status == 401
    assert house.ask("HEAD", "/healthz", token=None).status == 200
    assert house.ask("DELETE", "/v1/status").headers["allow"] == "GET, HEAD"


def test_the_head_of_a_stream_ends(house, caplog):
    with house.served.connect() as connection:
        connection.sendall(head(house.served.port, "Connection: close", line="HEAD /v1/stream HTTP/1.1"))
        told = raw(connection)
    assert told.startswith(b"HTTP/1.1 200") and told.endswith(b"\r\n\r\n")
    assert b"text/event-stream" in told
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


# ---- what has ended


def test_what_is_asked_of_a_task_that_has_ended_is_a_conflict_of_its_own_kind(house):
    task = house.ask("POST", "/v1/tasks", {"title": "one", "role": "writer"}).json["id"]
    refused = house.ask("POST", f"/v1/dead/{task}/replay", {})
    assert (refused.status, kind(refused)) == (409, "ended")
    assert refused.json["detail"] == f"task {task} is pending, not dead"
    assert house.ask("DELETE", f"/v1/tasks/{task}").status == 409
    assert house.ask("POST", f"/v1/tasks/{task}/cancel", {}).status == 200
    for change in ("cancel", "done", "fail", "retry"):
        again = house.ask("POST", f"/v1/tasks/{task}/{change}", {})
        assert (again.status, kind(again)) == (409, "ended"), change
        assert again.json["remedy"]


def test_to_kill_a_run_that_has_ended_goes_on_with_nothing(house):
    run, epoch = house.begin("wren")
    assert house.ask("POST", f"/v1/runs/{run}/kill", {}).status == 202
    house.end(run, epoch)
    late = house.ask("POST", f"/v1/runs/{run}/kill", {})
    assert (late.status, late.json["asked"]) == (200, False)


# ---- who may not


UNSAID = [
    ("POST", "/v1/tasks/change", {}),
    ("POST", "/v1/tasks/change", {"no": "such field"}),
    ("POST", "/v1/backup", {}),
    ("POST", "/v1/runs/none/kill", {}),
    ("GET", "/v1/runs?limit=many", None),
    ("POST", "/v1/agents/moss/inbox/read", {}),
    ("GET", "/v1/agents/moss/inbox?limit=many", None),
]


def test_a_run_that_may_not_is_told_so_also_where_it_cannot_be_understood(house):
    run, epoch = house.begin("wren")
    for method, path, body in UNSAID:
        answer = house.ask(method, path, body, token=run_token(KEYS, run, epoch, house.now))
        assert (answer.status, kind(answer)) == (403, "forbidden"), path
        assert house.ask(method, path, body).status == 400, "and the operator, what is wrong"
    denied = house.ask("GET", "/v1/events?kinds=denied").json["items"][0]
    assert (denied["agent"], denied["run_id"]) == ("wren", run)
    assert (denied["fields"]["why"], denied["fields"]["operation"]) == ("forbidden", "change_tasks")


def test_a_run_that_may_is_told_what_is_wrong(house):
    run, epoch = house.begin("wren")
    for path in ("/v1/agents/wren/inbox/read", "/v1/agents/nobody/inbox/read", "/v1/tasks"):
        assert house.ask("POST", path, {}, token=run_token(KEYS, run, epoch, house.now)).status == 400
    assert house.ask("GET", "/v1/events?kinds=denied").json["items"] == []
