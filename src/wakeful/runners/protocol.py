"""The seam between deciding that an agent runs and running it.

Laws:
- A run is held by a guardian, not by us: it outlives the caller, and its exit record is the only word on how it ended.
- `started`, created exclusively in the run's folder, settles the start: whoever creates it first, a guardian or the
  veto of a recovery, is right. It appears whole, with the name of who created it.
- Nothing here knows the store: an assignment goes in, an ending comes out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from wakeful.core.agents import Agent
from wakeful.core.orders import Order
from wakeful.core.runs import Ending, TaskEnd

# The names of the files in a run's folder.
BRIEFING = "briefing.txt"
BRIEFING_JSON = "briefing.json"
STARTED = "started"
STOP = "stop.json"
LEASE = "lease"
RESULT = "result.json"
STDOUT = "stdout"
STDERR = "stderr"
EXIT = "exit.json"

# A run is ended so long before its lease is over: by then its processes are gone, on a machine that stutters too.
FENCE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One run, ready to be carried out. `folder` is the run's own; nothing else is written there."""

    run: int
    epoch: int
    folder: Path
    command: tuple[str, ...]
    workdir: Path
    environment: Mapping[str, str]
    briefing: str = ""
    briefing_json: str = "{}"
    wall_clock: timedelta = timedelta(minutes=15)
    grace: timedelta = timedelta(seconds=10)
    # Until when the run may go on without a word from the engine, in seconds since boot (CLOCK_BOOTTIME). None where
    # there is no other node to fence it from.
    leased_until: float | None = None
    # So long before that it is ended; what has not executed by then never does.
    fence: timedelta = FENCE
    # What it may use while it reports that live, in millionths of a dollar and in tokens.
    most_usd: int | None = None
    most_tokens: int | None = None
    # What it is given, and what is others': neither may be seen in what it leaves behind, but of the second the run
    # itself is told nothing.
    secrets: tuple[str, ...] = field(default=(), repr=False)
    hidden: tuple[str, ...] = field(default=(), repr=False)
    # Output kept of each stream: its head and its tail.
    output_limit: int = 5 * 1024 * 1024
    processes: int = 512
    memory: int | None = None
    # Whether it keeps the time of others: when one of them stops it (SIGSTOP), it is made to go on.
    keeps_time: bool = False


class Found(StrEnum):
    """What a recovery finds in a run's folder."""

    alive = "alive"
    ended = "ended"
    lost = "lost"
    unstarted = "unstarted"


class Held(Protocol):
    """A run under way, ours or adopted."""

    @property
    def run(self) -> int: ...

    @property
    def over(self) -> bool:
        """Whether it has ended; what its tasks came to may still be unheard."""

    async def wait(self) -> Ending:
        """Until the run has ended; any number of callers may wait."""

    def batches(self) -> AsyncIterator[list[TaskEnd]]:
        """The tasks of a shift as they end, those that have ended meanwhile together; none in any other run."""

    async def end(self, by: str, *, at_once: bool = False, task: int | None = None) -> None:
        """Ask for the end on purpose: TERM, the grace, KILL to every descendant; `at_once` is KILL now. With a `task`
        only that of a shift is ended, and the shift goes on; a run that is about one task is ended whole."""

    def extend(self, until: float) -> None:
        """The engine is alive: the run may go on until then, in seconds since boot. Never raises: where it cannot be
        written down, the run ends at its fence."""


class Runner(Protocol):
    async def start(self, assignment: Assignment) -> Held:
        """Hand the run to a guardian; returns as soon as it is held. What cannot be executed is an ending."""

    def find(self, folder: Path) -> Found:
        """What became of a run that somebody else started. Looks only."""

    async def adopt(self, run: int, folder: Path) -> Held:
        """Take over a run that is alive or has ended; of one that is lost, the ending says so, and what it left
        behind is ended first."""

    def veto(self, folder: Path) -> bool:
        """Make sure that a run which has not started never will; False when it has."""

    async def close(self) -> None:
        """Let go; what runs goes on under its guardians. A second close does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a CHECK said. One that says nothing clear, fails or takes too long wakes the agent."""

    wake: bool
    reason: str = ""
    data: Any = None


class Carrier(Protocol):
    """Carries out orders, each by the runner that its agent needs; knows where the folders of runs are.

    An order goes in, an ending comes out: an order that cannot be carried out (no such definition, no such runner)
    is an ending too, and is never raised.
    """

    async def carry(self, order: Order, check: Any = None, *, leased_until: float | None = None) -> Held:
        """Begin; returns as soon as the run has executed (`started` is there), or has ended. `check` is what the
        agent's CHECK had to say, for the briefing. What would execute when its lease is about to end never does: it is
        vetoed."""

    def extend(self, run: int, until: float) -> None:
        """As `Held.extend`, of a run that is still being carried: a worker may be long in coming up, a pull may hold
        a start up. Of any other run nothing is done."""

    def find(self, run: int) -> Found: ...

    async def adopt(self, run: int) -> Held: ...

    def veto(self, run: int) -> bool: ...

    async def check(self, agent: Agent) -> Checked:
        """Run the agent's CHECK command, bounded."""

    async def pull(self, agent: Agent) -> str:
        """Bring the agent's work tree to the head of its origin, fast-forward only; "" or what was in the way.
        Never while a run is under way in that tree."""

    def discard(self, run: int) -> None:
        """Remove what a run left: its folder and output. Of a run that is over only."""

    async def close(self) -> None:
        """Let go; what runs goes on under its guardians."""
