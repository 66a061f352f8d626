"""A run that was lost with its node, or taken by its fence: what it counts for, and when it is tried again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.agents import Agent, RetryPolicy
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.items import State as TaskState
from wakeful.core.lifecycle import Lifecycle, Position, State
from wakeful.core.runs import FENCING, Ending, Outcome, Result, Run, describe, is_attempt, read_outcome
from wakeful.core.settlement import settle, settle_task
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Subject

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = Lifecycle("add", (State("add", repeat=3, next="audit"), State("audit", next="add")))
AGENT = Agent(
    name="moss",
    address="moss",
    lifecycle=DAY,
    cadence=Cadence(interval=10 * MINUTE),
    retries=RetryPolicy(jitter=0.0),
)
STANDING = Standing(agent="moss", position=Position("add", 1), idle_streak=2, due_at=NOW + MINUTE)
CAUSES = {Subject.beat: Cause.timer, Subject.inbox: Cause.peer, Subject.task: Cause.task}
ORPHANED = Ending(orphaned=True)
FENCED = Ending(by=FENCING)


def end(subject: Subject, ending: Ending, failures: int = 0, *, agent: Agent = AGENT, attempt: int = 1):
    standing = replace(STANDING, failure_streak=failures)
    run = Run(
        id=1,
        agent="moss",
        wake=1,
        cause=CAUSES[subject],
        subject=subject,
        version=1,
        position=standing.position,
        attempt=attempt,
        reserved=Spend(usd=50),
    )
    return settle(run, ending, standing, agent, NOW, began_with=DAY)


def test_an_orphan_is_killed_and_an_attempt_and_says_that_its_node_was_gone():
    assert read_outcome(ORPHANED) is Outcome.killed
    assert is_attempt(ORPHANED)
    assert describe(ORPHANED) == "its node was gone"
    assert describe(replace(ORPHANED, by="ada")) == "ended by ada"


def test_whatever_an_orphan_seems_to_have_said_it_is_killed():
    said = replace(ORPHANED, exit_code=0, output="NO-WORK", result=Result(outcome="done"))
    assert read_outcome(said) is Outcome.killed


def test_a_fenced_run_says_why_it_was_ended():
    assert describe(FENCED) == "ended by fencing: its lease was not renewed in time"


# ---- a beat


@pytest.mark.parametrize(("failures", "wait"), [(0, timedelta()), (1, 10 * MINUTE), (2, 10 * MINUTE)])
def test_the_first_beat_lost_in_a_row_is_due_at_once_and_later_ones_at_the_interval(failures, wait):
    settled = end(Subject.beat, ORPHANED, failures)
    assert settled.standing.due_at == NOW + wait
    assert settled.standing.failure_streak == failures + 1
    assert settled.standing.position == STANDING.position
    assert settled.standing.idle_streak == STANDING.idle_streak
    assert not settled.answered


CADENCES = [Cadence(schedule=parse_schedule("0 * * * *")), Cadence(continuous=True), Cadence()]


@pytest.mark.parametrize("cadence", CADENCES, ids=["scheduled", "continuous", "without a timer"])
def test_whatever_its_cadence_the_first_loss_of_a_beat_is_made_good_at_once(cadence):
    agent = replace(AGENT, cadence=cadence)
    assert end(Subject.beat, ORPHANED, agent=agent).standing.due_at == NOW
    later = end(Subject.beat, ORPHANED, 1, agent=agent).standing.due_at
    assert later is None if cadence == Cadence() else later > NOW


def test_a_beat_that_keeps_losing_its_nodes_is_quarantined():
    settled = end(Subject.beat, ORPHANED, 4)
    assert settled.pause is not None
    assert settled.pause.owner == "quarantine"
    assert settled.pause.reason == "5 beats failed in a row; the last: its node was gone"


def test_a_lost_run_settles_at_its_reservation():
    settled = end(Subject.beat, ORPHANED)
    assert (settled.bill.spend, settled.bill.estimated) == (Spend(usd=50), True)


# ---- an inbox run


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 0), (2, 60), (3, 120), (4, None)])
def test_the_first_loss_of_an_inbox_run_is_tried_again_at_once_and_later_ones_as_any_failure(attempt, seconds):
    settled = end(Subject.inbox, ORPHANED, attempt=attempt)
    assert settled.retry_at == (None if seconds is None else NOW + timedelta(seconds=seconds))
    assert settled.standing.due_at == STANDING.due_at
    assert settled.standing.failure_streak == 0


# ---- a task


@pytest.mark.parametrize(("before", "seconds"), [(0, 0), (1, 60), (2, 120)])
def test_the_first_loss_of_a_task_is_tried_again_at_once_and_later_ones_as_any_failure(before, seconds):
    fate = settle_task(1, before, None, ORPHANED, AGENT, NOW)
    assert (fate.state, fate.attempts) == (TaskState.failed, before + 1)
    assert fate.not_before == NOW + timedelta(seconds=seconds)
    assert fate.error == "its node was gone"


def test_a_lost_task_without_retries_is_dead_and_not_tried_again():
    fate = settle_task(1, 0, 0, ORPHANED, AGENT, NOW)
    assert (fate.state, fate.not_before) == (TaskState.dead_letter, None)


def test_what_takes_its_node_with_it_each_time_is_buried():
    fate = settle_task(1, AGENT.retries.max_retries, None, ORPHANED, AGENT, NOW)
    assert (fate.state, fate.not_before) == (TaskState.dead_letter, None)


# ---- the fence


@pytest.mark.parametrize("failures", [0, 3])
def test_a_fenced_beat_counts_for_nothing_and_is_tried_at_once_where_nothing_failed_before(failures):
    settled = end(Subject.beat, FENCED, failures)
    assert settled.outcome is Outcome.killed
    assert settled.standing.failure_streak == failures
    assert settled.standing.due_at == (NOW + 10 * MINUTE if failures else NOW)
    assert settled.pause is None


def test_a_fenced_inbox_run_and_a_fenced_task_are_tried_at_once():
    assert end(Subject.inbox, FENCED).retry_at == NOW
    assert end(Subject.inbox, FENCED, attempt=2).retry_at is None
    fate = settle_task(1, 0, None, FENCED, AGENT, NOW)
    assert (fate.state, fate.attempts, fate.not_before) == (TaskState.pending, 0, NOW)
    assert settle_task(1, 1, None, FENCED, AGENT, NOW).not_before == NOW + timedelta(seconds=30)


# ---- properties

endings = st.builds(
    Ending,
    exit_code=st.sampled_from([None, 0, 1]),
    timed_out=st.booleans(),
    lost=st.booleans(),
    by=st.sampled_from([None, "ada"]),
)


@given(st.sampled_from(Subject), endings, st.integers(0, 5), st.integers(1, 5))
def test_nothing_else_is_ever_tried_again_at_once(subject, ending, failures, attempt):
    settled = end(subject, ending, failures, attempt=attempt)
    assert settled.standing.due_at != NOW
    assert settled.retry_at != NOW
    assert settle_task(1, attempt, None, ending, AGENT, NOW).not_before != NOW


@given(st.sampled_from(Subject), endings, st.integers(0, 5), st.integers(1, 5))
def test_an_end_on_purpose_stays_one_although_the_node_is_gone_too(subject, ending, failures, attempt):
    by_ada = replace(ending, by="ada")
    assert end(subject, replace(by_ada, orphaned=True), failures, attempt=attempt) == end(
        subject, by_ada, failures, attempt=attempt
    )
