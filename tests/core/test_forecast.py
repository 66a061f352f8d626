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
from wakeful.core.guards import RELEASE
from wakeful.core.lifecycle import SINGLE, Kind, Lifecycle, Position, State, begin
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Pause, Subject, Wake, agent_scope
from wakeful.core.windows import inside_until, next_day, parse_window, spread
from wakeful.store.protocol import RunRow, WakeRow

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


def waits(at: datetime | None, *, guard: str | None = None, **settings: object) -> WakeRow:
    settings = {"agent": "wren", "cause": Cause.timer, "subject": Subject.beat, "requested_at": NOW, "id": 1} | settings
    wake = Wake(**settings)
    return WakeRow(wake=wake, state="waiting", guard=guard, reason="", retry_at=at, joined=None, run=None)


def ran(at: datetime, ended: datetime | None = None, **settings: object) -> RunRow:
    known = {"id": 7, "agent": "wren", "wake": 1, "cause": Cause.timer, "subject": Subject.beat, "state": "running"}
    known |= {"epoch": 1, "attempt": 1, "node": "here", "outcome": None, "reason": "", "summary": "", "spend": Spend()}
    return RunRow(**{**known, "admitted_at": at, "started_at": at, "ended_at": ended, **settings})


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
    let_go = NOW + timedelta(hours=1) + spread("wren", RELEASE)
    assert [each.at for each in bounded] == [let_go, let_go + MINUTE * 10]
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


def test_five_failures_in_a_row_are_the_last_that_is_expected_also_where_some_lie_behind():
    assert len(forecast(standing(), agent(), Limits(), NOW, 10, outcome="failed")) == 5
    assert len(forecast(standing(failure_streak=3), agent(), Limits(), NOW, 10, outcome="killed")) == 2
    asked = agent(one_offs=(NOW + timedelta(days=1),))
    assert len(forecast(standing(failure_streak=3), asked, Limits(), NOW, 10, outcome="failed")) == 2


def test_a_calendar_that_is_over_is_the_end_of_what_is_expected():
    past = parse_window("2026-01-01T00:00Z/2026-01-02T00:00Z")
    day = Lifecycle("work", (State("work", next="once"), State("once", next="work", when_window=past)))
    assert [each.state for each in forecast(standing(day), agent(day), Limits(), NOW, 5)] == ["work"]


def test_a_one_off_that_comes_during_a_run_begins_at_its_end_and_the_cadence_is_counted_anew():
    asked = NOW + MINUTE * 3
    found = forecast(standing(), agent(one_offs=(asked,)), Limits(), NOW, 3, run_length=MINUTE * 5)
    assert minutes(found) == [1, 6, 21]
    assert "held back: a run was under way; asked for at 2026-03-02T12:03:00+00:00" in found[1].assumption


def test_a_timer_that_falls_due_during_a_one_off_is_moot_when_that_has_ended():
    found = forecast(standing(), agent(one_offs=(NOW + MINUTE / 2,)), Limits(), NOW, 2, run_length=MINUTE * 5)
    assert minutes(found) == [0.5, 15.5]


def test_of_two_beats_at_one_instant_the_one_that_was_asked_for_first_is_run():
    limits = Limits(quiet_hours=(parse_window("12:00-14:00"),))
    asked = agent(one_offs=(NOW + timedelta(hours=2),))
    found = forecast(standing(due_at=NOW), asked, limits, NOW, 2, run_length=MINUTE)
    assert minutes(found) == [120, 131]
    assert "asked for" in found[0].assumption


def test_the_pause_of_a_burst_holds_one_offs_too():
    hot = agent(cadence=Cadence(continuous=True), one_offs=(NOW + MINUTE * 5,))
    found = forecast(standing(), hot, Limits(burst=2), NOW, 4)
    # What the burst itself held is tried at the end of its pause, and what the pause held in the minute after.
    let_go = 32.5 + spread("wren", RELEASE) / MINUTE
    assert minutes(found) == sorted([1, 1.75, 32.5, let_go])
    assert ["asked for" in each.assumption for each in found] == [False, False, False, True]


def test_what_waits_in_the_store_is_expected_when_it_is_tried_again():
    later = waits(NOW + MINUTE * 4, guard="paused")
    at = waits(NOW + MINUTE * 2, id=2, slot="2026-03-02T12:02:00.000000Z")
    tick = waits(None, guard="slots", id=3, cause=Cause.operator)
    inbox = waits(NOW, id=4, cause=Cause.peer, subject=Subject.inbox)
    late = standing(due_at=NOW - MINUTE)
    assert minutes(forecast(late, agent(), Limits(), NOW, 2, waiting=[later])) == [4, 14]
    assert minutes(forecast(late, agent(), Limits(), NOW, 2, waiting=[later, tick])) == [0, 10]
    assert minutes(forecast(standing(), agent(), Limits(), NOW, 2, waiting=[at, inbox])) == [1, 2]
    assert minutes(forecast(standing(), agent(one_offs=(NOW + MINUTE / 2,)), Limits(), NOW, 1, waiting=[])) == [1]


def test_a_beat_under_way_is_not_expected_again_and_moves_the_position_when_it_ends():
    late, facts = standing(DAY, due_at=NOW - MINUTE), Facts(now=NOW, open_run=7)
    known = {"run_length": MINUTE * 3, "facts": facts}
    found = forecast(late, agent(DAY), Limits(), NOW, 2, **known, runs=[ran(NOW - MINUTE)])
    assert [(each.state, each.hits) for each in found] == [("wake_add", 1), ("wake_add", 2)]
    assert minutes(found) == [12, 25]
    assert "if run 7 ends done at 2026-03-02T12:02:00+00:00" in found[0].assumption
    other = ran(NOW - MINUTE, subject=Subject.inbox, cause=Cause.peer)
    first = forecast(late, agent(DAY), Limits(), NOW, 1, **known, runs=[other])[0]
    assert (first.hits, first.at) == (0, NOW)
    assert "if run 7 leaves the position as it is" in first.assumption


def test_a_beat_under_way_that_was_asked_for_leaves_the_timer_to_fall_due_beside_it():
    found = forecast(standing(), agent(), Limits(), NOW, 1, run_length=MINUTE * 5, runs=[ran(NOW)])
    assert minutes(found) == [15]


def test_minutes_of_a_run_count_for_the_day_on_which_it_began():
    eve = datetime(2026, 3, 2, 23, 55, tzinfo=UTC)
    limits = Limits(minutes_per_day=8, minutes_declared=True)
    found = forecast(standing(due_at=eve), agent(), limits, eve, 3, run_length=MINUTE * 9)
    assert [(each.at.day, each.at.hour) for each in found] == [(2, 23), (3, 0), (4, 0)]


def test_the_money_of_the_fleet_comes_back_on_the_fleets_day_and_not_on_the_agents():
    limits = Limits(fleet_usd_per_day=1_000_000, fleet_timezone="America/New_York")
    facts = Facts(now=NOW, fleet_spent=Spend(usd=1_000_000))
    first = forecast(standing(), agent(timezone="Asia/Kathmandu"), limits, NOW, 1, facts=facts)[0]
    assert first.at == next_day(NOW, ZoneInfo("America/New_York")) + spread("wren", TEN_MINUTES)
    assert "if no other agent spends" in first.assumption


def test_every_pause_of_the_agent_is_waited_out_or_supposed_lifted_and_no_other():
    hour = Pause(scope="fleet", owner="operator", reason="", since=NOW, until=NOW + timedelta(hours=1))
    day = replace(hour, scope=agent_scope("wren"), owner="quota", until=NOW + timedelta(days=1))
    other = replace(day, scope=agent_scope("moss"), until=NOW + timedelta(days=9))
    parked = replace(day, owner="quarantine", until=None)
    known = {"facts": Facts(now=NOW, pause=hour), "pauses": [hour, day, other, parked]}
    first = forecast(standing(), agent(), Limits(), NOW, 1, **known)[0]
    assert first.at == NOW + timedelta(days=1) + spread("wren", RELEASE)
    assert "if the pause by quarantine is lifted now" in first.assumption


def test_starts_of_the_past_are_supposed_to_lie_evenly_unless_the_runs_are_known():
    hot = agent(cadence=Cadence(continuous=True))
    facts = Facts(now=NOW, burst_starts=13)
    steady = forecast(standing(due_at=NOW), hot, Limits(), NOW, 30, facts=facts)
    assert len({later - earlier for earlier, later in pairwise(each.at for each in steady)}) == 1
    guessed = forecast(standing(due_at=NOW), hot, Limits(burst=13), NOW, 1, facts=facts)[0]
    assert "13 starts in 10 minutes, if those of the past were spread evenly" in guessed.assumption
    just_before = [ran(NOW - MINUTE, NOW, state=state) for state in ("ended", "ended", "void")]
    told = [forecast(standing(due_at=NOW), hot, Limits(burst=n), NOW, 1, runs=just_before)[0] for n in (2, 3)]
    assert minutes(told) == [30, 0]
    assert "evenly" not in told[0].assumption


def test_what_only_others_know_is_said():
    replica = replace(agent(check="true"), name="moss-1", address="moss")
    first = forecast(standing(), replica, Limits(minutes_declared=True), NOW, 1)[0]
    assert first.assumption == "if a slot is free; if its CHECK lets it wake; if no other replica of moss runs"


@given(
    st.timedeltas(-timedelta(days=400), timedelta(days=400)),
    st.lists(st.timedeltas(-timedelta(days=3), timedelta(days=3)), max_size=4),
    st.lists(st.timedeltas(-timedelta(days=3), timedelta(days=3)), max_size=3),
    st.booleans(),
)
def test_nothing_is_expected_before_now_and_nothing_out_of_order(due, asked, waiting, under_way):
    rows = [waits(NOW + at, id=id, slot=(NOW + at).isoformat()) for id, at in enumerate(waiting, 1)]
    found = forecast(
        standing(DAY, due_at=NOW + due),
        agent(DAY, one_offs=tuple(NOW + moment for moment in asked)),
        Limits(burst=4, quiet_hours=(parse_window("22:00-06:00"),)),
        NOW,
        9,
        run_length=MINUTE,
        waiting=rows if waiting else None,
        runs=[ran(NOW - timedelta(days=1))] if under_way else None,
    )
    assert len(found) == 9
    assert found[0].at >= NOW
    assert all(later.at >= earlier.at + MINUTE for earlier, later in pairwise(found))


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
