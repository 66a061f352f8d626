"""What every peer tells about itself: how it is set up, worked and called.

Laws:
- A peer's file can be imported where its library is not installed: the library is loaded when it is needed.
- Each has the setting that its own documents recommend for work that must not be lost. Where it promises less than the
  others, or leaves something out, `note` says so.
- `busy` is the setting that drained the most in earlier trials, `calm` the one out of the box, `eager` (if any) one
  that polls every 10 ms.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

# Names what a process of a peer is told of its task.
CONTEXT = "PEERS_CONTEXT"
# What a worker's own command line imports; see `application`.
APPLICATION = "benchmarks.peers.application"

SQLITE, POSTGRES, REDIS = "SQLite", "PostgreSQL", "Redis"

Options = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    peer: str
    # A folder of its own, and the address of a fresh store (for SQLite the same folder).
    folder: str
    store: str
    # busy, calm, eager; or `preload` and `enqueue`, where no worker is wanted.
    setting: str


def context() -> Context:
    return Context(**json.loads(os.environ[CONTEXT]))


def environment(given: Context) -> dict[str, str]:
    return {CONTEXT: json.dumps(asdict(given))}


def library(name: str) -> Any:
    """A module that may not be installed here, nor be typed."""
    return importlib.import_module(name)


class Peer:
    title: ClassVar[str]
    kind: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    note: ClassVar[str] = ""
    # How many jobs are not done: a query, or commands of Redis whose answers are added.
    unfinished: ClassVar[str | tuple[tuple[str, ...], ...]]

    # Its calls are coroutines.
    asynchronous: ClassVar[bool] = False
    # Each of several callers has one of its own.
    apart: ClassVar[bool] = False
    batches: ClassVar[bool] = False
    busy: ClassVar[Options] = {}
    calm: ClassVar[Options] = {}
    eager: ClassVar[Options | None] = None
    # Between two wakes, in seconds; not a rhythm, so that nobody who polls can fall into step.
    between: ClassVar[tuple[float, float]] = (0.05, 0.2)
    # How long it takes to come to rest, in seconds.
    settle: ClassVar[float] = 3.0

    # Runs with the project's own interpreter.
    ours: ClassVar[bool] = False
    # Not a peer: what it shows is what the store can do at most.
    floor: ClassVar[bool] = False
    # There is no worker beside the caller: the caller's process is it.
    embedded: ClassVar[bool] = False
    # Whoever enqueues needs the worker for it.
    served: ClassVar[bool] = False

    def __init__(self, given: Context) -> None:
        self.context = given
        self.folder = Path(given.folder)
        self.store = given.store
        self.options: Options = {"calm": self.calm, "eager": self.eager or {}}.get(given.setting, self.busy)

    @property
    def database(self) -> Path:
        """The file of those that keep theirs in SQLite."""
        return self.folder / "queue.db"

    # -- in a process of its own, before anything else ------------------------------------------------------
    def prepare(self) -> None:
        """Make the tables."""

    # -- the worker -----------------------------------------------------------------------------------------
    def command(self) -> Sequence[str]:
        """How the worker is started; a program without a slash is one of the peer's environment."""
        return ("python", "-m", "benchmarks.peers.work")

    def application(self) -> Any:
        """What the worker's own command line takes."""
        raise NotImplementedError

    def work(self) -> None:
        """The worker, where it has no command line; until it is ended."""
        raise NotImplementedError

    # -- the caller; coroutines where `asynchronous` ----------------------------------------------------------
    def open(self) -> Any: ...

    def one(self, number: int) -> Any:
        raise NotImplementedError

    def batch(self, numbers: Sequence[int]) -> Any:
        raise NotImplementedError

    def close(self) -> Any: ...


def quiet() -> None:
    """A worker without a command line logs what the others do: warnings."""
    import logging

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
