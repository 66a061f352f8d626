"""The day declared in states: document 001's outcome table, its canonical loop, and its gates."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.cron import parse_schedule
from wakeful.core.lifecycle import (
    SINGLE,
    Kind,
    Lifecycle,
    Position,
    State,
    advance,
    begin,
    gate_opens_at,
    resolve,
)
from wakeful.core.windows import parse_window

UTC_ZONE = ZoneInfo("UTC")
NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)
OUTCOMES = ("done", "no_work", "failed", "killed")

CANONICAL = Lifecycle(
    "wake_add",
    (
        State("wake_add", repeat=3, next="wake_audit"),
        State("wake_audit", next="rem"),
        State("rem", kind=Kind.rem, next="wake_plan", min_interval=TEN_MINUTES),
        State("wake_plan", next="wake_add"),
    ),
)


def walk(lifecycle: Lifecycle, *outcomes: str) -> list[tuple[str, int]]:
    position = begin(lifecycle)
    visited = [(position.state, position.hits)]
    for outcome in outcomes:
        position = advance(position, lifecycle, outcome)
        visited.append((position.state, position.hits))
    return visited


@pytest.mark.parametrize(
    ("outcome", "hits", "expected"),
    [
        ("done", 0, Position("wake_add", 1)),
        ("done", 1, Position("wake_add", 2)),
        ("done", 2, Position("wake_audit", 0)),
        ("no_work", 0, Position("wake_audit", 0)),
        ("no_work", 1, Position("wake_audit", 0)),
        ("no_work", 2, Position("wake_audit", 0)),
        ("failed", 0, Position("wake_add", 0)),
        ("failed", 2, Position("wake_add", 2)),
        ("killed", 0, Position("wake_add", 0)),
        ("killed", 2, Position("wake_add", 2)),
    ],
)
def test_each_of_the_four_outcomes_does_one_thing_to_the_position(outcome, hits, expected):
    assert advance(Position("wake_add", hits), CANONICAL, outcome) == expected


def test_the_canonical_loop_adds_three_times_audits_rests_plans_and_adds_again():
    assert walk(CANONICAL, *["done"] * 6) == [
        ("wake_add", 0),
        ("wake_add", 1),
        ("wake_add", 2),
        ("wake_audit", 0),
        ("rem", 0),
        ("wake_plan", 0),
        ("wake_add", 0),
    ]


def test_no_work_collapses_repeats_but_visits_every_state():
    states = [state for state, _ in walk(CANONICAL, *["no_work"] * 4)]
    assert states == ["wake_add", "wake_audit", "rem", "wake_plan", "wake_add"]


def test_an_agent_without_a_lifecycle_beats_in_one_state_for_ever():
    assert set(walk(SINGLE, *OUTCOMES, *OUTCOMES)) == {("beat", 0)}


def test_an_unknown_outcome_is_an_error_and_not_a_hold():
    with pytest.raises(ValueError, match="found 'finished'"):
        advance(begin(CANONICAL), CANONICAL, "finished")


def test_a_position_whose_state_was_removed_starts_again_without_credit():
    shorter = Lifecycle("wake_add", tuple(state for state in CANONICAL.states if state.name != "wake_plan"))
    assert resolve(Position("wake_plan", 0), shorter) == Position("wake_add", 0)
    assert advance(Position("wake_plan", 0), shorter, "done") == Position("wake_add", 0)


def test_hits_are_kept_through_an_edit_and_clamped_to_a_shrunk_repeat():
    grown, shrunk = (
        Lifecycle("wake_add", (replace(CANONICAL.states[0], repeat=repeat), *CANONICAL.states[1:])) for repeat in (5, 2)
    )
    assert resolve(Position("wake_add", 2), grown) == Position("wake_add", 2)
    assert resolve(Position("wake_add", 2), shrunk) == Position("wake_add", 1)
    assert advance(Position("wake_add", 2), shrunk, "done") == Position("wake_audit", 0)


@st.composite
def lifecycles(draw):
    names = [f"s{number}" for number in range(draw(st.integers(1, 6)))]
    states = tuple(State(name, repeat=draw(st.integers(1, 4)), next=draw(st.sampled_from(names))) for name in names)
    return Lifecycle(draw(st.sampled_from(names)), states)


@given(lifecycles(), st.lists(st.sampled_from(OUTCOMES), max_size=30))
def test_no_outcome_ever_skips_a_declared_state(lifecycle, outcomes):
    position = begin(lifecycle)
    for outcome in outcomes:
        here = lifecycle.state(position.state)
        moved = advance(position, lifecycle, outcome)
        assert moved.state in (here.name, here.next)
        assert 0 <= moved.hits < lifecycle.state(moved.state).repeat
        if moved.hits:
            assert moved == Position(here.name, moved.hits)
        position = moved


@given(lifecycles(), st.data())
def test_a_state_is_left_by_done_only_after_its_repeats(lifecycle, data):
    state = data.draw(st.sampled_from(lifecycle.states))
    position = Position(state.name, 0)
    for hit in range(1, state.repeat):
        position = advance(position, lifecycle, "done")
        assert position == Position(state.name, hit)
    assert advance(position, lifecycle, "done") == Position(state.next, 0)


@given(lifecycles(), lifecycles(), st.integers(-3, 9))
def test_a_resolved_position_always_stands_in_its_lifecycle(old, new, hits):
    found = resolve(Position(old.start, hits), new)
    assert 0 <= found.hits < new.state(found.state).repeat
    assert resolve(found, new) == found


REM = CANONICAL.states[2]


def test_a_gate_that_never_ran_is_open():
    assert gate_opens_at(REM, None, NOW, UTC_ZONE) is None
    nightly = State("tidy", next="tidy", when_schedule=parse_schedule("0 3 * * *"))
    assert gate_opens_at(nightly, None, NOW, UTC_ZONE) is None


def test_an_elapsed_gate_refuses_until_its_interval_has_passed():
    ran_at = NOW - timedelta(minutes=4)
    assert gate_opens_at(REM, ran_at, NOW, UTC_ZONE) == NOW + timedelta(minutes=6)
    assert gate_opens_at(REM, NOW - TEN_MINUTES, NOW, UTC_ZONE) is None


def test_a_state_without_a_gate_is_always_open():
    assert gate_opens_at(CANONICAL.states[0], NOW, NOW, UTC_ZONE) is None


@given(st.timedeltas(timedelta(days=-400), timedelta(days=400)))
def test_a_clock_set_back_never_makes_a_gate_wait_longer_than_its_interval(jump):
    opens = gate_opens_at(REM, NOW + jump, NOW, UTC_ZONE)
    assert opens is None or NOW < opens <= NOW + TEN_MINUTES


def test_a_stamp_from_the_future_is_not_waited_for_again_and_again():
    ran_at = NOW + timedelta(days=1)
    waited = [gate_opens_at(REM, ran_at, NOW + TEN_MINUTES * later, UTC_ZONE) for later in range(3)]
    assert waited == [None, None, None]


def test_a_calendar_gate_opens_once_for_every_instant_of_its_schedule():
    weekdays = State("post", next="post", when_schedule=parse_schedule("0 9 * * MON-FRI"))
    friday = datetime(2026, 3, 6, 9, 0, tzinfo=UTC)
    before, after = friday - timedelta(hours=1), friday + timedelta(minutes=1)
    assert gate_opens_at(weekdays, before, friday - TEN_MINUTES, UTC_ZONE) == friday
    assert gate_opens_at(weekdays, before, friday, UTC_ZONE) is None
    assert gate_opens_at(weekdays, before, friday + timedelta(hours=5), UTC_ZONE) is None
    assert gate_opens_at(weekdays, after, friday + timedelta(hours=5), UTC_ZONE) == friday + timedelta(days=3)


def test_a_window_gate_holds_whether_or_not_the_state_ever_ran():
    mornings = State("plan", next="plan", when_window=parse_window("Mon-Fri 09:00-11:00"))
    tomorrow = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
    berlin = ZoneInfo("Europe/Berlin")
    for ran_at in (None, NOW - timedelta(days=9)):
        assert gate_opens_at(mornings, ran_at, NOW, berlin) == tomorrow
        assert gate_opens_at(mornings, ran_at, tomorrow, berlin) is None


def test_of_several_gates_the_latest_counts_and_the_window_must_still_be_open_then():
    state = State("plan", next="plan", min_interval=timedelta(hours=23), when_window=parse_window("09:00-11:00"))
    ran_at = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
    inside, missed = datetime(2026, 3, 2, 9, 0, tzinfo=UTC), ran_at + timedelta(hours=2)
    assert gate_opens_at(state, ran_at, inside, UTC_ZONE) == datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
    assert gate_opens_at(state, missed, inside, UTC_ZONE) == datetime(2026, 3, 3, 9, 0, tzinfo=UTC)


@given(
    st.none() | st.timedeltas(timedelta(days=-40), timedelta(days=1)),
    st.sampled_from(["UTC", "Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe"]),
    st.timedeltas(timedelta(), timedelta(days=400)),
)
def test_a_gate_is_open_at_the_instant_at_which_it_said_it_would_open(ran, name, ahead):
    zone, now = ZoneInfo(name), NOW + ahead
    ran_at = None if ran is None else now + ran
    state = State(
        "plan",
        next="plan",
        min_interval=timedelta(hours=5),
        when_schedule=parse_schedule("30 2 * * *"),
        when_window=parse_window("Tue-Sat 01:30-04:00"),
    )
    opens = gate_opens_at(state, ran_at, now, zone)
    if opens is not None:
        assert opens > now
        assert gate_opens_at(state, ran_at if ran_at and ran_at <= now else None, opens, zone) is None
