"""A folder whose files are pending: an agent's INBOX. Or a file in it whose entries are: its BOARD.

Laws:
- The kernel's hints make it quick; a look at the folder decides, at a hint and now and then without one.
- Hints in a burst become one look: after 50 ms of quiet, and after a second at the latest, whatever goes on.
- A folder that hangs (a dead mount) is an outage, not a wait.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Protocol

from wakeful.core.items import Observation
from wakeful.sources import text
from wakeful.sources.aside import Unreadable, Work
from wakeful.sources.folder import Listing, Look, Nearest
from wakeful.sources.mirror import Mirror
from wakeful.sources.protocol import Hints

NAME = "inbox"

# Seconds. With hints a look now and then is for those that got lost, and for mounts whose changes nobody hears.
SWEEP, UNHEARD = 60.0, 2.0
QUIET, LATEST = 0.05, 1.0
# A file that is being written is looked at again, ever more seldom; the kernel tells when it is closed.
FIRST_REST, LONGEST_REST = 0.05, 1.0
# While the folder cannot be read: that a mount has come back is not heard.
TROUBLE = 10.0
# For so long a look waits for what is being written; for so long it may stand still before it hangs.
PATIENCE, HANGING = 1.5, 10.0
FEW = 3


class Bell:
    """Hints, gathered: who waits is told once for a burst of them."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self._muted = False

    def ring(self) -> None:
        self._rung.set()

    def mute(self) -> None:
        """Nobody waits for it any more."""
        self._muted = True
        self._rung.set()

    async def heard(self, limit: float) -> None:
        """Returns when it rang and has been quiet for a moment, or after `limit` seconds."""
        if not await self._rings(limit):
            return
        clock = asyncio.get_running_loop().time
        latest = clock() + LATEST
        while (left := latest - clock()) > 0 and not self._muted:
            self._rung.clear()
            if not await self._rings(min(QUIET, left)):
                break
        # What rings from here on was not seen by the look that comes now.
        self._rung.clear()

    async def _rings(self, limit: float) -> bool:
        if self._muted:
            return False
        try:
            async with asyncio.timeout(limit):
                await self._rung.wait()
        except TimeoutError:
            return False
        return True


class Looking(Work[Look], Protocol):
    # One that no longer rises hangs.
    progress: int


class LookInto(Protocol):
    def __call__(self, folder: Path, before: Look, *, now: float, elapsed: float) -> Looking:
        """One look: `now` is the calendar and `elapsed` a clock that is never set, both in seconds."""


class Directory(Mirror):
    def __init__(self, agent: str, folder: Path, hints: Hints, *, name: str = NAME, look: LookInto = Listing) -> None:
        super().__init__(name, agent)
        self._folder = folder
        self._look_into = look
        self._hints = hints
        self._bell = Bell()
        # None before the first look: to watch what hangs (a dead mount) would hang everything.
        self._watched: tuple[Path, ...] = ()
        self._anew = False
        self._seen = Look()
        self._trouble = False
        self._rest = FIRST_REST

    async def _see(self, *, patient: bool) -> tuple[Observation, ...]:
        clock = asyncio.get_running_loop().time
        until = clock() + PATIENCE
        await self._list()
        while patient and self._seen.moving and clock() < until and not self._stopped.is_set():
            await asyncio.sleep(FIRST_REST)
            await self._list()
        return self._seen.observed

    async def _list(self) -> None:
        """What was not watched before the look is looked at once more: it may have changed in between."""
        for _ in range(FEW):
            self._watch()
            before = self._seen
            listing = self._look_into(self._folder, self._seen, now=time.time(), elapsed=time.monotonic())
            try:
                self._seen = await self._unless_it_hangs(listing)
            except Unreadable as error:
                self._trouble = True
                wanted = await self._folder_and_above()
                unreadable = error
            else:
                self._trouble = False
                wanted = (self._folder,)
            if (wanted == self._watched and not self._replaced(before)) or self._stopped.is_set():
                break
            self._watched, self._anew = wanted, True
        if self._trouble:
            raise unreadable

    def _replaced(self, before: Look) -> bool:
        """Whether another folder is in its place than at the look before, without any trouble in between."""
        return before.inode is not None and (before.device, before.inode) != (self._seen.device, self._seen.inode)

    async def _unless_it_hangs(self, listing: Looking) -> Look:
        look = asyncio.ensure_future(self._aside.do(listing))
        try:
            progress = 0
            while not look.done():
                await asyncio.wait({look}, timeout=HANGING)
                if not look.done() and listing.progress == progress:
                    raise Unreadable(f"{text.name(str(self._folder))}: does not answer")
                progress = listing.progress
            return look.result()
        finally:
            look.cancel()
            await asyncio.wait({look})

    async def _folder_and_above(self) -> tuple[Path, ...]:
        """What is missing may come, and what is closed may open: both are heard where the way to it now ends."""
        try:
            return (self._folder, await self._aside.do(Nearest(self._folder.parent)))
        except Unreadable:
            return self._watched

    def _watch(self) -> None:
        if self._stopped.is_set():
            return
        if self._anew:
            # The path may lead elsewhere than it did.
            self._hints.folders((), self._bell.ring)
        self._hints.folders(self._watched, self._bell.ring)
        self._anew = False

    async def _until_more(self, *, again: bool) -> None:
        limit = SWEEP if self._hints.hears else UNHEARD
        if self._trouble:
            limit = min(limit, TROUBLE)
        if self._seen.moving:
            limit, self._rest = min(limit, self._rest), min(self._rest * 2, LONGEST_REST)
        else:
            self._rest = FIRST_REST
        await self._bell.heard(min(limit, LATEST) if again else limit)

    async def stop(self) -> None:
        self._stopped.set()
        self._hints.folders((), self._bell.ring)
        self._bell.mute()
        await super().stop()
