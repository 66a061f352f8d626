"""What an engine costs: at rest with ten thousand agents, at its start, and from a due instant to the agent's process.

Laws:
- The engine is the command that users call, in a process of its own; it is watched from outside.
- The due instant is the store's, the moments after it are those of the run's own exit record, on the same machine's
  clocks. Bare starts of the same program take turns with the beats, and are taken off.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.lines import Line
from wakeful.store.sqlite import open_sqlite

AGENTS = 10_000
REST = 60.0
SETTLE = 5.0
BEATS = 40
# Percent of a core, megabytes, seconds and milliseconds.
IDLE, MEMORY, START, ADDED = 0.2, 300, 10, 8
PATIENCE = 120.0
TRUE = ["/bin/true"]

Say = Callable[[str], None]


def engine(folder: Path, rounds: int, say: Say) -> list[Line]:
    place = folder / "engine"
    place.mkdir()
    return [*_at_rest(place, REST if rounds > 1 else REST / 4, say), *_beats(place, BEATS * min(rounds, 3), say)]


# ---- at rest


def _at_rest(place: Path, rest: float, say: Say) -> list[Line]:
    agents = "\n".join(f"* agent-{number}\n:PROPERTIES:\n:INTERVAL: 1h\n:END:" for number in range(AGENTS))
    fleet = fleet_file(place / "rest", f"#+RUN: /bin/true\n#+GRACE: 2h\n{agents}\n")
    began = time.perf_counter()
    with engine_up(fleet) as process:
        first = time.perf_counter() - began
    began = time.perf_counter()
    with engine_up(fleet) as process:
        again = time.perf_counter() - began
        time.sleep(SETTLE)
        used, since = _seconds_used(process.pid), time.perf_counter()
        time.sleep(rest)
        idle = 100 * (_seconds_used(process.pid) - used) / (time.perf_counter() - since)
        memory = _resident(process.pid) / 1e6
    say(f"{AGENTS:,} agents: up in {first:.1f} s, again in {again:.1f} s, {idle:.2f} % of a core, {memory:.0f} MB")
    return [
        line_of(f"engine, {AGENTS:,} agents, first start", first, f"s, goal {START}"),
        line_of(f"engine, {AGENTS:,} agents, restart", again, f"s, goal {START}"),
        line_of(f"engine, {AGENTS:,} agents, none due, use of a core", idle, f"%, goal {IDLE}"),
        line_of(f"engine, {AGENTS:,} agents, memory", memory, f"MB, goal {MEMORY}"),
    ]


def _seconds_used(pid: int) -> float:
    """Processor time of the process and of whatever it started and has not ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for each in [pid, *_children(pid)]:
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [below for child in found for below in (int(child), *_children(int(child)))]


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


# ---- from the due instant


def _beats(place: Path, beats: int, say: Say) -> list[Line]:
    agent = "* one\n:PROPERTIES:\n:INTERVAL: 1s\n:BURST: 100000/10m\n:END:\n"
    fleet = fleet_file(place / "beats", f"#+RUN: /bin/true\n#+GRACE: 0s\n{agent}")
    runs, bare = fleet.parent / ".wakeful" / "runs", []
    with engine_up(fleet):
        while len(list(runs.glob("*/exit.json"))) < beats + 2:
            bare.append(bare_start())
            time.sleep(0.13)
    steps = _steps(fleet.parent / ".wakeful")[2:]
    lines = list(_lines(steps, bare))
    say("a beat: " + "; ".join(f"{line.name.rpartition(', ')[2]} {line.value:g}" for line in lines))
    return lines


def bare_start() -> float:
    started = time.perf_counter()
    _, status = os.waitpid(os.posix_spawn(TRUE[0], TRUE, {}), 0)
    assert status == 0
    return time.perf_counter() - started


def _steps(data: Path) -> list[dict[str, float]]:
    """Seconds since boot of everything between the due instant and the exit, of each run that was done."""
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    store = open_sqlite(data / "wakeful.db")
    try:
        found = []
        for run in store.runs(limit=1000):
            wake = store.wake(run.wake)
            if run.outcome != "done" or run.started_at is None or wake is None:
                continue
            steps = json.loads((data / "runs" / str(run.id) / "exit.json").read_bytes())["steps"]
            due = since_boot(wake.wake.requested_at, boot)
            found.append({"due": due, "decided": since_boot(run.started_at, boot), **steps})
        return found
    finally:
        store.close()


def since_boot(moment: datetime, boot: float) -> float:
    return (moment - datetime.fromtimestamp(0, UTC)).total_seconds() - boot


def _lines(steps: list[dict[str, float]], bare: list[float]) -> Iterator[Line]:
    for first, second in pairwise(steps[0]):
        value = median(each[second] - each[first] for each in steps)
        yield line_of(f"beat, {first} to {second}", value * 1e3, "ms")
    taken = [each["exited"] - each["due"] for each in steps]
    added = (median(taken) - median(bare)) * 1e3
    yield line_of("beat, due to exited, p50 added to a bare start", added, f"ms, goal {ADDED}", median(bare) * 1e3)
    added = (quantiles(taken, n=100)[98] - quantiles(bare, n=100)[98]) * 1e3
    yield line_of("beat, due to exited, p99 added to a bare start", added, "ms", median(bare) * 1e3)


# ---- an engine in a process of its own


def fleet_file(folder: Path, text: str) -> Path:
    folder.mkdir()
    file = folder / "fleet.org"
    file.write_text(text, encoding="utf-8")
    return file


@contextmanager
def engine_up(fleet: Path) -> Iterator[subprocess.Popen[bytes]]:
    announced = fleet.parent / ".wakeful" / "engine.json"
    announced.unlink(missing_ok=True)
    command = [sys.executable, "-m", "wakeful", "up", "--fleet", str(fleet), "--port", "0"]
    with (fleet.parent / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until = time.perf_counter() + PATIENCE
        while not announced.exists():
            assert process.poll() is None, (fleet.parent / "log").read_text()
            assert time.perf_counter() < until, "the engine did not come up"
            time.sleep(0.01)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def line_of(name: str, value: float, unit: str, floor: float | None = None) -> Line:
    ratio: Any = None if floor is None else value / floor
    rounded = [None if number is None else float(f"{number:.4g}") for number in (value, floor, ratio)]
    assert rounded[0] is not None
    return Line(name=name, value=rounded[0], unit=unit, floor=rounded[1], ratio=rounded[2], peers={}, peer_ratios={})
