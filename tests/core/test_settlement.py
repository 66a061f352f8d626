"""The table "four outcomes, one rule each": what an ended run moves, and that it moves nothing else."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.agents import Agent, RetryPolicy
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.guards import RELEASE
from wakeful.core.lifecycle import Kind, Lifecycle, Position, State
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result, Run
from wakeful.core.settlement import INBOX_RETRIES, LONGEST_QUOTA_HOLD, QUOTA_HOLD, settle, skip_beat
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Subject
from wakeful.core.windows import spread

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = Lifecycle(
    "add",
    (
        State("add", repeat=3, next="audit"),
        State("audit", next="rem"),
        State("rem", kind=Kind.rem, next="plan", min_interval=10 * MINUTE),
        State("plan", next="add"),
    ),
)
AGENT = Agent(
    name="moss",
    address="moss",
    lifecycle=DAY,
    cadence=Cadence(interval=10 * MINUTE),
    retries=RetryPolicy(jitter=0.0),
)
STANDING = Standing(
    agent="moss",
    position=Position("add", 1),
    idle_streak=2,
    failure_streak=3,
    due_at=NOW + 25 * MINUTE,
    gates={"plan": NOW - timedelta(hours=1)},
)
CAUSES = {Subject.beat: Cause.timer, Subject.inbox: Cause.peer, Subject.task: Cause.task}
ENDINGS = {
    Outcome.done: Ending(exit_code=0),
    Outcome.no_work: Ending(exit_code=0, output="NO-WORK"),
    Outcome.failed: Ending(exit_code=1),
    Outcome.killed: Ending(timed_out=True),
}
OVER = Ending(over_limit="it used $2.00, a run may use $1.00")
FAILURES = [ENDINGS[Outcome.failed], ENDINGS[Outcome.killed], Ending(lost=True), OVER]


def a_run(subject: Subject, at: Position | None = None, **changes) -> Run:
    began = Run(
        id=1,
        agent="moss",
        wake=1,
        cause=CAUSES[subject],
        subject=subject,
        version=1,
        position=at or STANDING.position,
    )
    return replace(began, **changes)


def end(subject: Subject, ending: Ending, standing: Standing = STANDING, agent: Agent = AGENT, **run):
    began = a_run(subject, standing.position, **run)
    return settle(began, ending, standing, agent, NOW, began_with=agent.lifecycle)


def refused(kind: ErrorClass, retry_at: datetime | None = None, error: str = "402 from the model") -> Ending:
    return Ending(exit_code=1, result=Result(error=error, error_class=kind, retry_at=retry_at))


# ---- a beat

BEATS = [  # outcome, position before, position after, idle streak, failure streak, minutes to the next beat
    (Outcome.done, ("add", 0), ("add", 1), 0, 0, 10),
    (Outcome.done, ("add", 1), ("add", 2), 0, 0, 10),
    (Outcome.done, ("add", 2), ("audit", 0), 0, 0, 10),
    (Outcome.done, ("audit", 0), ("rem", 0), 0, 0, 10),
    (Outcome.done, ("plan", 0), ("add", 0), 0, 0, 10),
    (Outcome.no_work, ("add", 0), ("audit", 0), 3, 0, 10),
    (Outcome.no_work, ("add", 2), ("audit", 0), 3, 0, 10),
    (Outcome.no_work, ("audit", 0), ("rem", 0), 3, 0, 10),
    (Outcome.failed, ("add", 1), ("add", 1), 2, 4, 10),
    (Outcome.killed, ("add", 1), ("add", 1), 2, 4, 10),
    (Outcome.failed, ("audit", 0), ("audit", 0), 2, 4, 10),
]


@pytest.mark.parametrize(("outcome", "before", "after", "idle", "failures", "minutes"), BEATS)
def test_a_beat_moves_the_position_the_streaks_and_the_next_beat(outcome, before, after, idle, failures, minutes):
    settled = end(Subject.beat, ENDINGS[outcome], replace(STANDING, position=Position(*before)))
    assert settled.outcome is outcome
    assert settled.standing.position == Position(*after)
    assert settled.standing.idle_streak == idle
    assert settled.standing.failure_streak == failures
    assert settled.standing.due_at == NOW + minutes * MINUTE
    assert settled.answered is (outcome in (Outcome.done, Outcome.no_work))
    assert settled.retry_at is None


@pytest.mark.parametrize(("streak", "minutes"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (50, 30)])
def test_each_idle_beat_in_a_row_doubles_the_delay_up_to_thirty_minutes(streak, minutes):
    continuous = replace(AGENT, cadence=Cadence(continuous=True))
    settled = end(Subject.beat, ENDINGS[Outcome.no_work], replace(STANDING, idle_streak=streak), continuous)
    assert settled.standing.due_at == NOW + minutes * MINUTE


@pytest.mark.parametrize("ending", FAILURES)
def test_a_failed_beat_comes_back_at_the_plain_interval_whatever_the_idle_streak(ending):
    continuous = replace(AGENT, cadence=Cadence(continuous=True))
    settled = end(Subject.beat, ending, replace(STANDING, idle_streak=6), continuous)
    assert settled.standing.due_at == NOW + timedelta(seconds=45)
    assert settled.standing.idle_streak == 6


@pytest.mark.parametrize("outcome", Outcome)
def test_a_gate_is_stamped_when_its_state_is_done_and_not_otherwise(outcome):
    settled = end(Subject.beat, ENDINGS[outcome], replace(STANDING, position=Position("audit")))
    assert settled.standing.ran_at("audit") == (NOW if outcome is Outcome.done else None)
    assert settled.standing.ran_at("plan") == NOW - timedelta(hours=1)


@pytest.mark.parametrize("outcome", [Outcome.done, Outcome.no_work])
def test_rem_leaves_the_idle_streak_and_its_delay_as_they_are(outcome):
    dreaming = replace(STANDING, position=Position("rem"), idle_streak=6)
    settled = end(Subject.beat, ENDINGS[outcome], dreaming)
    assert settled.standing.position == Position("plan")
    assert settled.standing.idle_streak == 6
    assert settled.standing.due_at == NOW + 30 * MINUTE


def test_an_agent_without_a_timer_gets_no_next_beat():
    settled = end(Subject.beat, ENDINGS[Outcome.done], agent=replace(AGENT, cadence=Cadence()))
    assert settled.standing.due_at is None


# ---- an inbox or a task run


@pytest.mark.parametrize(("subject", "outcome"), list(product((Subject.inbox, Subject.task), Outcome)))
def test_a_run_beside_the_beat_moves_neither_position_nor_gates_nor_the_failure_streak(subject, outcome):
    settled = end(subject, ENDINGS[outcome])
    moved = settled.standing
    assert (moved.position, moved.gates, moved.failure_streak) == (STANDING.position, STANDING.gates, 3)
    assert settled.answered is (outcome in (Outcome.done, Outcome.no_work))
    assert settled.pause is None


@pytest.mark.parametrize(("subject", "outcome"), list(product((Subject.inbox, Subject.task), Outcome)))
def test_only_done_beside_the_beat_makes_the_cadence_hot_again(subject, outcome):
    moved = end(subject, ENDINGS[outcome]).standing
    if outcome is Outcome.done:
        assert (moved.idle_streak, moved.due_at) == (0, NOW + 10 * MINUTE)
    else:
        assert (moved.idle_streak, moved.due_at) == (STANDING.idle_streak, STANDING.due_at)


@pytest.mark.parametrize("subject", [Subject.inbox, Subject.task])
def test_work_beside_the_beat_never_puts_a_beat_off(subject):
    soon = replace(STANDING, due_at=NOW + MINUTE)
    assert end(subject, ENDINGS[Outcome.done], soon).standing.due_at == NOW + MINUTE
    never = replace(STANDING, due_at=None)
    no_timer = replace(AGENT, cadence=Cadence())
    assert end(subject, ENDINGS[Outcome.done], never, no_timer).standing.due_at is None


def test_work_beside_the_beat_of_a_scheduled_agent_pulls_it_to_the_next_slot():
    hourly = replace(AGENT, cadence=Cadence(schedule=parse_schedule("0 * * * *")))
    settled = end(Subject.inbox, ENDINGS[Outcome.done], replace(STANDING, due_at=NOW + timedelta(hours=3)), hourly)
    assert settled.standing.due_at == NOW + timedelta(hours=1)


@pytest.mark.parametrize("ending", FAILURES)
@pytest.mark.parametrize(("attempt", "seconds"), [(1, 30), (2, 60), (3, 120), (4, None)])
def test_a_failed_inbox_run_is_tried_three_times_more_then_waits_for_the_beat(ending, attempt, seconds):
    settled = end(Subject.inbox, ending, attempt=attempt)
    assert settled.retry_at == (seconds and NOW + timedelta(seconds=seconds))
    assert not settled.answered
    assert INBOX_RETRIES == 3


@pytest.mark.parametrize("subject", [Subject.beat, Subject.task])
@pytest.mark.parametrize("outcome", Outcome)
def test_only_an_inbox_run_is_tried_again_as_such(subject, outcome):
    assert end(subject, ENDINGS[outcome]).retry_at is None


@pytest.mark.parametrize(("subject", "outcome"), list(product(Subject, Outcome)))
def test_every_end_is_remembered_with_its_instant(subject, outcome):
    moved = end(subject, ENDINGS[outcome]).standing
    assert (moved.last_outcome, moved.last_ended_at) == (outcome.value, NOW)


# ---- quarantine


@pytest.mark.parametrize("ending", FAILURES)
def test_the_fifth_beat_failed_in_a_row_is_quarantined_with_its_reason(ending):
    assert end(Subject.beat, ending, replace(STANDING, failure_streak=3)).pause is None
    settled = end(Subject.beat, ending, replace(STANDING, failure_streak=4))
    assert settled.standing.failure_streak == 5
    assert settled.pause is not None
    assert (settled.pause.scope, settled.pause.owner) == ("agent:moss", "quarantine")
    assert (settled.pause.since, settled.pause.until) == (NOW, None)
    assert settled.reason and settled.reason in settled.pause.reason


def test_max_failures_moves_the_bar():
    fragile = replace(AGENT, max_failures=1)
    assert end(Subject.beat, ENDINGS[Outcome.failed], replace(STANDING, failure_streak=0), fragile).pause


@pytest.mark.parametrize("outcome", [Outcome.done, Outcome.no_work])
def test_one_good_beat_ends_a_row_of_failures(outcome):
    settled = end(Subject.beat, ENDINGS[outcome], replace(STANDING, failure_streak=4))
    assert settled.standing.failure_streak == 0
    assert settled.pause is None


@pytest.mark.parametrize("subject", Subject)
def test_an_end_that_we_brought_about_counts_against_nobody(subject):
    ours = Ending(signal=15, by="operator")
    settled = end(subject, ours, replace(STANDING, failure_streak=4))
    assert settled.outcome is Outcome.killed
    assert settled.standing.position == STANDING.position
    assert settled.standing.failure_streak == 4
    assert settled.standing.idle_streak == STANDING.idle_streak
    assert (settled.pause, settled.retry_at) == (None, None)
    assert "operator" in settled.reason
    if subject is Subject.beat:
        assert settled.standing.due_at == NOW + 10 * MINUTE


# ---- classes of error

HOLDS = [
    (None, QUOTA_HOLD),
    (NOW - MINUTE, QUOTA_HOLD),
    (NOW, QUOTA_HOLD),
    (NOW + 5 * MINUTE, 5 * MINUTE),
    (NOW + timedelta(days=7), timedelta(days=7)),
    (NOW + timedelta(days=4000), LONGEST_QUOTA_HOLD),
]


@pytest.mark.parametrize(("asked", "held"), HOLDS)
@pytest.mark.parametrize("subject", Subject)
def test_a_quota_is_waited_out_and_is_no_failure_and_no_try(subject, asked, held):
    settled = end(subject, refused(ErrorClass.quota, asked), replace(STANDING, failure_streak=4), attempt=9)
    assert settled.pause is not None
    assert (settled.pause.owner, settled.pause.until) == ("quota", NOW + held)
    assert settled.standing.failure_streak == 4
    assert settled.standing.position == STANDING.position
    # And a moment more, by its name: those of one quota do not begin together.
    assert settled.retry_at == (NOW + held + spread(AGENT.name, RELEASE) if subject is Subject.inbox else None)


@pytest.mark.parametrize("kind", [ErrorClass.auth, ErrorClass.config])
@pytest.mark.parametrize("subject", [Subject.beat, Subject.inbox])
def test_broken_credentials_and_configuration_are_parked_at_once_with_the_reason(subject, kind):
    settled = end(subject, refused(kind), replace(STANDING, failure_streak=0))
    assert settled.pause is not None
    assert (settled.pause.owner, settled.pause.until) == ("quarantine", None)
    assert kind in settled.pause.reason and "402 from the model" in settled.pause.reason
    assert settled.retry_at is None


@pytest.mark.parametrize("kind", [ErrorClass.memory, ErrorClass.other])
def test_other_classes_are_ordinary_failures(kind):
    settled = end(Subject.beat, refused(kind), replace(STANDING, failure_streak=0))
    assert settled.pause is None
    assert settled.standing.failure_streak == 1
    assert end(Subject.inbox, refused(kind)).retry_at == NOW + timedelta(seconds=30)


def test_running_out_of_memory_is_named_as_such_also_when_the_result_says_quota():
    ending = replace(refused(ErrorClass.quota), out_of_memory=True)
    settled = end(Subject.beat, ending, replace(STANDING, failure_streak=0))
    assert "memory" in settled.reason
    assert settled.standing.failure_streak == 1


# ---- hot edits: the outcome is credited to what the run began with, then found in the lifecycle of now

WITHOUT_ADD = Lifecycle("plan", DAY.states[1:])
WITHOUT_AUDIT = Lifecycle("plan", (DAY.states[0], *DAY.states[2:]))
SHORTER = replace(DAY, states=(State("add", repeat=2, next="audit"), *DAY.states[1:]))
OTHER_WAY = replace(DAY, states=(State("add", repeat=3, next="plan"), *DAY.states[1:]))
EDITS = [
    ("the state is still there", DAY, ("add", 1), Outcome.done, ("add", 2)),
    ("its repeat was lowered", SHORTER, ("add", 1), Outcome.done, ("add", 1)),
    ("its next was changed", OTHER_WAY, ("add", 2), Outcome.done, ("audit", 0)),
    (
        "the state was removed, its next is there",
        Lifecycle("plan", DAY.states[1:]),
        ("add", 2),
        Outcome.done,
        ("audit", 0),
    ),
    ("the state was removed while it held", Lifecycle("plan", DAY.states[1:]), ("add", 1), Outcome.failed, ("plan", 0)),
    ("its next was removed", WITHOUT_AUDIT, ("add", 2), Outcome.done, ("plan", 0)),
]


@pytest.mark.parametrize(
    ("edited", "before", "outcome", "after"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS]
)
def test_an_outcome_is_credited_to_the_day_it_began_in_and_resolved_in_the_day_of_now(edited, before, outcome, after):
    run = a_run(Subject.beat, Position(*before))
    agent = replace(AGENT, lifecycle=edited)
    settled = settle(run, ENDINGS[outcome], STANDING, agent, NOW, began_with=DAY)
    assert settled.standing.position == Position(*after)


def test_the_stamps_of_states_that_are_no_more_are_dropped():
    agent = replace(AGENT, lifecycle=Lifecycle("solo", (State("solo", next="solo"),)))
    settled = settle(a_run(Subject.beat), ENDINGS[Outcome.done], STANDING, agent, NOW, began_with=DAY)
    assert settled.standing.gates == {}
    assert settled.standing.position == Position("solo")


def test_a_run_that_began_in_rem_is_rem_also_when_the_day_of_now_says_otherwise():
    awake = replace(DAY, states=tuple(replace(state, kind=Kind.wake) for state in DAY.states))
    run = a_run(Subject.beat, Position("rem"))
    settled = settle(run, ENDINGS[Outcome.done], STANDING, replace(AGENT, lifecycle=awake), NOW, began_with=DAY)
    assert settled.standing.idle_streak == STANDING.idle_streak


# ---- money


@pytest.mark.parametrize("subject", Subject)
def test_the_bill_is_what_was_reported_or_else_the_reservation(subject):
    reported = Ending(exit_code=0, result=Result(usage=Spend(usd=7, tokens=70)))
    settled = end(subject, reported, reserved=Spend(usd=50))
    assert (settled.bill.spend, settled.bill.estimated) == (Spend(usd=7, tokens=70), False)
    assert settled.standing.costs == (Spend(usd=7, tokens=70),)
    settled = end(subject, Ending(exit_code=1), reserved=Spend(usd=50))
    assert (settled.bill.spend, settled.bill.estimated) == (Spend(usd=50), True)
    assert settled.standing.costs == ()


# ---- a check that says "do not wake"


def test_a_skipped_beat_holds_its_position_and_backs_off():
    moved = skip_beat(replace(STANDING, idle_streak=4), AGENT, NOW)
    assert (moved.idle_streak, moved.due_at) == (5, NOW + 16 * MINUTE)
    assert replace(moved, idle_streak=4, due_at=STANDING.due_at) == replace(STANDING, idle_streak=4)


# ---- properties

results = st.builds(Result, error_class=st.none() | st.sampled_from(ErrorClass), error=st.none() | st.just("x"))
endings = st.builds(
    Ending,
    exit_code=st.sampled_from([None, 0, 1]),
    timed_out=st.booleans(),
    over_limit=st.none() | st.just("it used $2.00"),
    lost=st.booleans(),
    by=st.sampled_from([None, None, "operator"]),
    output=st.sampled_from(["", "NO-WORK"]),
    result=st.none()
    | st.builds(Result, error_class=st.none() | st.sampled_from(ErrorClass), error=st.none() | st.just("x")),
)
positions = st.builds(Position, st.sampled_from(["add", "audit", "rem", "plan", "gone"]), st.integers(0, 4))
standings = st.builds(
    Standing,
    agent=st.just("moss"),
    position=positions,
    idle_streak=st.integers(0, 9),
    failure_streak=st.integers(0, 9),
    due_at=st.none() | st.integers(-100, 100).map(lambda minutes: NOW + minutes * MINUTE),
)


@given(st.sampled_from(Subject), endings, standings, st.integers(1, 5))
def test_settling_is_deterministic_and_only_a_beat_moves_the_day(subject, ending, standing, attempt):
    settled = end(subject, ending, standing, attempt=attempt)
    assert settled == end(subject, ending, standing, attempt=attempt)
    if subject is not Subject.beat:
        assert settled.standing.position == standing.position
    assert DAY.state(settled.standing.position.state) or subject is not Subject.beat


@given(st.sampled_from(Subject), endings, standings)
def test_what_succeeded_is_never_held_nor_tried_again(subject, ending, standing):
    settled = end(subject, ending, standing)
    if settled.answered:
        assert (settled.pause, settled.retry_at) == (None, None)
