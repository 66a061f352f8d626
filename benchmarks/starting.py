"""What a guardian costs: a guarded start of `/bin/true` beside a bare one, its memory, and a thousand at once.

Laws:
- Bare and guarded starts take turns, so that both see the same machine. Both are measured from the call to the moment
  when the process has been reaped; the guarded one by the clock in its own exit record.
- Idle means that the system had a moment since the last start; back to back that it had none.
- Nothing of it is alive afterwards: the yard says so, or the benchmark fails.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.lines import Line
from wakeful.runners.process import ProcessRunner
from wakeful.runners.whole import now
from wakeful.testing.contracts.runner_case import Yard

TRUE = ["/bin/true"]
SLEEPER = ["/bin/sleep", "600"]
SAMPLES = 40
CROWD = 1_000
# Seconds between two starts of an idle system.
PAUSE = 0.06
# Milliseconds above a bare start that a guarded one may take, and megabytes that a guardian may have for itself.
ADDED_P50, ADDED_P99, PRIVATE = 5, 15, 2

Say = Callable[[str], None]
Steps = dict[str, float]


def starting(folder: Path, rounds: int, say: Say) -> list[Line]:
    place = folder / "starting"
    place.mkdir()
    with Yard(place, ProcessRunner).open() as yard:
        lines = asyncio.run(_measure(yard, rounds, say))
        yard.check()
    return lines


async def _measure(yard: Yard, rounds: int, say: Say) -> list[Line]:
    try:
        await _guarded(yard)
        lines: list[Line] = []
        for what, pause in (("idle", PAUSE), ("back to back", 0.0)):
            bare, steps = await _in_turn(yard, SAMPLES * rounds, pause)
            lines += _lines(what, bare, steps)
            say(f"start, {what}: " + "; ".join(f"{line.name.split(', ')[-1]} {line.value:g}" for line in lines[-3:]))
        lines += await _crowd(yard, say)
        yard.note_cages()
        return lines
    finally:
        await yard.close()


async def _in_turn(yard: Yard, samples: int, pause: float) -> tuple[list[float], list[Steps]]:
    bare, steps = [], []
    for _ in range(samples):
        await asyncio.sleep(pause)
        bare.append(_bare())
        await asyncio.sleep(pause)
        steps.append(await _guarded(yard))
    return bare, steps


def _bare() -> float:
    """Seconds from the call until the process was reaped."""
    started = time.perf_counter()
    _, status = os.waitpid(os.posix_spawn(TRUE[0], TRUE, {}), 0)
    assert status == 0
    return time.perf_counter() - started


async def _guarded(yard: Yard) -> Steps:
    """When each step was taken, from the call to the moment when the caller knew the ending."""
    assignment = yard.assign(TRUE)
    called = now()
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    known = now()
    assert ending.exit_code == 0
    return {"called": called, **yard.record(assignment)["steps"], "known": known}


def _lines(what: str, bare: list[float], steps: list[Steps]) -> Iterator[Line]:
    reaped = [each["exited"] - each["called"] for each in steps]
    yield _line(f"bare start, {what}, p50", median(bare) * 1e3, "ms")
    for first, second in pairwise(steps[0]):
        value = median(each[second] - each[first] for each in steps)
        yield _line(f"start, {what}, {first} to {second}", value * 1e3, "ms")
    added = (median(reaped) - median(bare)) * 1e3
    yield _line(f"start, {what}, p50 added", added, f"ms, goal {ADDED_P50}", median(bare) * 1e3)
    added = (_p99(reaped) - _p99(bare)) * 1e3
    yield _line(f"start, {what}, p99 added", added, f"ms, goal {ADDED_P99}", _p99(bare) * 1e3)
    known = median(each["known"] - each["called"] for each in steps)
    yield _line(f"start, {what}, to the ending known", known * 1e3, "ms", median(bare) * 1e3)


async def _crowd(yard: Yard, say: Say) -> list[Line]:
    """As many sleepers, each under its own guardian, all at the same time."""
    assignments = [yard.assign(SLEEPER, wall_clock=timedelta(minutes=10)) for _ in range(CROWD)]
    started = time.perf_counter()
    holds = await asyncio.gather(*(yard.runner.start(each) for each in assignments))
    took = time.perf_counter() - started
    await yard.until(lambda: all((each.folder / "stdout").exists() for each in assignments), "all of them")
    memory = [_private(yard.guardian(each).pid) for each in assignments]
    yard.note_cages()
    asked = time.perf_counter()
    for held in holds:
        await held.end("the benchmark", at_once=True)
    endings = await asyncio.gather(*(held.wait() for held in holds))
    ended = time.perf_counter() - asked
    assert {ending.by for ending in endings} == {"the benchmark"}
    say(f"{CROWD:,} sleepers: held in {took:.1f} s, ended in {ended:.1f} s")
    return [
        _line(f"guarded sleepers, {CROWD:,} at once, started", CROWD / took, "runs/s"),
        _line(f"guarded sleepers, {CROWD:,} at once, ended", CROWD / ended, "runs/s"),
        _line("guarded sleepers, memory of a guardian alone, p50", median(memory) / 1e6, f"MB, goal {PRIVATE}"),
        _line("guarded sleepers, memory of a guardian alone, most", max(memory) / 1e6, "MB"),
    ]


def _private(pid: int) -> int:
    """Bytes that the process shares with nobody."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def _line(name: str, value: float, unit: str, floor: float | None = None) -> Line:
    ratio: Any = None if floor is None else value / floor
    rounded = [None if number is None else float(f"{number:.4g}") for number in (value, floor, ratio)]
    assert rounded[0] is not None
    return Line(name=name, value=rounded[0], unit=unit, floor=rounded[1], ratio=rounded[2], peers={}, peer_ratios={})
