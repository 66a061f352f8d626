"""Leases: a run that nobody speaks for is ended before another node may take it; one that is too late never begins.

A lease here is short, and its fence a third of it. Where the machine was too busy for that, a longer one is tried: what
must happen before the fence has then not happened in time, which proves nothing.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from wakeful.core.runs import FENCING, Outcome, describe, is_attempt, read_outcome
from wakeful.runners.protocol import Assignment, Found, Held, Runner
from wakeful.runners.whole import now
from wakeful.testing.contracts.runner_case import SECOND, SLACK, Deed, RunnerCase, Yard, real

# In seconds.
LEASES = (0.6, 2.4, 9.6)
LONG = 60.0
# How long a run that was suspended past its lease may go on when it wakes, on a busy machine: less than anybody rests.
MOMENT = 5.0

Act = Callable[[Assignment, Held], Awaitable[None]]


async def nothing(assignment: Assignment, held: Held) -> None:
    return


def fence_of(assignment: Assignment) -> float:
    assert assignment.leased_until is not None
    return assignment.leased_until - assignment.fence.total_seconds()


def ask() -> None:
    """In a process of its own: start a run, and extend its lease until it has ended or we are killed."""
    make_runner: Callable[[], Runner]
    assignment: Assignment
    make_runner, assignment, lease = pickle.load(sys.stdin.buffer)

    async def asking() -> None:
        held = await make_runner().start(replace(assignment, leased_until=now() + lease))
        ended = asyncio.ensure_future(held.wait())
        while not ended.done():
            held.extend(now() + lease)
            await asyncio.wait({ended}, timeout=lease / 10)

    asyncio.run(asking())


async def leased(yard: Yard, assign: Callable[..., Assignment], act: Act = nothing) -> tuple[Assignment, Held]:
    """A run that began under a short lease; `act` was done before its fence."""
    for lease in LEASES:
        assignment = assign(leased_until=now() + lease, fence=timedelta(seconds=lease / 3))
        held = await yard.runner.start(assignment)
        ended = asyncio.ensure_future(held.wait())
        await yard.until(lambda run=assignment, over=ended: over.done() or yard.said(run), "the run")  # type: ignore[misc]
        if not ended.done():
            await act(assignment, held)
            if now() < fence_of(assignment):
                ended.cancel()
                return assignment, held
        # Whatever was done too late must not be waited for.
        _tell([pid for pid, _ in yard.alive()], signal.SIGCONT)
        await held.end("the test", at_once=True)
        await ended
    raise AssertionError(f"no run began in time under leases of {LEASES} s")


class LeasesContract(RunnerCase):
    @real
    async def test_a_run_whose_lease_is_not_extended_is_ended_before_the_lease_is(self, yard: Yard) -> None:
        in_time: list[bool] = []
        while len(in_time) < len(LEASES) and not any(in_time):
            assignment, held = await leased(yard, partial(self.assignment, yard, Deed.defy, grace=30 * SECOND))
            ending = await held.wait()
            assert (ending.by, read_outcome(ending), is_attempt(ending)) == (FENCING, Outcome.killed, False)
            assert describe(ending) == "ended by fencing: its lease was not renewed in time"
            assert now() >= fence_of(assignment)
            in_time.append(now() < (assignment.leased_until or 0))
        assert any(in_time)

    @real
    async def test_a_run_whose_lease_is_extended_goes_on(self, yard: Yard) -> None:
        async def extend(assignment: Assignment, held: Held) -> None:
            held.extend(now() + LONG)

        assignment, held = await leased(yard, partial(self.assignment, yard, Deed.go_on), extend)
        await yard.until(lambda: now() > (assignment.leased_until or 0), "the end of the first lease")
        assert yard.runner.find(assignment.folder) is Found.alive
        self.enough(yard)
        assert (await held.wait()).exit_code == 0

    @real
    async def test_a_run_whose_lease_was_extended_ends_with_the_longer_one(self, yard: Yard) -> None:
        more = 0.3

        async def extend(assignment: Assignment, held: Held) -> None:
            held.extend((assignment.leased_until or 0) + more)

        assignment, held = await leased(yard, partial(self.assignment, yard, Deed.defy, grace=30 * SECOND), extend)
        assert (await held.wait()).by == FENCING
        assert now() >= fence_of(assignment) + more

    @real
    async def test_an_extension_by_whoever_adopted_the_run_counts(self, yard: Yard) -> None:
        async def adopt(assignment: Assignment, held: Held) -> None:
            adopted = await yard.another_runner().adopt(assignment.run, assignment.folder)
            adopted.extend(now() + LONG)

        assignment, held = await leased(yard, partial(self.assignment, yard, Deed.go_on), adopt)
        await yard.until(lambda: now() > (assignment.leased_until or 0), "the end of the first lease")
        self.enough(yard)
        assert (await held.wait()).exit_code == 0

    @real
    async def test_a_run_whose_lease_is_over_or_about_to_be_never_begins(self, yard: Yard) -> None:
        for left in (-1.0, 0.0, 0.5):
            assignment = self.assignment(yard, Deed.succeed, leased_until=now() + left, fence=SECOND)
            ending = await (await yard.runner.start(assignment)).wait()
            assert (ending.by, read_outcome(ending), is_attempt(ending)) == ("veto", Outcome.killed, False), left
            assert yard.said(assignment) == []
            assert yard.runner.find(assignment.folder) is Found.unstarted
            assert yard.another_runner().veto(assignment.folder)

    @real
    async def test_a_run_that_was_suspended_past_its_lease_is_ended_when_it_wakes(self, yard: Yard) -> None:
        """With all who hold it, as a machine is."""
        stopped: list[int] = []

        async def suspend(assignment: Assignment, held: Held) -> None:
            stopped[:] = [pid for pid, _ in yard.alive()]
            _tell(stopped, signal.SIGSTOP)

        assignment, held = await leased(yard, partial(self.assignment, yard, Deed.defy, grace=30 * SECOND), suspend)
        await yard.until(lambda: now() > (assignment.leased_until or 0), "the end of the lease")
        _tell(stopped, signal.SIGCONT)
        woken = now()
        assert (await held.wait()).by == FENCING
        assert now() - woken < MOMENT

    @real
    async def test_a_run_whose_asker_was_killed_is_ended_at_the_fence(self, yard: Yard) -> None:
        for lease in LEASES:
            fence = timedelta(seconds=lease / 3)
            assignment = self.assignment(yard, Deed.defy, fence=fence, grace=30 * SECOND)
            asker = self._asker(assignment, lease)
            await yard.until(lambda: yard.said(assignment) or asker.poll() is not None, "the run")  # noqa: B023
            begun = asker.poll() is None
            asker.kill()
            asker.wait()
            if begun:
                break
        assert begun, "no run began in time"
        killed = now()
        held = await yard.runner.adopt(assignment.run, assignment.folder)
        assert (await held.wait()).by == FENCING
        assert now() - killed < lease + SLACK

    def _asker(self, assignment: Assignment, lease: float) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", f"from {ask.__module__} import ask; ask()"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        asker = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        assert asker.stdin is not None
        with asker.stdin as line:
            line.write(pickle.dumps((self.make_runner, assignment, lease)))
        return asker


def _tell(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
