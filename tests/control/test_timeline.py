"""A day in lanes, and what days have cost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.control.desk import FAILED, HOUR, MINUTE, NOON, SECOND, an_agent, caller_of, replicas
from wakeful.control import timeline
from wakeful.control.callers import Forbidden
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.core.windows import parse_window
from wakeful.store import lanes as store_lanes

DAY = timedelta(days=1)


def at(moment):
    return write_time(moment)


def lane(desk, agent="wren", **asked):
    (found,) = desk.ask("timeline", agents=[agent], **asked)["lanes"]
    return found


# ---- what happened


def test_a_run_is_told_with_who_woke_it_and_the_verdict_that_let_it_begin(desk):
    desk.declare("wren", "moss")
    asking = desk.begin("moss")
    desk.later(MINUTE)
    reply = desk.ask("wake", caller_of(asking), agent="wren", reason="blocker", body="help")
    (order,) = desk.claim()
    desk.later(MINUTE)
    desk.end(order, Ending(exit_code=0, result=Result(outcome="done", summary="helped")))
    answer = desk.ask("timeline")
    assert [each["agent"] for each in answer["lanes"]] == ["moss", "wren"]
    assert (answer["since"], answer["now"], answer["until"]) == tuple(
        map(at, (desk.now - 6 * HOUR, desk.now, desk.now + 2 * HOUR))
    )
    moss, wren = answer["lanes"]
    assert wren["runs"] == [
        {
            "id": order.run.id,
            "start": at(NOON + MINUTE),
            "end": at(NOON + 2 * MINUTE),
            "outcome": "done",
            "cause": "peer",
            "subject": "inbox",
            "from": "moss",
            "by_run": asking.run.id,
            "wake_id": reply["wake_id"],
            "summary": "helped",
        }
    ]
    assert wren["wakes"] == [
        {
            "wake_id": reply["wake_id"],
            "at": at(NOON + MINUTE),
            "verdict": "admit",
            "guard": None,
            "reason": "",
            "cause": "peer",
            "from": "moss",
            "by_run": asking.run.id,
            "run_id": order.run.id,
            "until": None,
        }
    ]
    (open_run,) = moss["runs"]
    assert (open_run["end"], open_run["outcome"], open_run["from"], moss["more"]) == (None, None, None, 0)


def test_what_was_refused_or_put_off_is_told_with_its_guard_and_until_when(desk):
    desk.declare(an_agent("wren", limits=Limits(cooldown=HOUR)), "moss")
    asking = desk.begin("moss")
    for _ in range(2):
        desk.ask("wake", caller_of(asking), agent="wren", reason="blocker", body="help")
        for order in desk.claim():
            desk.end(order)
    _, refused = lane(desk)["wakes"]
    assert (refused["verdict"], refused["guard"], refused["run_id"]) == ("refuse", "cooldown", None)
    assert (refused["until"], refused["from"]) == (at(NOON + HOUR), "moss")
    assert desk.ask("decisions", agent="wren")["items"][0]["wake_id"] == refused["wake_id"]


def test_only_what_lies_in_the_span_is_told_and_the_run_that_lasted_into_it(desk):
    desk.declare("wren")
    for _ in range(4):
        order = desk.begin("wren")
        desk.later(30 * MINUTE)
        desk.end(order)
        desk.later(30 * MINUTE)
    asked = {"since": at(NOON + 75 * MINUTE), "until": at(NOON + 130 * MINUTE)}
    found = lane(desk, **asked)
    assert [run["start"] for run in found["runs"]] == [at(NOON + HOUR), at(NOON + 2 * HOUR)]
    assert [wake["at"] for wake in found["wakes"]] == [at(NOON + 2 * HOUR)]
    assert found["ahead"] == []


def test_a_lane_that_has_too_much_says_how_much_it_leaves_out(desk, monkeypatch):
    monkeypatch.setattr(timeline, "MOST_MARKS", 2)
    desk.declare("wren", "moss")
    for _ in range(5):
        desk.end(desk.begin("wren"))
    found = lane(desk)
    assert ([run["id"] for run in found["runs"]], len(found["wakes"]), found["more"]) == ([4, 5], 2, 6)
    assert lane(desk, "moss")["more"] == 0


def test_lanes_are_those_that_are_named_and_replicas_have_one_each(desk):
    desk.declare("wren", "moss", *replicas("fern", 2))
    names = [each["agent"] for each in desk.ask("timeline", agents=["fern", "wren", "nobody"])["lanes"]]
    assert names == ["fern-1", "fern-2", "wren"]
    assert len(desk.ask("timeline")["lanes"]) == 4
    assert desk.ask("timeline", agents=[])["lanes"] == []


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"since": "2026-03-02T13:00Z", "until": "2026-03-02T12:00Z"}, "since to lie before until"),
        ({"since": "2026-02-20T13:00Z", "until": "2026-03-02T12:00Z"}, "at most 7 days"),
        ({"since": "yesterday"}, "expected an instant"),
        ({"agents": [f"agent-{number}" for number in range(101)]}, "at most 100 agents"),
    ],
)
def test_a_span_that_makes_no_sense_is_told_so(desk, asked, told):
    desk.declare("wren")
    with pytest.raises(Mistake, match=told):
        desk.ask("timeline", **asked)


def test_a_beginning_long_ago_is_told_up_to_seven_days_on(desk):
    desk.declare("wren")
    answer = desk.ask("timeline", since=at(NOON - 30 * DAY))
    assert (answer["since"], answer["until"]) == (at(NOON - 30 * DAY), at(NOON - 23 * DAY))
    answer = desk.ask("timeline", until=at(NOON - DAY))
    assert (answer["since"], answer["until"]) == (at(NOON - DAY - 8 * HOUR), at(NOON - DAY))


def test_it_is_the_operators_to_ask_for(desk):
    desk.declare("wren")
    caller = caller_of(desk.begin("wren"))
    for operation in ("timeline", "costs"):
        with pytest.raises(Forbidden):
            desk.ask(operation, caller)


# ---- what held it


def test_quiet_hours_are_drawn_as_they_fall_into_the_span(desk):
    quiet = Limits(quiet_hours=(parse_window("23:00-07:00"), parse_window("12:30-13:30")))
    desk.declare(an_agent("wren", limits=quiet), "moss")
    found = lane(desk, since=at(NOON - 6 * HOUR), until=at(NOON + 14 * HOUR))
    assert [(each["since"], each["until"]) for each in found["quiet"]] == [
        (at(NOON - 6 * HOUR), at(NOON - 5 * HOUR)),
        (at(NOON + 30 * MINUTE), at(NOON + 90 * MINUTE)),
        (at(NOON + 11 * HOUR), at(NOON + 14 * HOUR)),
    ]
    assert lane(desk, "moss")["quiet"] == []


def test_pauses_are_drawn_from_when_they_were_put_until_they_were_lifted(desk):
    desk.declare("wren", "moss")
    desk.ask("pause_agent", agent="wren", reason="lunch", duration="1h")
    desk.later(20 * MINUTE)
    desk.ask("resume_agent", agent="wren")
    desk.later(20 * MINUTE)
    desk.ask("pause", reason="deploy", duration="2h")
    told = lane(desk)["pauses"]
    assert [(each["scope"], each["reason"], each["since"], each["until"]) for each in told] == [
        ("agent:wren", "lunch", at(NOON), at(NOON + 20 * MINUTE)),
        ("fleet", "deploy", at(NOON + 40 * MINUTE), at(NOON + 160 * MINUTE)),
    ]
    assert [each["scope"] for each in lane(desk, "moss")["pauses"]] == ["fleet"]
    assert lane(desk, since=at(NOON - HOUR), until=at(NOON - MINUTE))["pauses"] == []
    assert [each["reason"] for each in lane(desk, until=at(NOON + 10 * MINUTE))["pauses"]] == ["lunch"]
    desk.ask("pause", reason="deploy, still")
    assert lane(desk)["pauses"][-1]["until"] is None


def test_a_pause_that_ran_out_is_over_also_before_somebody_lifts_it(desk):
    desk.declare("wren")
    desk.ask("pause_agent", agent="wren", duration="10m")
    desk.later(HOUR)
    (told,) = lane(desk)["pauses"]
    assert told["until"] == at(NOON + 10 * MINUTE)
    desk.due()
    assert [each["until"] for each in lane(desk)["pauses"]] == [told["until"]]


def test_a_pause_whose_beginning_was_told_too_long_ago_is_drawn_all_the_same(desk, monkeypatch):
    desk.declare("wren")
    desk.ask("pause_agent", agent="wren", reason="for good")
    monkeypatch.setattr(store_lanes, "MOST_PAUSES", 0)
    assert [each["reason"] for each in lane(desk)["pauses"]] == ["for good"]


# ---- what is ahead


def test_what_is_ahead_is_what_the_forecast_says_until_then(desk):
    desk.declare(an_agent("wren", every=30 * MINUTE), an_agent("moss", every=None), an_agent("fern", enabled=False))
    found = lane(desk)["ahead"]
    assert found == desk.ask("forecast", agent="wren", n=len(found))["items"]
    assert [beat["at"] for beat in found] == [at(NOON + n * 30 * MINUTE) for n in (2, 3, 4)]
    assert lane(desk, "moss")["ahead"] == lane(desk, "fern")["ahead"] == []
    assert lane(desk, until=at(NOON))["ahead"] == []


def test_of_very_many_the_next_are_told_and_how_far_they_reach(desk, monkeypatch):
    monkeypatch.setattr(timeline, "MOST_AHEAD", 3)
    desk.declare(an_agent("wren", every=30 * MINUTE))
    whole, cut = lane(desk), lane(desk, until=at(NOON + 6 * HOUR))
    assert (len(whole["ahead"]), whole["ahead_until"]) == (3, None)
    assert (cut["ahead"], cut["ahead_until"]) == (whole["ahead"], whole["ahead"][-1]["at"])


# ---- what days have cost


def spend(desk, agent, usd, tokens=0):
    usage = Spend(usd=int(usd * 1_000_000), tokens=tokens)
    desk.end(desk.begin(agent), Ending(exit_code=0, result=Result(outcome="done", usage=usage)))


def test_each_day_is_told_of_the_fleet_and_of_who_spent_anything_the_newest_last(desk):
    limits = Limits(fleet_usd_per_day=9_000_000)
    desk.declare(*(replace(each, limits=limits) for each in (an_agent("wren"), an_agent("moss"), *replicas("fern", 2))))
    spend(desk, "wren", 0.5, 100)
    desk.later(2 * DAY)
    spend(desk, "wren", 0.25)
    spend(desk, "fern-1", 1)
    spend(desk, "fern-2", 2, 7)
    assert desk.ask("costs", days=3) == {
        "days": ["2026-03-02", "2026-03-03", "2026-03-04"],
        "fleet": {"usd": [0.5, 0.0, 3.25], "tokens": [100, 0, 7], "of_usd": 9.0, "of_tokens": None},
        "agents": [
            {"agent": "fern", "usd": [0.0, 0.0, 3.0], "tokens": [0, 0, 7]},
            {"agent": "wren", "usd": [0.5, 0.0, 0.25], "tokens": [100, 0, 0]},
        ],
    }
    assert len(desk.ask("costs")["days"]) == 14


def test_of_one_agent_it_is_told_also_that_it_spent_nothing(desk):
    desk.declare("wren", "moss")
    spend(desk, "wren", 0.5)
    (moss,) = desk.ask("costs", agent="moss", days=1)["agents"]
    assert moss == {"agent": "moss", "usd": [0.0], "tokens": [0]}
    with pytest.raises(Unknown):
        desk.ask("costs", agent="nobody")
    with pytest.raises(Mistake):
        desk.ask("costs", days=0)


def test_the_last_day_of_one_agent_is_its_own_today(desk):
    # At noon in London it is tomorrow on Kiritimati.
    desk.declare(replace(an_agent("wren"), timezone="Pacific/Kiritimati"), an_agent("moss"))
    spend(desk, "wren", 0.5)
    found = desk.ask("costs", agent="wren", days=2)
    assert (found["days"], found["agents"][0]["usd"]) == (["2026-03-02", "2026-03-03"], [0.0, 0.5])
    assert desk.ask("costs", days=2)["days"] == ["2026-03-01", "2026-03-02"]
    assert desk.ask("agents", names=["wren"])["items"][0]["today"]["usd"]["used"] == 0.5


def test_the_status_says_what_was_spent_today_also_without_a_budget(desk):
    assert desk.ask("status")["fleet"]["spent"] == {"usd": 0.0, "tokens": 0, "of_usd": None, "of_tokens": None}
    desk.declare("wren")
    spend(desk, "wren", 0.5, 100)
    assert desk.ask("status")["fleet"]["spent"] == {"usd": 0.5, "tokens": 100, "of_usd": None, "of_tokens": None}


def test_a_failed_run_is_told_as_that(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.later(SECOND)
    desk.end(order, FAILED)
    assert [run["outcome"] for run in lane(desk)["runs"]] == ["failed"]
