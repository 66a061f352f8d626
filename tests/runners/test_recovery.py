"""Callers and guardians that are killed: what a run came to is found in its folder, by whoever looks there next."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

from soak import agents
from soak.caller import ROOT, Caller
from tests.runners.test_process_behaviours import agent, still_there
from wakeful.core.runs import Outcome, read_outcome
from wakeful.runners.process import ProcessRunner
from wakeful.runners.processes import boot_id, start_time
from wakeful.runners.protocol import EXIT, STARTED, STDERR, STDOUT, Found
from wakeful.testing.contracts.runner_case import real

UNTIL_ENOUGH = ["/bin/sh", "-c", 'echo "$RUN here" >> "$WITNESS"; while [ ! -e enough ]; do sleep 0.02; done; exit 4']
ORPHANS_GONE = 15.0


def a_caller(*assignments) -> Caller:
    caller = Caller(list(assignments))
    for each in assignments:
        caller.hear(f"held {each.run}")
    return caller


# ---- the caller is killed


@real
async def test_a_run_outlives_its_caller_and_is_adopted_with_its_own_ending(yard):
    assignment = yard.assign(UNTIL_ENOUGH)
    caller = a_caller(assignment)
    await yard.hear(assignment)
    caller.kill()
    assert yard.runner.find(assignment.folder) is Found.alive
    held = await yard.runner.adopt(assignment.run, assignment.folder)
    (yard.folder / "enough").touch()
    assert (await held.wait()).exit_code == 4
    assert yard.said(assignment) == ["here"]


@real
async def test_a_run_that_ended_while_nobody_looked_is_adopted_with_its_own_ending(yard):
    assignment = yard.assign(UNTIL_ENOUGH)
    caller = a_caller(assignment)
    await yard.hear(assignment)
    caller.kill()
    (yard.folder / "enough").touch()
    await yard.until((assignment.folder / EXIT).exists, "the exit record")
    written = (assignment.folder / EXIT).read_bytes()
    assert yard.runner.find(assignment.folder) is Found.ended
    endings = [await (await yard.runner.adopt(assignment.run, assignment.folder)).wait() for _ in range(3)]
    assert {ending.exit_code for ending in endings} == {4}
    assert len(set(endings)) == 1
    assert (assignment.folder / EXIT).read_bytes() == written
    assert yard.said(assignment) == ["here"]


@real
async def test_the_wall_clock_goes_on_without_a_caller(yard):
    assignment = agent(yard, agents.ignores_signals, wall_clock=yard.grace)
    caller = a_caller(assignment)
    caller.kill()
    await yard.until((assignment.folder / EXIT).exists, "the exit record", limit=ORPHANS_GONE)
    held = await yard.runner.adopt(assignment.run, assignment.folder)
    assert (await held.wait()).timed_out


@real
async def test_what_a_run_printed_is_kept_although_its_guardian_was_killed(yard):
    assignment = yard.assign(["/bin/sh", "-c", 'echo half; echo "not yet" >&2; exec sleep 60'])
    held = await yard.runner.start(assignment)
    for name in (STDOUT, STDERR):
        file = assignment.folder / name
        await yard.until(lambda file=file: file.exists() and file.stat().st_size > 0, "what it prints")
    os.kill(yard.guardian(assignment).pid, signal.SIGKILL)
    ending = await held.wait()
    assert (ending.lost, ending.printed) == (True, "half\nnot yet\n")


@real
async def test_the_spare_guardians_of_a_caller_that_was_killed_go_with_it(yard):
    assignment = yard.assign(["/bin/true"])
    caller = a_caller(assignment)
    caller.hear(f"ended {assignment.run}")
    yard.note_cages()
    assert len(yard.alive()) >= 2
    caller.kill()
    await yard.until(lambda: yard.alive() == [], "everybody to go", limit=ORPHANS_GONE)


# ---- the caller and the guardian are killed


@real
async def test_what_a_killed_caller_and_a_killed_guardian_left_is_ended_and_the_run_is_lost(yard):
    assignment = agent(yard, agents.daemons, 5, "stays")
    caller = a_caller(assignment)
    await yard.hear(assignment, 5)
    caller.kill()
    os.kill(yard.guardian(assignment).pid, signal.SIGKILL)
    await yard.until(lambda: not yard.guardian(assignment).alive(), "the guardian to be gone")
    assert len(still_there(yard, assignment)) == 5
    started = time.monotonic()
    assert yard.runner.find(assignment.folder) is Found.lost
    held = await yard.runner.adopt(assignment.run, assignment.folder)
    ending = await held.wait()
    assert (ending.lost, read_outcome(ending), ending.by) == (True, Outcome.killed, None)
    assert still_there(yard, assignment) == []
    assert time.monotonic() - started <= ORPHANS_GONE


@real
async def test_an_agent_does_not_outlive_its_guardian(yard):
    assignment = agent(yard, agents.ignores_signals)
    caller = a_caller(assignment)
    await yard.hear(assignment)
    caller.kill()
    os.kill(yard.guardian(assignment).pid, signal.SIGKILL)
    await yard.until(lambda: yard.alive() == [], "the agent to be gone", limit=ORPHANS_GONE)
    assert (await (await yard.runner.adopt(assignment.run, assignment.folder)).wait()).lost


# ---- whom not to trust


IMPOSTORS: dict[str, dict[str, object]] = {
    "another start time": {"start_time": 1},
    "another boot": {"boot_id": "00000000-0000-0000-0000-000000000000"},
    "no boot": {"boot_id": ""},
    "nobody": {"pid": 0},
}


@real
async def test_a_living_process_that_merely_has_the_number_of_a_guardian_is_not_adopted_nor_harmed(yard):
    stranger = subprocess.Popen(["sleep", "60"])
    true = {"pid": stranger.pid, "start_time": start_time(stranger.pid), "boot_id": boot_id(), "cage": {}}
    for what, lie in IMPOSTORS.items():
        assignment = yard.assign(["/bin/true"])
        assignment.folder.mkdir(parents=True)
        (assignment.folder / STARTED).write_text(json.dumps({**true, **lie}))
        assert yard.runner.find(assignment.folder) is Found.lost, what
        held = await yard.runner.adopt(assignment.run, assignment.folder)
        assert (await held.wait()).lost, what
        await held.end("operator", at_once=True)
        assert stranger.poll() is None, what
    stranger.kill()
    stranger.wait()


@real
async def test_a_cage_of_an_earlier_boot_is_left_alone(yard):
    innocent = yard.assign(UNTIL_ENOUGH)
    alive = await yard.runner.start(innocent)
    await yard.hear(innocent)
    lost = yard.assign(["/bin/true"])
    lost.folder.mkdir(parents=True)
    told = {"pid": 1, "start_time": 1, "boot_id": "earlier", "cage": yard.guardian(innocent).cage}
    (lost.folder / STARTED).write_text(json.dumps(told))
    assert (await (await yard.runner.adopt(lost.run, lost.folder)).wait()).lost
    (yard.folder / "enough").touch()
    assert (await alive.wait()).exit_code == 4


UNREADABLE = [b"", b"{", b"[]", b"null", b'"a word"', b"\xff\x00"]


@real
async def test_a_started_file_that_cannot_be_read_is_a_lost_run_and_cannot_be_vetoed(yard):
    for content in [*UNREADABLE, b'{"pid": "x"}']:
        assignment = yard.assign(["/bin/true"])
        assignment.folder.mkdir(parents=True)
        (assignment.folder / STARTED).write_bytes(content)
        assert yard.runner.find(assignment.folder) is Found.lost, content
        assert not yard.runner.veto(assignment.folder), content
        assert (await (await yard.runner.adopt(assignment.run, assignment.folder)).wait()).lost, content


@real
async def test_an_exit_record_that_cannot_be_read_is_a_lost_run(yard):
    assignment = yard.assign(["/bin/true"])
    held = await yard.runner.start(assignment)
    await held.wait()
    for content in UNREADABLE:
        (assignment.folder / EXIT).write_bytes(content)
        adopted = await yard.runner.adopt(assignment.run, assignment.folder)
        assert (await adopted.wait()).lost, content


@real
async def test_an_exit_record_of_a_newer_kind_is_believed_for_what_we_know_of_it(yard):
    assignment = yard.assign(["/bin/sh", "-c", "exit 3"])
    held = await yard.runner.start(assignment)
    await held.wait()
    record = yard.record(assignment)
    (assignment.folder / EXIT).write_text(json.dumps({**record, "version": 2, "colour": "green"}))
    adopted = await yard.runner.adopt(assignment.run, assignment.folder)
    assert (await adopted.wait()).exit_code == 3


# ---- the start and the veto


@real
async def test_of_a_start_and_a_veto_by_another_process_exactly_one_wins_each_of_two_hundred_times(yard):
    command = [sys.executable, "-m", "soak.vetoer"]
    vetoer = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    vetoed = started = 0
    delay = 0.0
    for _ in range(200):
        assignment = yard.assign(["/bin/sh", "-c", 'echo "$RUN here" >> "$WITNESS"'])
        start = asyncio.ensure_future(yard.runner.start(assignment))
        moment = time.monotonic() + delay
        while time.monotonic() < moment:
            await yard.turn()
        vetoer.stdin.write(f"{assignment.folder}\n")
        won = (await asyncio.to_thread(vetoer.stdout.readline)).strip() == "True"
        ending = await (await start).wait()
        assert (ending.by == "veto") is won
        assert len(yard.said(assignment)) == (0 if won else 1)
        assert yard.runner.find(assignment.folder) is (Found.unstarted if won else Found.ended)
        assert ProcessRunner().veto(assignment.folder) is won
        # Aimed at the moment when it may go either way.
        vetoed, started = vetoed + won, started + (not won)
        delay = min(max(delay + (0.0005 if won else -0.0005), 0.0), 0.05)
    vetoer.stdin.close()
    vetoer.stdout.close()
    vetoer.wait()
    assert min(vetoed, started) >= 20, (vetoed, started)
