"""Ticks, wakes and beats at an instant: recorded first, decided at once or when an engine starts."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.control.desk import MINUTE, NOON, SECOND, an_agent, caller_of, replicas
from wakeful.control.callers import OPERATOR
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake
from wakeful.core.windows import parse_window
from wakeful.store.writer import Writer

REPLY = ["wake_id", "message_id", "verdict", "guard", "reason", "numbers", "next_eligible", "run_id"]
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


def test_a_key_is_known_however_much_was_asked_for_since(desk):
    desk.declare("wren")
    first = desk.ask("tick", agent="wren", key="deploy-7")
    (busy,) = desk.claim()
    for number in range(300):
        desk.ask("tick", agent="wren", key=f"other-{number}")
    desk.end(busy)
    again = desk.ask("tick", agent="wren", key="deploy-7")
    assert (again["wake_id"], again["duplicate"]) == (first["wake_id"], True)
    # The same word of another kind is another request.
    assert desk.ask("wake", agent="wren", key="deploy-7")["duplicate"] is False


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
    desk.ask("wake", caller_of(first), agent="moss", reason="blocker", body="one")
    desk.later(MINUTE)
    reply = desk.ask("wake", caller_of(first), agent="moss", reason="critical_finding", body="another")
    assert (reply["verdict"], reply["guard"]) == ("refuse", "cooldown")
    assert reply["numbers"] == {"seconds": 60.0, "limit": 300.0}
    assert reply["next_eligible"] == write_time(NOON + 5 * MINUTE)
    assert "message is kept" in reply["advice"] and "message_agent" in reply["advice"]
    assert [each["body"] for each in desk.ask("inbox", agent="moss")["items"]] == ["one", "another"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "needs a reason .give one of blocker, critical_finding, user_request"),
        ({"body": "look"}, "needs a reason"),
        ({"reason": "look at this", "body": "look"}, "one of blocker, critical_finding, user_request.*found 'look at"),
        ({"reason": "blocker"}, "leaves a message.*message_agent"),
        ({"reason": "blocker", "body": " \n"}, "leaves a message"),
    ],
)
def test_an_agent_that_wakes_another_gives_one_of_three_reasons_and_a_message(desk, given, complaint):
    desk.declare("wren", "moss")
    with pytest.raises(Mistake, match=complaint):
        desk.ask("wake", caller_of(desk.begin("wren")), agent="moss", **given)
    assert desk.ask("inbox", agent="moss")["items"] == [] and desk.store.wakes(agent="moss") == []


@pytest.mark.parametrize(
    ("reason", "type"),
    [("blocker", "help_request"), ("critical_finding", "review_request"), ("user_request", "work_assignment")],
)
def test_the_message_of_a_wake_is_urgent_and_of_the_type_that_its_reason_asks_for(desk, reason, type):
    desk.declare("wren", "moss")
    desk.ask("wake", caller_of(desk.begin("wren")), agent="moss", reason=reason, body="the build is red")
    (message,) = desk.ask("inbox", agent="moss")["items"]
    assert (message["priority"], message["type"], message["subject"]) == ("urgent", type, reason)


def test_the_operator_may_wake_for_any_reason_and_leave_an_urgent_message_or_none(desk):
    desk.declare("wren", "moss")
    assert desk.ask("wake", agent="wren", reason="because I say so")["message_id"] is None
    desk.ask("wake", agent="moss", reason="because", body="hello")
    (message,) = desk.ask("inbox", agent="moss")["items"]
    assert (message["priority"], message["type"], message["origin"]) == ("urgent", "info", "operator")


def wake_moss(desk, order, body):
    return desk.ask("wake", caller_of(order), agent="moss", reason="blocker", body=body)


@pytest.mark.parametrize(
    ("guard", "limits"),
    [
        ("quiet_hours", NIGHT),
        ("wakes_per_run", Limits(wakes_per_run=0)),
        ("wakes_per_day", Limits(wakes_per_day=0)),
        ("wakes_per_pair", Limits(wakes_per_pair=0)),
        ("chain", Limits(chain=0)),
        ("minutes_per_day", Limits(minutes_per_day=0)),
    ],
)
def test_whichever_guard_refuses_an_agent_it_is_told_to_use_message_agent_and_its_message_is_kept(desk, guard, limits):
    desk.declare(an_agent("wren", limits=limits), an_agent("moss", limits=limits))
    order = desk.begin("wren")
    reply = wake_moss(desk, order, "look")
    assert (reply["verdict"], reply["guard"]) == ("refuse", guard)
    assert reply["advice"] == (
        "your message is kept and shown at its next run; "
        "next time use message_agent (wakeful send), which costs nothing"
    )
    loud = desk.ask("send", caller_of(order), agent="moss", body="louder", priority="urgent")["wake"]
    assert loud["verdict"] == "refuse" and "use message_agent with priority normal" in loud["advice"]
    assert [each["body"] for each in desk.ask("inbox", agent="moss")["items"]] == ["look", "louder"]


def test_a_wake_that_has_to_wait_says_for_what_and_until_when(desk):
    desk.declare("wren", "moss", "reed", "finch")
    order, busy = desk.begin("wren"), desk.begin("moss")
    waits = wake_moss(desk, order, "look")
    assert (waits["verdict"], waits["guard"], waits["numbers"]) == ("defer", "busy", {"run": busy.run.id})
    assert "decided again when that run has ended" in waits["advice"]
    full = desk.ask("wake", caller_of(order), agent="reed", reason="blocker", body="look")
    assert full["guard"] == "slots" and "decided again when one is free" in full["advice"]
    desk.ask("pause_agent", agent="finch", duration="2h")
    held = desk.ask("wake", caller_of(order), agent="finch", reason="blocker", body="look")
    assert held["next_eligible"] >= write_time(NOON + 120 * MINUTE) and held["next_eligible"] in held["advice"]


def test_a_wake_with_a_key_is_recorded_once_and_the_second_is_told_of_the_first(desk):
    desk.declare("wren")
    first = desk.ask("wake", agent="wren", body="one", key="k")
    again = desk.ask("wake", agent="wren", body="one", key="k")
    same = ("message_id", "wake_id", "run_id", "verdict")
    assert [again[name] for name in same] == [first[name] for name in same]
    assert again["duplicate"] and not first["duplicate"]
    assert len(desk.ask("inbox", agent="wren")["items"]) == 1


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


def test_a_wrong_reason_is_answered_with_what_to_do_about_the_reason(desk):
    desk.declare("wren", "moss")
    with pytest.raises(Mistake) as wrong:
        desk.ask("wake", caller_of(desk.begin("wren")), agent="moss", reason="bored", body="look")
    assert "found 'bored'" in wrong.value.reason and wrong.value.remedy.startswith("give the one that it is")
    assert "say in a message" not in wrong.value.remedy


def test_an_agent_does_not_wake_itself_and_is_told_what_to_do_instead(desk):
    desk.declare("wren", "moss")
    caller = caller_of(desk.begin("wren"))
    with pytest.raises(Mistake, match="wren cannot wake itself") as itself:
        desk.ask("wake", caller, agent="wren", reason="blocker", body="go on")
    assert "next beat" in itself.value.remedy and "wakeful send wren" in itself.value.remedy
    assert "for the operator to ask" in itself.value.remedy
    assert desk.store.items(agent="wren") == [] and len(desk.store.wakes()) == 1
    assert desk.ask("wake", caller, agent="moss", reason="blocker", body="go on")["verdict"] == "admit"


def test_a_replica_may_wake_the_others_behind_its_address(desk):
    desk.declare(*replicas("moss", 2), sessions=5)
    caller = caller_of(desk.begin("moss-1"))
    assert desk.ask("wake", caller, agent="moss", reason="blocker", body="take this")["agent"] == "moss-2"
    with pytest.raises(Mistake, match="cannot wake itself"):
        desk.ask("wake", caller, agent="moss-1", reason="blocker", body="x")


def test_a_request_that_came_before_is_told_its_numbers_as_the_first_one_was(desk):
    desk.declare(an_agent("wren", limits=Limits(usd_per_day=1_000_000, reserve_usd=600_000)), "moss")
    desk.end(desk.begin("wren"))
    caller = caller_of(desk.begin("moss"))
    given = {"agent": "wren", "body": "look", "priority": "urgent", "key": "a"}
    first, second = (desk.ask("send", caller, **given)["wake"] for _ in range(2))
    assert first["guard"] == "spend" and second["duplicate"]
    assert first["numbers"] == second["numbers"] == {"unit": "usd", "spent": 0.6, "reserve": 0.6, "limit": 1.0}
    assert desk.ask("decision", wake=first["wake_id"])["numbers"] == first["numbers"]
    assert desk.ask("decisions", agent="wren")["items"][0]["numbers"] == first["numbers"]
