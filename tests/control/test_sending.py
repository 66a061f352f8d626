"""Messages: recorded first, with what their sender gave them; the loud ones are decided at once."""

import json

import pytest

from tests.control.desk import SECOND, caller_of, replicas
from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.runners.briefing import write_briefing

MESSAGE = ["id", "from", "to", "subject", "body", "type", "priority", "origin", "state", "shown_in", "created_at"]
MESSAGE += ["metadata", "reply_to", "thread", "run_id", "chain", "snoozed_until"]


def test_a_normal_message_waits_for_the_next_run_and_costs_nothing(desk):
    desk.declare("wren")
    sent = desk.ask("send", agent="wren", body="hello", subject="greeting")
    assert list(sent["message"])[: len(MESSAGE)] == MESSAGE
    assert sent["wake"] is None and sent["message"]["state"] == "open" and sent["message"]["shown_in"] is None
    assert desk.due() == [] and desk.store.wakes() == []


@pytest.mark.parametrize("priority", ["high", "urgent", "critical"])
def test_an_urgent_message_of_the_operator_is_decided_at_once(desk, priority):
    desk.declare("wren")
    sent = desk.ask("send", agent="wren", body="fire", priority=priority)
    assert (sent["wake"]["verdict"], sent["wake"]["message_id"]) == ("admit", sent["message"]["id"])
    run = desk.ask("show_run", run=sent["wake"]["run_id"])
    assert (run["cause"], run["subject"]) == ("operator", "inbox")
    assert desk.due() == []


def test_an_urgent_message_of_a_run_asks_as_a_peer(desk):
    desk.declare("wren", "moss")
    sent = desk.ask("send", caller_of(desk.begin("wren")), agent="moss", body="fire", priority="urgent")
    assert desk.store.wake(sent["wake"]["wake_id"]).wake.cause == "peer"
    assert sent["message"]["from"] == "wren"


def test_an_urgent_message_without_an_engine_rings_once_when_one_starts(desk):
    desk.declare("wren")
    desk.engine_stops()
    sent = desk.ask("send", agent="wren", body="fire", priority="urgent")
    assert (sent["wake"]["verdict"], sent["wake"]["run_id"]) == ("defer", None)
    assert [decision.run is not None for decision in desk.due()] == [True]


def test_a_message_that_was_shown_says_in_which_run(desk):
    desk.declare("wren")
    sent = desk.ask("send", agent="wren", body="hello")
    order = desk.begin("wren")
    assert desk.ask("inbox", agent="wren")["items"][0]["shown_in"] == order.run.id
    desk.end(order)
    assert desk.ask("inbox", agent="wren")["items"] == []
    (closed,) = desk.ask("inbox", agent="wren", state="closed")["items"]
    assert (closed["id"], closed["state"], closed["shown_in"]) == (sent["message"]["id"], "closed", order.run.id)


def test_the_same_key_with_another_body_is_a_conflict_and_two_callers_may_use_one_key(desk):
    desk.declare("wren", "moss")
    desk.ask("send", agent="moss", body="one", key="k")
    with pytest.raises(Conflict):
        desk.ask("send", agent="moss", body="two", key="k")
    other = desk.ask("send", caller_of(desk.begin("wren")), agent="moss", body="three", key="k")
    assert not other["duplicate"]
    again = desk.ask("send", agent="moss", body="one", key="k")
    assert again["duplicate"] and again["wake"] is None


def test_a_reply_names_the_message_that_it_answers_and_a_run_only_one_of_its_own(desk):
    desk.declare("wren", "moss")
    asked = desk.ask("send", agent="wren", body="how is it?")["message"]["id"]
    other = desk.ask("send", agent="moss", body="and you?")["message"]["id"]
    caller = caller_of(desk.begin("wren"))
    reply = desk.ask("send", caller, agent="moss", body="well", reply_to=asked)["message"]
    assert (reply["reply_to"], reply["thread"], reply["run_id"]) == (asked, asked, caller.run)
    with pytest.raises(Unknown, match=f"no message {other} to reply to"):
        desk.ask("send", caller, agent="moss", body="well", reply_to=other)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"priority": "hihg"}, "unknown priority"),
        ({"type": "gossip"}, "unknown type of message 'gossip'"),
        ({"body": "a\0b"}, r"U\+0000"),
        ({"body": "a\ud800b"}, r"U\+D800"),
        ({"key": " "}, "a key of 1 to 255"),
        ({"key": "k" * 256}, "a key of 1 to 255"),
        ({"metadata": ["a"]}, "metadata is a JSON object, found a list"),
        ({"metadata": {"a": {1}}}, "cannot be written as JSON"),
        ({"metadata": {"a": float("nan")}}, "cannot be written as JSON"),
        ({"metadata": {"a": "\ud800"}}, r"U\+D800"),
        ({"metadata": {"a": "x" * 16_384}}, "16,393 bytes, and more than 16,384 .*into the body"),
    ],
)
def test_what_cannot_be_sent_is_a_mistake_and_nothing_is_kept(desk, given, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("send", **{"agent": "wren", "body": "hello", **given})
    assert desk.ask("inbox", agent="wren")["items"] == []


def test_a_message_to_an_address_is_in_the_inbox_of_each_replica_and_wakes_one_of_them(desk):
    desk.declare(*replicas("moss", 3))
    sent = desk.ask("send", agent="moss", body="fire", priority="high")
    assert sent["message"]["to"] == "moss" and sent["wake"]["agent"] == "moss-1"
    for name in ("moss", "moss-1", "moss-3"):
        assert [each["id"] for each in desk.ask("inbox", agent=name)["items"]] == [sent["message"]["id"]]
    assert desk.ask("wake", agent="moss")["agent"] == "moss-2"
    assert desk.ask("tick", agent="moss")["guard"] == "slots"


def test_metadata_is_kept_as_it_was_sent_up_to_its_bound(desk):
    desk.declare("wren")
    own = {"ticket": "A-7", "pages": [1, None, {"deep": True}], "text": "ä\0" * 100}
    assert desk.ask("send", agent="wren", body="x", metadata=own)["message"]["metadata"] == own
    edge = {"a": "x" * (16_384 - len('{"a": ""}'))}
    assert desk.ask("send", agent="wren", body="x", metadata=edge)["message"]["metadata"] == edge
    assert desk.ask("send", agent="wren", body="x")["message"]["metadata"] == {}


def test_a_run_is_told_how_many_wakes_it_has_also_where_that_was_changed_live(desk):
    desk.declare("wren", "moss")
    desk.ask("set", agent="wren", settings={"max_wakes_per_run": "1"})
    told = [json.loads(write_briefing(desk.begin(name), None)[1])["run"]["wakes_left"] for name in ("wren", "moss")]
    assert told == [1, 3]


def test_the_same_key_with_other_metadata_is_a_conflict(desk):
    desk.declare("wren")
    desk.ask("send", agent="wren", body="x", key="k", metadata={"a": 1})
    assert desk.ask("send", agent="wren", body="x", key="k", metadata={"a": 1})["duplicate"]
    with pytest.raises(Conflict):
        desk.ask("send", agent="wren", body="x", key="k", metadata={"a": 2})


def test_a_message_tells_the_run_that_sent_it_and_how_far_that_is_from_its_root(desk):
    desk.declare("wren", "moss", "reed")
    first = desk.begin("wren")
    near = desk.ask("send", caller_of(first), agent="reed", body="near")["message"]
    desk.ask("wake", caller_of(first), agent="moss", reason="blocker", body="look")
    (second,) = desk.claim()
    far = desk.ask("send", caller_of(second), agent="reed", body="far")["message"]
    assert (near["run_id"], near["chain"]) == (first.run.id, {"root": first.run.wake, "depth": 0})
    assert (far["run_id"], far["chain"]) == (second.run.id, {"root": first.run.wake, "depth": 1})
    outside = desk.ask("send", agent="reed", body="from outside")["message"]
    assert (outside["run_id"], outside["chain"], outside["origin"]) == (None, None, "operator")


@pytest.mark.parametrize("priority", ["normal", "urgent"])
def test_a_message_to_oneself_rings_for_nobody_and_that_is_said(desk, priority):
    desk.declare("wren")
    order = desk.begin("wren")
    sent = desk.ask("send", caller_of(order), agent="wren", body="go on", priority=priority)
    assert sent["wake"] is None and sent["message"]["priority"] == priority
    assert (sent["note"] is None) == (priority == "normal")
    assert "your next run is shown it" in (sent["note"] or "your next run is shown it")
    desk.end(order)
    desk.later(10 * SECOND)
    assert desk.due() == [] and len(desk.store.wakes()) == 1
    run = desk.begin("wren").run.id
    assert [row["shown_in"] for row in desk.ask("inbox", agent="wren")["items"]] == [run]


def test_what_is_told_of_a_message_at_once_is_what_is_told_of_it_later(desk):
    desk.declare("moss")
    for given in ({}, {"subject": "words", "type": "info", "metadata": {"ticket": "A-7"}, "priority": "low"}):
        sent = desk.ask("send", agent="moss", body="hello", **given)["message"]
        (found,) = [each for each in desk.ask("inbox", agent="moss")["items"] if each["id"] == sent["id"]]
        assert sent == found and list(sent) == list(found)
