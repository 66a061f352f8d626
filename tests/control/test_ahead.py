"""What stands beside an agent: its next beat, how its last run ended, and what was spent today; and why not yet."""

import pytest

from tests.control.desk import FAILED, HOUR, MINUTE, NOON, an_agent, replicas
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.core.windows import parse_window


def next_beat(desk, agent="wren"):
    """As it is listed and as it is told alone."""
    (listed,) = (row["next_beat"] for row in desk.ask("agents")["items"] if row["name"] == agent)
    assert listed == desk.ask("agent", agent=agent)["next_beat"]
    return listed


def test_the_next_beat_is_the_cadences_or_one_that_was_asked_for_sooner(desk):
    desk.declare("wren")
    due = write_time(NOON + HOUR)
    assert next_beat(desk) == {"at": due, "by": "timer", "due_at": due, "held_by": None}
    desk.ask("at", agent="wren", when="in 2m")
    desk.ask("at", agent="wren", when="in 90m")
    sooner = write_time(NOON + 2 * MINUTE)
    assert next_beat(desk) == {"at": sooner, "by": "at", "due_at": sooner, "held_by": None}
    assert desk.ask("forecast", agent="wren", n=1)["items"][0]["at"] == sooner


def test_the_next_beat_is_as_late_as_quiet_hours_and_its_gate_make_it(desk):
    quiet = Limits(quiet_hours=(parse_window("12:30-13:30"),))
    gated = Lifecycle("add", (State("add", next="add", min_interval=2 * HOUR),))
    desk.declare(an_agent("wren", limits=quiet), an_agent("moss", lifecycle=gated), an_agent("fern", every=None))
    desk.end(desk.begin("moss"))
    for agent, held, at in (("wren", "quiet_hours", NOON + 1.5 * HOUR), ("moss", "state_gate", NOON + 2 * HOUR)):
        beat = next_beat(desk, agent)
        assert (beat["at"], beat["held_by"], beat["due_at"]) == (write_time(at), held, write_time(NOON + HOUR))
        assert desk.ask("forecast", agent=agent, n=1)["items"][0]["at"] == beat["at"]
    # One that was asked for by its instant passes quiet hours.
    desk.ask("at", agent="wren", when="12:45")
    assert next_beat(desk)["at"] == write_time(NOON + 45 * MINUTE) and next_beat(desk, "fern") is None


def test_the_last_run_is_told_with_why_it_did_not_end_well(desk):
    desk.declare("wren", "moss")
    order = desk.begin("wren")
    desk.end(order, Ending(exit_code=3, output="all is well"))
    desk.end(desk.begin("moss"))
    last = {row["name"]: row["last"] for row in desk.ask("agents")["items"]}
    told = {"outcome": "failed", "ended_at": write_time(NOON), "run": order.run.id, "reason": "exit code 3"}
    assert last["wren"] == told == desk.ask("agent", agent="wren")["last"]
    # Of many only those that did not end well are looked for: of the others it is not said that there is none.
    assert last["moss"] == {"outcome": "done", "ended_at": write_time(NOON)}
    assert desk.ask("agent", agent="moss")["last"]["run"] == order.run.id + 1


def test_what_was_spent_today_is_told_with_how_much_may_be(desk):
    limits = Limits(usd_per_day=5_000_000, fleet_usd_per_day=20_000_000, fleet_tokens_per_day=100_000)
    desk.declare(an_agent("wren", limits=limits), an_agent("moss", limits=limits))
    usage = Spend(usd=420_000, tokens=12_000)
    desk.end(desk.begin("wren"), Ending(exit_code=0, result=Result(outcome="done", usage=usage)))
    assert desk.ask("runs")["items"][0]["estimated"] is False
    own = {"tokens": 12_000, "usd": 0.42, "of_usd": 5.0, "of_tokens": None}
    assert desk.ask("agent", agent="wren")["spent"] == own
    assert desk.ask("agent", agent="moss")["spent"] == {**own, "tokens": 0, "usd": 0.0}
    assert desk.ask("status")["fleet"]["spent"] == {"tokens": 12_000, "usd": 0.42, "of_usd": 20.0, "of_tokens": 100_000}
    desk.end(desk.begin("wren"))
    assert desk.ask("runs")["items"][0]["estimated"] and desk.ask("agent", agent="wren")["spent"]["usd"] > 0.42
    desk.later(12 * HOUR)
    assert desk.ask("agent", agent="wren")["spent"]["usd"] == 0.0


# ---- why a beat has not come yet


def test_why_of_a_beat_that_falls_into_quiet_hours_names_their_end(desk):
    desk.declare(an_agent("wren", limits=Limits(quiet_hours=(parse_window("11:00-14:00"),))))
    answer = desk.ask("why", agent="wren")
    due, ends = write_time(NOON + HOUR), write_time(NOON + 2 * HOUR)
    assert (answer["guard"], answer["next_eligible"]) == (None, ends)
    assert answer["reason"] == f"not due until {due}, and then held by quiet_hours until {ends}"


@pytest.mark.parametrize("named", ["moss-1", "moss"])
def test_why_of_a_beat_that_is_not_due_knows_one_that_was_asked_for_sooner(desk, named):
    desk.declare(*replicas("moss", 2))
    desk.ask("at", agent="moss", when="in 2m")
    answer, sooner = desk.ask("why", agent=named), write_time(NOON + 2 * MINUTE)
    assert (answer["guard"], answer["next_eligible"]) == (None, sooner)
    assert answer["reason"] == f"not due until {sooner}, when a beat was asked for"


def test_why_of_a_beat_that_is_not_due_names_the_pause_that_will_still_hold_it(desk):
    desk.declare("wren")
    desk.ask("pause", reason="lunch", duration="30m")
    assert desk.ask("why", agent="wren")["guard"] is None
    desk.ask("pause", reason="lunch")
    answer = desk.ask("why", agent="wren")
    assert (answer["guard"], answer["next_eligible"]) == ("paused", None)


@pytest.mark.parametrize(
    ("guard", "limits"),
    [
        ("minutes_per_day", Limits(minutes_per_day=10, minutes_declared=True)),
        ("spend", Limits(usd_per_day=1_000_000, reserve_usd=600_000)),
    ],
)
def test_why_of_a_beat_that_is_not_due_names_the_limit_of_the_day_that_will_still_hold_it(desk, guard, limits):
    desk.declare(an_agent("wren", limits=limits), an_agent("moss", every=20 * HOUR, limits=limits))
    for name in ("wren", "moss"):
        desk.end(desk.begin(name), Ending(exit_code=0, elapsed=11 * MINUTE))
    answer = desk.ask("why", agent="wren")
    assert (answer["verdict"], answer["guard"]) == ("defer", guard)
    assert answer["next_eligible"] == desk.ask("forecast", agent="wren", n=1)["items"][0]["at"]
    tomorrow = desk.ask("why", agent="moss")
    assert (tomorrow["guard"], tomorrow["next_eligible"]) == (None, write_time(NOON + 20 * HOUR))


def test_why_of_a_wake_that_waits_out_a_failed_run_says_when_it_is_tried_again(desk):
    desk.declare("wren")
    desk.ask("wake", agent="wren", body="look")
    desk.end(desk.claim()[0], FAILED)
    answer = desk.ask("why", agent="wren", cause="operator")
    (row,) = desk.store.wakes(agent="wren", state="waiting")
    assert (answer["verdict"], answer["guard"], answer["next_eligible"]) == ("defer", None, write_time(row.retry_at))
    assert answer["wake_id"] == row.wake.id and "is tried again at" in answer["reason"]
    told = desk.ask("wake", agent="wren")
    assert (told["verdict"], told["reason"]) == ("defer", f"joined wake {row.wake.id}, which waits already")
