"""What the tests of sources stand on: something outside that can be looked at, and hands to take batches with.

Law: when a test is over, nothing of it is left: no thread, no open file, no child.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from wakeful.core.items import Observation
from wakeful.sources.aside import THREAD
from wakeful.sources.protocol import Batch, Source

# Seconds: a test that is stuck fails.
STUCK = 60.0
GONE = 5.0
_LOOK = 0.002


class Pending(Protocol):
    """What is outside: a list that somebody else keeps."""

    def source(self) -> Source:
        """One that looks at it, and looks often."""

    def put(self, id: str, words: str) -> None:
        """There is something, or something else, under that id."""

    def take(self, id: str) -> None:
        """It is no longer there."""

    def fail(self) -> None:
        """From now on nobody can read it."""

    def mend(self) -> None:
        """It can be read again, and is what it was."""

    def hint(self) -> None:
        """Whatever tells the source that something may have changed; nothing, where it polls."""

    def close(self) -> None:
        """Whatever was begun for it is ended."""


class Told:
    """Hints by hand."""

    hears = True

    def __init__(self) -> None:
        self.watched: dict[Callable[[], None], tuple[Path, ...]] = {}

    def folders(self, folders: Iterable[Path], told: Callable[[], None]) -> None:
        self.watched[told] = tuple(folders)
        if not self.watched[told]:
            del self.watched[told]

    def tell(self) -> None:
        for told in list(self.watched):
            told()


def lived(scenario: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test on a loop of its own, with an end, that leaves nothing behind."""

    @functools.wraps(scenario)
    def conducted(*args: Any, **fixtures: Any) -> None:
        with nothing_left():
            asyncio.run(asyncio.wait_for(scenario(*args, **fixtures), STUCK))

    return conducted


@contextmanager
def nothing_left() -> Iterator[None]:
    """No thread of a source, no open file, no child; what is on its way out is given a moment."""
    before, children = _open_files(), _children()
    yield
    until = time.monotonic() + GONE
    # Others' may have been closed meanwhile.
    while (_threads() or _open_files() - before) and time.monotonic() < until:
        time.sleep(_LOOK)
    assert _threads() == []
    assert _open_files() - before == set()
    assert _children() - children == set()


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def _children() -> set[str]:
    """Whoever tests may have had some before: a server for other tests."""
    tasks = (Path("/proc/self/task") / task / "children" for task in os.listdir("/proc/self/task"))
    return {child for task in tasks if task.exists() for child in task.read_text().split()}


def _open_files() -> set[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except FileNotFoundError:
            continue
    return found


def ids(batch: Batch) -> list[str]:
    assert batch.observed is not None, batch.why
    return [thing.external_id for thing in batch.observed]


def prints(batch: Batch) -> dict[str, str]:
    assert batch.observed is not None, batch.why
    return {thing.external_id: thing.fingerprint for thing in batch.observed}


async def looked(pending: Pending, source: Source) -> None:
    """Returns when the iterator of the source has taken a look of its own that began after now."""
    before, ours, seen = (await source.look()).taken, 0, 0
    pending.hint()
    # One may have been under way.
    while seen < 2:
        taken, ours = (await source.look()).taken, ours + 1
        if taken - before - ours > seen:
            seen = taken - before - ours
            pending.hint()
        await asyncio.sleep(_LOOK)


def waited(condition: Callable[[], bool]) -> bool:
    """Whether it comes to hold, where there is no loop."""
    latest = time.monotonic() + GONE
    while not condition() and time.monotonic() < latest:
        time.sleep(_LOOK)
    return condition()


async def until(condition: Callable[[], bool]) -> None:
    """A sign that nobody tells is looked for."""
    while not condition():
        await asyncio.sleep(_LOOK)


class Reader:
    """Somebody who takes one batch after the other, and acknowledges each."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.batches: AsyncIterator[Batch] = source.batches()

    async def next(self, *, acknowledge: bool = True) -> Batch:
        batch = await anext(self.batches)
        if acknowledge:
            await self.source.acknowledge(batch)
        return batch

    async def until(self, wanted: Callable[[Batch], bool]) -> Batch:
        while not wanted(batch := await self.next()):
            continue
        return batch


def keepable(thing: Observation) -> None:
    for words in (thing.external_id, thing.fingerprint, thing.subject, thing.body):
        words.encode("utf-8")
    for line in (thing.external_id, thing.fingerprint, thing.subject):
        assert line.isprintable(), line
