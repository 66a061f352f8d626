"""kill -9 of the caller at 300 random moments of a start: each run is executed at most once, and its end is known.

Each life starts three runs at once and is killed up to 30 ms after it began to; every third also loses its nursery at
that moment, every fourth is killed while its first nursery is still being started. Whoever comes next finds each run
ended, alive or unstarted; what is unstarted is vetoed. The witness is written by the agents themselves.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter

import pytest

from soak.caller import Caller
from wakeful.runners.process import ProcessRunner
from wakeful.runners.processes import stat_fields
from wakeful.runners.protocol import EXIT, Assignment, Found
from wakeful.testing.contracts.runner_case import Yard

KILLS = int(os.environ.get("KILLS", "300"))
SEED = int(os.environ.get("SEED", "2026"))

RUNS = 3
# Seconds from the first order to the kill, when the nursery is warm and when it is not.
WARM, COLD = 0.03, 0.15
ONCE = ["/bin/sh", "-c", 'echo "$RUN here" >> "$WITNESS"; exit 5']


@pytest.fixture
def yard(tmp_path):
    with Yard(tmp_path, ProcessRunner).open() as yard:
        yield yard


class Life:
    """One caller, killed while it starts its runs; and what became of them."""

    def __init__(self, yard: Yard, number: int, dice: random.Random) -> None:
        self.yard = yard
        self.cold = number % 4 == 0
        self.with_nursery = number % 3 == 0
        self.first = yard.assign(["/bin/true"])
        self.runs = [yard.assign(ONCE) for _ in range(RUNS)]
        self.delay = dice.uniform(0, COLD if self.cold else WARM)

    def live(self) -> None:
        caller = Caller(self.runs if self.cold else [self.first, *self.runs], warm=not self.cold)
        caller.hear("go")
        nurseries = self._children(caller.process.pid) if self.with_nursery else []
        end = time.perf_counter() + self.delay
        while time.perf_counter() < end:
            pass
        for nursery in nurseries:
            os.kill(nursery, signal.SIGKILL)
        caller.kill()

    def _children(self, pid: int) -> list[int]:
        return [child for child, _ in self.yard.alive() if stat_fields(child)[1:2] == [str(pid)]]

    async def recover(self) -> Counter[str]:
        """As an engine does; how each run was found."""
        return Counter([await self._recover(each) for each in self.runs])

    async def _recover(self, assignment: Assignment) -> str:
        runner = self.yard.runner
        found = runner.find(assignment.folder)
        if found is Found.unstarted and runner.veto(assignment.folder):
            return "void"
        assert found is not Found.lost, f"run {assignment.run} is lost, and nobody killed its guardian"
        held = await runner.adopt(assignment.run, assignment.folder)
        assert (await held.wait()).exit_code == 5
        return "overtook the veto" if found is Found.unstarted else str(found)

    def check(self) -> None:
        """Nobody is alive any more, so that nothing can still happen: what was void stays so."""
        for each in self.runs:
            ended = (each.folder / EXIT).exists()
            assert len(self.yard.said(each)) == ended, f"run {each.run}, ended: {ended}"
            assert self.yard.runner.find(each.folder) is (Found.ended if ended else Found.unstarted)


async def settle(life: Life) -> Counter[str]:
    found = await life.recover()
    await life.yard.until(lambda: life.yard.alive() == [], "everybody to go", limit=10)
    return found


def test_a_run_is_executed_at_most_once_wherever_its_caller_was_killed(yard, capsys):
    dice, found, started = random.Random(SEED), Counter[str](), time.monotonic()
    for number in range(1, KILLS + 1):
        life = Life(yard, number, dice)
        life.live()
        found += asyncio.run(settle(life))
        life.check()
        if number % 50 == 0 or number == KILLS:
            told = ", ".join(f"{count} {what}" for what, count in sorted(found.items()))
            with capsys.disabled():
                print(f"\n{number} of {KILLS} kills: {told}, {time.monotonic() - started:.0f} s", end="", flush=True)
    assert found.total() == KILLS * RUNS
    # The kills were spread over the whole start: it went each way.
    for way in ("void", "alive", "ended"):
        assert found[way] >= KILLS // 20, found
