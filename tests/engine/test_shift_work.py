"""Tasks in the hands of real workers: cancelled, timed out, told of, and dead after as many attempts as they have."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.engine.work import Desk, until, worked
from wakeful.core.items import State

SECOND = timedelta(seconds=1)


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "desk")
    yield desk
    desk.close()


async def ended(desk, *tasks):
    """Until every attempt at these has ended."""
    await until(lambda: all(each.ended_at for task in tasks for each in desk.attempts(task) or [None]))


# -- cancel


@worked
async def test_a_cancelled_task_under_way_is_ended_alone_and_its_shift_goes_on(desk):
    desk.declare(desk.handler())
    first, second, third = desk.add("sleep", "nothing", "nothing")
    async with desk.open():
        await until(lambda: desk.marks() == [first])
        desk.change(first, "cancel")
        await until(lambda: desk.states([second, third]) == [State.completed] * 2)
        await ended(desk, first)
        assert desk.item(first).state is State.cancelled
        (attempt,) = desk.attempts(first)
        assert (attempt.outcome, attempt.counted, attempt.error) == ("killed", False, "ended by rana")
        (run,) = desk.store.runs()
        assert {attempt.run for attempt in desk.attempts(second)} == {run.id}
        await until(lambda: desk.store.run(run.id).outcome == "done")


@worked
async def test_a_cancelled_task_that_has_not_begun_never_does(desk):
    desk.declare(desk.handler())
    first, second, third = desk.add("hold", "hold", "nothing")
    async with desk.open():
        await until(lambda: desk.marks() == [first])
        desk.change(second, "cancel")
        await ended(desk, second)
        (desk.folder / "go").touch()
        await until(lambda: desk.states([first, third]) == [State.completed] * 2)
    assert desk.marks() == [first]
    assert desk.item(second).state is State.cancelled


@worked
async def test_a_cancel_that_comes_with_the_end_leaves_the_task_cancelled_and_the_shift_whole(desk):
    desk.declare(desk.handler())
    tasks = desk.add(*["nothing"] * 20)
    async with desk.open():
        await until(lambda: any(state is State.in_progress for state in desk.states(tasks)))
        cancelled = []
        for task in tasks:
            if desk.item(task).state not in (State.completed, State.cancelled):
                try:
                    desk.change(task, "cancel")
                    cancelled.append(task)
                except Exception as error:
                    assert "already" in str(error)
        await until(lambda: not {State.in_progress, State.pending} & set(desk.states(tasks)))
        await until(lambda: not desk.store.runs(open=True))
        await ended(desk, *(task for task in tasks if desk.attempts(task)))
    assert [desk.item(task).state for task in cancelled] == [State.cancelled] * len(cancelled)
    assert all(desk.item(task).state is State.completed for task in tasks if task not in cancelled)


@worked
async def test_a_process_whose_only_task_is_cancelled_is_ended_with_all_that_it_started(desk):
    desk.declare(desk.program("touch begun; sleep 300 & sleep 300"))
    (task,) = desk.add("x")
    async with desk.open():
        work = desk.data / "work" / "moss"
        await until(lambda: (work / "begun").exists())
        desk.change(task, "cancel")
        (run,) = await until(lambda: [row for row in desk.store.runs() if row.outcome])
        assert (run.outcome, run.reason) == ("killed", "ended by rana")
        await ended(desk, task)
        (attempt,) = desk.attempts(task)
        assert (attempt.counted, desk.item(task).state, desk.item(task).attempts) == (False, State.cancelled, 0)
        await until(lambda: not _alive("sleep 300"))


def _alive(command):
    import pathlib

    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode().strip())
        except OSError:
            continue
    return command in found


@worked
async def test_a_task_that_is_completed_by_hand_while_it_runs_is_taken_from_its_run(desk):
    desk.declare(desk.handler())
    (task,) = desk.add("sleep")
    async with desk.open():
        await until(lambda: desk.marks() == [task])
        desk.change(task, "complete", result="by hand")
        await ended(desk, task)
    assert (desk.item(task).state, desk.item(task).result) == (State.completed, "by hand")


# -- the time that a task may take


@worked
async def test_a_task_of_a_shift_is_ended_at_its_own_limit_and_the_next_begins(desk):
    desk.declare(desk.handler(timeout="1h", max_retries="0"))
    (slow,) = desk.add("sleep", timeout=SECOND)
    (next_one,) = desk.add("nothing")
    async with desk.open():
        await until(lambda: desk.states([slow, next_one]) == [State.dead_letter, State.completed])
        (attempt,) = desk.attempts(slow)
        assert (attempt.outcome, attempt.counted) == ("killed", True)
        assert "wall clock" in attempt.error


@worked
async def test_a_process_is_ended_at_the_limit_of_its_task(desk):
    desk.declare(desk.program("echo said; echo $WAKEFUL_DEADLINE; exec sleep 300", timeout="1h", max_retries="0"))
    (task,) = desk.add("x", timeout=SECOND)
    before = datetime.now(UTC)
    async with desk.open():
        await until(lambda: desk.item(task).state is State.dead_letter)
        (attempt,) = desk.attempts(task)
    said, deadline = attempt.output.splitlines()
    assert (said, "wall clock" in attempt.error) == ("said", True)
    assert before + SECOND <= datetime.fromisoformat(deadline) <= before + 10 * SECOND


# -- what it is told, and what it leaves


@worked
async def test_a_handler_is_told_the_payload_the_description_the_tags_and_the_limit(desk):
    desk.declare(desk.handler())
    payload = {"deed": "told", "deep": [1, {"ü": None}]}
    (task,) = desk.add(payload, body="in words", tags=("blue", "green"), timeout=90 * SECOND)
    (plain,) = desk.add("told", payload=None, body='"told"')
    async with desk.open():
        await until(lambda: desk.states([task, plain]) == [State.completed] * 2)
    told = json.loads(desk.item(task).result)
    deadline = datetime.fromisoformat(told.pop("deadline"))
    assert abs((deadline - datetime.now(UTC)).total_seconds() - 90) < 30
    known = {"payload": payload, "description": "in words", "tags": ["blue", "green"], "timeout": 90.0}
    assert told == {**known, "left": 90, "task": str(task)}
    other = json.loads(desk.item(plain).result)
    assert (other["payload"], other["description"], other["left"], other["timeout"]) == ("told", '"told"', 1800, None)


@worked
async def test_what_a_process_writes_as_its_result_is_that_of_the_task(desk):
    desk.declare(
        desk.program(
            'grep -q "secret plan" && grep -q "\\"deep\\": 1" "$WAKEFUL_BRIEFING" || exit 9\n'
            'echo \'{"summary": "short", "result": {"pages": [1, 2]}}\' > "$WAKEFUL_RESULT"; echo out; echo err >&2'
        )
    )
    (task,) = desk.add({"deep": 1}, body="the secret plan")
    async with desk.open():
        await until(lambda: desk.item(task).state is State.completed)
    assert json.loads(desk.item(task).result) == {"pages": [1, 2]}
    (attempt,) = desk.attempts(task)
    assert (attempt.output, attempt.exit_code) == ("out\nerr\n", 0)


@worked
async def test_what_a_handler_leaves_behind_is_kept_without_what_is_secret_here(desk):
    desk.hide = lambda text: text.replace("sesame", "[redacted]")
    desk.declare(desk.handler(max_retries="0"))
    (told,) = desk.add({"deed": "told", "deep": "open sesame"})
    async with desk.open():
        await until(lambda: desk.item(told).state is State.completed)
    assert json.loads(desk.item(told).result)["payload"]["deep"] == "open [redacted]"


@worked
async def test_the_last_of_what_an_attempt_printed_is_kept_with_it(desk):
    desk.declare(desk.handler(max_retries="0"))
    loud, quiet, broken = desk.add("say", "nothing", "crash")
    async with desk.open():
        await until(lambda: desk.states([loud, quiet, broken])[2] is State.dead_letter)
        assert desk.attempts(loud)[0].output.endswith("xxxthe last words\n")
        assert 4_000 <= len(desk.attempts(loud)[0].output) < 4_100
        assert desk.attempts(quiet)[0].output == ""
        assert "about to fall" in desk.attempts(broken)[0].output


# -- tasks that kill


def has_tried(desk, task, attempts):
    return desk.item(task).attempts == attempts


@pytest.mark.parametrize("deed", ["crash", "kill worker", "kill guardian"])
@worked
async def test_a_task_that_kills_what_does_it_is_dead_after_its_last_retry_and_harms_no_other(desk, deed):
    desk.declare(desk.handler(max_retries="2"))
    before, killer, after = desk.add("nothing", deed, "nothing")
    async with desk.open() as engine:
        for attempt in (1, 2, 3):
            await until(partial(has_tried, desk, killer, attempt))
            desk.later()
        await until(lambda: desk.item(killer).state is State.dead_letter)
        await until(lambda: desk.states([before, after]) == [State.completed] * 2)
        turns = engine.loop.turns
        desk.later(timedelta(days=1))
        await until(lambda: engine.loop.turns > turns + 1)
    assert desk.marks() == [killer] * 3
    tried = desk.attempts(killer)
    assert [(each.counted, bool(each.error)) for each in tried] == [(True, True)] * 3
    # What had not begun when its worker was lost was not tried: that costs it nothing.
    assert [sum(each.counted for each in desk.attempts(task)) for task in (before, after)] == [1, 1]
