"""Whoever dies, engine, worker or guardian, each task of a shift ends once; and what cannot be imported says so."""

import json
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.runners.function_case import HERE, OwnRunner, a_shift, ends
from wakeful.core.runs import ErrorClass, Outcome, describe, read_outcome
from wakeful.runners.held import UNTRIED
from wakeful.runners.protocol import Found
from wakeful.testing.contracts.runner_case import GRACE, Yard, real

DONE, FAILED, KILLED = Outcome.done, Outcome.failed, Outcome.killed

ENGINE = """
import asyncio, json, pathlib, pickle, sys
from wakeful.runners.function import FunctionRunner
from wakeful.runners.process import ProcessRunner

async def main():
    shift = pickle.loads(sys.stdin.buffer.read())
    runner = FunctionRunner(ProcessRunner(), pathlib.Path(sys.argv[1]))
    async for end in (await runner.start(shift)).tasks():
        print(end.task, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with Yard(tmp_path, lambda: OwnRunner(tmp_path / "workers")).open() as yard:
        yield yard


def an_engine(yard: Yard, shift) -> subprocess.Popen[bytes]:
    """An engine of its own process, with that shift under way."""
    source = str(HERE.parent.parent / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", ENGINE, str(yard.folder / "workers")]
    engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    engine.stdin.write(pickle.dumps(shift))
    engine.stdin.close()
    return engine


# ---- the engine


@real
async def test_a_killed_engine_loses_nothing_and_its_successor_hears_each_ending_once(yard):
    shift = a_shift(yard, ["text", "pid", "wait", "text", "exit 9", "pid"])
    engine = an_engine(yard, shift)
    assert [engine.stdout.readline() for _ in range(2)] == [b"1\n", b"2\n"]
    engine.kill()
    engine.wait()
    engine.stdout.close()
    runner = yard.runner
    assert runner.find(shift.folder) is Found.alive
    held = await runner.adopt(shift.run, shift.folder)
    (yard.folder / "enough").touch()
    heard = await ends(held)
    assert [read_outcome(heard[task].ending) for task in sorted(heard)] == [DONE, DONE, DONE, DONE, FAILED, DONE]
    assert heard[1].result == "read it"
    assert (await held.wait()).result.summary == "6 tasks: 5 done, 1 failed"


@real
async def test_a_shift_that_ended_while_no_engine_was_there_is_found_whole(yard):
    shift = a_shift(yard, ["text", "wait", "no work"])
    engine = an_engine(yard, shift)
    assert engine.stdout.readline() == b"1\n"
    engine.kill()
    engine.wait()
    engine.stdout.close()
    (yard.folder / "enough").touch()
    await yard.until(lambda: yard.runner.find(shift.folder) is Found.ended, "the end of the shift")
    await yard.until(lambda: not [*yard.alive()], "the end of a worker whom nobody hears")
    for _ in range(2):
        heard = await ends(await yard.another_runner().adopt(shift.run, shift.folder))
        assert [end.result for end in heard.values()] == ["read it", None, "NO-WORK: nothing new"]


@real
async def test_a_worker_whom_nobody_called_for_another_shift_is_gone_with_its_engine(yard):
    held = await yard.runner.start(a_shift(yard, ["pid"]))
    (end,) = (await ends(held)).values()
    await yard.runner.close()
    await yard.until(lambda: not Path(f"/proc/{end.result}").exists(), "the end of the worker")


# ---- the worker


@real
async def test_of_a_shift_whose_worker_was_killed_only_the_task_that_had_begun_was_tried(yard):
    runner = yard.runner
    shift = a_shift(yard, ["text", "wait and kill worker", "text", "text"])
    held = await runner.start(shift)
    async for end in held.tasks():
        assert end.task == 1
        (yard.folder / "enough").touch()
        break
    heard = await ends(held)
    assert [read_outcome(heard[task].ending) for task in sorted(heard)] == [DONE, KILLED, KILLED, KILLED]
    assert heard[2].ending.lost
    assert heard[3].ending == heard[4].ending == UNTRIED
    assert (await held.wait()).lost
    assert runner.find(shift.folder) is Found.lost
    again = await ends(await yard.another_runner().adopt(shift.run, shift.folder))
    assert again == heard


@real
async def test_a_killed_guardian_takes_its_worker_along(yard):
    shift = a_shift(yard, ["text", "hang in c"])
    held = await yard.runner.start(shift)
    await yard.until((yard.folder / "witness").exists, "the second task")
    os.kill(yard.guardian(shift).pid, signal.SIGKILL)
    heard = await ends(held)
    assert (read_outcome(heard[1].ending), heard[2].ending.lost) == (DONE, True)


@real
async def test_a_worker_that_was_killed_while_idle_is_replaced(yard):
    runner = yard.runner
    first = await ends(await runner.start(a_shift(yard, ["worker"])))
    os.kill(int(first[1].result), signal.SIGKILL)
    second = await ends(await runner.start(a_shift(yard, ["worker"])))
    assert second[1].ending.exit_code == 0
    assert second[1].result != first[1].result


@real
async def test_a_worker_that_is_asked_to_end_says_how_its_tasks_did(yard):
    shift = a_shift(yard, ["text", "hang", "text"], grace=timedelta(seconds=20))
    held = await yard.runner.start(shift)
    await yard.until((yard.folder / "witness").exists, "the second task")
    os.kill(yard.guardian(shift).pid, signal.SIGTERM)
    heard = await ends(held)
    assert [heard[task].ending.by for task in (1, 2, 3)] == [None, *["a signal to its worker"] * 2]
    assert yard.runner.find(shift.folder) is Found.ended


# ---- what cannot be imported


@real
@pytest.mark.parametrize(
    ("module", "handler", "told"),
    [
        (None, "desk:work", "cannot import desk: no module named desk"),
        ("import nowhere_to_be_found\n", "desk:work", "no module named nowhere_to_be_found"),
        ("def word(run): ...\n", "desk:work", "desk has no function work; did you mean word?"),
        ("work = 3\n", "desk:work", "desk:work is a int, not a function"),
        ("raise ValueError('no key')\n", "desk:work", "cannot import desk: ValueError: no key"),
        ("import os; os._exit(3)\n", "desk:work", "importing desk:work failed: the interpreter was gone: exit code 3"),
    ],
)
async def test_a_handler_that_cannot_be_imported_is_a_mistake_in_the_configuration(yard, module, handler, told):
    if module is not None:
        (yard.folder / "desk.py").write_text(module)
    shift = a_shift(yard, ["x", "y"], handler, root=yard.folder)
    held = await yard.runner.start(shift)
    heard = await ends(held)
    assert [read_outcome(end.ending) for end in heard.values()] == [FAILED, FAILED]
    assert {end.ending.result.error_class for end in heard.values()} == {ErrorClass.config}
    assert told in describe(heard[1].ending)
    assert yard.runner.find(shift.folder) is Found.ended
    assert await ends(await yard.another_runner().adopt(shift.run, shift.folder)) == heard


@real
async def test_a_handler_that_was_mended_is_found_by_the_next_shift(yard):
    module = yard.folder / "desk.py"
    module.write_text("def word(run): ...\n")
    for outcome in (FAILED, DONE):
        heard = await ends(await yard.runner.start(a_shift(yard, ["x"], "desk:work", root=yard.folder)))
        assert read_outcome(heard[1].ending) is outcome
        module.write_text("def work(run): ...  # mended\n")


@real
async def test_a_worker_that_is_struck_while_it_imports_is_replaced_for_nothing_was_the_handlers_fault(yard):
    once = "import os, signal\nif not os.path.exists('struck'):\n    open('struck', 'x')\n    os.kill({whom}, 9)\n"
    for whom in ("os.getpid()", "os.getppid()"):
        (yard.folder / "desk.py").write_text(once.format(whom=whom) + "def work(run): ...\n")
        shift = a_shift(yard, ["x", "y"], "desk:work", root=yard.folder)
        heard = await ends(await yard.runner.start(shift))
        assert [read_outcome(end.ending) for end in heard.values()] == [DONE, DONE]
        (shift.workdir / "struck").unlink()


@real
async def test_a_worker_that_is_struck_whenever_it_imports_is_an_ordinary_failure_in_the_end(yard):
    (yard.folder / "desk.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    heard = await ends(await yard.runner.start(a_shift(yard, ["x"], "desk:work", root=yard.folder)))
    assert read_outcome(heard[1].ending) is FAILED
    assert heard[1].ending.result.error_class is None
    assert "ended by signal 9" in describe(heard[1].ending)


@real
async def test_an_import_that_does_not_end_is_ended(yard):
    (yard.folder / "desk.py").write_text("import signal\nwhile True:\n    signal.pause()\n")
    runner = OwnRunner(yard.folder / "workers", import_limit=3 * GRACE)
    heard = await ends(await runner.start(a_shift(yard, ["x"], "desk:work", root=yard.folder)))
    await runner.close()
    assert read_outcome(heard[1].ending) is FAILED
    assert describe(heard[1].ending) == "importing desk:work failed: it took longer than 0.6 s"


@real
async def test_the_exit_record_of_a_shift_says_what_a_guardians_does(yard):
    shift = a_shift(yard, ["text", "raise"])
    await (await yard.runner.start(shift)).wait()
    record = json.loads((shift.folder / "exit.json").read_bytes())
    assert (record["version"], record["run"], record["epoch"], record["exit_code"]) == (1, shift.run, 1, 0)
    lines = [json.loads(line) for line in (shift.folder / "tasks.jsonl").read_text().splitlines()]
    assert lines[0]["tasks"] == [1, 2]
    assert [(line["version"], line["task"], line["exit_code"]) for line in lines[1:3]] == [(1, 1, 0), (1, 2, 1)]
    assert lines[3]["over"] is True


@real
async def test_an_engine_that_hears_too_slowly_holds_nobody_up(yard):
    """Its line is full while it looks elsewhere; the worker goes on, and everything is heard in the end."""
    shift = a_shift(yard, ["large"] * 32)
    held = await yard.runner.start(shift)
    await yard.until((shift.folder / "started").exists, "the start of the shift")
    # Not a word is read meanwhile: this loop is the engine's own.
    while not (shift.folder / "exit.json").exists():
        select.select([], [], [], 0.005)
    assert len(await ends(held)) == 32
