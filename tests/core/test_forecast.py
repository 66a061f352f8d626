"""The next beats of an agent, and the words they rest on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.agents import Agent, Limits
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.facts import Facts
from wakeful.core.forecast import Expected, forecast
from wakeful.core.lifecycle import SINGLE, Kind, Lifecycle, Position, State, begin
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Pause
from wakeful.core.windows import inside_until, next_day, parse_window, spread

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TEN_MINUTES = timedelta(minutes=10)

DAY = Lifecycle(
    "wake_add",
    (
        State("wake_add", repeat=3, next="wake_audit"),
        State("wake_audit", next="rem"),
        State("rem", kind=Kind.rem, next="wake_plan", min_interval=TEN_MINUTES),
        State("wake_plan", next="wake_add"),
    ),
)


def agent(lifecycle: Lifecycle = SINGLE, **settings: object) -> Agent:
    settings.setdefault("cadence", Cadence(interval=TEN_MINUTES))
    return Agent(name="wren", address="wren", lifecycle=lifecycle, **settings)


def standing(lifecycle: Lifecycle = SINGLE, **settings: object) -> Standing:
    settings.setdefault("position", begin(lifecycle))
    return Standing(agent="wren", **{"due_at": NOW + MINUTE, **settings})


def minutes(expected: list[Expected]) -> list[float]:
    return [(each.at - NOW) / MINUTE for each in expected]


def test_the_next_seven_beats_of_the_canonical_day_can_be_predicted():
    found = forecast(standing(DAY), agent(DAY), Limits(), NOW, 7)
    assert [(each.state, each.hits, each.kind) for each in found] == [
        ("wake_add", 0, Kind.wake),
        ("wake_add", 1, Kind.wake),
        ("wake_add", 2, Kind.wake),
        ("wake_audit", 0, Kind.wake),
        ("rem", 0, Kind.rem),
        ("wake_plan", 0, Kind.wake),
        ("wake_add", 0, Kind.wake),
    ]
    assert minutes(found) == [1, 11, 21, 31, 41, 51, 61]


def test_each_beat_says_what_it_rests_on():
    first, second = forecast(standing(), agent(), Limits(), NOW, 2, outcome="no_work", run_length=MINUTE * 2)
    assert first.assumption == "if a slot is free"
    assert second.assumption == "if every run before it ends no_work and takes 2m"


def test_an_idle_day_visits_every_state_once_while_its_delays_grow():
    continuous = agent(DAY, cadence=Cadence(continuous=True))
    found = forecast(standing(DAY), continuous, Limits(), NOW, 6, outcome="no_work")
    assert [each.state for each in found] == [
        "wake_add",
        "wake_audit",
        "rem",
        "wake_plan",
        "wake_add",
        "wake_audit",
    ]
    assert minutes(found) == [1, 2, 4, 6, 10, 18]


def test_run_lengths_push_later_beats_back_because_delays_count_from_the_end():
    found = forecast(standing(), agent(), Limits(), NOW, 3, run_length=MINUTE * 5)
    assert minutes(found) == [1, 16, 31]


def test_failed_runs_hold_the_position_and_end_in_quarantine():
    found = forecast(standing(DAY), agent(DAY, max_failures=3), Limits(), NOW, 10, outcome="failed")
    assert [(each.state, each.hits) for each in found] == [("wake_add", 0)] * 3
    assert minutes(found) == [1, 11, 21]


def test_an_overdue_beat_is_expected_now():
    late = standing(due_at=NOW - timedelta(days=3))
    assert minutes(forecast(late, agent(), Limits(), NOW, 2)) == [0, 10]


def test_a_gate_delays_its_state_until_it_opens_and_not_a_whole_interval():
    gated = standing(DAY, position=Position("rem", 0), gates={"rem": NOW - MINUTE * 4})
    first = forecast(gated, agent(DAY), Limits(), NOW, 1)[0]
    assert (first.state, first.at) == ("rem", NOW + MINUTE * 6)
    assert first.assumption == "if a slot is free; held back: the gate of rem opens at 2026-03-02T12:06:00+00:00"


def test_a_gated_state_of_its_own_beats_at_the_pace_of_its_gate():
    slow = Lifecycle("rem", (State("rem", kind=Kind.rem, next="rem", min_interval=timedelta(hours=1)),))
    assert minutes(forecast(standing(slow), agent(slow), Limits(), NOW, 3)) == [1, 61, 121]


def test_quiet_hours_hold_the_timer_until_they_end():
    limits = Limits(quiet_hours=(parse_window("12:00-14:00"),))
    found = forecast(standing(), agent(), limits, NOW, 2)
    assert minutes(found) == [120, 130]
    assert "held back: quiet hours until 2026-03-02T14:00:00+00:00" in found[0].assumption


def test_a_one_off_passes_the_quiet_hours_that_hold_the_timer():
    limits = Limits(quiet_hours=(parse_window("12:00-14:00"),))
    asked = NOW + MINUTE * 30
    found = forecast(standing(), agent(one_offs=(asked, NOW - MINUTE)), limits, NOW, 2)
    assert minutes(found) == [30, 120]
    assert "asked for at 2026-03-02T12:30:00+00:00" in found[0].assumption
    assert "asked for" not in found[1].assumption


def test_a_spent_budget_moves_the_next_beat_to_its_own_share_of_the_next_morning():
    limits = Limits(usd_per_day=1_000_000)
    facts = Facts(now=NOW, spent=Spend(usd=1_000_000))
    berlin = agent(timezone="Europe/Berlin")
    first = forecast(standing(), berlin, limits, NOW, 1, facts=facts)[0]
    assert first.at == next_day(NOW, ZoneInfo("Europe/Berlin")) + spread("wren", TEN_MINUTES)
    assert "$1.00 spent or reserved today" in first.assumption


def test_a_budget_is_used_up_on_the_way_by_what_each_run_reserves():
    limits = Limits(usd_per_day=1_000_000, reserve_usd=300_000)
    found = forecast(standing(), agent(), limits, NOW, 5)
    assert [each.at.day for each in found] == [2, 2, 2, 3, 3]
    assert found[1].assumption == "if every run before it ends done and takes 0s and costs what is reserved for it"


def test_rest_costs_no_money_even_when_none_is_left():
    limits = Limits(usd_per_day=1_000_000)
    facts = Facts(now=NOW, spent=Spend(usd=1_000_000))
    resting = standing(DAY, position=Position("rem", 0))
    found = forecast(resting, agent(DAY), limits, NOW, 2, facts=facts)
    assert [(each.state, each.at.day) for each in found] == [("rem", 2), ("wake_plan", 3)]


def test_declared_minutes_run_out_and_come_back_the_next_day():
    limits = Limits(minutes_per_day=20, minutes_declared=True)
    found = forecast(standing(), agent(), limits, NOW, 4, run_length=MINUTE * 9)
    assert [each.at.day for each in found] == [2, 2, 2, 3]


def test_a_burst_is_foreseen_with_its_pause():
    hot = agent(cadence=Cadence(continuous=True, breather=timedelta(seconds=1)))
    found = forecast(standing(), hot, Limits(burst=3), NOW, 4)
    assert (found[3].at - found[2].at) >= timedelta(minutes=30)
    assert "3 starts in 10 minutes" in found[3].assumption


def test_a_schedule_keeps_its_local_time_through_a_change_of_offset():
    berlin = ZoneInfo("Europe/Berlin")
    scheduled = agent(cadence=Cadence(schedule=parse_schedule("30 2 * * *")), timezone="Europe/Berlin")
    friday = datetime(2026, 3, 27, 12, 0, tzinfo=UTC)
    due = scheduled.cadence.schedule.after(friday, berlin)
    found = forecast(standing(due_at=due), scheduled, Limits(), friday, 3)
    local = [each.at.astimezone(berlin).strftime("%d %H:%M") for each in found]
    assert local == ["28 02:30", "29 03:00", "30 02:30"]


def test_a_pause_with_an_end_is_waited_out_and_one_without_is_supposed_lifted():
    pause = Pause(scope="fleet", owner="operator", reason="maintenance", since=NOW, until=NOW + timedelta(hours=1))
    bounded = forecast(standing(), agent(), Limits(), NOW, 2, facts=Facts(now=NOW, pause=pause))
    assert minutes(bounded) == [60, 70]
    endless = Facts(now=NOW, pause=replace(pause, until=None), open_run=7)
    first = forecast(standing(), agent(), Limits(), NOW, 1, facts=endless)[0]
    assert first.at == NOW + MINUTE
    assert "if the pause by operator is lifted now" in first.assumption
    assert "if run 7 leaves the position as it is" in first.assumption


def test_nothing_is_expected_of_an_agent_that_is_disabled_or_has_no_timer():
    assert forecast(standing(), agent(enabled=False), Limits(), NOW, 3) == []
    assert forecast(standing(due_at=None), agent(cadence=Cadence()), Limits(), NOW, 3) == []


def test_an_outcome_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="finished"):
        forecast(standing(), agent(), Limits(), NOW, 2, outcome="finished")


@settings(max_examples=60)
@given(
    st.sampled_from(["done", "no_work", "failed", "killed"]),
    st.timedeltas(timedelta(), timedelta(minutes=15)),
    st.sampled_from(
        [
            Cadence(continuous=True),
            Cadence(interval=TEN_MINUTES),
            Cadence(schedule=parse_schedule("*/20 * * * *")),
        ]
    ),
    st.sampled_from(["UTC", "Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe"]),
    st.timedeltas(timedelta(), timedelta(days=365)),
)
def test_beats_never_overlap_and_never_fall_into_quiet_hours(outcome, length, cadence, timezone, ahead):
    limits = Limits(quiet_hours=(parse_window("Mon-Fri 22:00-07:30"),), usd_per_day=100, reserve_usd=9)
    worker = agent(DAY, cadence=cadence, timezone=timezone, max_failures=99)
    now = NOW + ahead
    found = forecast(standing(DAY, due_at=now), worker, limits, now, 8, outcome=outcome, run_length=length)
    assert len(found) == 8
    for earlier, later in pairwise(found):
        assert later.at > earlier.at + length
    for each in found:
        assert inside_until(limits.quiet_hours, each.at, ZoneInfo(timezone)) is None
