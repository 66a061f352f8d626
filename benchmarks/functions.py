"""What a warm worker costs: tasks that do nothing, in shifts, and how soon a handler's first line runs.

Laws:
- The floor is a bare process, forked once, that is sent the same tasks over a socket pair and answers a line for each:
  no limits, no record, no guardian. Both take turns, so that both see the same machine.
- A wake counts from the call to the handler's first line, by the clock that both processes share.
- Nothing of it is alive afterwards: the yard says so, or the benchmark fails.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles

from benchmarks.lines import Line
from wakeful.runners.function import FunctionRunner, HeldShift, Shift
from wakeful.runners.process import ProcessRunner
from wakeful.runners.whole import now
from wakeful.testing.contracts.runner_case import Yard

SHIFT = 32
# Shifts in one sample of the rate, and wakes in one of the latency.
SHIFTS, WAKES = 60, 40
# Seconds between two wakes of an idle system.
PAUSE = 0.02
# Milliseconds from a wake to the first line, with the decision and its commits, of which there are none here.
P50, P99 = 3, 8

HANDLERS = """
import time

def nothing(run):
    return None

def clock(run):
    return time.clock_gettime(time.CLOCK_BOOTTIME)
"""

Say = Callable[[str], None]


class OwnRunner(FunctionRunner):
    def __init__(self, folder: Path) -> None:
        self._own = ProcessRunner()
        super().__init__(self._own, folder)

    async def close(self) -> None:
        await super().close()
        await self._own.close()


def functions(folder: Path, rounds: int, say: Say) -> list[Line]:
    place = folder / "functions"
    place.mkdir()
    (place / "bench_handlers.py").write_text(HANDLERS)
    with _bare() as line, Yard(place, lambda: OwnRunner(place / "workers")).open() as yard:
        lines = asyncio.run(_measure(yard, line, rounds, say))
        yard.check()
    return lines


async def _measure(yard: Yard, line: socket.socket, rounds: int, say: Say) -> list[Line]:
    try:
        cold = await _wake(yard)
        await _drain(yard, 2)
        rates, wakes, floors, floor_wakes = [], [], [], []
        for number in range(1, rounds + 1):
            floors.append(_bare_drain(line, SHIFTS))
            rates.append(await _drain(yard, SHIFTS))
            for _ in range(WAKES):
                await asyncio.sleep(PAUSE)
                floor_wakes.append(_bare_wake(line))
                await asyncio.sleep(PAUSE)
                wakes.append(await _wake(yard))
            say(f"round {number} of {rounds}: {rates[-1]:,.0f} tasks/s beside {floors[-1]:,.0f}")
        yard.note_cages()
        return [
            _line(f"handler, no-op tasks, one worker, shifts of {SHIFT}", rates, "tasks/s", floors),
            _line("handler, warm, wake to first line, p50", [median(wakes)], f"ms, goal {P50}", [median(floor_wakes)]),
            _line("handler, warm, wake to first line, p99", [_p99(wakes)], f"ms, goal {P99}", [_p99(floor_wakes)]),
            _line("handler, cold, wake to first line", [cold], "ms"),
        ]
    finally:
        await yard.close()


# ---- a worker


def _shift(yard: Yard, handler: str, size: int) -> Shift:
    given = yard.assign(())
    tasks = [{"id": number, "title": "nothing", "body": "{}"} for number in range(1, size + 1)]
    briefing = {"agent": {"name": "bench"}, "run": {"id": given.run, "subject": "task"}, "tasks": tasks}
    lasting = {name: value for name, value in given.environment.items() if name != "RUN"}
    return Shift(
        run=given.run,
        epoch=1,
        folder=given.folder,
        workdir=given.workdir,
        environment=lasting,
        briefing_json=json.dumps(briefing),
        wall_clock=timedelta(minutes=1),
        agent="bench",
        handler=f"bench_handlers:{handler}",
        root=yard.folder,
        tasks=tuple(range(1, size + 1)),
    )


async def _start(yard: Yard, shift: Shift) -> HeldShift:
    assert isinstance(yard.runner, FunctionRunner)
    return await yard.runner.start(shift)


async def _drain(yard: Yard, shifts: int) -> float:
    """Tasks a second, each ending heard."""
    ready = [_shift(yard, "nothing", SHIFT) for _ in range(shifts)]
    started = time.perf_counter()
    for shift in ready:
        held = await _start(yard, shift)
        heard = [end async for end in held.tasks()]
        assert len(heard) == SHIFT and all(end.ending.exit_code == 0 for end in heard)
    return shifts * SHIFT / (time.perf_counter() - started)


async def _wake(yard: Yard) -> float:
    """Milliseconds from the call to the handler's first line."""
    shift = _shift(yard, "clock", 1)
    called = now()
    held = await _start(yard, shift)
    (end,) = [end async for end in held.tasks()]
    return (float(end.result or "nan") - called) * 1e3


# ---- the floor


@contextmanager
def _bare() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        try:
            _answer(theirs)
        finally:
            os._exit(0)
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        os.waitpid(pid, 0)


def _answer(line: socket.socket) -> None:
    with line.makefile("rwb") as stream:
        for message in stream:
            for task in json.loads(message):
                stream.write(json.dumps({"task": task["id"], "clock": now()}).encode() + b"\n")
                stream.flush()


def _ask(line: socket.socket, size: int) -> list[bytes]:
    line.sendall(json.dumps([{"id": number, "body": "{}"} for number in range(size)]).encode() + b"\n")
    heard = b""
    while heard.count(b"\n") < size:
        heard += line.recv(65536)
    return heard.splitlines()


def _bare_drain(line: socket.socket, shifts: int) -> float:
    started = time.perf_counter()
    for _ in range(shifts):
        assert len([json.loads(answer) for answer in _ask(line, SHIFT)]) == SHIFT
    return shifts * SHIFT / (time.perf_counter() - started)


def _bare_wake(line: socket.socket) -> float:
    called = now()
    (answer,) = _ask(line, 1)
    return float((json.loads(answer)["clock"] - called) * 1e3)


# ---- the table


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def _line(name: str, values: list[float], unit: str, floors: list[float] | None = None) -> Line:
    value, floor, ratio = median(values), None, None
    if floors is not None:
        floor = float(f"{median(floors):.4g}")
        ratio = float(f"{median(one / other for one, other in zip(values, floors, strict=True)):.4g}")
    return Line(name=name, value=float(f"{value:.4g}"), unit=unit, floor=floor, ratio=ratio, peers={}, peer_ratios={})
