"""`python -m benchmarks`: every line in one run, a table on stdout, `build/bench.json` beside it.

Exit 0 whether or not a goal was met: a busy machine is no defect. The table says which are met.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import perf_counter

from benchmarks import lines as line
from benchmarks.checking import check
from benchmarks.deciding import Deciding
from benchmarks.draining import draining
from benchmarks.engine import engine
from benchmarks.floor import Floor, Slice
from benchmarks.functions import functions
from benchmarks.growth import Growth
from benchmarks.lines import SIZES, Samples, at
from benchmarks.messages import messages
from benchmarks.postgres import postgres
from benchmarks.recording import Recording
from benchmarks.report import figure, show, write
from benchmarks.serving import serving
from benchmarks.starting import starting

# Beside the working tree: what is durable must lie on its disk, not in memory.
BUILD = Path(__file__).resolve().parent.parent / "build"

# A sample of a durable line: so many slices of it, in turn with slices of its floor, for the disk changes its mind.
SLICES = 3
SLICE, FLOOR_SLICE = 0.25, 0.1

# Passes over a growing fleet for each round of the durable lines: they are short.
PASSES = 5


class Run:
    """Takes samples and says so as it goes."""

    def __init__(self, rounds: int) -> None:
        self.samples = Samples()
        self.rounds = rounds
        self._started = perf_counter()

    def say(self, text: str) -> None:
        print(f"{perf_counter() - self._started:6.1f} s  {text}", file=sys.stderr, flush=True)

    def durable(self, folder: Path) -> None:
        self.say("setting up the durable stores")
        with ExitStack() as stack:
            floor = stack.enter_context(closing(Floor(folder)))
            recording = stack.enter_context(closing(Recording(folder)))
            deciding = stack.enter_context(closing(Deciding(folder)))
            for round in range(1, self.rounds + 1):
                for name, slice, beside in _durable(floor, recording, deciding):
                    value, under = in_turn(slice, beside)
                    self.samples.add(name, value, under)
                    said = f"{name}: {figure(value)} beside {figure(under)}"
                    self.say(f"round {round} of {self.rounds}: {said}")

    def growing(self, folder: Path) -> None:
        with ExitStack() as stack:
            fleets = []
            for size in SIZES:
                self.say(f"building a fleet of {size:,} agents")
                fleets.append(stack.enter_context(closing(Growth(folder, size))))
            smallest, largest = fleets[0], fleets[-1]
            for fleet in fleets:
                self._add(fleet.size, fleet.built, smallest.built)
            for name, seconds in largest.whole.items():
                self.samples.add(name, seconds)
            for number in range(1, self.rounds * PASSES + 1):
                costs = [fleet.sample() for fleet in fleets]
                for fleet, cost in zip(fleets, costs, strict=True):
                    self._add(fleet.size, cost, costs[0])
                if number % PASSES == 0:
                    self.say(f"pass {number} of {self.rounds * PASSES}: {_told(costs[-1])}")

    def _add(self, size: int, costs: dict[str, float], floors: dict[str, float]) -> None:
        for verb, cost in costs.items():
            self.samples.add(at(verb, size), cost, floors[verb])

    def checking(self, folder: Path) -> None:
        self.say("checking a fleet file of 100,000 agents")
        for _ in range(min(self.rounds, 3)):
            self.samples.add(line.CHECK, check(folder))


def _durable(floor: Floor, recording: Recording, deciding: Deciding) -> Iterator[tuple[str, Slice, Slice]]:
    """Each durable line, and what it is measured beside."""
    yield line.BARE, floor.one, floor.one
    yield line.BARE_STDLIB, floor.one_by_sqlite3, floor.one
    yield line.GROUPED, floor.many, floor.one
    yield line.GROUPED_STDLIB, floor.many_by_sqlite3, floor.many
    yield line.RECORD_1, recording.from_coroutines(1), floor.one
    yield line.RECORD_8, recording.from_coroutines(8), floor.one
    yield line.RECORD_64, recording.from_coroutines(64), floor.one
    yield line.THREADS_64, recording.from_threads(64), floor.one
    yield line.BATCHES, recording.in_batches, floor.one
    yield line.DECIDE_ONE, deciding.admit_one, floor.one
    yield line.DECIDE_REFUSED, deciding.refuse, floor.one
    yield line.DECIDE_ADMITTED, deciding.admit, floor.one
    yield line.FINISH_ONE, deciding.finish_one, floor.one


def in_turn(slice: Slice, beside: Slice) -> tuple[float, float]:
    """The rates of two things, each measured in the pauses of the other."""
    made, took, made_beside, took_beside = 0, 0.0, 0, 0.0
    for _ in range(SLICES):
        count, elapsed = beside(FLOOR_SLICE)
        made_beside, took_beside = made_beside + count, took_beside + elapsed
        count, elapsed = slice(SLICE)
        made, took = made + count, took + elapsed
    return made / took, made_beside / took_beside


def _told(costs: dict[str, float]) -> str:
    return "; ".join(f"{verb} {figure(cost)} µs" for verb, cost in costs.items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="samples of each line (default 5)")
    rounds = parser.parse_args().rounds
    BUILD.mkdir(exist_ok=True)
    run = Run(rounds)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        run.durable(Path(folder))
        run.growing(Path(folder))
        run.checking(Path(folder))
        lines = run.samples.lines()
        lines += starting(Path(folder), rounds, run.say)
        lines += functions(Path(folder), rounds, run.say)
        lines += engine(Path(folder), rounds, run.say)
        lines += messages(Path(folder), rounds, run.say)
        lines += serving(Path(folder), rounds, run.say)
        lines += draining(Path(folder), min(rounds, 3), run.say)
        lines += postgres(rounds, run.say)
    write(lines, BUILD / "bench.json")
    show(lines)


if __name__ == "__main__":
    main()
