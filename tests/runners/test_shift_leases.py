"""Leases of shifts and of carried orders, where time can be lost: in coming up, on the way to a worker, under a frozen
one."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.runners.carrier_case import Desk, a_beat, a_handler, a_process
from tests.runners.function_case import OwnRunner, a_shift, ends
from wakeful.runners.protocol import Found
from wakeful.runners.whole import now
from wakeful.testing.contracts.runner_case import Yard, real
from wakeful.testing.contracts.runner_leases import MOMENT, fence_of

FENCE = timedelta(seconds=0.2)
LONG = timedelta(seconds=30)


async def over(yard, assignment) -> None:
    await yard.until(lambda: now() > assignment.leased_until, "the end of the lease")


def frozen(worker: int) -> Callable[[], None]:
    """It and its guardian, who would make it go on. What is returned thaws them."""
    guardian = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
    for process in (guardian, worker):
        os.kill(process, signal.SIGSTOP)

    def thaw() -> None:
        for process in (worker, guardian):
            os.kill(process, signal.SIGCONT)

    return thaw


class TestShifts:
    @pytest.fixture
    def yard(self, tmp_path):
        with Yard(tmp_path, lambda: OwnRunner(tmp_path / "workers")).open() as yard:
            yield yard

    @real
    async def test_a_shift_that_reaches_its_worker_too_late_never_begins(self, yard):
        first = await ends(await yard.runner.start(a_shift(yard, ["worker"])))
        worker = int(first[1].result)
        thaw = frozen(worker)
        shift = a_shift(yard, ["witness"], leased_until=now() + 0.5, fence=FENCE)
        held = await yard.runner.start(shift)
        await over(yard, shift)
        thaw()
        assert (await held.wait()).by == "veto"
        assert yard.runner.find(shift.folder) is Found.unstarted
        # The worker is none the worse for it.
        again = await ends(await yard.runner.start(a_shift(yard, ["worker"])))
        assert int(again[1].result) == worker
        assert not yard.witness.exists()

    @real
    async def test_a_worker_that_comes_up_too_late_for_its_lease_never_begins(self, yard):
        (yard.folder / "desk.py").write_text("import signal\nwhile True:\n    signal.pause()\n")
        shift = a_shift(yard, ["x"], "desk:work", root=yard.folder, leased_until=now() + 0.5, fence=FENCE)
        held = await yard.runner.start(shift)
        assert (await held.wait()).by == "veto"
        assert now() >= fence_of(shift)
        assert yard.runner.find(shift.folder) is Found.unstarted

    @real
    async def test_a_shift_whose_process_is_frozen_before_it_begins_is_fenced_unbegun(self, yard):
        first = await ends(await yard.runner.start(a_shift(yard, ["pid"])))
        os.kill(int(first[1].result), signal.SIGSTOP)
        shift = a_shift(yard, ["witness", "witness"], leased_until=now() + 0.5, fence=FENCE)
        heard = await ends(await yard.runner.start(shift))
        assert [end.ending.by for end in heard.values()] == ["fencing", "fencing"]
        assert not yard.witness.exists()

    @real
    async def test_a_worker_that_was_frozen_past_the_lease_ends_the_shift_as_soon_as_it_wakes(self, yard):
        first = await ends(await yard.runner.start(a_shift(yard, ["worker"])))
        worker = int(first[1].result)
        shift = a_shift(yard, ["hang in c", "witness"], leased_until=now() + 1.0, fence=FENCE, grace=LONG)
        held = await yard.runner.start(shift)
        await yard.until(yard.witness.exists, "the first task")
        thaw = frozen(worker)
        await over(yard, shift)
        thaw()
        woken = time.monotonic()
        assert [end.ending.by for end in (await ends(held)).values()] == ["fencing", "fencing"]
        assert time.monotonic() - woken < MOMENT
        assert yard.witness.read_text().count("\n") == 1

    @real
    async def test_a_lease_that_is_not_extended_fences_the_whole_shift_but_not_what_had_ended(self, yard):
        await ends(await yard.runner.start(a_shift(yard, ["text"])))
        shift = a_shift(yard, ["text", "hang in c", "text"], leased_until=now() + 1.0, fence=FENCE, grace=LONG)
        heard = await ends(await yard.runner.start(shift))
        assert [heard[task].ending.by for task in (1, 2, 3)] == [None, "fencing", "fencing"]


class TestCarrier:
    @pytest.fixture
    def yard(self, tmp_path):
        with Desk(tmp_path, fence=FENCE).open() as desk:
            yield desk

    @real
    async def test_an_order_with_a_lease_that_is_over_is_never_carried_out(self, yard):
        for number, agent in enumerate((a_process("touch trace"), a_handler("desk:work")), 1):
            yard.write("desk.py", "open('trace', 'w')\n\ndef work(run): ...\n")
            held = await yard.carrier.carry(a_beat(agent, number), leased_until=now() + 0.1)
            assert (await held.wait()).by == "veto"
            assert yard.carrier.find(number) is Found.unstarted
        assert list(yard.folder.rglob("trace")) == []

    @real
    async def test_the_lease_of_an_order_that_is_long_in_starting_can_be_extended(self, yard):
        yard.write(
            "desk.py", "import os, time\nwhile not os.path.exists('enough'): time.sleep(0.01)\ndef work(run): ...\n"
        )
        agent = a_handler("desk:work")
        leased_until = now() + 0.6
        start = asyncio.ensure_future(yard.carrier.carry(a_beat(agent), leased_until=leased_until))
        await yard.turn()
        yard.carrier.extend(42, now() + 60)
        await yard.until(lambda: now() > leased_until, "the end of the first lease")
        assert not start.done()
        (yard.data / "work" / agent.name / "enough").touch()
        assert (await (await start).wait()).exit_code == 0
        yard.carrier.extend(43, now() + 60)
        assert not yard.run_folder(43).exists()
