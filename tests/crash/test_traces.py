"""The checks of the long test with tasks see what they are there to see."""

from datetime import UTC, datetime, timedelta

import pytest

from soak.traces import (
    Trace,
    attempts_told,
    completed_once,
    ended_as_told,
    executions_apart,
    keys_in_order,
    read_traces,
    steps_once,
)
from wakeful.core.items import Item, Kind, MessageType, Origin, Priority, Ring, State
from wakeful.core.runs import Outcome
from wakeful.store.protocol import Attempt

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(second):
    return NOON + timedelta(seconds=second)


def trace(what, task=1, run=1, second=0, word="-"):
    return Trace(what, task, run, 100 + run, at(second), word)


def a_task(id=1, state=State.completed, closed=10, **more):
    given = {
        "attempts": 1,
        "max_retries": 1,
        "key": None,
        "result": '{"number": 1}',
        "payload": '{"number": 1}',
        **more,
    }
    return Item(
        id=id,
        kind=Kind.task,
        state=state,
        agent=None,
        role="clerk",
        sender=None,
        origin=Origin.operator,
        subject="",
        body="",
        type=MessageType.info,
        priority=Priority.normal,
        ring=Ring.silent,
        fingerprint="",
        shown=None,
        unanswered=0,
        source=None,
        external_id=None,
        not_before=None,
        error=None,
        created_at=NOON,
        closed_at=None if closed is None else at(closed),
        **given,
    )


def attempt(run=1, outcome=Outcome.done, error="", counted=True):
    return Attempt(
        run=run, started_at=NOON, ended_at=NOON, outcome=outcome, counted=counted, exit_code=None, error=error
    )


BEGIN, END = trace("begin"), trace("end", word="done", second=1)
SECOND = trace("begin", run=2, second=5), trace("end", run=2, word="done", second=6)


def only(found):
    (complaint,) = found
    return complaint


def test_executions_that_overlap_or_are_repeated_are_seen():
    assert list(executions_apart([BEGIN, END, *SECOND])) == []
    # One that was killed has no end; nothing of it may be there when the next one is.
    assert list(executions_apart([BEGIN, *SECOND])) == []
    assert "after run 2 had begun it" in only(executions_apart([BEGIN, SECOND[0], trace("alive"), SECOND[1]]))
    assert "after its end" in only(executions_apart([BEGIN, END, trace("alive")]))
    assert "begun twice in run 1" in only(executions_apart([BEGIN, END, BEGIN, END]))


def test_a_recorded_step_that_is_taken_again_is_seen():
    did, kept = trace("did", word="read"), trace("kept", word="read")
    again = trace("did", run=2, word="read")
    assert list(steps_once([did, again, kept, trace("did", word="write")])) == []
    assert "recorded, and executed again in run 2" in only(steps_once([did, kept, again]))


def test_a_completed_task_that_is_begun_again_or_was_never_done_is_seen():
    assert list(completed_once([BEGIN, END], {1: a_task()})) == []
    late = [trace("begin", run=2, second=11), trace("end", run=2, second=12, word="done")]
    assert "was completed at" in only(completed_once([BEGIN, END, *late], {1: a_task()}))
    assert "never executed to its end" in only(completed_once([BEGIN], {1: a_task()}))
    assert "knows nothing of it" in next(completed_once([BEGIN, END], {}))


def test_tasks_of_one_key_that_are_not_done_in_order_are_seen():
    tasks = {1: a_task(1, key="k", closed=2), 2: a_task(2, key="k", closed=9), 3: a_task(3)}
    later = trace("begin", task=2, run=2, second=5)
    assert list(keys_in_order([BEGIN, END, later], tasks)) == []
    assert "1 of its key was over at" in only(keys_in_order([trace("begin", task=2, run=2, second=1)], tasks))
    assert "when 2 of its key had begun" in only(keys_in_order([BEGIN, later, END], tasks))
    assert list(keys_in_order([BEGIN, trace("begin", task=3), END], tasks)) == []


def test_attempts_that_are_too_many_too_few_or_unknown_are_seen():
    dead = a_task(state=State.dead_letter, attempts=2)
    failed = [attempt(run, Outcome.failed, "no") for run in (1, 2)]
    assert list(attempts_told([BEGIN], {1: a_task()}, {1: [attempt()]})) == []
    assert list(attempts_told([], {1: dead}, {1: failed})) == []
    assert "its attempts are [2]" in only(attempts_told([BEGIN], {1: a_task()}, {1: [attempt(2)]}))
    assert "is completed with" in only(attempts_told([], {1: a_task()}, {1: [attempt(1), attempt(2)]}))
    assert "is dead after 2 attempts" in only(attempts_told([], {1: dead}, {1: failed[:1]}))
    silent = [failed[0], attempt(2, Outcome.failed)]
    assert "is dead after 2 attempts" in only(attempts_told([], {1: dead}, {1: silent}))
    assert "twice in one run" in next(attempts_told([], {1: dead}, {1: [failed[0], failed[0]]}))


@pytest.mark.parametrize(
    ("task", "complaint"),
    [
        (a_task(state=State.pending, closed=None), "is pending"),
        (a_task(closed=None), "never closed"),
        (a_task(payload='{"number": 1, "fails": "always"}'), "always fails"),
        (a_task(result='{"number": 2}'), "has the result"),
    ],
)
def test_a_task_that_is_not_over_or_ended_otherwise_is_seen(task, complaint):
    assert list(ended_as_told({1: a_task()})) == []
    assert complaint in only(ended_as_told({1: task}))


def test_a_line_that_a_kill_cut_short_is_not_read(tmp_path):
    (tmp_path / "witness").write_text("begin 1 2 3 4 1\nend 1 2 3")
    assert [(each.what, each.task, each.run, each.word) for each in read_traces(tmp_path / "witness")] == [
        ("begin", 1, 2, "1")
    ]
