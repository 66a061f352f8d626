"""What every test with real runs stands on: a yard to run them in, which must be empty afterwards.

Laws:
- Whatever a yard starts bears its marker, in its environment or its command line; that is how survivors are found.
- A test waits for a sign (a line of the witness, a file, an ending), never for a while. Nothing waits without limit.
- When a test is over, nothing of it is alive and no control group is left; what is, is reported and then ended.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import pytest

from wakeful.runners.cage import available
from wakeful.runners.leavings import Identity, identify
from wakeful.runners.processes import is_zombie, start_time
from wakeful.runners.protocol import EXIT, RESULT, STARTED, Assignment, Runner

MARK = "WAKEFUL_YARD"
GRACE = timedelta(seconds=0.2)

# Seconds: a test that is stuck fails; what is being killed may take a moment to be gone.
STUCK = 60.0
GONE = 10.0
# How much later than it should something may happen on a busy machine, in seconds.
SLACK = 10.0
SECOND = timedelta(seconds=1)
_LOOK = 0.005

Process = tuple[int, int]
Scenario = Callable[..., Awaitable[None]]


def real(scenario: Scenario) -> Callable[..., None]:
    """A test with real runs: its own loop, its yard's runners closed, and the yard empty when it is over."""

    @functools.wraps(scenario)
    def conducted(*args: Any, **fixtures: Any) -> None:
        yard = fixtures["yard"]

        async def conduct() -> None:
            try:
                await asyncio.wait_for(scenario(*args, **fixtures), yard.patience)
            finally:
                yard.note_cages()
                await yard.close()

        asyncio.run(conduct())
        yard.check()

    return conducted


class Yard:
    """A folder with a marker: where runs are started, watched and counted."""

    def __init__(self, folder: Path, make_runner: Callable[[], Runner]) -> None:
        self.folder = folder
        self.marker = f"yard-{uuid.uuid4().hex}"
        self.witness = folder / "witness"
        self.grace = GRACE
        self.patience = STUCK
        self._make_runner = make_runner
        self._runners: list[Runner] = []
        self._runs = 0
        self._cages: set[str] = set()

    @contextmanager
    def open(self) -> Iterator[Self]:
        """While it is open, whatever we start inherits the marker."""
        before = os.environ.get(MARK)
        os.environ[MARK] = self.marker
        try:
            yield self
        finally:
            if before is None:
                del os.environ[MARK]
            else:
                os.environ[MARK] = before
            self._end_whatever_is_left()

    def _end_whatever_is_left(self) -> None:
        """Of a test that failed: what is killed so cannot tidy up behind itself."""
        self.note_cages()
        for pid, started in self.alive():
            if start_time(pid) == started:
                _kill(pid)
        for folder in filter(os.path.isdir, self._cages):
            with suppress(OSError):
                os.rmdir(folder)

    # -- runs ---------------------------------------------------------------------------------------------------
    @property
    def runner(self) -> Runner:
        return self._runners[0] if self._runners else self.another_runner()

    def another_runner(self) -> Runner:
        self._runners.append(self._make_runner())
        return self._runners[-1]

    async def close(self) -> None:
        for runner in self._runners:
            await runner.close()

    def assign(self, command: Sequence[str], **changes: Any) -> Assignment:
        """The next run. Its environment holds the marker unless it is given another."""
        self._runs += 1
        folder = self.folder / "runs" / str(self._runs)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "WAKEFUL_RESULT": str(folder / RESULT),
            "WITNESS": str(self.witness),
            "RUN": str(self._runs),
            MARK: self.marker,
        }
        given: dict[str, Any] = {
            "run": self._runs,
            "epoch": 1,
            "folder": folder,
            "command": tuple(command),
            "workdir": self.folder,
            "environment": environment,
            "grace": self.grace,
            "wall_clock": timedelta(seconds=STUCK),
        }
        return Assignment(**{**given, **changes})

    def guardian(self, assignment: Assignment) -> Identity:
        """Who holds the run, as its folder says it."""
        who = identify(assignment.folder)
        assert who is not None and who.pid > 0
        return who

    def record(self, assignment: Assignment) -> dict[str, Any]:
        record = json.loads((assignment.folder / EXIT).read_bytes())
        assert isinstance(record, dict)
        return record

    # -- signs --------------------------------------------------------------------------------------------------
    def said(self, assignment: Assignment) -> list[str]:
        """What the agents of a run told the witness, each line in one append: `RUN words`."""
        if not self.witness.exists():
            return []
        lines = (line.partition(" ") for line in self.witness.read_text().splitlines())
        return [words for run, _, words in lines if run == str(assignment.run)]

    async def hear(self, assignment: Assignment, lines: int = 1) -> list[str]:
        """Until the agents of a run have said so many lines."""
        await self.until(lambda: len(self.said(assignment)) >= lines, f"{lines} lines of run {assignment.run}")
        return self.said(assignment)

    async def until(self, holds: Callable[[], object], what: str, limit: float = STUCK) -> None:
        end = time.monotonic() + limit
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"waited {limit:g} s in vain for {what}")
            await asyncio.sleep(_LOOK)

    async def turn(self, times: int = 1) -> None:
        """Let others go first, so many times."""
        for _ in range(times):
            await asyncio.sleep(0)

    # -- who is alive -------------------------------------------------------------------------------------------
    def alive(self) -> list[Process]:
        """Every process that bears the marker, with its start time: agents, guardians, nurseries."""
        marker = self.marker.encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid() and _bears(int(entry), marker):
                found.append((int(entry), start_time(int(entry))))
        return found

    def note_cages(self) -> None:
        """Remember the control groups of whoever is alive or was a guardian here: later there must be none."""
        names = [f"wakeful-{pid}-{started}" for pid, started in self.alive()]
        self._cages |= {os.path.join(folder, name) for folder in available().values() for name in names}
        for path in self.folder.glob(f"runs/*/{STARTED}"):
            who = identify(path.parent)
            self._cages |= set(who.cage.values()) if who is not None else set()

    def check(self) -> None:
        """Nothing of this yard is alive, and no control group of it is left."""
        self.note_cages()
        end = time.monotonic() + GONE
        while (left := self._left()) and time.monotonic() < end:
            time.sleep(_LOOK)
        assert left == []

    def _left(self) -> list[str]:
        cages = [folder for folder in sorted(self._cages) if os.path.isdir(folder)]
        return [*(_describe(pid) for pid, _ in self.alive()), *cages]


def _bears(pid: int, marker: bytes) -> bool:
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if marker in file.read():
                    return not is_zombie(pid)
        except OSError:
            continue
    return False


def _describe(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return f"{pid} {file.read().replace(bytes(1), b' ').decode(errors='replace')[:200]}"
    except OSError:
        return str(pid)


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


class Deed(StrEnum):
    """What the agent does. All but the last first tell the witness one line: `RUN here`."""

    succeed = "ends well"
    fail = "ends badly"
    # Both go on until the file `enough` is in the yard; the second pays no heed to a polite end.
    go_on = "goes on"
    defy = "goes on and ignores SIGTERM"
    impossible = "cannot be executed at all"


class RunnerCase:
    """What the sentences of the contract stand on."""

    def make_runner(self) -> Runner:
        """Also in another process, where the case arrives by pickle."""
        raise NotImplementedError

    def assignment(self, yard: Yard, deed: Deed, **changes: Any) -> Assignment:
        """A run that does that, from `yard.assign`; `changes` are fields of the assignment."""
        raise NotImplementedError

    @pytest.fixture
    def yard(self, tmp_path: Path) -> Iterator[Yard]:
        with Yard(tmp_path, self.make_runner).open() as yard:
            yield yard

    def enough(self, yard: Yard) -> None:
        (yard.folder / "enough").touch()
