"""The real control on a real store behind the real server: what a person and a run are told."""

import inspect
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.http.house import House
from tests.http.served import KEYS, Stream, serve
from wakeful.control.control import Control
from wakeful.control.operations import OPERATIONS
from wakeful.core.codec import write_time
from wakeful.core.errors import Busy
from wakeful.http.auth import run_token
from wakeful.http.schemas import FORMS
from wakeful.testing.contracts.store_case import NOW


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


def test_what_is_said_may_be_called_message_too_but_only_once(house):
    sent = house.ask("POST", "/v1/agents/wren/messages", {"message": "hello"})
    assert (sent.status, sent.json["message"]["body"]) == (201, "hello")
    assert house.ask("POST", "/v1/agents/moss/wake", {"message": "now"}).json["message_id"]
    assert house.ask("POST", "/v1/agents/wren/messages", {"message": "one", "body": "other"}).status == 400


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
    run, epoch = house.begin("wren")
    token = run_token(KEYS, run, epoch, house.now)
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
    plain = house.ask("PATCH", "/v1/agents/wren/settings", {"max_wakes_per_day": 20, "max-minutes-per-day": 90.5}).json
    told = plain["settings"]
    assert (told["max_wakes_per_day"]["value"], told["max_minutes_per_day"]["value"]) == ("20", "90.5")
    wrong_ones: list[Any] = [{"cooldown": 5}, {"cooldown": True}, {"settings": {}}, {}, {"version": 1}, {"burst": []}]
    for body in wrong_ones:
        assert house.ask("PATCH", "/v1/agents/wren/settings", body).status == 400, body
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
        "POST",
        "/v1/agents/moss/wake",
        {"reason": "blocker", "body": "stuck"},
        token=run_token(KEYS, run, epoch, house.now),
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
    token = run_token(KEYS, run, epoch, house.now)
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
    assert house.ask("GET", "/v1/status", token=run_token(KEYS, run, epoch + 1, house.now)).status == 401
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
    assert (again.status, again.json["detail"]) == (409, f"task {task} is completed already")
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
    assert house.ask("POST", f"/v1/dead/{ids[0]}/replay").status == 409
    assert house.ask("POST", f"/v1/dead/{ids[1]}/discard").json["removed"]


def test_a_run_takes_its_steps_with_its_own_token(house):
    run, epoch = house.begin("wren")
    token = run_token(KEYS, run, epoch, house.now)
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


def test_settings_that_somebody_has_changed_meanwhile_stay_as_they_are(house):
    target, body = "/v1/agents/wren/settings", {"settings": {"cooldown": "10m"}}
    seen = house.ask("GET", target).headers["etag"]
    changed = house.ask("PATCH", target, body, headers={"If-Match": seen})
    assert (changed.status, changed.headers["etag"] != seen) == (200, True)
    late = house.ask("PATCH", target, {"settings": {"cooldown": "20m"}}, headers={"If-Match": seen})
    assert (late.status, late.json["type"]) == (412, "urn:wakeful:error:outdated")
    assert "look at it again" in late.json["remedy"]
    assert house.ask("GET", target).json["settings"]["cooldown"]["value"] == "10m"
    assert house.ask("PATCH", target, {"settings": {"cooldown": "20m"}}).status == 200, "nobody has to say"


def test_whatever_is_created_twice_under_one_key_is_there_once(house):
    key = {"Idempotency-Key": "once"}
    tasks = {"tasks": [{"title": "a", "agent": "wren"}, {"title": "b", "agent": "wren", "key": "own"}]}
    for target, body, id in (
        ("/v1/agents/moss/at", {"when": "in 20m"}, "wake_id"),
        ("/v1/agents/wren/tick", None, "wake_id"),
        ("/v1/agents/moss/wake", {"body": "look"}, "message_id"),
        ("/v1/agents/moss/wake", {}, "wake_id"),
        ("/v1/tasks", {"title": "t", "agent": "moss"}, "id"),
        ("/api/run", {"agent": "moss", "prompt": "count"}, "task_id"),
        ("/v1/tasks/batch", tasks, "items"),
    ):
        named = {"Idempotency-Key": f"once {target} {bool(body)}"}
        first = house.ask("POST", target, body, headers=named)
        house.now += timedelta(minutes=1)
        again = house.ask("POST", target, body, headers=named)
        assert first.status < 300 and again.status < 300, (target, first.body, again.body)
        if id == "items":
            assert [row["id"] for row in again.json["items"]] == [row["id"] for row in first.json["items"]]
            assert [row["duplicate"] for row in again.json["items"]] == [True, True]
        else:
            assert (again.json[id], again.json["duplicate"]) == (first.json[id], True), target
    assert house.ask("POST", "/v1/tasks/batch", {"tasks": [{"title": "c", "agent": "wren"}]}, headers=key).status == 201
    other = {"tasks": [{"title": "d", "agent": "wren"}]}
    assert house.ask("POST", "/v1/tasks/batch", other, headers=key).status == 409


def test_every_list_is_walked_to_its_end_by_its_cursor(house):
    for number in range(5):
        house.ask("POST", "/v1/agents/wren/messages", {"body": f"m{number}"})
        house.ask("POST", "/v1/tasks", {"title": f"t{number}", "agent": "moss"})
        dead = house.ask("POST", "/v1/tasks", {"title": f"d{number}", "agent": "moss"}).json["id"]
        house.ask("POST", f"/v1/tasks/{dead}/fail")
    for _ in range(3):
        house.end(*house.begin("wren"))
    names = {"/v1/agents": "name", "/v1/decisions": "event_id"}
    for target, least in (
        *(
            ("/v1/agents?", 2),
            ("/v1/agents/wren/inbox?state=all&", 5),
            ("/v1/agents/wren/inbox?state=all&before=99&", 5),
        ),
        *(("/v1/runs?", 3), ("/v1/tasks?", 10), ("/v1/dead?", 5), ("/v1/decisions?", 3), ("/v1/events?", 15)),
    ):
        name = names.get(target.partition("?")[0], "id")
        whole = [row[name] for row in house.ask("GET", f"{target}limit=1000").json["items"]]
        found: list[Any] = []
        cursor = ""
        for _ in range(len(whole)):
            page = house.ask("GET", f"{target}limit=2" + (f"&cursor={cursor}" if cursor else "")).json
            found, cursor = [*found, *(row[name] for row in page["items"])], page["next"]
            if cursor is None:
                break
        assert (found, cursor) == (whole, None) and len(whole) >= least, target
