"""What is told of many agents at once: what each is doing, its day, and what it has used of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.control.desk import FAILED, HOUR, MINUTE, NOON, SECOND, an_agent, caller_of, replicas
from wakeful.core.agents import Limits
from wakeful.core.cadence import Cadence
from wakeful.core.codec import write_time
from wakeful.core.cron import Schedule
from wakeful.core.errors import Mistake
from wakeful.core.lifecycle import Kind, Lifecycle, State
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.core.windows import parse_window

NO_WORK = Ending(exit_code=0, result=Result(outcome="no_work"))


def doing(desk, agent="wren"):
    """As it is listed, named and told alone."""
    (listed,) = (row["doing"] for row in desk.ask("agents")["items"] if row["name"] == agent)
    (named,) = (row["doing"] for row in desk.ask("agents", names=[agent])["items"])
    assert listed == named == desk.ask("agent", agent=agent)["doing"]
    return listed


def at(moment):
    return write_time(moment)


# ---- in plain words


def test_a_run_is_told_with_since_when_it_lasts_and_how_long_it_may(desk):
    desk.declare(an_agent("wren", timeout=timedelta(minutes=90)))
    desk.begin("wren")
    desk.later(2 * MINUTE)
    assert doing(desk) == ["running ", {"for": at(NOON)}, " of 1h 30m"]


def test_a_run_that_nobody_has_taken_up_yet_is_starting(desk):
    desk.declare("wren")
    desk.decide(Wake(agent="wren", cause=Cause.operator, subject=Subject.beat, requested_at=NOON))
    assert doing(desk) == ["starting"]


def test_an_idle_agent_is_told_with_its_next_beat(desk):
    desk.declare(
        "wren",
        an_agent("moss", every=None),
        an_agent("fern", limits=Limits(quiet_hours=(parse_window("12:30-13:30"),))),
        an_agent("dove", enabled=False),
    )
    desk.end(desk.begin("wren"))
    assert doing(desk) == ["idle, next beat ", {"in": at(NOON + HOUR)}]
    desk.ask("at", agent="wren", when="in 2m")
    assert doing(desk) == ["idle, next beat ", {"in": at(NOON + 2 * MINUTE)}, " (at)"]
    assert doing(desk, "moss") == ["idle, until something arrives"]
    desk.ask("at", agent="moss", when=at(NOON + 72 * HOUR))
    assert doing(desk, "moss") == ["idle, next beat ", {"at": at(NOON + 72 * HOUR)}, " (at)"]
    held = {"at": at(NOON + 1.5 * HOUR)}
    assert doing(desk, "fern") == ["idle, next beat ", held, " (quiet hours until then)"]
    assert doing(desk, "dove") == ["disabled"]


def test_who_has_nothing_to_do_backs_off_and_says_so_once_that_makes_a_difference(desk):
    hourly = Cadence(schedule=Schedule("*/2 * * * *"))
    desk.declare(an_agent("wren", every=MINUTE), an_agent("moss"), replace(an_agent("fern"), cadence=hourly))
    for _ in range(3):
        for name in ("wren", "moss", "fern"):
            desk.end(desk.begin(name), NO_WORK)
    told = "idle, backing off (streak 3), next beat "
    assert doing(desk) == [told, {"in": at(NOON + 4 * MINUTE)}]
    # An hour is longer than what it would back off; every other minute is not.
    assert doing(desk, "moss")[0] == "idle, next beat "
    assert doing(desk, "fern") == [told, {"in": at(NOON + 4 * MINUTE)}]


def test_failures_in_a_row_are_told_until_it_is_quarantined(desk):
    desk.declare(an_agent("wren", max_failures=3))
    desk.end(desk.begin("wren"), FAILED)
    assert doing(desk)[0] == "idle, next beat "
    desk.end(desk.begin("wren"), FAILED)
    assert doing(desk)[0] == "idle, 2 failures in a row, next beat "
    desk.end(desk.begin("wren"), FAILED)
    assert doing(desk) == ["quarantined after 3 failures"]


def test_a_pause_is_told_with_its_owner_its_reason_and_its_end_and_with_the_run_that_goes_on(desk):
    desk.declare("wren", "moss")
    desk.begin("wren")
    desk.ask("pause_agent", agent="wren", reason="lunch\n  and\ta walk", duration="1h")
    until = {"at": at(NOON + HOUR)}
    then = " of 15m, then paused by operator: lunch and a walk, until "
    assert doing(desk) == ["running ", {"for": at(NOON)}, then, until]
    desk.ask("pause_agent", agent="moss", reason="x" * 1_000)
    (told,) = doing(desk, "moss")
    assert told.startswith("paused by operator: xxx") and len(told) < 250 and told.endswith("…")


def test_of_several_pauses_the_one_that_holds_longest_is_told_and_that_of_the_fleet_without_its_reason(desk):
    desk.declare("wren", "moss", "fern")
    desk.ask("pause_agent", agent="wren", reason="lunch", duration="2h")
    desk.ask("pause_agent", agent="moss", reason="a walk", duration="10m")
    desk.ask("pause", reason="a new prompt for everybody", duration="1h")
    fleet = ["paused with the fleet, until ", {"at": at(NOON + HOUR)}]
    assert doing(desk, "fern") == doing(desk, "moss") == fleet
    assert doing(desk) == ["paused by operator: lunch, until ", {"at": at(NOON + 2 * HOUR)}]
    paused = {row["name"]: row["paused"]["until"] for row in desk.ask("agents")["items"]}
    assert paused == {"wren": at(NOON + 2 * HOUR), "moss": at(NOON + HOUR), "fern": at(NOON + HOUR)}
    desk.ask("resume")
    desk.ask("pause", reason="for good")
    assert doing(desk) == ["paused with the fleet"]


def test_who_is_disabled_stays_so_whatever_holds_the_fleet(desk):
    desk.declare("wren", an_agent("rook", enabled=False))
    desk.ask("pause", reason="lunch")
    assert (doing(desk, "rook"), desk.ask("agent", agent="rook")["state"]) == (["disabled"], "disabled")
    assert desk.ask("agent", agent="wren")["state"] == "paused"
    desk.ask("pause_agent", agent="rook", reason="it too")
    assert desk.ask("agent", agent="rook")["state"] == "paused"


def test_who_waits_is_told_with_what_holds_it(desk):
    quiet = Limits(quiet_hours=(parse_window("12:30-14:00"),))
    desk.declare("wren", "moss", an_agent("fern", limits=quiet), an_agent("dove", every=None), sessions=1)
    desk.begin("moss")
    desk.later(HOUR)
    desk.due()
    assert doing(desk) == ["waiting for a free slot"]
    assert doing(desk, "fern") == ["deferred by quiet hours until ", {"at": at(NOON + 2 * HOUR)}]
    desk.engine_stops()
    desk.ask("wake", agent="dove")
    assert doing(desk, "dove") == ["waiting: not decided yet"]


def test_a_run_that_is_tried_again_is_told_with_when(desk):
    desk.declare("wren")
    desk.ask("wake", agent="wren", reason="look", body="at this")
    (order,) = desk.claim()
    desk.end(order, FAILED)
    told, when, bracket, left, end = doing(desk)
    assert (told, bracket, end) == ("waiting: tried again ", " (", ")")
    assert list(when) == ["at"] and left == {"in": when["at"]}


def test_where_it_runs_is_told_where_there_is_more_than_one_place(shared):
    shared.declare("wren")
    shared.join("here")
    shared.begin("wren")
    assert doing(shared)[-1] == " of 15m"
    shared.join("barn")
    assert doing(shared)[-1] == " of 15m on here"


# ---- its day, and what it has used


def test_the_day_is_the_states_of_the_lifecycle_in_their_order(desk):
    life = Lifecycle("add", (State("add", next="rest", repeat=3), State("rest", next="add", kind=Kind.rem)))
    desk.declare(an_agent("wren", lifecycle=life), "moss")
    moss, wren = desk.ask("agents")["items"]
    told = [{"state": "add", "kind": "wake", "repeat": 3}, {"state": "rest", "kind": "rem", "repeat": 1}]
    assert wren["day"] == told == desk.ask("agent", agent="wren")["day"]
    assert moss["day"] == []


def test_what_was_used_today_is_what_the_guards_compare(desk):
    limits = Limits(usd_per_day=5_000_000, wakes_per_day=4, minutes_per_day=30, cooldown=SECOND)
    desk.declare(an_agent("wren", limits=limits), "moss", *replicas("fern", 2))
    desk.ask("wake", caller_of(desk.begin("moss")), agent="wren", reason="blocker", body="help")
    (woken,) = desk.claim()
    desk.later(90 * SECOND)
    spend = Spend(usd=420_000, tokens=12_000)
    desk.end(woken, Ending(exit_code=0, elapsed=90 * SECOND, result=Result(outcome="done", usage=spend)))
    rows = {row["name"]: row for row in desk.ask("agents")["items"]}
    assert rows["wren"]["today"] == {
        "wakes": {"used": 1, "of": 4},
        "minutes": {"used": 1.5, "of": 30},
        "usd": {"used": 0.42, "of": 5.0},
        "tokens": {"used": 12_000, "of": None},
    }
    stats = desk.ask("wake_stats", agent="wren")
    assert (stats["wakesToday"], stats["sessionMinutesToday"]) == (1, 1.5)
    assert rows["moss"]["today"]["wakes"] == {"used": 0, "of": 12}
    desk.later(12 * HOUR)
    assert desk.ask("agents", names=["wren"])["items"][0]["today"]["wakes"]["used"] == 0


def test_replicas_share_what_is_used_and_each_zone_has_its_own_day(desk):
    desk.declare(*replicas("fern", 2), an_agent("wren", timezone="Asia/Tokyo"))
    usage = Ending(exit_code=0, result=Result(outcome="done", usage=Spend(usd=1_000_000, tokens=10)))
    for name in ("fern-1", "wren"):
        desk.end(desk.begin(name), usage)
    used = {row["name"]: row["today"]["tokens"]["used"] for row in desk.ask("agents")["items"]}
    assert used == {"fern-1": 10, "fern-2": 10, "wren": 10}
    # It is nine in the evening there.
    desk.later(4 * HOUR)
    used = {row["name"]: row["today"]["tokens"]["used"] for row in desk.ask("agents")["items"]}
    assert used == {"fern-1": 10, "fern-2": 10, "wren": 0}


# ---- by their names


def test_agents_are_asked_for_by_name_or_address_and_unknown_ones_left_out(desk):
    desk.declare("wren", "moss", "dove", *replicas("fern", 2))
    desk.ask("send", agent="fern", body="to whoever is there")
    desk.ask("add_task", title="count", agent="wren")
    desk.begin("dove")
    named = desk.ask("agents", names=["wren", "fern", "nobody", "dove"])
    whole = {row["name"]: row for row in desk.ask("agents")["items"]}
    assert [row["name"] for row in named["items"]] == ["dove", "fern-1", "fern-2", "wren"]
    assert named["next"] is None
    assert all(row == whole[row["name"]] for row in named["items"])
    assert (whole["fern-1"]["unread"], whole["wren"]["open_tasks"], whole["dove"]["state"]) == (1, 1, "running")
    assert desk.ask("agents", names=[])["items"] == []


def test_those_that_are_named_come_in_pages_too(desk):
    desk.declare("wren", "moss", "dove")
    first = desk.ask("agents", names=["wren", "dove", "moss"], limit=2)
    assert ([row["name"] for row in first["items"]], first["next"]) == (["dove", "moss"], "moss")
    rest = desk.ask("agents", names=["wren", "dove", "moss"], limit=2, after="moss")
    assert ([row["name"] for row in rest["items"]], rest["next"]) == (["wren"], None)
    with pytest.raises(Mistake, match="at most 500 names"):
        desk.ask("agents", names=[f"agent-{number}" for number in range(501)])
