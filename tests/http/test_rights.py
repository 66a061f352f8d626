"""What a token is good for, and how long: a run's for its agent while the run lasts, the operator's until a new one."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.http.house import House
from tests.http.served import KEYS, Stream, head, serve
from tests.http.stub import Stub
from wakeful import belongings
from wakeful.control.callers import Caller
from wakeful.control.operations import OPERATIONS
from wakeful.http.auth import run_token
from wakeful.http.schemas import FORMS
from wakeful.http.vigil import LOOK
from wakeful.testing.contracts.store_case import NOW

SOON = 1.0
# What must be said where something must.
SAID = {"settings": {"cooldown": "0s"}, "path": "/var/copy.db", "agent": "moss", "prompt": "x", "when": "in 2h"}
SAID |= {"change": "cancel"}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    try:
        with serve(house.control) as house.served:
            yield house
    finally:
        house.writer.close()
        house.writer.store.close()


class Agent:
    """Who asks with the token of a run."""

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.run, self.epoch = house.begin(name)
        self.token = run_token(KEYS, self.run, self.epoch, house.now)

    def ask(self, method: str, target: str, body=None):
        return self.house.ask(method, target, body, token=self.token)

    def end(self) -> None:
        self.house.end(self.run, self.epoch)


# ---- a run's


def test_the_token_of_a_dead_run_is_not_that_of_a_run_with_its_numbers_in_a_store_that_was_restored(house, tmp_path):
    old = Agent(house, "wren")
    assert old.ask("GET", "/v1/status").status == 200
    (tmp_path / "restored").mkdir()
    restored = House(tmp_path / "restored")
    restored.now += timedelta(microseconds=1)
    try:
        with serve(restored.control) as restored.served:
            new = Agent(restored, "wren")
            assert (new.run, new.epoch) == (old.run, old.epoch)
            assert new.ask("GET", "/v1/status").status == 200
            assert restored.ask("GET", "/v1/status", token=old.token).status == 401
    finally:
        restored.writer.close()
        restored.writer.store.close()


def test_what_is_the_operators_is_no_runs_whatever_it_says(house):
    wren = Agent(house, "wren")
    task = house.ask("POST", "/v1/tasks", {"agent": "moss", "title": "count"}).json["id"]
    places = {"agent": "moss", "run": wren.run, "task": task, "wake": 1}
    refused = {name: operation for name, operation in OPERATIONS.items() if not operation.by_runs}
    assert {"pause", "set", "kill", "stop", "backup", "reload", "events", "tick", "run"} <= set(refused)
    for name, operation in refused.items():
        required = [field for field, about in FORMS[name].given.model_fields.items() if about.is_required()]
        body = None if operation.method == "GET" else {field: SAID[field] for field in required}
        answer = wren.ask(operation.method, operation.path.format(**places), body)
        assert (answer.status, answer.json["type"]) == (403, "urn:wakeful:error:forbidden"), name


def test_no_path_gives_a_token(house):
    wren = Agent(house, "wren")
    for path in ("/v1/token", "/v1/tokens", "/token", f"/v1/runs/{wren.run}/token"):
        assert wren.ask("POST", path, {}).status == 404
    told = "".join(wren.ask("GET", path).body.decode() for path in ("/v1/status", f"/v1/runs/{wren.run}", "/v1/agents"))
    assert KEYS.operator not in told and wren.token not in told and "run." + str(wren.run) not in told


def test_a_run_reads_no_inbox_but_its_own_and_sends_as_nobody_else(house):
    wren = Agent(house, "wren")
    assert wren.ask("GET", "/v1/agents/wren/inbox").status == 200
    for method, target, body in (
        ("GET", "/v1/agents/moss/inbox", None),
        ("POST", "/v1/agents/moss/inbox/read", {"messages": [1]}),
        ("POST", "/v1/agents/moss/inbox/snooze", {"messages": [1], "until": "in 2h"}),
        ("GET", "/v1/agents/moss/why", None),
        ("GET", "/v1/agents/moss/wake-stats", None),
    ):
        assert wren.ask(method, target, body).status == 403, target
    for claimed in ("from", "sender", "origin", "by"):
        answer = wren.ask("POST", "/v1/agents/moss/messages", {"body": "hello", claimed: "operator"})
        assert (answer.status, answer.json["type"]) == (400, "urn:wakeful:error:mistake")
    sent = wren.ask("POST", "/v1/agents/moss/messages", {"body": "hello"}).json["message"]
    assert (sent["from"], sent["origin"]) == ("wren", "agent")


def test_a_fourth_wake_in_one_run_is_refused_with_the_numbers(tmp_path):
    others = ("moss", "fern", "holm", "reed")
    house = House(tmp_path, "wren", *others)
    try:
        with serve(house.control) as house.served:
            wren = Agent(house, "wren")
            asked = {"reason": "blocker", "body": "look at this"}
            replies = [wren.ask("POST", f"/v1/agents/{name}/wake", asked) for name in others]
            assert [reply.json["guard"] for reply in replies][3] == "wakes_per_run"
            assert [reply.json["verdict"] for reply in replies][3] == "refuse"
            assert "wakes_per_run" not in [reply.json["guard"] for reply in replies][:3]
            assert "message_agent" in replies[3].json["advice"]
    finally:
        house.writer.close()
        house.writer.store.close()


def test_nothing_is_left_of_a_token_when_its_run_has_ended(house):
    wren = Agent(house, "wren")
    allowed = [operation for operation in OPERATIONS.values() if operation.by_runs]
    assert wren.ask("GET", "/v1/status").status == 200
    wren.end()
    places = {"agent": "wren", "run": wren.run, "task": 1, "wake": 1}
    for operation in allowed:
        body: object = None if operation.method == "GET" else {}
        assert wren.ask(operation.method, operation.path.format(**places), body).status == 401, operation
    newer = Agent(house, "wren")
    assert newer.epoch > wren.epoch
    assert wren.ask("GET", "/v1/status").status == 401
    assert newer.ask("GET", "/v1/status").status == 200


# ---- the operator's


def rotated(house: House, data: Path) -> str:
    """Another file in the place of the first, as `wakeful token --rotate` puts it."""
    belongings.write_private(data / belongings.TOKEN, "another-token-of-the-operator\n")
    return "another-token-of-the-operator"


def test_a_new_token_is_let_in_at_once_and_the_old_one_never_again(tmp_path):
    house, data = House(tmp_path), tmp_path / "data"
    belongings.write_private(data / belongings.TOKEN, KEYS.operator + "\n")
    token = belongings.Token(data)
    try:
        with serve(house.control, app={"operator": token}) as house.served:
            assert house.ask("GET", "/v1/status").status == 200
            with Stream(house.served, "/v1/stream") as stream, Stream(house.served, "/v1/stream?kinds=paused") as idle:
                new = rotated(house, data)
                began = time.monotonic()
                assert house.ask("GET", "/v1/status").status == 401
                assert house.ask("GET", "/v1/status", token=new).status == 200
                list(stream), list(idle)
                assert time.monotonic() - began < SOON + LOOK
            events = house.ask("GET", "/v1/events?kinds=acted", token=new).json["items"]
            assert [event["fields"]["operation"] for event in events] == ["rotate_token"]
            # Where there is none, nobody is the operator.
            (data / belongings.TOKEN).unlink()
            for left in (new, KEYS.operator, "x"):
                assert house.ask("GET", "/v1/status", token=left).status == 401
    finally:
        house.writer.close()
        house.writer.store.close()


def test_a_run_lives_through_a_rotation_of_the_operators_token(tmp_path):
    house, data = House(tmp_path), tmp_path / "data"
    belongings.write_private(data / belongings.TOKEN, KEYS.operator + "\n")
    try:
        with serve(house.control, app={"operator": belongings.Token(data)}) as house.served:
            wren = Agent(house, "wren")
            rotated(house, data)
            assert wren.ask("GET", "/v1/status").status == 200
    finally:
        house.writer.close()
        house.writer.store.close()


# ---- what goes on


def test_whatever_goes_on_ends_within_a_second_of_its_callers_right_to_it():
    """Not only what looks after itself: a route that knows nothing of tokens."""
    control, begun = Stub(), threading.Event()
    control.open[(12, 3)] = Caller(name="wren", run=12, epoch=3)
    with serve(lambda: control) as served:

        async def forever(scope, receive, send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"still here\n", "more_body": True})
                begun.set()
                over = served.loop.create_future()
                served.loop.call_later(0.02, over.set_result, None)
                await over

        served.app.router.routes.insert(0, _route("/endless", forever))
        with served.connect() as connection:
            connection.sendall(
                head(served.port, "Connection: close", line="GET /endless HTTP/1.1", token=run_token(KEYS, 12, 3, NOW))
            )
            assert begun.wait(5)
            began = time.monotonic()
            while time.monotonic() - began < 2 * LOOK:
                assert connection.recv(65536)
            control.open.clear()
            ended = time.monotonic()
            while connection.recv(65536):
                assert time.monotonic() - ended < SOON
        assert served.ask("GET", "/v1/status").status == 200


def _route(path: str, endpoint):
    from starlette.routing import Route

    class Bare:
        async def __call__(self, scope, receive, send) -> None:
            await endpoint(scope, receive, send)

    return Route(path, Bare())
