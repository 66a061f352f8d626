"""Document 001, as the pure core shows it: the day, the outcomes, the cadence."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.agents import Agent
from wakeful.core.cadence import Cadence, first_beat, next_beat, resume_beat
from wakeful.core.lifecycle import Kind, Lifecycle, Position, State, advance, begin, gate_opens_at, resolve
from wakeful.core.runs import Ending, Outcome, Run, read_outcome
from wakeful.core.settlement import Settlement, settle
from wakeful.core.standing import Standing
from wakeful.core.wakes import Cause, Subject

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
GRACE = 60 * SECOND

DAY = Lifecycle(
    "wake_add",
    (
        State("wake_add", repeat=3, next="wake_audit"),
        State("wake_audit", next="rem"),
        State("rem", kind=Kind.rem, next="wake_plan", min_interval=10 * MINUTE),
        State("wake_plan", next="wake_add"),
    ),
)
CONTINUOUS = Cadence(continuous=True)
AGENT = Agent(name="wren", address="wren", lifecycle=DAY, cadence=CONTINUOUS)

DONE = Ending(exit_code=0, output="wrote two pages")
NO_WORK = Ending(exit_code=0, output="NO-WORK nothing on the board")
FAILED = Ending(exit_code=1)
KILLED = Ending(timed_out=True)
ENDINGS = {"done": DONE, "no_work": NO_WORK, "failed": FAILED, "killed": KILLED}
OUTCOMES = tuple(ENDINGS)


def beat(standing: Standing, ending: Ending, *, agent: Agent = AGENT, now: datetime = NOON) -> Settlement:
    run = Run(
        id=1,
        agent=agent.name,
        wake=1,
        cause=Cause.timer,
        subject=Subject.beat,
        version=1,
        position=standing.position,
    )
    return settle(run, ending, standing, agent, now, began_with=agent.lifecycle)


def at(state: str, hits: int = 0, **streaks: int) -> Standing:
    return Standing(agent="wren", position=Position(state, hits), **streaks)


def walk(outcomes: list[str]) -> list[tuple[str, int]]:
    position, seen = begin(DAY), []
    for outcome in outcomes:
        seen.append((position.state, position.hits))
        position = advance(position, DAY, outcome)
    return seen


# ---- four outcomes, one rule each


@pytest.mark.parametrize(
    ("outcome", "before", "after", "delay"),
    [
        ("done", ("wake_add", 0), ("wake_add", 1), 45 * SECOND),
        ("done", ("wake_add", 1), ("wake_add", 2), 45 * SECOND),
        ("done", ("wake_add", 2), ("wake_audit", 0), 45 * SECOND),
        ("done", ("wake_plan", 0), ("wake_add", 0), 45 * SECOND),
        ("no_work", ("wake_add", 0), ("wake_audit", 0), MINUTE),
        ("no_work", ("wake_add", 2), ("wake_audit", 0), MINUTE),
        ("failed", ("wake_add", 1), ("wake_add", 1), 45 * SECOND),
        ("failed", ("wake_plan", 0), ("wake_plan", 0), 45 * SECOND),
        ("killed", ("wake_add", 1), ("wake_add", 1), 45 * SECOND),
        ("killed", ("wake_audit", 0), ("wake_audit", 0), 45 * SECOND),
    ],
)
def test_the_outcome_table(outcome, before, after, delay):
    # A streak of idle beats lengthens only the delay after another idle one.
    for streak in (0,) if outcome == "no_work" else (0, 5):
        settled = beat(at(*before, idle_streak=streak), ENDINGS[outcome])
        assert settled.outcome == outcome
        assert settled.standing.position == Position(*after)
        assert settled.standing.due_at == NOON + delay


@given(
    st.builds(
        Ending,
        exit_code=st.sampled_from([None, 0, 1, 137]),
        signal=st.sampled_from([None, 9]),
        timed_out=st.booleans(),
        lost=st.booleans(),
        by=st.sampled_from([None, "operator"]),
        output=st.text(max_size=20),
    )
)
def test_every_ending_is_one_of_four_outcomes(ending):
    outcome = read_outcome(ending)
    assert outcome in OUTCOMES
    assert (outcome == "killed") == (ending.timed_out or ending.lost or ending.by is not None)
    assert outcome not in ("done", "no_work") or ending.exit_code == 0


def test_repeat_counts_successful_ticks_only():
    outcomes = ["done", "failed", "done", "killed", "killed", "done", "done"]
    hits = [("wake_add", 0), ("wake_add", 1), ("wake_add", 1), *[("wake_add", 2)] * 3, ("wake_audit", 0)]
    assert walk(outcomes) == hits


def test_the_canonical_day_adds_three_times_audits_rests_plans_and_begins_again():
    states = [state for state, _ in walk(["done"] * 8)]
    add = ["wake_add"] * 3
    assert states == [*add, "wake_audit", "rem", "wake_plan", "wake_add", "wake_add"]


def test_a_day_without_work_still_audits_and_rests():
    """And the streak grows although the position moves: the day gets slower, not shorter."""
    standing, now, beats = at("wake_add"), NOON, []
    for _ in range(6):
        ending = DONE if standing.position.state == "rem" else NO_WORK
        settled = beat(standing, ending, now=now).standing
        assert settled.due_at is not None
        beats.append((standing.position.state, (settled.due_at - now) // MINUTE))
        standing, now = settled, settled.due_at
    assert beats == [
        *(("wake_add", 1), ("wake_audit", 2), ("rem", 2), ("wake_plan", 4)),
        *(("wake_add", 8), ("wake_audit", 16)),
    ]


days = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.tuples(st.integers(1, 4), st.integers(0, n - 1)), min_size=n, max_size=n).map(
        lambda rows: Lifecycle("s0", tuple(State(f"s{i}", repeat=r, next=f"s{to}") for i, (r, to) in enumerate(rows)))
    )
)


@given(days, st.lists(st.sampled_from(OUTCOMES), max_size=40))
def test_no_work_fast_forwards_repeats_and_never_skips_a_state(day, outcomes):
    position = begin(day)
    for outcome in outcomes:
        here = day.state(position.state)
        after = advance(position, day, outcome)
        if outcome == "no_work":
            assert after == Position(here.next, 0)
        elif after.state != here.name:
            assert (outcome, after) == ("done", Position(here.next, 0))
        position = after


@given(days, st.lists(st.sampled_from(OUTCOMES), max_size=40))
def test_each_outcome_makes_at_most_one_transition(day, outcomes):
    position = begin(day)
    for outcome in outcomes:
        after = advance(position, day, outcome)
        assert after.state in (position.state, day.state(position.state).next)
        assert after == advance(position, day, outcome)
        position = after


@given(st.lists(st.sampled_from(OUTCOMES), max_size=20))
def test_the_same_history_always_leads_to_the_same_standing(outcomes):
    def fold() -> list[Standing]:
        told = [at("wake_add")]
        for n, outcome in enumerate(outcomes):
            told.append(beat(told[-1], ENDINGS[outcome], now=NOON + n * HOUR).standing)
        return told

    assert fold() == fold()


def test_a_hot_edit_keeps_the_place_unless_its_state_is_gone():
    without_audit = Lifecycle("wake_plan", (DAY.states[0], DAY.states[3]))
    fewer = Lifecycle("wake_add", (replace(DAY.states[0], repeat=2), *DAY.states[1:]))
    assert resolve(Position("wake_add", 1), without_audit) == Position("wake_add", 1)
    assert resolve(Position("wake_audit", 0), without_audit) == Position("wake_plan", 0)
    assert advance(resolve(Position("wake_add", 2), fewer), fewer, "done") == Position("wake_audit", 0)


# ---- gates


def test_a_gate_that_never_ran_is_open():
    rem = DAY.states[2]
    assert gate_opens_at(rem, None, NOON, ZONE) is None
    assert at("rem").ran_at("rem") is None


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_gate_opens_ten_minutes_after_its_state_last_ran(zone):
    rem = DAY.states[2]
    # The night in which Berlin sets its clocks back: elapsed time, not the reading of a clock.
    ran = datetime(2026, 10, 25, 0, 55, tzinfo=UTC)
    opens = ran + 10 * MINUTE
    assert gate_opens_at(rem, ran, ran + 9 * MINUTE, ZoneInfo(zone)) == opens
    assert gate_opens_at(rem, ran, opens - SECOND, ZoneInfo(zone)) == opens
    assert gate_opens_at(rem, ran, opens, ZoneInfo(zone)) is None


def test_a_failed_gated_state_is_retried_next_beat():
    rem = DAY.states[2]
    for ending in (FAILED, KILLED):
        held = beat(at("rem"), ending).standing
        assert held.position == Position("rem", 0)
        assert gate_opens_at(rem, held.ran_at("rem"), held.due_at, ZONE) is None
    passed = beat(at("rem"), DONE).standing
    assert gate_opens_at(rem, passed.ran_at("rem"), NOON + MINUTE, ZONE) == NOON + 10 * MINUTE


# ---- cadence


@pytest.mark.parametrize(
    ("interval", "elapsed", "delay"),
    [
        (HOUR, 40 * MINUTE, 20 * MINUTE),
        (HOUR, timedelta(), HOUR),
        (HOUR, 58 * MINUTE, 2 * MINUTE),
        (HOUR, 59 * MINUTE + 30 * SECOND, GRACE),
        (HOUR, 3 * HOUR, GRACE),
        (HOUR, 168 * HOUR, GRACE),
        (10 * MINUTE, 4 * MINUTE, 6 * MINUTE),
        (45 * SECOND, 10 * SECOND, GRACE),
    ],
)
def test_the_catch_up_table(interval, elapsed, delay):
    """max(60 s, interval − elapsed)"""
    cadence = Cadence(interval=interval)
    due = next_beat(cadence, 0, NOON, ZONE)
    boot = NOON + elapsed
    assert resume_beat(due, cadence, boot, GRACE, ZONE) == boot + delay


def test_a_restart_loop_cannot_hammer_the_model():
    cadence, due = Cadence(interval=HOUR), NOON
    for crash in range(50):
        boot = NOON + crash * 20 * SECOND
        due = resume_beat(due, cadence, boot, GRACE, ZONE)
        assert due >= boot + GRACE


def test_a_clock_set_back_never_lengthens_a_wait_beyond_its_interval():
    cadence = Cadence(interval=HOUR)
    due = next_beat(cadence, 0, NOON, ZONE)
    day_before = NOON - timedelta(days=1)
    assert resume_beat(due, cadence, day_before, GRACE, ZONE) <= day_before + HOUR
    assert gate_opens_at(DAY.states[2], NOON, day_before, ZONE) is None


@pytest.mark.parametrize(
    ("streak", "delay"),
    [(0, 45), (1, 60), (2, 120), (3, 240), (4, 480), (5, 960), (6, 1800), (7, 1800), (400, 1800)],
)
def test_the_backoff_table(streak, delay):
    assert next_beat(CONTINUOUS, streak, NOON, ZONE) == NOON + delay * SECOND
    if streak:
        settled = beat(at("wake_plan", idle_streak=streak - 1), NO_WORK).standing
        assert (settled.idle_streak, settled.due_at) == (streak, NOON + delay * SECOND)
    # max(base, …): a backoff never shortens an interval.
    assert next_beat(Cadence(interval=10 * MINUTE), streak, NOON, ZONE) == NOON + max(600, delay) * SECOND


def test_an_idle_agent_goes_from_eighty_calls_an_hour_to_two():
    def beats_in_an_hour(standing: Standing, ending: Ending) -> int:
        now, count = NOON, 0
        while now < NOON + HOUR:
            standing, count = beat(standing, ending, now=now).standing, count + 1
            now = standing.due_at or now
        return count

    assert beats_in_an_hour(at("wake_plan"), DONE) == 80
    assert beats_in_an_hour(at("wake_plan", idle_streak=6), NO_WORK) == 2


def test_one_done_snaps_back_to_the_hot_cadence():
    settled = beat(at("wake_plan", idle_streak=9), DONE).standing
    assert (settled.idle_streak, settled.due_at) == (0, NOON + 45 * SECOND)


def test_first_beats_are_staggered_by_thirty_seconds_each():
    cadence = Cadence(interval=10 * MINUTE)
    first = [first_beat(cadence, NOON, GRACE, index, 4, ZONE) for index in range(4)]
    assert first == [NOON + seconds * SECOND for seconds in (60, 90, 120, 150)]
    # Only the first boot is staggered: what is known keeps its own instant.
    assert resume_beat(NOON + HOUR, Cadence(interval=HOUR), NOON, GRACE, ZONE) == NOON + HOUR


# ---- a run


def test_a_beat_has_a_wall_clock_of_fifteen_minutes():
    assert AGENT.wall_clock(Subject.beat) == 15 * MINUTE
    assert read_outcome(KILLED) is Outcome.killed


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("NO-WORK", "no_work"),
        ("NO-WORK: the board is empty", "no_work"),
        ("  no-work.\nreally", "no_work"),
        ("NO-WORK-AROUND found and applied", "done"),
        ("NO-WORKING tests, fixed", "done"),
        ("Checked everything. NO-WORK", "done"),
        ("", "done"),
    ],
)
def test_no_work_is_the_first_word_of_the_result(result, outcome):
    assert read_outcome(Ending(exit_code=0, output=result)) == outcome
    assert read_outcome(Ending(exit_code=1, output=result)) == "failed"


def test_five_failed_beats_in_a_row_quarantine_the_agent():
    standing = at("wake_audit")
    for n in range(1, 6):
        settled = beat(standing, FAILED if n % 2 else KILLED, now=NOON + n * MINUTE)
        standing = settled.standing
        assert standing.position == Position("wake_audit", 0)
        assert (settled.pause is not None) == (n == 5)
    assert settled.pause.owner == "quarantine"
    assert "5 beats failed in a row" in settled.pause.reason
    assert beat(standing, DONE).standing.failure_streak == 0
