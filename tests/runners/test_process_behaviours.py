"""What badly behaved agents do, and what becomes of it. `make soak` does each a hundred times, at full size.

Each test takes a yard alone, so that it can be repeated anywhere; `SIZES` are what `make soak` enlarges.
"""

import asyncio
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from soak import agents
from wakeful.core.runs import Outcome, read_outcome
from wakeful.runners.cage import available
from wakeful.runners.processes import descendants, is_zombie, start_time
from wakeful.runners.protocol import STDERR, STDOUT, Assignment
from wakeful.testing.contracts.runner_case import Yard, real

MB = 1_000_000
SIZES = {"flood": 200 * MB, "line": 30 * MB, "processes": 64, "generations": 9, "zombies": 5_000}

SOON = timedelta(seconds=0.4)
SLACK = 10.0
LIMIT = 5 * 1024 * 1024
MARKER_ROOM = 64
MOST_GROWTH = 100 * MB


def agent(yard: Yard, behaviour: Any, *arguments: object, **changes: Any) -> Assignment:
    command = [sys.executable, "-I", "-S", agents.__file__, behaviour.__name__, *map(str, arguments)]
    return yard.assign(command, **changes)


def status(pid: int, name: str) -> int:
    """A figure of /proc/PID/status, in bytes; 0 when the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def kept_as_the_pattern(path: Path, size: int) -> None:
    """The head and the tail of the pattern with the marker between them, each byte in its place."""
    data = path.read_bytes()
    head, tail = LIMIT // 2, LIMIT - LIMIT // 2 - MARKER_ROOM
    assert len(data) <= LIMIT
    marker = b"\n[... %d bytes left out ...]\n" % (size - head - tail)
    assert data[:head] == agents.pattern(0, head)
    assert data[head:-tail] == marker
    assert data[-tail:] == agents.pattern(size - tail, size)


class Peak:
    """The most memory that a run's guardian and we ourselves took while it went on, beyond what we had."""

    def __init__(self, yard: Yard, assignment: Assignment) -> None:
        self.guardian = yard.guardian(assignment).pid
        Path("/proc/self/clear_refs").write_text("5")
        self.before = status(os.getpid(), "VmHWM")
        self.at_first = self.highest = status(self.guardian, "VmHWM")

    def look(self) -> None:
        self.highest = max(self.highest, status(self.guardian, "VmHWM"))

    async def watch(self, yard: Yard, run: asyncio.Future[Any]) -> None:
        def over() -> bool:
            self.look()
            return run.done()

        await yard.until(over, "the end of the run", limit=yard.patience)

    @property
    def growth(self) -> tuple[int, int]:
        return self.highest - self.at_first, status(os.getpid(), "VmHWM") - self.before


# ---- those who will not go


@real
async def test_an_agent_that_ignores_every_polite_signal_is_dead_after_the_grace(yard):
    assignment = agent(yard, agents.ignores_signals, wall_clock=SOON)
    started = time.monotonic()
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert (ending.timed_out, ending.signal) == (True, signal.SIGKILL)
    assert time.monotonic() - started <= (SOON + assignment.grace).total_seconds() + SLACK
    assert yard.said(assignment) == ["here"]


@real
async def test_an_agent_that_stops_its_guardian_is_dead_after_its_wall_clock(yard):
    assignment = agent(yard, agents.stops_its_guardian, wall_clock=SOON)
    started = time.monotonic()
    ending = await (await yard.runner.start(assignment)).wait()
    assert (ending.timed_out, read_outcome(ending)) == (True, Outcome.killed)
    assert time.monotonic() - started <= (SOON + assignment.grace).total_seconds() + SLACK


@real
async def test_an_agent_that_stops_its_guardian_is_ended_when_that_is_asked_for(yard):
    assignment = agent(yard, agents.stops_its_guardian)
    held = await yard.runner.start(assignment)
    await yard.until(lambda: yard.said(assignment) == ["here"], "the agent")
    await held.end("a cancel")
    assert (await held.wait()).by == "a cancel"


@real
async def test_daemons_without_environment_do_not_outlive_an_agent_that_has_exited(yard):
    assignment = agent(yard, agents.daemons, 5, "exits")
    started = time.monotonic()
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert time.monotonic() - started <= assignment.grace.total_seconds() + SLACK
    assert (ending.exit_code, read_outcome(ending)) == (0, Outcome.done)
    assert 1 <= yard.record(assignment)["leftovers"] <= 10
    assert still_there(yard, assignment) == []


@real
async def test_daemons_without_environment_do_not_outlive_the_wall_clock(yard):
    assignment = agent(yard, agents.daemons, 5, "stays", wall_clock=SOON)
    started = time.monotonic()
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert time.monotonic() - started <= (SOON + assignment.grace).total_seconds() + SLACK
    assert ending.timed_out
    assert still_there(yard, assignment) == []


@real
async def test_daemons_are_ended_at_once_where_an_end_at_once_was_asked_for(yard):
    assignment = agent(yard, agents.daemons, 5, "stays", grace=timedelta(seconds=30))
    held = await yard.runner.start(assignment)
    await yard.hear(assignment, 5)
    started = time.monotonic()
    await held.end("operator", at_once=True)
    assert (await held.wait()).by == "operator"
    assert time.monotonic() - started <= SLACK
    assert still_there(yard, assignment) == []


def still_there(yard: Yard, assignment: Assignment) -> list[int]:
    """Of the daemons that told us their numbers, those alive now: an ending is not told before they are gone."""
    daemons = [int(line.split()[1]) for line in yard.said(assignment)]
    marked = {pid for pid, _ in yard.alive()}
    return [pid for pid in daemons if pid in marked]


@real
async def test_a_fork_bomb_is_held_by_the_limit_on_processes_and_nothing_of_it_is_left(yard):
    if not {"pids", "v2"} & set(available()):
        pytest.skip("needs a writable control group with the pids controller (Linux, as root or delegated)")
    assignment = agent(yard, agents.bomb, SIZES["generations"], processes=SIZES["processes"])
    held = await yard.runner.start(assignment)
    # Nobody ends by itself: there is one line for each that ever was.
    await yard.hear(assignment, SIZES["processes"])
    alive = [pid for pid, _ in yard.alive() if str(assignment.run) in agent_of(pid)]
    await held.end("operator", at_once=True)
    assert (await held.wait()).by == "operator"
    said = yard.said(assignment)
    assert ("refused" in said, len(said)) == (True, SIZES["processes"])
    assert len(alive) <= SIZES["processes"]


def agent_of(pid: int) -> str:
    """The run that a process belongs to, by its environment; empty for those who guard."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((value[4:].decode() for value in variables if value.startswith(b"RUN=")), "")


@real
async def test_five_thousand_zombies_are_buried(yard):
    count = SIZES["zombies"]
    assignment = agent(yard, agents.zombies, count, processes=2 * count)
    held = await yard.runner.start(assignment)
    await yard.hear(assignment)
    dead = zombies(descendants(yard.guardian(assignment).pid))
    assert len(dead) >= count
    (yard.folder / "enough").touch()
    ended = time.monotonic()
    assert (await held.wait()).exit_code == 0
    assert time.monotonic() - ended <= SLACK
    assert not set(dead) & set(zombies([pid for pid, _ in dead]))


def zombies(pids: list[int]) -> list[tuple[int, int]]:
    return [(pid, start_time(pid)) for pid in pids if is_zombie(pid)]


# ---- those who talk too much


@real
async def test_a_flood_of_output_costs_no_memory_and_keeps_its_head_and_tail(yard):
    size = SIZES["flood"]
    assignment = agent(yard, agents.floods, size, 1, 2)
    held = await yard.runner.start(assignment)
    await yard.until(lambda: (assignment.folder / STDERR).exists(), "the first output")
    peak = Peak(yard, assignment)
    waiting = asyncio.ensure_future(held.wait())
    await peak.watch(yard, waiting)
    assert (await waiting).exit_code == 0
    output = yard.record(assignment)["output"]
    for name in (STDOUT, STDERR):
        assert output[name]["bytes"] == size
        kept_as_the_pattern(assignment.folder / name, size)
    guardian, caller = peak.growth
    assert guardian <= MOST_GROWTH
    assert caller <= MOST_GROWTH


@real
async def test_one_endless_line_is_kept_like_any_other_output(yard):
    size = SIZES["line"]
    assignment = agent(yard, agents.floods, size, 1)
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert (ending.exit_code, len(ending.output) < 10_000) == (0, True)
    kept_as_the_pattern(assignment.folder / STDOUT, size)


STRANGE = (
    b"\x00NUL \xff\xfe\xc3( not UTF-8 \xed\xa0\x80 \x1b[31m\r\n\x04" + bytes(range(256)) + b"no newline at the end"
)


@real
async def test_every_byte_is_kept_as_it_was_printed(yard):
    assignment = agent(yard, agents.says, STRANGE.hex(), STRANGE[::-1].hex())
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert (assignment.folder / STDOUT).read_bytes() == STRANGE
    assert (assignment.folder / STDERR).read_bytes() == STRANGE[::-1]
    assert ending.exit_code == 0
    assert ending.output.encode()


# ---- those who do not listen


@real
async def test_an_agent_that_never_reads_its_briefing_ends_as_it_would(yard):
    held = await yard.runner.start(yard.assign(["/bin/true"], briefing="x" * 5 * MB))
    assert (await held.wait()).exit_code == 0


@real
async def test_an_agent_that_closes_its_streams_early_goes_on_and_is_waited_for(yard):
    assignment = agent(yard, agents.closes_its_streams, 7)
    held = await yard.runner.start(assignment)
    await yard.hear(assignment)
    waiting = asyncio.ensure_future(held.wait())
    guardian = yard.guardian(assignment).pid
    burnt = await processor_time(yard, guardian)
    assert not waiting.done()
    (yard.folder / "enough").touch()
    assert (await waiting).exit_code == 7
    assert burnt < 0.05, "the guardian turned in circles over closed streams"


async def processor_time(yard: Yard, pid: int) -> float:
    """What a process uses, in seconds, in the next fifth of a second."""
    ticks = os.sysconf("SC_CLK_TCK")

    def used() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    before, started = used(), time.monotonic()
    await yard.until(lambda: time.monotonic() - started > 0.2, "a fifth of a second")
    return used() - before


# ---- guardians that are killed


@real
async def test_the_daemons_of_a_run_whose_guardian_was_killed_are_ended_by_whoever_adopts_it(yard):
    assignment = agent(yard, agents.daemons, 5, "stays")
    held = await yard.runner.start(assignment)
    await yard.hear(assignment, 5)
    guardian = yard.guardian(assignment)
    assert guardian.alive()
    os.kill(guardian.pid, signal.SIGKILL)
    assert (await held.wait()).lost
    assert [folder for folder in guardian.cage.values() if os.path.isdir(folder)] == []
    adopted = await yard.another_runner().adopt(assignment.run, assignment.folder)
    assert (await adopted.wait()).lost
    assert still_there(yard, assignment) == []
