"""The contract of every runner: how a run begins, ends, is found again, and is kept from beginning.

An implementation subclasses `RunnerContract` in its tests and gives `make_runner` and `assignment`; the sentences do
the rest. They run real processes; `Deed` is what an agent is asked to do, in words that fit any kind of runner.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import time
from datetime import timedelta

from wakeful.core.runs import Outcome, read_outcome
from wakeful.runners.protocol import Found
from wakeful.runners.whole import now
from wakeful.testing.contracts.runner_case import SECOND, SLACK, Deed, Yard, real
from wakeful.testing.contracts.runner_leases import LeasesContract

__all__ = ["Deed", "RunnerContract"]


class RunnerContract(LeasesContract):
    """Every verb and every law of `wakeful.runners.protocol`."""

    # -- how a run ends -----------------------------------------------------------------------------------------
    @real
    async def test_a_run_that_ends_well_is_done(self, yard: Yard) -> None:
        held = await yard.runner.start(self.assignment(yard, Deed.succeed))
        ending = await held.wait()
        assert (ending.exit_code, read_outcome(ending)) == (0, Outcome.done)
        assert (ending.by, ending.timed_out, ending.lost, ending.signal) == (None, False, False, None)

    @real
    async def test_a_run_that_ends_badly_has_failed(self, yard: Yard) -> None:
        held = await yard.runner.start(self.assignment(yard, Deed.fail))
        assert read_outcome(await held.wait()) is Outcome.failed

    @real
    async def test_what_cannot_be_executed_is_an_ending_with_a_reason(self, yard: Yard) -> None:
        held = await yard.runner.start(self.assignment(yard, Deed.impossible))
        ending = await held.wait()
        assert read_outcome(ending) is Outcome.failed
        assert ending.result is not None and ending.result.error

    @real
    async def test_a_run_knows_its_number(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.succeed)
        held = await yard.runner.start(assignment)
        assert held.run == assignment.run
        await held.wait()

    @real
    async def test_any_number_of_callers_may_wait_before_and_after_the_end(self, yard: Yard) -> None:
        held = await yard.runner.start(self.assignment(yard, Deed.succeed))
        first = await asyncio.gather(*(held.wait() for _ in range(5)))
        assert {*first, await held.wait()} == {first[0]}

    @real
    async def test_a_caller_who_stops_waiting_takes_the_ending_from_nobody(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.go_on)
        held = await yard.runner.start(assignment)
        impatient = asyncio.ensure_future(held.wait())
        await yard.hear(assignment)
        impatient.cancel()
        self.enough(yard)
        assert (await held.wait()).exit_code == 0

    @real
    async def test_runs_that_are_started_together_all_end_by_themselves(self, yard: Yard) -> None:
        assignments = [self.assignment(yard, Deed.succeed) for _ in range(10)]
        holds = await asyncio.gather(*(yard.runner.start(each) for each in assignments))
        assert [held.run for held in holds] == [each.run for each in assignments]
        assert {ending.exit_code for ending in await asyncio.gather(*(held.wait() for held in holds))} == {0}
        assert [len(yard.said(each)) for each in assignments] == [1] * 10

    @real
    async def test_the_folder_of_a_run_is_its_owners_alone(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.succeed)
        before = os.umask(0)
        try:
            held = await yard.runner.start(assignment)
            await held.wait()
        finally:
            os.umask(before)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in assignment.folder.iterdir()}
        assert stat.S_IMODE(assignment.folder.stat().st_mode) == 0o700
        assert {name: oct(mode) for name, mode in modes.items() if mode != 0o600} == {}

    # -- the wall clock, an end on purpose ----------------------------------------------------------------------
    @real
    async def test_a_run_past_its_wall_clock_is_killed_as_timed_out(self, yard: Yard) -> None:
        limit = timedelta(seconds=0.3)
        assignment = self.assignment(yard, Deed.defy, wall_clock=limit)
        started = time.monotonic()
        held = await yard.runner.start(assignment)
        ending = await held.wait()
        took = time.monotonic() - started
        assert (ending.timed_out, ending.by, read_outcome(ending)) == (True, None, Outcome.killed)
        assert 0 <= took - limit.total_seconds() <= assignment.grace.total_seconds() + SLACK

    @real
    async def test_a_run_that_is_ended_says_by_whom_and_counts_as_killed(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.go_on, grace=30 * SECOND)
        held = await yard.runner.start(assignment)
        await yard.hear(assignment)
        await held.end("operator")
        ending = await held.wait()
        assert (ending.by, ending.timed_out, read_outcome(ending)) == ("operator", False, Outcome.killed)

    @real
    async def test_a_run_that_is_ended_as_soon_as_it_is_held_says_by_whom(self, yard: Yard) -> None:
        for _ in range(3):
            holds = await asyncio.gather(*(yard.runner.start(self.assignment(yard, Deed.go_on)) for _ in range(4)))
            for held in holds:
                await held.end("operator")
            assert [(await held.wait()).by for held in holds] == ["operator"] * 4

    @real
    async def test_a_run_that_defies_a_polite_end_is_killed_after_the_grace(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.defy)
        held = await yard.runner.start(assignment)
        await yard.hear(assignment)
        asked = time.monotonic()
        await held.end("operator")
        ending = await held.wait()
        assert ending.by == "operator"
        assert assignment.grace.total_seconds() <= time.monotonic() - asked <= assignment.grace.total_seconds() + SLACK

    @real
    async def test_an_end_at_once_waits_for_no_grace(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.defy, grace=30 * SECOND)
        held = await yard.runner.start(assignment)
        await yard.hear(assignment)
        asked = time.monotonic()
        await held.end("fencing", at_once=True)
        assert (await held.wait()).by == "fencing"
        assert time.monotonic() - asked <= SLACK

    @real
    async def test_an_end_at_once_overrules_a_polite_one_and_the_first_who_asked_is_named(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.defy, grace=30 * SECOND)
        held = await yard.runner.start(assignment)
        await yard.hear(assignment)
        await held.end("operator")
        await held.end("pause", at_once=True)
        started = time.monotonic()
        assert (await held.wait()).by in ("operator", "pause")
        assert time.monotonic() - started <= SLACK

    @real
    async def test_ending_a_run_that_has_ended_changes_nothing(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.succeed)
        held = await yard.runner.start(assignment)
        ending = await held.wait()
        await held.end("operator", at_once=True)
        held.extend(now())
        again = await yard.another_runner().adopt(assignment.run, assignment.folder)
        await again.end("operator")
        assert {await held.wait(), await again.wait()} == {ending}

    # -- the start race -----------------------------------------------------------------------------------------
    @real
    async def test_a_run_that_was_vetoed_is_never_executed(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.succeed)
        assert yard.runner.veto(assignment.folder)
        held = await yard.runner.start(assignment)
        assert (await held.wait()).by == "veto"
        assert yard.said(assignment) == []
        assert yard.runner.find(assignment.folder) is Found.unstarted

    @real
    async def test_a_veto_may_be_repeated_by_anybody(self, yard: Yard) -> None:
        folder = self.assignment(yard, Deed.succeed).folder
        assert yard.runner.find(folder) is Found.unstarted
        assert [runner.veto(folder) for runner in (yard.runner, yard.runner, yard.another_runner())] == [True] * 3
        assert yard.runner.find(folder) is Found.unstarted

    @real
    async def test_a_veto_after_the_start_is_refused_and_the_run_goes_on(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.go_on)
        held = await yard.runner.start(assignment)
        await yard.hear(assignment)
        assert not yard.runner.veto(assignment.folder)
        self.enough(yard)
        assert (await held.wait()).exit_code == 0
        assert not yard.runner.veto(assignment.folder)

    # -- found again --------------------------------------------------------------------------------------------
    @real
    async def test_a_run_is_found_unstarted_then_alive_then_ended(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.go_on)
        stranger = yard.another_runner()
        found = [stranger.find(assignment.folder)]
        held = await yard.runner.start(assignment)
        await yard.hear(assignment)
        found.append(stranger.find(assignment.folder))
        self.enough(yard)
        await held.wait()
        found.append(stranger.find(assignment.folder))
        assert found == [Found.unstarted, Found.alive, Found.ended]

    @real
    async def test_closing_lets_runs_go_on_to_be_adopted(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.go_on)
        first = yard.runner
        await first.start(assignment)
        await yard.hear(assignment)
        await first.close()
        await first.close()
        second = yard.another_runner()
        assert second.find(assignment.folder) is Found.alive
        held = await second.adopt(assignment.run, assignment.folder)
        assert held.run == assignment.run
        self.enough(yard)
        assert (await held.wait()).exit_code == 0
        assert len(yard.said(assignment)) == 1

    @real
    async def test_an_adopted_run_can_be_ended(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.defy, grace=30 * SECOND)
        await yard.runner.start(assignment)
        await yard.hear(assignment)
        held = await yard.another_runner().adopt(assignment.run, assignment.folder)
        await held.end("operator", at_once=True)
        assert (await held.wait()).by == "operator"

    @real
    async def test_whoever_holds_a_run_hears_the_same_ending(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.go_on)
        held = [await yard.runner.start(assignment)]
        await yard.hear(assignment)
        held += [await yard.another_runner().adopt(assignment.run, assignment.folder) for _ in range(3)]
        self.enough(yard)
        endings = [await each.wait() for each in held]
        late = await yard.another_runner().adopt(assignment.run, assignment.folder)
        assert {*endings, await late.wait()} == {endings[0]}

    @real
    async def test_a_run_whose_guardian_was_killed_is_lost_and_nothing_of_it_is_left(self, yard: Yard) -> None:
        assignment = self.assignment(yard, Deed.defy)
        held = await yard.runner.start(assignment)
        await yard.hear(assignment)
        os.kill(yard.guardian(assignment).pid, signal.SIGKILL)
        ending = await held.wait()
        assert (ending.lost, read_outcome(ending)) == (True, Outcome.killed)
        assert yard.runner.find(assignment.folder) is Found.lost
        again = await yard.another_runner().adopt(assignment.run, assignment.folder)
        assert (await again.wait()).lost
