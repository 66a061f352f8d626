"""How much an agent was woken today, and when it can be woken again."""

from datetime import timedelta

import pytest

from tests.control.desk import HOUR, MINUTE, NOON, an_agent, caller_of, replicas
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.runs import Ending

NO_COOLDOWN = Limits(cooldown=timedelta())


def woken(desk, by, whom):
    """A run of one wakes the other, and both runs end."""
    order = desk.begin(by)
    answer = desk.ask("wake", caller_of(order), agent=whom, reason="blocker", body="stuck")
    desk.end(order)
    for other in desk.claim():
        desk.end(other)
    return answer["verdict"]


def test_the_numbers_are_those_that_the_next_wake_is_decided_on(desk):
    desk.declare("wren", an_agent("moss", limits=Limits(wakes_per_day=2, cooldown=HOUR)))
    assert woken(desk, "wren", "moss") == "admit"
    desk.later(30 * MINUTE)
    told = desk.ask("wake_stats", agent="moss")
    assert (told["wakesToday"], told["nextEligible"]) == (1, write_time(NOON + HOUR))
    assert told["lastWakeTime"] == NOON.timestamp() * 1000
    assert woken(desk, "wren", "moss") == "refuse"
    desk.later(30 * MINUTE)
    assert desk.ask("wake_stats", agent="moss")["nextEligible"] is None
    assert woken(desk, "wren", "moss") == "admit"


def test_a_limit_of_the_day_ends_at_the_midnight_of_the_agents_zone(desk):
    desk.declare("wren", an_agent("moss", limits=Limits(wakes_per_day=1), timezone="Europe/Berlin"))
    woken(desk, "wren", "moss")
    told = desk.ask("wake_stats", agent="moss")
    assert (told["wakesToday"], told["nextEligible"]) == (1, "2026-03-02T23:00:00.000000Z")
    desk.later(11 * HOUR)
    again = desk.ask("wake_stats", agent="moss")
    assert (again["wakesToday"], again["nextEligible"], again["pairs"]) == (0, None, {})


def test_the_later_of_two_limits_says_when(desk):
    desk.declare("wren", an_agent("moss", limits=Limits(wakes_per_day=1, cooldown=20 * HOUR)))
    woken(desk, "wren", "moss")
    assert desk.ask("wake_stats", agent="moss")["nextEligible"] == write_time(NOON + 20 * HOUR)


def test_minutes_that_are_used_up_stand_in_the_way_too(desk):
    desk.declare("wren", an_agent("moss", limits=Limits(minutes_per_day=1.5)))
    desk.end(desk.begin("moss"), Ending(exit_code=0, elapsed=timedelta(seconds=93)))
    told = desk.ask("wake_stats", agent="moss")
    assert (told["sessionMinutesToday"], told["maxDailySessionMinutes"]) == (1.6, 1.5)
    assert told["nextEligible"] == "2026-03-03T00:00:00.000000Z"


def test_a_pair_is_counted_in_both_directions_and_for_both(desk):
    desk.declare(*(an_agent(name, limits=NO_COOLDOWN) for name in ("wren", "moss", "fern")))
    for by, whom in (("wren", "moss"), ("moss", "wren"), ("fern", "moss")):
        assert woken(desk, by, whom) == "admit"
    pairs = {name: desk.ask("wake_stats", agent=name)["pairs"] for name in ("wren", "moss", "fern")}
    assert pairs == {"wren": {"moss": 2}, "moss": {"fern": 1, "wren": 2}, "fern": {"moss": 1}}


def test_replicas_share_the_numbers_of_their_address(desk):
    desk.declare("wren", *replicas("moss", 2))
    woken(desk, "wren", "moss")
    told = desk.ask("wake_stats", agent="moss")
    assert told["pairs"] == {"wren": 1} and told["wakesToday"] == 1
    assert desk.ask("wake_stats", agent="moss-2") == told


@pytest.mark.parametrize("ending", [Ending(exit_code=0), Ending(exit_code=1), Ending(timed_out=True)])
def test_an_admitted_wake_counts_whatever_became_of_its_run(desk, ending):
    desk.declare("wren", "moss")
    desk.ask("wake", caller_of(desk.begin("wren")), agent="moss", reason="blocker", body="stuck")
    for other in desk.claim():
        desk.end(other, ending)
    assert desk.ask("wake_stats", agent="moss")["wakesToday"] == 1


def test_a_refused_wake_counts_for_nothing(desk):
    desk.declare("wren", an_agent("moss", limits=Limits(wakes_per_day=0)))
    assert woken(desk, "wren", "moss") == "refuse"
    told = desk.ask("wake_stats", agent="moss")
    assert (told["wakesToday"], told["lastWakeTime"], told["pairs"]) == (0, None, {})
