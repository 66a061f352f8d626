"""Leases where time can be lost: before a start, between a start and its execution, under a frozen guardian.

The sentences that hold for every runner are in the contract.
"""

import asyncio
import os
import select
import signal
import sys
import time
from datetime import timedelta
from functools import partial

import pytest

from wakeful.core.runs import Outcome, read_outcome
from wakeful.runners.kernel import Alarm
from wakeful.runners.lease import Lease, extend
from wakeful.runners.nursery import SPARES
from wakeful.runners.processes import descendants, stat_fields
from wakeful.runners.protocol import LEASE, Found
from wakeful.runners.whole import now
from wakeful.testing.contracts.runner_case import Yard, real
from wakeful.testing.contracts.runner_leases import MOMENT, leased

HERE = ["/bin/sh", "-c", 'echo "$RUN here" >> "$WITNESS"']
BUSY = [sys.executable, "-I", "-S", "-c"]
BUSY.append(
    "import os, time\n"
    "witness = os.open(os.environ['WITNESS'], os.O_CREAT | os.O_APPEND | os.O_WRONLY)\n"
    "while True:\n"
    "    os.write(witness, b'%s here\\n' % os.environ['RUN'].encode())\n"
    "    time.sleep(0.005)\n"
)
FENCE = timedelta(seconds=0.2)
LONG = timedelta(seconds=30)


def children(pid: int) -> list[int]:
    return [child for child in descendants(pid) if stat_fields(child)[1:2] == [str(pid)]]


def becoming(nursery: int) -> list[int]:
    """Of each spare the process that is to become an agent."""
    return [child for spare in children(nursery) for child in children(spare)]


async def warm(yard: Yard) -> int:
    """The nursery, once it has its spares."""
    await (await yard.runner.start(yard.assign(HERE))).wait()
    ours = {pid for pid, _ in yard.alive()}
    (nursery,) = ours.intersection(children(os.getpid()))
    await yard.until(lambda: len(becoming(nursery)) == SPARES, "spares")
    return nursery


async def over(yard, assignment) -> None:
    await yard.until(lambda: now() > assignment.leased_until, "the end of the lease")


# ---- before the start


@real
async def test_a_lease_that_ran_out_before_the_start_could_be_carried_out_means_no_start(yard):
    """It counts from when it was given: meanwhile another node may have taken the agent."""
    nursery = await warm(yard)
    os.kill(nursery, signal.SIGSTOP)
    assignment = yard.assign(HERE, leased_until=now() + 0.5, fence=FENCE)
    start = asyncio.ensure_future(yard.runner.start(assignment))
    await over(yard, assignment)
    os.kill(nursery, signal.SIGCONT)
    ending = await (await start).wait()
    assert (ending.by, yard.said(assignment)) == ("veto", [])
    assert yard.runner.find(assignment.folder) is Found.unstarted


@real
async def test_a_lease_that_was_extended_before_the_start_could_be_carried_out_means_a_start(yard):
    nursery = await warm(yard)
    os.kill(nursery, signal.SIGSTOP)
    assignment = yard.assign(HERE, leased_until=now() + 0.3, fence=FENCE)
    start = asyncio.ensure_future(yard.runner.start(assignment))
    await yard.until(assignment.folder.exists, "the folder")
    extend(str(assignment.folder), now() + 60)
    await over(yard, assignment)
    os.kill(nursery, signal.SIGCONT)
    assert (await (await start).wait()).exit_code == 0
    assert yard.said(assignment) == ["here"]


# ---- between the start and the execution


@real
async def test_a_process_that_is_frozen_before_it_becomes_the_agent_never_does_when_it_wakes_too_late(yard):
    nursery = await warm(yard)
    frozen = becoming(nursery)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    assignment = yard.assign(HERE, leased_until=now() + 1.0, fence=FENCE)
    held = await yard.runner.start(assignment)
    assert yard.runner.find(assignment.folder) is Found.alive
    await over(yard, assignment)
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    ending = await held.wait()
    assert (ending.by, read_outcome(ending), yard.said(assignment)) == ("fencing", Outcome.killed, [])


# ---- under way


@real
async def test_a_guardian_that_was_frozen_past_the_lease_ends_the_run_as_soon_as_it_wakes(yard):
    async def freeze(assignment, held):
        os.kill(yard.guardian(assignment).pid, signal.SIGSTOP)

    assignment, held = await leased(yard, partial(yard.assign, BUSY, grace=LONG), freeze)
    await over(yard, assignment)
    before = len(yard.said(assignment))
    await yard.hear(assignment, before + 1)
    os.kill(yard.guardian(assignment).pid, signal.SIGCONT)
    woken = time.monotonic()
    assert (await held.wait()).by == "fencing"
    assert time.monotonic() - woken < MOMENT


@real
async def test_a_run_that_had_ended_by_itself_is_not_told_as_fenced_with_what_it_left_behind(yard):
    await warm(yard)
    leaves = ["/bin/sh", "-c", "(trap '' TERM; sleep 60 & wait; sleep 60) & sleep 0.05"]
    assignment = yard.assign(leaves, leased_until=now() + 0.8, fence=FENCE, grace=LONG)
    ending = await (await yard.runner.start(assignment)).wait()
    assert (ending.exit_code, ending.by) == (0, None)
    assert yard.record(assignment)["fenced"]


@real
async def test_a_run_without_a_lease_is_not_fenced_whatever_somebody_writes(yard):
    assignment = yard.assign(["/bin/sh", "-c", "while [ ! -e enough ]; do sleep 0.02; done"])
    held = await yard.runner.start(assignment)
    held.extend(now() - 60)
    await yard.until((assignment.folder / LEASE).exists, "what was written")
    (yard.folder / "enough").touch()
    assert (await held.wait()).exit_code == 0


# ---- the parts


def test_a_lease_is_over_a_margin_before_its_end_and_a_later_end_counts_whoever_wrote_it(tmp_path):
    lease = Lease(str(tmp_path), now() + 10, 5.0)
    assert lease.fence_at == pytest.approx(now() + 5, abs=1) and not lease.over()
    assert Lease(str(tmp_path), now() + 4.9, 5.0).over()
    assert not Lease(str(tmp_path), None, 5.0).over()
    extend(str(tmp_path), now() + 5.5)
    late = Lease(str(tmp_path), now() + 4.9, 5.0)
    assert not late.over() and late.fence_at == pytest.approx(now() + 0.5, abs=0.4)
    extend(str(tmp_path), now() - 60)
    assert not late.over()


@pytest.mark.parametrize("content", ["", "soon", "nan"])
def test_what_cannot_be_read_extends_nothing(tmp_path, content):
    (tmp_path / LEASE).write_text(content)
    assert Lease(str(tmp_path), now(), 0.1).over()


def test_an_extension_that_cannot_be_written_is_none(tmp_path):
    extend(str(tmp_path / "gone"), now() + 60)
    assert not (tmp_path / "gone").exists()


def test_an_alarm_rings_when_its_time_has_come_and_not_without_one():
    alarm = Alarm()

    def rings(within: float) -> bool:
        return bool(select.select([alarm.handle], [], [], within)[0])

    assert not rings(0)
    for moment in (now() - 100, -1.0, now() + 0.01):
        alarm.set(moment)
        assert rings(1)
    alarm.set(now() + 60)
    assert not rings(0)
    alarm.set(now())
    alarm.set(float("inf"))
    assert not rings(0)
    os.close(alarm.handle)
