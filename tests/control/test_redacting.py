"""Whatever is asked, by whomever and however deep in a payload: no secret that this place knows is kept or told."""

import hmac
import inspect
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.control.desk import an_agent, caller_of
from wakeful.control.answering import answer
from wakeful.control.callers import OPERATOR, Forbidden
from wakeful.control.control import Control
from wakeful.control.noting import Denial
from wakeful.control.operations import OPERATIONS
from wakeful.control.redacting import BATCH, MEANT, NAMES, redacted
from wakeful.core.errors import Mistake
from wakeful.core.items import Kind, NewItem, Origin, State
from wakeful.core.redacting import redacted_item
from wakeful.runners.hiding import Hiding

KEY, PIN, OPERATORS = "sk-live_9aZ~bY8cX7dW", "83920175", "operators-own-token-0123456789"
RUN = f"run.17.3.{'0f' * 32}"
MARK = "[redacted]"
# What free text there is, beside the names and words that have a meaning here.
FREE = {"body", "subject", "reason", "prompt", "title", "description", "payload", "metadata", "result", "tags", "tag"}
FREE |= {"text"}


@pytest.fixture
def desk(desk):
    agent = an_agent("moss", environment=("DEMO_API_KEY",), secrets=("PIN",))
    desk.declare(agent, "wren")
    hiding = Hiding(lambda: (agent,), {"DEMO_API_KEY": KEY, "PIN": PIN, "OTHER": "plain"}, lambda: OPERATORS, key=b"k")
    desk.control = desk.make(desk.engine, redact=hiding)
    return desk


@pytest.fixture
def moss(desk):
    return caller_of(desk.begin("moss"))


def kept(desk):
    """Everything that the store has, as text."""
    tables = ("item", "wake", "event", "step", "pause", "attempt", "run")
    rows = [row for table in tables for row in desk.store.session.connection.execute(f"SELECT * FROM {table}")]
    return json.dumps(rows, ensure_ascii=False, default=str)


def is_clean(desk):
    found = kept(desk)
    return not any(secret in found for secret in (KEY, PIN, RUN, OPERATORS)) and MARK in found


def test_every_text_that_can_be_asked_is_free_a_name_or_a_word_of_ours():
    given: dict[str, str] = {}
    for name in OPERATIONS:
        for parameter in inspect.signature(getattr(Control, name)).parameters.values():
            if any(word in str(parameter.annotation) for word in ("str", "Any", "dict", "list")):
                given.setdefault(parameter.name, name)
    assert set(given) - {"caller", "self", BATCH} == FREE | NAMES | MEANT
    assert not FREE & MEANT and not NAMES & MEANT


def test_a_message_is_kept_and_told_without_them(desk, moss):
    sent = desk.ask("send", moss, agent="wren", subject=f"key {KEY}", body=f"it is {KEY}, and I am {RUN}: {OPERATORS}")
    assert sent["message"]["subject"] == f"key {MARK}"
    assert sent["message"]["body"] == f"it is {MARK}, and I am {MARK}: {MARK}"
    sent = desk.ask("send", moss, agent="wren", body="see there", metadata={"a": [KEY, {KEY: True, "n": int(PIN)}]})
    assert sent["message"]["metadata"] == {"a": [MARK, {MARK: True, "n": MARK}]}
    assert is_clean(desk)


def test_a_wake_a_pause_and_a_one_off_too(desk, moss):
    desk.ask("wake", moss, agent="wren", reason="blocker", body=f"help: {KEY}")
    desk.ask("tick", agent="wren", reason=KEY)
    desk.ask("pause", reason=f"because of {KEY}")
    desk.ask("run", agent="moss", prompt=f"use {KEY}", title=PIN)
    assert is_clean(desk)


def test_a_task_its_payload_its_tags_and_its_end_too(desk, moss):
    payload = {"deep": [{"token": KEY, "pin": int(PIN), "port": 7717, "on": True, "none": None}]}
    task = desk.ask("add_task", moss, title=f"key {KEY}", agent="moss", description=PIN, tags=[KEY], payload=payload)
    assert task["payload"] == {"deep": [{"token": MARK, "pin": MARK, "port": 7717, "on": True, "none": None}]}
    assert (task["title"], task["description"], task["tags"]) == (f"key {MARK}", MARK, [MARK])
    assert [row["id"] for row in desk.ask("tasks", tag=KEY)["items"]] == [task["id"]]
    both = [{"title": KEY, "agent": "moss", "payload": KEY}, {"title": "plain", "agent": "moss", "key": "b"}]
    first, second = desk.ask("add_tasks", moss, tasks=both)["items"]
    done = desk.ask("complete_task", moss, task=task["id"], result=f"made with {KEY}")
    assert (done["state"], done["result"]) == (State.completed, f"made with {MARK}")
    desk.ask("fail_task", moss, task=first["id"], reason=KEY)
    desk.ask("cancel_task", moss, task=second["id"], reason=KEY)
    assert is_clean(desk)


def test_what_is_known_by_a_secret_is_still_known_by_it_and_by_no_other(desk, moss):
    def added(key):
        return desk.ask("add_task", moss, title="sort", agent="wren", key=key)

    first, again, other = added(f"{KEY}-1"), added(f"{KEY}-1"), added(f"{KEY}{PIN}-1")
    assert first["id"] == again["id"] != other["id"] and again["duplicate"]
    assert first["key"].startswith(f"{MARK}-1#")
    assert desk.ask("keyed_task", moss, message_id=f"{KEY}-1")["id"] == first["id"]
    after = desk.ask("add_task", moss, title="then", agent="wren", depends_on=[f"{KEY}-1", other["id"]])
    assert [each["id"] for each in after["depends_on"]] == [first["id"], other["id"]]
    assert is_clean(desk)


def test_steps_are_kept_without_them_whoever_records_them(desk, moss):
    row = desk.ask("save_step", moss, name=f"call {KEY}", result={"key": KEY, "n": 1})
    assert row["result"] == {"key": MARK, "n": 1} and row["name"].startswith(f"call {MARK}#")
    asked = {"verb": "step", "name": "hand", "result": json.dumps({"pin": int(PIN), "key": KEY})}
    told = desk.runner.run(answer(desk.control, moss.run, asked))
    assert json.loads(told["recorded"]) == {"pin": MARK, "key": MARK}
    assert is_clean(desk)


def test_what_nobody_was_let_do_is_told_without_them_and_not_cut_within_one(desk, moss):
    told = {"method": "GET", "path": f"/v1/agents/{KEY}"}
    desk.runner.run(desk.control.denied(Denial(why="unauthenticated", address="10.0.0.9", told=told)))
    cut = {"path": "/" + "x" * (198 - len(KEY) // 2) + KEY}
    desk.runner.run(desk.control.denied(Denial(why="host", address="10.0.0.9", told=cut)))
    with pytest.raises(Forbidden):
        desk.ask("inbox", moss, agent="wren", sender=KEY)
    first, second, _ = [event.fields for event in desk.store.events(kinds=("denied",))]
    assert first["path"] == f"/v1/agents/{MARK}"
    assert KEY[:4] not in second["path"]
    assert is_clean(desk)


def test_what_comes_from_outside_is_kept_without_them(desk):
    desk.runner.run(desk.control.hook_wake(OPERATOR, text=f"look: {KEY}", agent="moss"))
    desk.runner.run(desk.control.hook_agent(OPERATOR, message=f"use {KEY}", name=PIN, agent="moss"))
    desk.runner.run(desk.control.leave_todo(peer="x", name=None, message=f"{RUN} is mine", key=None))
    desk.runner.run(desk.control.leave_todo(peer=f"desk {KEY}", name=None, message="sweep", key=None))
    event = {"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "subject": PIN, "data": {"k": KEY}}
    media, body = "application/cloudevents+json", json.dumps(event).encode()
    desk.runner.run(desk.control.take_events(OPERATOR, {}, media, [], body, "moss"))
    assert is_clean(desk)


def test_what_comes_from_outside_is_known_again_without_them(desk):
    def events(id):
        event = {"specversion": "1.0", "id": id, "source": "/a", "type": "t"}
        body = json.dumps(event).encode()
        return desk.control.take_events(OPERATOR, {}, "application/cloudevents+json", [], body, "moss")

    ways = [
        lambda key: desk.control.hook_wake(OPERATOR, text="look", mode="next-heartbeat", agent="moss", key=key),
        lambda key: desk.control.leave_todo(peer="desk", name=None, message="sweep", key=key),
        events,
    ]
    for way in ways:
        told = [desk.runner.run(way(key)) for key in (f"{KEY}-1", f"{KEY}-1", f"{KEY}-2")]
        known = [each["duplicate"] if isinstance(each, dict) else each.duplicate for each in told]
        assert known == [False, True, False]
    assert is_clean(desk)


def test_what_is_too_deep_to_be_mended_is_refused(desk, moss):
    deep: list[Any] = []
    current = deep
    for _ in range(5_000):
        current.append([])
        current = current[0]
    current.append(KEY)
    with pytest.raises(Mistake, match="nested too deeply"):
        desk.ask("send", moss, agent="wren", body="x", metadata={"a": deep})


def test_a_signed_delivery_is_proved_as_it_came_kept_without_them_and_known_again(desk):
    variables, body = {"CI_SECRET": "ci-0123456789"}, json.dumps({"type": KEY, "pin": int(PIN)}).encode()
    desk.declare(an_agent("moss", events=("webhook://ci?secret=CI_SECRET",)), "wren")

    def delivered(at):
        mac = hmac.new(b"ci-0123456789", f"7.{at}.".encode() + body, "sha256").hexdigest()
        headers = {"x-webhook-id": "7", "x-webhook-timestamp": str(at), "x-webhook-signature": f"sha256={mac}"}
        return desk.runner.run(desk.control.deliver("ci", variables, list(headers.items()), body))

    now = int(desk.now.timestamp())
    first, again = delivered(now), delivered(now + 1)
    assert (first["duplicate"], again["duplicate"], again["id"]) == (False, True, first["id"])
    (message,) = desk.ask("inbox", agent="moss")["items"]
    assert message["subject"] == f"ci: {MARK}" and json.loads(message["body"]) == {"type": MARK, "pin": MARK}
    assert is_clean(desk)


def test_a_request_without_secrets_is_not_copied():
    given = {"agent": "moss", "title": "sort", "payload": {"a": [1, "b", None]}, "limit": 3}
    assert redacted(given, Hiding(tuple, {}, lambda: OPERATORS)) is given


def test_an_item_that_is_one_already_keeps_its_key():
    def hide(text):
        return text.replace(KEY, MARK)

    item = NewItem(kind=Kind.task, origin=Origin.operator, subject=KEY, body=KEY, dedupe=KEY, payload=json.dumps([KEY]))
    told = redacted_item(item, hide)
    assert (told.subject, told.body, told.payload, told.dedupe) == (MARK, MARK, json.dumps([MARK]), KEY)
    assert redacted_item(replace(told, dedupe=None), hide) == replace(told, dedupe=None)
