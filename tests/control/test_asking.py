"""Ticks, wakes, messages and beats at an instant: recorded first, decided at once or when an engine starts."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.control.desk import MINUTE, NOON, SECOND, an_agent, caller_of, replicas
from wakeful.control.callers import OPERATOR
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.core.windows import parse_window
from wakeful.store.writer import Writer

REPLY = ["wake_id", "message_id", "verdict", "guard", "reason", "numbers", "next_eligible", "run_id"]
MESSAGE = ["id", "from", "to", "subject", "body", "type", "priority", "origin", "state", "shown_in", "created_at"]
NIGHT = Limits(quiet_hours=(parse_window("11:00-13:00"),))


# ---- tick


def test_a_tick_is_admitted_as_a_beat_and_the_reply_names_its_run(desk):
    desk.declare("wren")
    reply = desk.ask("tick", agent="wren", reason="have a look")
    assert list(reply)[: len(REPLY)] == REPLY
    assert (reply["verdict"], reply["guard"], reply["message_id"]) == ("admit", None, None)
    run = desk.ask("show_run", run=reply["run_id"])
    assert (run["agent"], run["cause"], run["subject"]) == ("wren", "operator", "beat")
    assert run["wake_id"] == reply["wake_id"]
    assert run["wake"]["reason_given"] == "have a look" and run["wake"]["from"] == "operator"


def test_ten_ticks_during_a_run_become_one_waiting_wake_and_one_run(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    replies = [desk.ask("tick", agent="wren") for _ in range(10)]
    assert {reply["verdict"] for reply in replies} == {"defer"}
    assert {reply["guard"] for reply in replies} == {"busy"}
    assert replies[0]["numbers"] == {"run": order.run.id}
    assert {reply["joined"] for reply in replies[1:]} == {replies[0]["wake_id"]}
    assert [row.wake.id for row in desk.store.wakes(state="waiting")] == [replies[0]["wake_id"]]
    desk.end(order)
    desk.later(SECOND)
    assert [decision.wake for decision in desk.due() if decision.run] == [replies[0]["wake_id"]]
    assert len(desk.store.runs()) == 2


def test_a_tick_without_an_engine_is_recorded_undecided_and_decided_when_one_starts(desk):
    desk.declare("wren")
    desk.engine_stops()
    reply = desk.ask("tick", agent="wren")
    assert (reply["verdict"], reply["guard"], reply["run_id"]) == ("defer", None, None)
    assert reply["reason"] == "no engine: recorded, decided when one starts"
    assert desk.store.runs() == []
    (decision,) = desk.due()
    assert decision.wake == reply["wake_id"] and decision.run is not None


def test_a_tick_of_a_paused_agent_is_refused_by_name_and_is_no_error(desk):
    desk.declare("wren")
    desk.ask("pause_agent", agent="wren", reason="lunch", duration="2h")
    reply = desk.ask("tick", agent="wren")
    assert (reply["verdict"], reply["guard"], reply["run_id"]) == ("refuse", "paused", None)
    assert "paused by operator: lunch" in reply["reason"]
    assert reply["next_eligible"] == write_time(NOON + 120 * MINUTE)
    assert reply["advice"] == "to let it run: wakeful resume wren"


def test_a_tick_of_a_paused_fleet_says_how_to_resume_the_fleet(desk):
    desk.declare("wren")
    desk.ask("pause")
    reply = desk.ask("tick", agent="wren")
    assert (reply["guard"], reply["advice"]) == ("paused", "to let it run: wakeful resume")


def test_the_same_key_ticks_once_also_after_its_run_has_ended(desk):
    desk.declare("wren")
    first = desk.ask("tick", agent="wren", key="deploy-7")
    desk.end(desk.claim()[0])
    again = desk.ask("tick", agent="wren", key="deploy-7")
    assert (again["wake_id"], again["run_id"], again["duplicate"]) == (first["wake_id"], first["run_id"], True)
    assert desk.ask("tick", agent="wren", key="deploy-8")["wake_id"] != first["wake_id"]
    assert len(desk.store.runs()) == 2


def test_ticks_under_different_keys_still_become_one_waiting_wake(desk):
    desk.declare("wren")
    desk.begin("wren")
    for key in "abc":
        desk.ask("tick", agent="wren", key=key)
    assert len(desk.store.wakes(state="waiting")) == 1


# ---- wake


def test_an_operators_wake_runs_the_inbox_and_leaves_the_position(desk):
    desk.declare("wren")
    reply = desk.ask("wake", agent="wren", reason="mail")
    run = desk.ask("show_run", run=reply["run_id"])
    assert (reply["verdict"], run["cause"], run["subject"]) == ("admit", "operator", "inbox")


def test_a_wake_with_a_body_records_the_message_first_even_when_it_is_refused(desk):
    desk.declare("wren")
    desk.ask("pause")
    reply = desk.ask("wake", agent="wren", body="the build is red")
    assert (reply["verdict"], reply["guard"]) == ("refuse", "paused")
    (message,) = desk.ask("inbox", agent="wren")["items"]
    assert (message["id"], message["body"], message["from"]) == (reply["message_id"], "the build is red", "operator")


def test_a_runs_wake_is_a_peers_with_the_sender_stamped_from_its_token(desk):
    desk.declare("wren", "moss")
    order = desk.begin("wren")
    reply = desk.ask("wake", caller_of(order), agent="moss", reason="blocker", body="please look")
    assert reply["verdict"] == "admit"
    wake = desk.store.wake(reply["wake_id"]).wake
    assert (wake.cause, wake.sender, wake.by_run, wake.depth) == ("peer", "wren", order.run.id, 1)
    (message,) = desk.ask("inbox", agent="moss")["items"]
    assert (message["from"], message["origin"], message["subject"]) == ("wren", "agent", "blocker")


def test_a_refused_peer_is_told_guard_numbers_next_time_and_what_to_use_instead(desk):
    desk.declare("wren", "moss")
    first = desk.begin("wren")
    desk.ask("wake", caller_of(first), agent="moss", reason="blocker")
    desk.later(MINUTE)
    reply = desk.ask("wake", caller_of(first), agent="moss", reason="another")
    assert (reply["verdict"], reply["guard"]) == ("refuse", "cooldown")
    assert reply["numbers"] == {"seconds": 60.0, "limit": 300.0}
    assert reply["next_eligible"] == write_time(NOON + 5 * MINUTE)
    assert "message is kept" in reply["advice"] and "message_agent" in reply["advice"]
    assert [each["body"] for each in desk.ask("inbox", agent="moss")["items"]] == ["blocker", "another"]


def test_an_agent_that_wakes_another_has_to_say_why(desk):
    desk.declare("wren", "moss")
    with pytest.raises(Mistake, match="needs a reason"):
        desk.ask("wake", caller_of(desk.begin("wren")), agent="moss")


def test_a_wake_with_a_key_is_recorded_once_and_the_second_is_told_of_the_first(desk):
    desk.declare("wren")
    first = desk.ask("wake", agent="wren", body="one", key="k")
    again = desk.ask("wake", agent="wren", body="one", key="k")
    same = ("message_id", "wake_id", "run_id", "verdict")
    assert [again[name] for name in same] == [first[name] for name in same]
    assert again["duplicate"] and not first["duplicate"]
    assert len(desk.ask("inbox", agent="wren")["items"]) == 1


# ---- send


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
    assert desk.ask("send", caller, agent="moss", body="well", reply_to=asked)
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


# ---- at


def test_a_beat_at_an_instant_waits_for_it_passes_quiet_hours_and_is_asked_once(desk):
    desk.declare(an_agent("wren", limits=NIGHT))
    reply = desk.ask("at", agent="wren", when="in 20m", reason="before the meeting")
    moment = NOON + 20 * MINUTE
    assert (reply["verdict"], reply["next_eligible"], reply["run_id"]) == ("defer", write_time(moment), None)
    assert desk.ask("at", agent="wren", when="2026-03-02T12:20:00Z")["wake_id"] == reply["wake_id"]
    assert desk.ask("agent", agent="wren")["state"] == "idle"
    assert desk.due() == []
    desk.later(20 * MINUTE)
    (decision,) = desk.due()
    assert decision.wake == reply["wake_id"] and decision.run is not None


def test_a_time_of_day_is_the_next_one_on_the_agents_own_wall_clock(desk):
    desk.declare(an_agent("wren", timezone="Europe/Berlin"))
    today = desk.ask("at", agent="wren", when="14:30")["next_eligible"]
    assert today == write_time(datetime(2026, 3, 2, 13, 30, tzinfo=UTC))
    tomorrow = desk.ask("at", agent="wren", when="13:00")["next_eligible"]
    assert tomorrow == write_time(datetime(2026, 3, 3, 12, 0, tzinfo=UTC))


def test_a_skipped_time_of_day_is_the_end_of_the_gap(desk):
    desk.now = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    desk.declare(an_agent("wren", timezone="Europe/Berlin"))
    reply = desk.ask("at", agent="wren", when="02:30")
    assert reply["next_eligible"] == write_time(datetime(2026, 3, 29, 1, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("20m", "write: in 20m"),
        ("25:00", "there is no time 25:00"),
        ("in 20", "with a unit"),
        ("tomorrow", "write 2026-12-24T18:00Z, 14:30 or: in 20m"),
        ("2026-03-02T18:00", "does not say its time zone"),
        ("2026-03-02T11:00Z", "lies in the past"),
        ("", "expected an instant"),
    ],
)
def test_an_instant_that_cannot_be_meant_is_a_mistake_that_says_what_to_write(desk, when, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("at", agent="wren", when=when)
    assert desk.store.wakes() == []


def test_a_beat_at_an_instant_is_held_by_a_pause_and_not_lost(desk):
    desk.declare("wren")
    reply = desk.ask("at", agent="wren", when="in 1m")
    desk.ask("pause")
    desk.later(MINUTE)
    assert [decision.verdict.guard for decision in desk.due()] == ["paused"]
    desk.ask("resume")
    desk.later(timedelta(minutes=1))
    assert [decision.wake for decision in desk.due() if decision.run] == [reply["wake_id"]]


def test_a_beat_at_an_instant_survives_a_new_declaration_that_does_not_name_it(desk):
    desk.declare("wren")
    reply = desk.ask("at", agent="wren", when="in 1m")
    desk.declare(an_agent("wren", every=2 * MINUTE))
    assert desk.ask("decision", wake=reply["wake_id"])["state"] == "waiting"


# ---- many at once


def test_ten_callers_with_one_key_ask_once_also_where_a_thread_writes(desk):
    desk.declare("wren")
    desk.access = Writer(desk.store)
    desk.control = desk.make(desk.engine)

    async def all_at_once():
        return await asyncio.gather(*(desk.control.tick(OPERATOR, agent="wren", key="k") for _ in range(10)))

    replies = desk.runner.run(all_at_once())
    desk.access.close()
    assert len({reply["wake_id"] for reply in replies}) == 1 and len(desk.store.wakes()) == 1
    assert sorted(reply["duplicate"] for reply in replies) == [False] + [True] * 9


def test_an_engine_that_is_leaving_begins_nothing_and_what_was_asked_waits_for_the_next(desk):
    desk.declare(an_agent("wren"))
    desk.engine.leaving = True
    reply = desk.ask("tick", agent="wren")
    assert (reply["verdict"], reply["run_id"]) == ("defer", None)
    assert "leaving" in reply["reason"]
    desk.engine.leaving = False
    assert [wake.id for wake in desk.store.due(desk.now).wakes] == [reply["wake_id"]]
