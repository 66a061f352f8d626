"""The machine that the figures are taken on: who uses it, how busy it is, how fast its disk flushes.

Laws:
- Whatever a process of ours starts stays below us, also when its own parent has gone: so it is counted, and ended.
- Only what we started is ended.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from statistics import median

_TICK = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36
# How busy a machine may be that is called quiet, and how long to wait for that, in seconds.
QUIET = 0.12
_LOOK = 0.5
_STEP = 0.02
_FLUSHES = 60
_BLOCK = b"x" * 4096


def adopt_orphans() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


# ---- processes


def below(pid: int) -> list[int]:
    """That process and all below it that live."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))) and fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, ahead = [], [pid]
    while ahead:
        found.append(ahead.pop())
        ahead += children.get(found[-1], [])
    return found


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def used(pids: Iterable[int]) -> float:
    """Seconds of a processor that these and the children that they have reaped have used."""
    total = 0.0
    for pid in pids:
        if fields := _stat(pid):
            total += (int(fields[13]) + int(fields[14])) / _TICK
            # The clock of a process counts in nanoseconds, where its line above counts in ticks.
            with suppress(OSError):
                total += time.clock_gettime(((~pid) << 3) | 2)
    return total


def end(pids: Iterable[int], patience: float = 8.0) -> None:
    """Politely, then not; and whoever has become our own child is reaped."""
    left = list(pids)
    for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, patience)):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + wait
        while left and time.monotonic() < until:
            _reap(left)
            left = [pid for pid in left if (fields := _stat(pid)) and fields[0] != "Z"]
            time.sleep(_STEP if left else 0)


def _reap(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


# ---- noise


def _busy() -> tuple[float, float]:
    """Seconds that all processors were busy, and idle, since the machine was started."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / _TICK, idle / _TICK


def wait_for_quiet(patience: float) -> float:
    """How busy the machine was in the end; it is waited for that long."""
    until = time.monotonic() + patience
    while True:
        busy, idle = _busy()
        time.sleep(_LOOK)
        later, rest = _busy()
        share = (later - busy) / max(later - busy + rest - idle, 1e-9)
        if share < QUIET or time.monotonic() >= until:
            return share


class Noise:
    """From here on: what others did to the machine, as a share of it."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._busy = _busy()[0]
        self._own = used(below(os.getpid()))

    def share(self) -> float:
        seconds = max(time.monotonic() - self._since, 1e-3)
        others = _busy()[0] - self._busy - (used(below(os.getpid())) - self._own)
        return max(0.0, others / seconds / (os.cpu_count() or 1))


# ---- what it is


def flush_time(folder: Path) -> float:
    """Microseconds of one fdatasync after a block was added, the median."""
    path = folder / "flush"
    handle, taken = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), []
    try:
        for _ in range(_FLUSHES):
            os.write(handle, _BLOCK)
            began = time.perf_counter()
            os.fdatasync(handle)
            taken.append(time.perf_counter() - began)
    finally:
        os.close(handle)
        path.unlink()
    return median(taken) * 1e6


def kind() -> str:
    """No names of hosts or folders: what matters to a figure."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processors = f"{os.cpu_count()} cores ({models[0] if models else platform.machine()})"
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"{processors}, {memory:.0f} GB, Linux {platform.release().split('-')[0]}, Python {python}"
