"""The seam between what is pending outside and the store that mirrors it.

Laws:
- A source tells the level, whole: everything that is pending at one moment. What is new in it is found by the store.
- A source that cannot be read says so: None and why, never an empty list.
- A hint makes a source quick, a look makes it right. A look never depends on what was hinted.
- Two batches of a source are ordered by `taken`: one that is older than what was observed last is not observed.
- A source keeps nothing that is needed after a restart: the first batch of a new one is the whole list again, with
  the same fingerprints.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from wakeful.core.items import NewItem, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a source has to say at one moment: all that is pending (`observed`), or, from one that hands out each thing
    once, things to be recorded (`items`). With neither it is an outage, and `why` says why."""

    source: str
    agent: str
    observed: tuple[Observation, ...] | None = None
    why: str = ""
    items: tuple[NewItem, ...] = ()
    # Counts the looks of one source; two batches that say the same are equal whenever they were taken.
    taken: int = field(default=0, compare=False)

    @property
    def outage(self) -> bool:
        return self.observed is None and not self.items


class Source(Protocol):
    # Under which the store keeps what comes from here; without spaces.
    name: str
    # The address whose inbox it is.
    agent: str

    def batches(self) -> AsyncIterator[Batch]:
        """The whole list at once, then again whenever it differs from what was acknowledged last, and at a look once a
        minute; an outage likewise, and when its reason changes. It ends after `stop`. One caller at a time."""

    async def acknowledge(self, batch: Batch) -> None:
        """The batch is dealt with: the store has committed it, or its outage was told. What is not acknowledged is
        offered again."""

    async def look(self) -> Batch:
        """What is pending now. It waits a moment for what is being written at this very instant."""

    async def stop(self) -> None:
        """End the iterator, and whatever was begun for it; a second stop does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A source that an agent declares. Two that are equal are one: what `made_of` says is all that `make` needs."""

    source: str
    agent: str
    made_of: tuple[object, ...] = field(default=(), repr=False)
    # A new one each time: one that was stopped does not begin again.
    make: Callable[[], Source] = field(compare=False, repr=False)


class Hints(Protocol):
    """Somebody who hears of changes in folders, late or twice or not at all."""

    @property
    def hears(self) -> bool:
        """Whether anything is heard at all."""

    def folders(self, folders: Iterable[Path], told: Callable[[], None]) -> None:
        """From now on `told` is called after a change in any of these folders, and of no others."""


# ---- tasks that are dropped as files


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A file that somebody moved in and that is ours now: the tasks that it holds, or why there are none in it."""

    # Of this file alone, and the same as long as it is there: another one may come under the same name.
    id: str
    name: str
    tasks: tuple[object, ...] = ()
    why: str = ""
    # By which the folder knows it as it was when it was read.
    stamps: tuple[int, ...] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Haul:
    files: tuple[Dropped, ...] = ()
    # There is a file that somebody may still be writing.
    unsettled: bool = False
    # More was there than one haul takes.
    more: bool = False
    # The names of files that nothing can be done with for now, and why.
    stuck: tuple[tuple[str, str], ...] = ()


class DropFolder(Protocol):
    """Each call may take a while: none of them is for the thread that the engine lives in."""

    path: Path

    def make(self) -> None:
        """The folder, where it is not there."""

    def take(self, elapsed: float) -> Haul:
        """The whole files that are there, which nobody else sees from now on, first those that were taken and never
        dealt with. `elapsed` is a clock that is never set, in seconds."""

    def remove(self, files: Iterable[Dropped]) -> list[tuple[Dropped, str]]:
        """The store has committed what was read of them. Those that somebody wrote to since are refused instead, and
        are told of with the reason."""

    def refuse(self, file: Dropped, why: str) -> bool:
        """It is kept, with the reason beside it. False where that cannot be done for now."""

    def leave(self, file: Dropped, why: str) -> None:
        """It stays where it is, and is taken again after a while."""

    def refused(self) -> int:
        """How many are kept that were refused."""
