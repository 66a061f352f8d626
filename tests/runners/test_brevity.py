"""What a worker is told in short, and what most tasks say at their end, is what it would be in full."""

import asyncio
import json
import random
from datetime import timedelta

import pytest

from tests.runners.orders import NOW, an_item, an_order
from wakeful.core.items import Kind, MessageType, Origin, Priority, State
from wakeful.core.wakes import Subject
from wakeful.run import Run
from wakeful.runners.brevity import in_short
from wakeful.runners.briefing import briefing_data
from wakeful.runners.handlers import RECORD
from wakeful.runners.held import HeldShift
from wakeful.runners.shifts import plain_end, read_end, sum_up

PLAIN = {"sender": None, "origin": Origin.external, "body": "", "subject": "nothing"}
TASKS = [
    an_item(1, kind=Kind.task, state=State.in_progress, **PLAIN),
    an_item(2, kind=Kind.task, state=State.in_progress, **{**PLAIN, "role": "desk", "payload": '{"a": [1]}'}),
    an_item(3, kind=Kind.task, state=State.in_progress, attempts=2, error="no luck", tags=("a", "b"), key="k"),
    an_item(
        4,
        kind=Kind.task,
        state=State.in_progress,
        **{**PLAIN, "origin": Origin.operator, "type": MessageType.review_request, "priority": Priority.urgent},
        source="folder",
        timeout=timedelta(seconds=3),
        max_retries=0,
        created_at=NOW,
    ),
]


def test_whoever_asks_for_the_whole_gets_what_a_process_would_be_told():
    order = an_order(Subject.task, tasks=tuple(TASKS))
    whole = json.loads(json.dumps(briefing_data(order, "as defined")))
    short = json.loads(json.dumps(briefing_data(order, "as defined", unread=True)))

    assert Run(short, short["tasks"][0], lambda request: {}).briefing == whole


@pytest.mark.parametrize("index", range(len(TASKS)))
def test_a_task_in_short_is_the_same_task(index):
    order = an_order(Subject.task, tasks=tuple(TASKS))
    whole = json.loads(json.dumps(briefing_data(order, None)["tasks"][index]))
    short = json.loads(json.dumps(in_short(order)[index]))

    assert Run({}, short, lambda request: {}).task == Run({}, whole, lambda request: {}).task


def test_of_a_task_that_is_as_most_are_little_is_said():
    (short,) = in_short(an_order(Subject.task, tasks=(TASKS[0],)))

    assert set(short) == {"id", "title", "created_at", "attempt"}


def test_a_line_that_is_as_most_are_is_read_as_every_other_one():
    chance = random.Random(5)
    for _ in range(200):
        task, elapsed = chance.randrange(1 << 40), chance.choice([0.0, 1e-6, 0.5, 59.999999, 86_400.25, 1e6])
        line = (RECORD % (task, '"exit_code": 0, "outcome": "done"', elapsed, 1_700_000_000.5)).encode().rstrip()
        plain, (whose, ending, result) = plain_end(line), read_end(json.loads(line))

        assert plain is not None
        assert (plain.task, plain.ending, plain.result) == (whose, ending, result)


@pytest.mark.parametrize(
    "line",
    [
        b'{"version": 1, "task": 7, "exit_code": 1, "error": "x", "elapsed": 0.000010, "ended_at": 1.000}',
        b'{"version": 1, "task": null, "exit_code": 0, "outcome": "done", "elapsed": 0.000010, "ended_at": 1.000}',
        b'{"version": 1, "task": 7, "exit_code": 0, "outcome": "done", "elapsed": 0.000010, "output": "x"}',
        b'{"version": 2, "task": 7, "exit_code": 0, "outcome": "done", "elapsed": 0.000010, "ended_at": 1.000}',
    ],
)
def test_a_line_that_says_anything_else_is_not_taken_for_one(line):
    assert plain_end(line) is None


def test_a_shift_is_summed_up_alike_whichever_way_its_lines_were_read(tmp_path):
    asyncio.run(_summed_up_alike(tmp_path))


async def _summed_up_alike(tmp_path):
    done = b'{"version": 1, "task": %d, "exit_code": 0, "outcome": "done", "elapsed": 0.000010, "ended_at": 1.000}'
    failed = b'{"version": 1, "task": 3, "exit_code": 1, "error": "x", "elapsed": 0.000010, "ended_at": 1.000}'
    lines = [done % 1, done % 2, failed]
    held = HeldShift(1, tmp_path, (1, 2, 3))
    held.hear(lines)
    again = HeldShift(1, tmp_path, (1, 2, 3))
    again.hear([json.loads(line) for line in lines])

    assert held._ends == again._ends
    assert sum_up(held._ends, None, timedelta()).result == sum_up(again._ends, None, timedelta()).result
    assert sum_up(held._ends, None, timedelta()).result.summary == "3 tasks: 2 done, 1 failed"
