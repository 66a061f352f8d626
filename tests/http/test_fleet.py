"""The real control on a real store behind the real server: what a person and a run are told."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.http.served import KEYS, Served, Stream, serve
from wakeful.control.callers import Claim, leave_to_others
from wakeful.control.control import Control
from wakeful.control.operations import OPERATIONS
from wakeful.core.admission import admit
from wakeful.core.codec import write_time
from wakeful.core.errors import Busy
from wakeful.core.settlement import settle
from wakeful.http.auth import run_token
from wakeful.http.schemas import FORMS
from wakeful.store.protocol import Finish
from wakeful.store.sqlite import open_sqlite
from wakeful.store.writer import Writer
from wakeful.testing.contracts.store_case import DONE, LEASE, NOW, a_fleet, tick

T = TypeVar("T")


class Beside:
    leaving = False

    async def taking(self, write: Callable[[Claim], Awaitable[T]]) -> T:
        return await write(leave_to_others)

    def health(self) -> dict[str, object]:
        return {"ready": True}

    async def reload(self) -> dict[str, object]:
        return {"changed": []}

    def leave(self, *, drain: bool) -> None: ...

    async def starts_settled(self) -> None: ...


class House:
    """A fleet of two, its store and its server."""

    def __init__(self, folder: Path) -> None:
        self.runs = folder / "runs"
        self.writer = Writer(open_sqlite(folder / "wakeful.db", durable=False))
        self.writer.submit(lambda store: store.declare(a_fleet("wren", "moss"), NOW)).result()
        self.served: Served = None

    def control(self) -> Control:
        return Control(self.writer, runs=self.runs, clock=lambda: NOW, beside=Beside(), node="here")

    def begin(self, agent: str) -> tuple[int, int]:
        """A run under way, and its epoch."""
        run = self.writer.submit(lambda store: store.decide([tick(agent)], admit, NOW)[0].run).result()
        orders = self.writer.submit(lambda store: store.claim("here", NOW, LEASE)).result()
        (self.runs / str(run)).mkdir(parents=True)
        return run, next(order.run.epoch for order in orders if order.run.id == run)

    def end(self, run: int, epoch: int) -> None:
        ended = Finish(run=run, epoch=epoch, ending=DONE)
        self.writer.submit(lambda store: store.finish([ended], settle, NOW)).result()

    def ask(self, *said: Any, **more: Any) -> Any:
        return self.served.ask(*said, **more)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    try:
        with serve(house.control) as house.served:
            yield house
    finally:
        house.writer.close()
        house.writer.store.close()


def test_every_form_has_the_parameters_of_its_operation_and_their_defaults():
    for name, operation in OPERATIONS.items():
        parameters = dict(inspect.signature(getattr(Control, name)).parameters)
        del parameters["self"], parameters["caller"]
        wanted = {key: each.default for key, each in parameters.items() if "{" + key + "}" not in operation.path}
        fields = FORMS[name].given.model_fields
        told = {key: inspect.Parameter.empty if field.is_required() else field.default for key, field in fields.items()}
        assert told == wanted, name


def test_whatever_can_be_read_is_answered(house):
    run, _ = house.begin("wren")
    task = house.ask("POST", "/v1/tasks", {"agent": "moss", "title": "count", "key": "k"}).json["id"]
    wake = house.ask("GET", f"/v1/runs/{run}").json["wake_id"]
    places = {"agent": "wren", "run": run, "task": task, "wake": wake}
    asked = {"keyed_task": "?message_id=k", "steps": f"?task={task}"}
    for name, operation in OPERATIONS.items():
        if operation.method == "GET":
            target = operation.path.format(**places) + asked.get(name, "")
            assert house.ask("GET", target).status == 200, operation.path


def test_a_message_is_sent_once_under_its_key_and_is_in_the_inbox(house):
    for _ in range(2):
        key = {"Idempotency-Key": "once"}
        answer = house.ask("POST", "/v1/agents/wren/messages", {"body": "hello"}, headers=key)
        assert answer.status == 201
    other = house.ask("POST", "/v1/agents/wren/messages", {"body": "other", "key": "once"})
    assert (other.status, other.json["type"]) == (409, "urn:wakeful:error:conflict")
    inbox = house.ask("GET", "/v1/agents/wren/inbox").json
    assert [(message["from"], message["body"]) for message in inbox["items"]] == [("operator", "hello")]


def test_a_message_carries_metadata_and_is_found_marked_and_put_off(house):
    def send(**more):
        return house.ask("POST", "/v1/agents/wren/messages", {"body": "hello", **more}).json["message"]

    one, two = send(metadata={"ticket": ["A-7", None]}, priority="critical"), send()
    three = send(reply_to=one["id"])
    assert (one["metadata"], one["priority"], three["thread"]) == ({"ticket": ["A-7", None]}, "urgent", one["id"])
    found = house.ask("GET", f"/v1/agents/wren/inbox?thread={one['id']}&sender=operator&before=9999").json["items"]
    assert [row["id"] for row in found] == [three["id"], one["id"]]
    read = {"messages": [two["id"]]}
    for changed in ([two["id"]], []):
        answer = house.ask("POST", "/v1/agents/wren/inbox/read", read)
        assert (answer.status, answer.json["changed"]) == (200, changed)
    off = house.ask("POST", "/v1/agents/wren/inbox/snooze", {"messages": [one["id"]], "until": "2h"})
    assert (off.status, off.json["until"]) == (200, write_time(NOW + timedelta(hours=2)))
    assert house.ask("POST", "/v1/agents/moss/inbox/read", {"messages": [one["id"]]}).status == 404


def test_what_cannot_be_said_of_messages_is_400_with_the_reason(house):
    house.ask("POST", "/v1/agents/wren/messages", {"body": "hello"})
    for target, body, said in (
        ("messages", {"body": "x", "metadata": {"a": "x" * 20_000}}, "more than 16,384"),
        ("messages", {"body": "x", "metadata": "text"}, "metadata"),
        ("inbox/read", {"messages": []}, "messages"),
        ("inbox/read", {"messages": ["1"]}, "messages"),
        ("inbox/snooze", {"messages": [1]}, "until"),
        ("inbox/snooze", {"messages": [1], "until": "soon"}, "expected an instant"),
    ):
        answer = house.ask("POST", f"/v1/agents/wren/{target}", body)
        assert (answer.status, said in answer.json["detail"]) == (400, True), answer.body


def test_a_run_marks_its_own_messages_and_wakes_only_with_a_reason(house):
    ids = [
        house.ask("POST", f"/v1/agents/{name}/messages", {"body": "x"}).json["message"]["id"]
        for name in ("wren", "moss")
    ]
    token = run_token(KEYS, *house.begin("wren"))
    assert (
        house.ask("POST", "/v1/agents/wren/inbox/read", {"messages": ids[:1]}, token=token).json["changed"] == ids[:1]
    )
    assert house.ask("POST", "/v1/agents/wren/inbox/read", {"messages": ids[1:]}, token=token).status == 404
    assert house.ask("POST", "/v1/agents/moss/inbox/read", {"messages": ids[1:]}, token=token).status == 403
    vague = house.ask("POST", "/v1/agents/moss/wake", {"reason": "I want to", "body": "x"}, token=token)
    assert vague.status == 400 and "blocker, critical_finding, user_request" in vague.json["detail"]
    meant = house.ask("POST", "/v1/agents/moss/wake", {"reason": "blocker", "body": "x"}, token=token)
    assert (meant.status, meant.json["verdict"]) == (202, "admit")
    blamed = house.ask("GET", f"/v1/runs/{meant.json['run_id']}/blame").json
    assert [row["agent"] for row in blamed["chain"]] == ["wren", "moss"]
    assert house.ask("GET", f"/v1/runs/{meant.json['run_id']}/blame", token=token).status == 403


def test_a_tick_is_accepted_and_one_of_a_paused_agent_refused(house):
    accepted = house.ask("POST", "/v1/agents/wren/tick")
    assert (accepted.status, accepted.json["verdict"]) == (202, "admit")
    assert house.ask("POST", "/v1/agents/moss/pause", {"reason": "holiday"}).status == 200
    refused = house.ask("POST", "/v1/agents/moss/tick")
    assert (refused.status, refused.json["verdict"], refused.json["guard"]) == (200, "refuse", "paused")


def test_a_name_that_nobody_has_is_told_with_the_nearest(house):
    for method, target in (("GET", "/v1/agents/wern"), ("POST", "/v1/agents/wern/tick")):
        answer = house.ask(method, target)
        assert answer.status == 404
        assert "wren" in answer.json["detail"]
    assert house.ask("GET", "/v1/agents/%00").status == 404
    assert house.ask("GET", "/v1/runs/9223372036854775807").status == 404


def test_settings_are_changed_and_a_wrong_one_is_a_mistake(house):
    changed = house.ask("PATCH", "/v1/agents/wren/settings", {"settings": {"cooldown": "10m"}})
    assert (changed.status, changed.json["settings"]["cooldown"]["origin"]) == (200, "override")
    wrong = house.ask("PATCH", "/v1/agents/wren/settings", {"settings": {"cooldwon": "10m"}})
    assert (wrong.status, "cooldown" in wrong.body.decode()) == (400, True)


def test_wake_stats_tells_what_the_limits_of_today_have_left(house):
    never = house.ask("GET", "/v1/agents/moss/wake-stats")
    assert (never.status, list(never.json)) == (
        200,
        [
            *("wakesToday", "maxWakesPerDay", "cooldownSeconds", "lastWakeTime", "maxDailySessionMinutes"),
            *("sessionMinutesToday", "nextEligible", "pairs"),
        ],
    )
    assert (never.json["wakesToday"], never.json["lastWakeTime"], never.json["nextEligible"]) == (0, None, None)
    house.ask("PATCH", "/v1/agents/moss/settings", {"settings": {"cooldown": "10m", "max_wakes_per_day": "7"}})
    run, epoch = house.begin("wren")
    woken = house.ask(
        "POST", "/v1/agents/moss/wake", {"reason": "blocker", "body": "stuck"}, token=run_token(KEYS, run, epoch)
    )
    assert woken.json["verdict"] == "admit"
    assert house.ask("GET", "/v1/agents/moss/wake-stats").json == {
        "wakesToday": 1,
        "maxWakesPerDay": 7,
        "cooldownSeconds": 600,
        "lastWakeTime": int(NOW.timestamp()) * 1000,
        "maxDailySessionMinutes": 120,
        "sessionMinutesToday": 0,
        "nextEligible": write_time(NOW + timedelta(minutes=10)),
        "pairs": {"wren": 1},
    }
    assert house.ask("GET", "/v1/agents/nobody/wake-stats").status == 404


def test_a_run_acts_as_its_agent_within_its_rights_and_not_after_its_end(house):
    run, epoch = house.begin("wren")
    token = run_token(KEYS, run, epoch)
    assert house.ask("POST", "/v1/agents/moss/messages", {"body": "hi"}, token=token).json["message"]["from"] == "wren"
    forged = house.ask("POST", "/v1/agents/moss/messages", {"body": "hi", "from": "operator"}, token=token)
    assert forged.status == 400
    for name, operation in OPERATIONS.items():
        if not operation.by_runs and "agent" not in operation.path and name not in ("run", "backup"):
            path = operation.path.replace("{run}", str(run)).replace("{wake}", "1").replace("{task}", "1")
            body = {"change": "cancel", "all": True} if name == "change_tasks" else None
            assert house.ask(operation.method, path, body, token=token).status == 403, name
    assert house.ask("GET", "/v1/agents/moss/inbox", token=token).status == 403
    assert house.ask("GET", "/v1/stream", token=token).status == 403
    assert house.ask("GET", f"/v1/runs/{run}/log", token=token).status == 403
    assert house.ask("GET", "/v1/status", token=run_token(KEYS, run, epoch + 1)).status == 401
    house.end(run, epoch)
    assert house.ask("GET", "/v1/status", token=token).status == 401


def test_the_output_of_a_run_is_streamed_as_it_is_written_until_the_run_has_ended(house):
    run, epoch = house.begin("wren")
    with (
        (house.runs / str(run) / "stdout").open("w", buffering=1) as out,
        Stream(house.served, f"/v1/runs/{run}/log") as log,
    ):
        frames = iter(log)
        out.write("first\n")
        assert next(frames).data["text"] == "first\n"
        out.write("zwölf\n")
        assert next(frames).data["text"] == "zwölf\n"
        house.end(run, epoch)
        assert [frame.event for frame in frames] == ["over"]


def test_events_are_streamed_as_they_are_committed_and_resumed_without_a_gap(house):
    with Stream(house.served, "/v1/stream") as stream:
        frames = iter(stream)
        run, epoch = house.begin("wren")
        told = [next(frames) for _ in range(2)]
        assert [frame.event for frame in told] == ["decided", "started"]
    house.end(run, epoch)
    with Stream(house.served, "/v1/stream", last=told[0].id) as stream:
        frames = iter(stream)
        assert [next(frames).event for _ in range(2)] == ["started", "ended"]
    with Stream(house.served, "/v1/stream?after=0&kinds=ended&agent=wren") as stream:
        frame = next(iter(stream))
        assert (frame.event, frame.data["run_id"]) == ("ended", run)


def test_a_commit_is_told_at_once_and_not_at_the_next_look(house, monkeypatch):
    monkeypatch.setattr("wakeful.http.live.LOOK_AT_EVENTS", 60.0)
    with Stream(house.served, "/v1/stream") as stream:
        frames = iter(stream)
        for agent in ("wren", "moss"):
            house.ask("POST", f"/v1/agents/{agent}/tick")
            assert next(frames).data["agent"] == agent


def test_a_store_that_is_locked_is_busy_and_the_server_lives(house):
    async def locked(*_: Any) -> None:
        raise Busy("the database is locked by another process")

    house.writer.write = locked
    answer = house.ask("POST", "/v1/agents/wren/messages", {"body": "x"})
    assert (answer.status, answer.json["type"]) == (503, "urn:wakeful:error:busy")
    assert house.ask("GET", "/v1/status").status == 200


# ---- tasks


def test_a_task_goes_through_its_life_over_http(house):
    told = {
        "agent": "wren",
        "title": "t",
        "payload": {"page": 3},
        "description": "d",
        "key": "order-7",
        "timeout": "5m",
    }
    added = house.ask("POST", "/v1/tasks", told)
    assert (added.status, added.json["payload"], added.json["timeout"]) == (201, {"page": 3}, "5m")
    task = added.json["id"]
    other = house.ask("POST", "/v1/tasks", {**told, "payload": {"page": 4}})
    assert (other.status, other.json["type"]) == (409, "urn:wakeful:error:conflict")
    assert house.ask("GET", "/v1/tasks/keyed?message_id=order-7").json["id"] == task
    for path, state in (("fail", "dead_letter"), ("retry", "pending"), ("done", "completed")):
        answer = house.ask("POST", f"/v1/tasks/{task}/{path}")
        assert (answer.status, answer.json["state"]) == (200, state)
    again = house.ask("POST", f"/v1/tasks/{task}/cancel", {"reason": "late"})
    assert (again.status, again.json["detail"]) == (400, f"task {task} is completed already")
    assert house.ask("GET", "/v1/tasks?state=pending,failed").json["items"] == []
    assert house.ask("GET", "/v1/tasks/counts").json == {"counts": {"completed": 1}, "total": 1}
    assert house.ask("DELETE", f"/v1/tasks/{task}").json["removed"]
    for method, path in (("GET", ""), ("POST", "/retry"), ("DELETE", "")):
        assert house.ask(method, f"/v1/tasks/{task}{path}").status == 404


def test_many_tasks_are_added_and_changed_at_once_over_http(house):
    tasks = [{"agent": "wren", "title": f"t{number}", "tags": ["many"]} for number in range(3)]
    ids = [row["id"] for row in house.ask("POST", "/v1/tasks/batch", {"tasks": tasks}).json["items"]]
    wrong = house.ask("POST", "/v1/tasks/batch", {"tasks": [*tasks, {"title": "t", "agent": "wren", "timeout": 5}]})
    assert (wrong.status, "task 4 of the batch: expected the timeout as text" in wrong.json["detail"]) == (400, True)
    assert house.ask("POST", "/v1/tasks/change", {"change": "fail"}).status == 400
    failed = house.ask("POST", "/v1/tasks/change", {"change": "fail", "tag": "many", "limit": 2}).json
    assert (failed["changed"], failed["next"]) == (ids[:2], ids[1])
    assert [row["id"] for row in house.ask("GET", "/v1/dead").json["items"]] == ids[:2]
    assert house.ask("POST", f"/v1/dead/{ids[0]}/replay").json["state"] == "pending"
    assert house.ask("POST", f"/v1/dead/{ids[0]}/replay").status == 400
    assert house.ask("POST", f"/v1/dead/{ids[1]}/discard").json["removed"]


def test_a_run_takes_its_steps_with_its_own_token(house):
    run, epoch = house.begin("wren")
    token = run_token(KEYS, run, epoch)
    begun = house.ask("POST", "/v1/steps", {"name": "fetch", "begun": True}, token=token)
    assert (begun.status, begun.json["recorded"]) == (200, False)
    largest = "x" * 999_998
    assert house.ask("POST", "/v1/steps", {"name": "fetch", "result": largest}, token=token).json["recorded"]
    assert house.ask("GET", "/v1/steps", token=token).json["items"][0]["result"] == largest
    long = house.ask("POST", "/v1/steps", {"name": "more", "result": largest + "x"}, token=token)
    assert (long.status, "more than 1 MB" in long.json["detail"]) == (400, True)
    assert house.ask("POST", "/v1/steps", {"name": "fetch"}).status == 400, "the operator has none"
    house.end(run, epoch)
    assert house.ask("POST", "/v1/steps", {"name": "late", "result": 1}, token=token).status == 401
