"""Many starts, cancelled starts, and a nursery that dies under them: each order is carried out once or not at all."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from soak.caller import ROOT, as_json
from wakeful.runners.cage import available
from wakeful.runners.processes import start_time, stat_fields
from wakeful.runners.protocol import Found
from wakeful.testing.contracts.runner_case import real

HERE = ["/bin/sh", "-c", 'echo "$RUN here" >> "$WITNESS"']


def nurseries(yard) -> list[int]:
    """The living children of ours that bear the marker."""
    return [pid for pid, _ in yard.alive() if stat_fields(pid)[1:2] == [str(os.getpid())]]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def ended(yard, assignment) -> None:
    held = await yard.runner.start(assignment)
    assert (await held.wait()).exit_code == 0


@real
async def test_a_nursery_that_was_killed_between_starts_is_replaced(yard):
    for _ in range(3):
        await ended(yard, yard.assign(HERE))
        (nursery,) = nurseries(yard)
        yard.note_cages()
        os.kill(nursery, signal.SIGKILL)
    await ended(yard, yard.assign(HERE))


@real
async def test_what_killed_guardians_left_of_their_cages_is_swept_by_the_next_nursery(yard):
    await ended(yard, yard.assign(HERE))
    (nursery,) = nurseries(yard)
    spares = [pid for pid, _ in yard.alive() if stat_fields(pid)[1:2] == [str(nursery)]]
    names = [f"wakeful-{pid}-{start_time(pid)}" for pid in spares]
    for pid in (nursery, *spares):
        # A spare that hears of its nursery's end first has ended by itself.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await yard.until(lambda: yard.alive() == [], "all of them to be gone")
    await ended(yard, yard.assign(HERE))
    folders = [os.path.join(folder, name) for folder in available().values() for name in names]
    assert [folder for folder in folders if os.path.isdir(folder)] == []


@real
async def test_a_nursery_that_is_killed_under_many_starts_costs_none_of_them_and_doubles_none(yard):
    """Orders of different sizes, some too long to be handed over at one stroke."""
    await ended(yard, yard.assign(HERE))
    assignments = []
    for number in range(40):
        assignment = yard.assign(HERE)
        more = {"PADDING": "x" * (100_000 if number % 4 == 0 else 100)}
        assignment.environment.update(more)
        assignments.append(assignment)
    starts = [asyncio.ensure_future(yard.runner.start(each)) for each in assignments]
    for count in (5, 20):
        await yard.until(lambda count=count: sum(map(bool, map(yard.said, assignments))) >= count, "some of them")
        yard.note_cages()
        for nursery in nurseries(yard):
            os.kill(nursery, signal.SIGKILL)
    holds = await asyncio.gather(*starts)
    assert [(await held.wait()).exit_code for held in holds] == [0] * 40
    assert [len(yard.said(each)) for each in assignments] == [1] * 40


@real
async def test_a_nursery_that_is_frozen_for_a_while_only_delays_a_start(yard):
    await ended(yard, yard.assign(HERE))
    (nursery,) = nurseries(yard)
    os.kill(nursery, signal.SIGSTOP)
    start = asyncio.ensure_future(yard.runner.start(yard.assign(HERE)))
    await yard.until(lambda: stat_fields(nursery)[0] == "T", "the nursery to stop")
    assert not start.done()
    os.kill(nursery, signal.SIGCONT)
    assert (await (await start).wait()).exit_code == 0


@real
async def test_fifty_runs_at_the_same_time_are_held_and_ended(yard):
    assignments = [yard.assign(["/bin/sh", "-c", 'echo "$RUN here" >> "$WITNESS"; exec sleep 60']) for _ in range(50)]
    holds = await asyncio.gather(*(yard.runner.start(each) for each in assignments))
    assert [held.run for held in holds] == [each.run for each in assignments]
    for each in assignments:
        await yard.hear(each)
    assert {yard.runner.find(each.folder) for each in assignments} == {Found.alive}
    await asyncio.gather(*(held.end("operator") for held in holds))
    assert {(await held.wait()).by for held in holds} == {"operator"}


@real
async def test_starts_that_are_cancelled_leave_nothing_open_and_confuse_nobody(yard):
    await ended(yard, yard.assign(HERE))
    before = open_files()
    assignments = [yard.assign(HERE) for _ in range(20)]
    starts = [asyncio.ensure_future(yard.runner.start(each)) for each in assignments]
    for number, start in enumerate(starts):
        if number % 2:
            # In their very first moments: a few turns of the loop after they began.
            await yard.turn(number % 7)
            start.cancel()
    kept = [await start for number, start in enumerate(starts) if not number % 2]
    assert [held.run for held in kept] == [each.run for each in assignments[::2]]
    assert {(await held.wait()).exit_code for held in kept} == {0}
    for each in assignments[1::2]:
        if not yard.runner.veto(each.folder):
            adopted = await yard.runner.adopt(each.run, each.folder)
            assert (await adopted.wait()).exit_code == 0
    assert all(len(yard.said(each)) <= 1 for each in assignments)
    await yard.until(lambda: open_files() <= before, f"{open_files()} open files to be {before} again", limit=10)


@real
async def test_runs_leave_no_file_open_in_the_caller(yard):
    await ended(yard, yard.assign(HERE))
    before = open_files()
    for _ in range(5):
        await ended(yard, yard.assign(HERE))
        held = await yard.runner.adopt(1, Path(yard.folder / "runs" / "1"))
        await held.wait()
    assert open_files() == before


ENGINE = """
import asyncio, sys
from pathlib import Path
from soak.caller import from_json
from wakeful.runners.process import ProcessRunner

async def main():
    await ProcessRunner().start(from_json(sys.stdin.readline()))
    print("held", flush=True)

asyncio.run(main())
"""


@real
async def test_runs_do_not_keep_the_output_of_the_caller_open(yard):
    """Whoever reads what the engine prints sees its end when the engine ends, not when its last run does."""
    assignment = yard.assign(["/bin/sh", "-c", 'echo "$RUN here" >> "$WITNESS"; exec sleep 60'])
    command = [sys.executable, "-c", ENGINE]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    engine = await asyncio.to_thread(
        subprocess.run,
        command,
        input=as_json(assignment) + "\n",
        capture_output=True,
        text=True,
        timeout=20,
        env=environment,
    )
    assert engine.stdout == "held\n", engine.stderr
    await yard.hear(assignment)
    held = await yard.runner.adopt(assignment.run, assignment.folder)
    await held.end("operator")
    assert (await held.wait()).by == "operator"
