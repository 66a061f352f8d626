"""`python -m benchmarks`: every line in one run, a table on stdout, `build/bench.json` beside it.

Exit 0 whether or not a goal was met: a busy machine is no defect. The table says which are met.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from time import perf_counter

from benchmarks.checking import check
from benchmarks.deciding import Deciding
from benchmarks.floor import Floor
from benchmarks.growth import Growth
from benchmarks.lines import SIZES, Samples
from benchmarks.recording import Recording
from benchmarks.report import figure, show, write

# Beside the working tree: what is durable must lie on its disk, not in memory.
BUILD = Path(__file__).resolve().parent.parent / "build"


class Run:
    """Takes samples and says so as it goes."""

    def __init__(self) -> None:
        self.samples = Samples()
        self._started = perf_counter()

    def say(self, text: str) -> None:
        print(f"{perf_counter() - self._started:6.1f} s  {text}", file=sys.stderr, flush=True)

    def take(self, what: str, sample: Callable[[], dict[str, float]]) -> None:
        found = sample()
        self.samples.add(found)
        self.say(f"{what}: " + "; ".join(f"{name} {figure(value)}" for name, value in found.items()))


def measure(folder: Path, rounds: int, seconds: float, sizes: tuple[int, ...]) -> Samples:
    run = Run()
    with ExitStack() as stack:
        run.say("setting up the durable stores")
        benches = [
            stack.enter_context(closing(bench))
            for bench in (Floor(folder, seconds), Recording(folder, seconds), Deciding(folder, seconds))
        ]
        for round in range(1, rounds + 1):
            for bench in benches:
                run.take(f"round {round} of {rounds}", bench.sample)
    with ExitStack() as stack:
        fleets = []
        for size in sizes:
            run.say(f"building a fleet of {size:,} agents")
            fleet = stack.enter_context(closing(Growth(folder, size)))
            run.samples.add(fleet.built)
            fleets.append(fleet)
        for round in range(1, rounds + 1):
            for fleet in fleets:
                run.take(f"round {round} of {rounds}", fleet.sample)
    run.take("once", lambda: check(folder))
    return run.samples


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="samples of each line (default 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a durable sample (default 1)")
    arguments = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        lines = measure(Path(folder), arguments.rounds, arguments.seconds, SIZES).lines()
    write(lines, BUILD / "bench.json")
    show(lines)


if __name__ == "__main__":
    main()
