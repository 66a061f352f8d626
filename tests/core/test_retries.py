"""When a failed task is tried again, and when it is buried."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.agents import Agent, RetryPolicy
from wakeful.core.guards import RELEASE
from wakeful.core.items import State
from wakeful.core.retries import delay, retry_or_bury
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result
from wakeful.core.settlement import settle_task
from wakeful.core.windows import spread

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PLAIN = RetryPolicy(jitter=0.0)
# attempt that failed -> seconds until the next try
WAITS = [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480)]


@pytest.mark.parametrize(("attempts", "seconds"), WAITS)
def test_the_nth_retry_waits_15_seconds_doubled_n_times(attempts, seconds):
    retry = retry_or_bury(attempts, PLAIN, NOW)
    assert retry.at == NOW + timedelta(seconds=seconds)
    assert not retry.dead
    assert retry.attempts == attempts


def test_five_retries_are_six_runs_and_930_seconds_of_waiting():
    waited, attempts = timedelta(), 1
    while not (retry := retry_or_bury(attempts, PLAIN, NOW)).dead:
        assert retry.at is not None
        waited, attempts = waited + (retry.at - NOW), attempts + 1
    assert attempts == 6
    assert waited == timedelta(seconds=930)


@pytest.mark.parametrize(
    ("policy", "own", "runs"), [(5, None, 6), (3, None, 4), (0, None, 1), (5, 0, 1), (5, 2, 3), (0, 2, 3)]
)
def test_the_retries_of_the_task_itself_come_before_those_of_the_policy(policy, own, runs):
    attempts = 1
    while not retry_or_bury(attempts, RetryPolicy(max_retries=policy), NOW, max_retries=own).dead:
        attempts += 1
    assert attempts == runs


def test_another_base_scales_every_wait():
    slow = RetryPolicy(base=timedelta(minutes=1), jitter=0.0)
    assert [delay(slow, n) / timedelta(minutes=1) for n in (1, 2, 3)] == [2, 4, 8]


retries = st.integers(1, 20)
seeds = st.text(max_size=12)
jitters = st.floats(0, 1)


@given(retries, seeds)
def test_the_default_jitter_only_lengthens_and_by_at_most_a_tenth(retry, seed):
    bare = delay(PLAIN, retry, seed)
    assert bare <= delay(RetryPolicy(), retry, seed) <= bare * 1.1


@given(retries, seeds, jitters)
def test_jitter_never_shortens_and_never_exceeds_its_share(retry, seed, jitter):
    bare = delay(PLAIN, retry, seed)
    assert bare <= delay(RetryPolicy(jitter=jitter), retry, seed) <= bare * (1 + jitter) + timedelta.resolution


@given(retries, seeds)
def test_the_same_task_waits_the_same_time_on_every_machine(retry, seed):
    assert delay(RetryPolicy(), retry, seed) == delay(RetryPolicy(), retry, seed)


def test_tasks_that_failed_together_do_not_come_back_together():
    assert len({delay(RetryPolicy(), 1, str(task)) for task in range(50)}) > 45


@given(st.integers(1, 10_000), st.integers(0, 10_000))
def test_however_often_a_task_may_be_tried_its_next_wait_is_a_real_instant(attempts, most):
    retry = retry_or_bury(attempts, RetryPolicy(max_retries=most), NOW)
    assert retry.dead is (attempts > most)
    if retry.at is not None:
        assert NOW + timedelta(seconds=30) <= retry.at < NOW + timedelta(days=365)


# ---- what becomes of a task when an attempt ends

AGENT = Agent(name="moss", address="moss", retries=PLAIN)
# What lets those of one quota begin apart.
SHARE = spread("moss", RELEASE).total_seconds()


def refused(kind: ErrorClass, retry_at: datetime | None = None) -> Ending:
    return Ending(exit_code=1, result=Result(error="402", error_class=kind, retry_at=retry_at))


TASKS = [  # ending, attempts before -> outcome, state, attempts after, seconds until the next try
    (Ending(exit_code=0), 0, Outcome.done, State.completed, 1, None),
    (Ending(exit_code=0), 4, Outcome.done, State.completed, 5, None),
    (Ending(exit_code=0, output="NO-WORK"), 0, Outcome.no_work, State.completed, 1, None),
    (Ending(exit_code=1), 0, Outcome.failed, State.failed, 1, 30),
    (Ending(exit_code=1), 1, Outcome.failed, State.failed, 2, 60),
    (Ending(exit_code=1), 4, Outcome.failed, State.failed, 5, 480),
    (Ending(exit_code=1), 5, Outcome.failed, State.dead_letter, 6, None),
    (Ending(timed_out=True), 0, Outcome.killed, State.failed, 1, 30),
    (Ending(timed_out=True), 5, Outcome.killed, State.dead_letter, 6, None),
    (Ending(over_limit="it used $2.00"), 0, Outcome.killed, State.failed, 1, 30),
    (Ending(over_limit="it used $2.00"), 5, Outcome.killed, State.dead_letter, 6, None),
    (Ending(lost=True), 0, Outcome.killed, State.failed, 1, 30),
    (Ending(lost=True), 5, Outcome.killed, State.dead_letter, 6, None),
    (refused(ErrorClass.quota), 5, Outcome.failed, State.pending, 5, 1800 + SHARE),
    (refused(ErrorClass.quota, NOW + timedelta(minutes=1)), 0, Outcome.failed, State.pending, 0, 60 + SHARE),
    (refused(ErrorClass.auth), 0, Outcome.failed, State.blocked, 1, None),
    (refused(ErrorClass.config), 5, Outcome.failed, State.blocked, 6, None),
    (Ending(out_of_memory=True, exit_code=137), 0, Outcome.failed, State.failed, 1, 30),
]


@pytest.mark.parametrize(("ending", "before", "outcome", "state", "after", "seconds"), TASKS)
def test_a_task_is_closed_tried_again_parked_or_dead(ending, before, outcome, state, after, seconds):
    fate = settle_task(1, before, None, ending, AGENT, NOW)
    assert (fate.outcome, fate.state, fate.attempts) == (outcome, state, after)
    assert fate.not_before == (seconds and NOW + timedelta(seconds=seconds))
    assert bool(fate.error) is (outcome in (Outcome.failed, Outcome.killed))


@pytest.mark.parametrize("before", [0, 5, 50])
def test_a_task_that_we_ended_ourselves_waits_again_without_an_attempt(before):
    fate = settle_task(1, before, None, Ending(signal=15, by="operator"), AGENT, NOW)
    assert (fate.state, fate.attempts) == (State.pending, before)
    assert fate.not_before is not None and fate.not_before > NOW


def test_a_one_off_without_retries_is_dead_after_its_first_failure():
    assert settle_task(1, 0, 0, Ending(exit_code=1), AGENT, NOW).state is State.dead_letter
