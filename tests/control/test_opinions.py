"""Why now, why then, what was decided, what happened, and what comes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.control.desk import DONE, FAILED, HOUR, MINUTE, NOON, SECOND, an_agent, caller_of, replicas
from wakeful.core.admission import admit
from wakeful.core.agents import Limits
from wakeful.core.cadence import Cadence
from wakeful.core.codec import write_time
from wakeful.core.cron import parse_schedule
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.guards import GUARDS
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.core.settlement import skip_beat
from wakeful.core.wakes import Pause, agent_scope
from wakeful.core.windows import parse_window

WHY = ["agent", "at", "verdict", "guard", "reason", "next_eligible", "opinions", "last_decision", "assumptions"]
DECISION = ["wake_id", "agent", "cause", "from", "verdict", "guard", "reason", "numbers", "next_eligible", "at"]
DECISION += ["run_id"]
NIGHT = Limits(quiet_hours=(parse_window("11:00-14:00"),))
DAY = Lifecycle("add", (State("add", repeat=2, next="audit"), State("audit", next="add")))


# ---- why, now


def test_why_tells_the_opinion_of_every_guard_in_their_order(desk):
    desk.declare(an_agent("wren", limits=NIGHT))
    desk.begin("wren")
    desk.later(HOUR)
    answer = desk.ask("why", agent="wren")
    assert list(answer)[: len(WHY)] == WHY
    assert [opinion["guard"] for opinion in answer["opinions"]] == [guard.name for guard in GUARDS]
    objecting = {opinion["guard"]: opinion for opinion in answer["opinions"] if opinion["verdict"]}
    assert list(objecting) == ["quiet_hours", "busy"]
    assert (answer["verdict"], answer["guard"]) == ("defer", "quiet_hours")
    assert answer["next_eligible"] == objecting["quiet_hours"]["until"] == write_time(NOON + 2 * HOUR)
    assert answer["reason"] == objecting["quiet_hours"]["reason"] and objecting["busy"]["numbers"] == {"run": 1}


def test_why_of_a_beat_that_is_not_due_says_when_it_is_and_blames_no_guard(desk):
    desk.declare(an_agent("wren", limits=Limits(quiet_hours=(parse_window("11:00-12:30"),))))
    answer = desk.ask("why", agent="wren")
    due = write_time(NOON + HOUR)
    assert (answer["verdict"], answer["guard"], answer["next_eligible"]) == ("defer", None, due)
    assert answer["reason"] == f"not due until {due}" and answer["numbers"] == {}
    assert [opinion["guard"] for opinion in answer["opinions"] if opinion["verdict"]] == ["quiet_hours"]


def test_why_of_an_agent_without_a_timer_says_so(desk):
    desk.declare(an_agent("wren", every=None))
    answer = desk.ask("why", agent="wren")
    assert answer["verdict"] == "defer" and "has no timer" in answer["reason"] and answer["next_eligible"] is None


def test_why_of_a_due_beat_that_nobody_holds_is_admission(desk):
    desk.declare("wren")
    desk.later(HOUR)
    answer = desk.ask("why", agent="wren")
    assert (answer["verdict"], answer["guard"], answer["reason"]) == ("admit", None, "no guard objects")


def test_why_of_a_disabled_agent_says_that_it_is_disabled(desk):
    desk.declare(an_agent("wren", enabled=False))
    answer = desk.ask("why", agent="wren")
    assert (answer["verdict"], answer["guard"]) == ("refuse", "moot") and "disabled" in answer["reason"]


@pytest.mark.parametrize(("cause", "verdict"), [("operator", "refuse"), ("peer", "defer"), ("task", "defer")])
def test_why_can_be_asked_for_a_cause_that_nothing_has_asked_for(desk, cause, verdict):
    desk.declare("wren")
    desk.ask("pause", reason="lunch")
    answer = desk.ask("why", agent="wren", cause=cause)
    assert (answer["cause"], answer["verdict"], answer["guard"]) == (cause, verdict, "paused")
    said = [] if cause == "operator" else [f"nothing of the cause {cause} waits"]
    assert [text.split(":")[0] for text in answer["assumptions"]] == said


def test_why_of_a_peer_can_name_the_one_who_asks(desk):
    desk.declare(an_agent("wren", limits=Limits(cooldown=timedelta(), wakes_per_pair=1)), "moss", "fern")
    order = desk.begin("moss")
    desk.ask("wake", caller_of(order), agent="wren", reason="blocker", body="x")
    for each in (*desk.claim(), order):
        desk.end(each)
    desk.later(MINUTE)
    refused = desk.ask("why", agent="wren", cause="peer", sender="moss")
    assert (refused["verdict"], refused["guard"]) == ("refuse", "wakes_per_pair")
    assert [desk.ask("why", agent="wren", cause="peer", **who)["verdict"] for who in ({"sender": "fern"}, {})] == [
        "admit",
        "admit",
    ]
    assert "of nobody in particular" in desk.ask("why", agent="wren", cause="peer")["assumptions"][0]
    desk.later(MINUTE)
    then = desk.ask("why", agent="wren", cause="peer", sender="moss", at=write_time(NOON + MINUTE))
    assert then["guard"] == "wakes_per_pair"
    with pytest.raises(Mistake, match="with the cause peer"):
        desk.ask("why", agent="wren", sender="moss")
    with pytest.raises(Unknown, match="no agent is called 'moos'"):
        desk.ask("why", agent="wren", cause="peer", sender="moos")


def test_why_asks_about_the_wake_that_waits(desk):
    desk.declare("wren", "moss", sessions=1)
    desk.begin("moss")
    waiting = desk.ask("tick", agent="wren")["wake_id"]
    answer = desk.ask("why", agent="wren", cause="operator")
    assert (answer["wake_id"], answer["guard"]) == (waiting, "slots")
    assert answer["numbers"] == {"pool": "sessions", "taken": 1, "limit": 1}


def test_why_of_a_task_asks_about_the_one_at_the_head_of_its_queue(desk):
    desk.declare("wren")
    desk.ask("add_task", agent="wren", title="later", not_before="in 1h")
    answer = desk.ask("why", agent="wren", cause="task")
    assert (answer["verdict"], answer["guard"]) == ("refuse", "moot") and "is not due yet" in answer["reason"]


def test_why_knows_an_address_and_its_last_decision(desk):
    desk.declare(*replicas("moss", 2))
    desk.ask("tick", agent="moss")
    answer = desk.ask("why", agent="moss", cause="operator")
    assert answer["verdict"] == "admit" and answer["agent"] == "moss"
    assert answer["last_decision"]["verdict"] == "admit" and answer["last_decision"]["agent"] == "moss-1"


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"cause": "boredom"}, "unknown cause"), ({"at": "in 2h"}, "forecast"), ({"at": "noon"}, "expected an instant")],
)
def test_why_of_what_cannot_be_asked_is_a_mistake(desk, given, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("why", agent="wren", **given)


# ---- why, then


def test_why_at_a_past_instant_is_told_from_the_events_of_then(desk):
    desk.declare("wren")
    desk.later(10 * MINUTE)
    desk.ask("pause", reason="lunch")
    desk.later(10 * MINUTE)
    desk.ask("resume")
    desk.later(2 * HOUR)
    during = desk.ask("why", agent="wren", cause="operator", at="2026-03-02T12:15:00Z")
    assert (during["verdict"], during["guard"]) == ("refuse", "paused") and "lunch" in during["reason"]
    assert during["at"] == write_time(NOON + 15 * MINUTE)
    after = desk.ask("why", agent="wren", cause="operator", at="2026-03-02T12:25:00Z")
    assert (after["verdict"], after["guard"]) == ("admit", None)


def test_why_at_a_past_instant_knows_when_the_beat_was_due(desk):
    desk.declare("wren")
    desk.later(3 * HOUR)
    before = desk.ask("why", agent="wren", at="2026-03-02T12:30:00Z")
    assert (before["verdict"], before["guard"]) == ("defer", None)
    assert before["next_eligible"] == write_time(NOON + HOUR) and before["reason"].startswith("not due until")
    assert desk.ask("why", agent="wren", at="2026-03-02T13:30:00Z")["verdict"] == "admit"


# ---- decisions


def test_decisions_are_listed_newest_first_with_guard_numbers_and_run(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.ask("tick", agent="wren")
    joined = desk.ask("tick", agent="wren")
    newest, deferred, admitted = desk.ask("decisions")["items"]
    assert list(newest)[: len(DECISION)] == DECISION
    assert (admitted["verdict"], admitted["run_id"], admitted["cause"]) == ("admit", order.run.id, "operator")
    assert (deferred["verdict"], deferred["guard"], deferred["numbers"]) == ("defer", "busy", {"run": order.run.id})
    assert (newest["wake_id"], newest["verdict"]) == (joined["wake_id"], "defer")
    assert newest["joined"] == deferred["wake_id"] and "joined wake" in newest["reason"]
    assert deferred["from"] == "operator" and deferred["at"] == write_time(NOON)


def test_decisions_can_be_asked_for_by_agent_and_verdict_a_page_at_a_time(desk):
    desk.declare("wren", "moss")
    desk.begin("wren")
    desk.begin("moss")
    waiting = [desk.ask("tick", agent=name)["wake_id"] for name in ("wren", "moss", "wren")]
    deferred = desk.ask("decisions", verdict="defer")["items"]
    assert [row["wake_id"] for row in deferred] == waiting[::-1]
    assert {row["agent"] for row in desk.ask("decisions", agent="wren")["items"]} == {"wren"}
    found, cursor = [], None
    while True:
        page = desk.ask("decisions", verdict="defer", limit=1, before=cursor)
        found += [row["wake_id"] for row in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert found == waiting[::-1]
    with pytest.raises(Mistake, match="unknown verdict"):
        desk.ask("decisions", verdict="maybe")


def test_one_decision_is_the_last_word_on_its_wake(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    wake = desk.ask("tick", agent="wren", reason="look")["wake_id"]
    assert (desk.ask("decision", wake=wake)["verdict"], desk.ask("decision", wake=wake)["guard"]) == ("defer", "busy")
    desk.end(order)
    desk.later(SECOND)
    (decision,) = desk.due()
    row = desk.ask("decision", wake=wake)
    assert (row["verdict"], row["guard"], row["run_id"], row["reason_given"]) == ("admit", None, decision.run, "look")


def test_a_decision_that_nobody_has_made_yet_says_so(desk):
    desk.declare("wren")
    desk.engine_stops()
    wake = desk.ask("tick", agent="wren")["wake_id"]
    row = desk.ask("decision", wake=wake)
    assert (row["verdict"], row["reason"], row["guard"]) == ("defer", "not decided yet", None)


# ---- events


def test_events_are_told_in_order_and_can_be_followed(desk):
    desk.declare("wren", "moss")
    desk.ask("pause_agent", agent="wren")
    page = desk.ask("events", limit=2)
    assert [event["kind"] for event in page["items"]] == ["declared", "declared"]
    assert page["next"] == page["items"][-1]["id"]
    rest = desk.ask("events", after=page["next"])
    assert [(event["kind"], event["agent"]) for event in rest["items"]] == [("paused", "wren")]
    assert rest["next"] is None, "there is no more"
    over = desk.ask("events", after=rest["last"])
    assert (over["items"], over["next"], over["last"]) == ([], None, rest["last"])
    assert desk.ask("events", kinds=["paused"], agent="wren")["items"] == rest["items"]
    assert desk.ask("events", after=None) == {"items": [], "next": None, "last": rest["last"]}
    with pytest.raises(Mistake, match="unknown kind of event"):
        desk.ask("events", kinds=["gossip"])


# ---- forecast


def test_a_forecast_tells_the_next_beats_with_position_and_assumption(desk):
    desk.declare(an_agent("wren", lifecycle=DAY))
    beats = desk.ask("forecast", agent="wren", n=4)
    assert beats["next"] is None
    assert [(beat["state"], beat["hits"]) for beat in beats["items"]] == [
        ("add", 0),
        ("add", 1),
        ("audit", 0),
        ("add", 0),
    ]
    assert [beat["at"] for beat in beats["items"]] == [write_time(NOON + number * HOUR) for number in (1, 2, 3, 4)]
    assert set(beats["items"][0]) == {"at", "state", "hits", "kind", "assumption"}
    assert beats["items"][0]["assumption"] == "if a slot is free"


def test_a_forecast_supposes_the_outcome_and_the_length_that_it_is_given(desk):
    desk.declare(an_agent("wren", lifecycle=DAY, every=10 * MINUTE))
    idle = desk.ask("forecast", agent="wren", n=3, outcome="no_work", run_length="5m")["items"]
    assert [beat["state"] for beat in idle] == ["add", "audit", "add"]
    first = NOON + HOUR
    assert [beat["at"] for beat in idle] == [write_time(first + number * 15 * MINUTE) for number in range(3)]


def test_a_forecast_knows_what_an_operator_asked_for_at_an_instant(desk):
    desk.declare(an_agent("wren", every=None))
    assert desk.ask("forecast", agent="wren")["items"] == []
    desk.ask("at", agent="wren", when="in 20m")
    (beat,) = desk.ask("forecast", agent="wren")["items"]
    assert beat["at"] == write_time(NOON + 20 * MINUTE)


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"n": 0}, "how many beats"), ({"outcome": "great"}, "unknown outcome"), ({"run_length": "5"}, "with a unit")],
)
def test_a_forecast_of_what_cannot_be_supposed_is_a_mistake(desk, given, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("forecast", agent="wren", **given)


def test_a_forecast_goes_by_the_schedule_and_the_zone(desk):
    cadence = Cadence(schedule=parse_schedule("30 7 * * *"))
    desk.declare(an_agent("wren", timezone="Europe/Berlin", cadence=cadence))
    (beat,) = desk.ask("forecast", agent="wren", n=1)["items"]
    assert beat["at"] == write_time(datetime(2026, 3, 3, 6, 30, tzinfo=UTC))


# ---- each guard, first to hold an agent back


def _prepare_burst(desk):
    desk.declare(an_agent("wren", limits=Limits(burst=1)))
    desk.later(HOUR)
    desk.due()
    desk.end(desk.claim()[0], DONE)


def _prepare_gate(desk):
    gated = Lifecycle("add", (State("add", next="add", min_interval=timedelta(hours=5)),))
    desk.declare(an_agent("wren", lifecycle=gated))
    desk.end(desk.begin("wren"), DONE)


def _prepare_minutes(desk):
    desk.declare(an_agent("wren", limits=Limits(minutes_per_day=10, minutes_declared=True)))
    desk.end(desk.begin("wren"), replace(DONE, elapsed=timedelta(minutes=11)))


def _prepare_spend(desk):
    desk.declare(an_agent("wren", limits=Limits(usd_per_day=1_000_000, reserve_usd=600_000)))
    desk.end(desk.begin("wren"))


def _prepare_quarantine(desk):
    desk.declare(an_agent("wren", max_failures=1))
    desk.end(desk.begin("wren"), FAILED)


HELD = {
    "paused": (_prepare_quarantine, "timer", {"scope": "agent:wren"}),
    "minutes_per_day": (_prepare_minutes, "timer", {"minutes": 11.0, "limit": 10}),
    "spend": (_prepare_spend, "timer", {"unit": "usd", "spent": 0.6, "reserve": 0.6, "limit": 1.0}),
    "burst": (_prepare_burst, "peer", {"starts": 1, "limit": 1}),
    "state_gate": (_prepare_gate, "timer", {"state": "add"}),
}


@pytest.mark.parametrize("guard", HELD)
def test_why_names_the_guard_that_holds_the_agent_with_its_numbers(desk, guard):
    prepare, cause, numbers = HELD[guard]
    prepare(desk)
    if cause == "timer":
        desk.later(2 * HOUR)
    answer = desk.ask("why", agent="wren", cause=cause)
    assert (answer["guard"], answer["numbers"]) == (guard, numbers)
    if guard != "paused":
        assert datetime.fromisoformat(answer["next_eligible"]) > desk.now


def test_a_run_asks_why_about_itself(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.store.pause(Pause(scope=agent_scope("wren"), owner="operator", reason="x", since=desk.now), desk.now)
    answer = desk.ask("why", caller_of(order), agent="wren", cause="operator")
    assert [each["guard"] for each in answer["opinions"] if each["verdict"]] == ["paused", "busy"]


def test_a_time_of_day_asks_why_of_the_past(desk):
    desk.declare(an_agent("wren"))
    desk.later(HOUR)
    assert desk.ask("why", agent="wren", at="12:30:00")["at"] == write_time(NOON + 30 * MINUTE)


def test_why_says_that_a_check_wants_no_beat_and_when_it_is_asked_again(desk):
    desk.declare(an_agent("wren", check="true"))
    desk.later(2 * HOUR)
    (wake,) = desk.store.due(desk.now).wakes
    desk.store.skip(wake, "the list is empty", admit, skip_beat, desk.now)
    answer = desk.ask("why", agent="wren")
    assert answer["verdict"] == "defer" and "the list is empty" in answer["reason"]
    assert answer["next_eligible"] == write_time(desk.now + HOUR)
