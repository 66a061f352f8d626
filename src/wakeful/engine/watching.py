"""Hints that files have changed, from the kernel where it gives any. A hint may be repeated or lost: who is told looks.

Laws:
- Folders are watched, not files: an editor replaces a file, and a file that was missing may come.
- Who listens to a folder is told of that one: among a thousand folders a change costs one look. Only where the kernel
  has lost count are all told.
- A folder that was moved away is no longer watched: what is watched is what its path leads to.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncinotify import Event, Inotify
    from asyncinotify import Watch as Handle

log = logging.getLogger("wakeful.engine")

Told = Callable[[], None]


class Watch:
    """One kernel queue for all folders; none of it costs anything while nothing happens."""

    name = "watch"

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._told: dict[Path, set[Told]] = {}
        self._heard: dict[Told, set[Path]] = {}
        self._handles: dict[Path, Handle] = {}
        # Two paths may lead to one folder, of which the kernel tells once.
        self._paths: dict[Handle, set[Path]] = {}
        self._task: asyncio.Task[None] | None = None
        self.hears = False

    async def start(self) -> None:
        if sys.platform != "linux":
            return
        from asyncinotify import Inotify

        try:
            self._inotify = Inotify()
        except OSError as error:
            log.warning("changes of files are noticed by looking now and then: %s", error.strerror)
            return
        self.hears = True
        for folder in self._told:
            self._add(folder)
        self._task = asyncio.get_running_loop().create_task(self._listen(), name=self.name)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._handles.clear()
        self._paths.clear()
        self.hears = False

    def folders(self, folders: Iterable[Path], told: Told) -> None:
        """From now on `told` is called after a change in any of these folders, and of no others."""
        wanted, heard = set(folders), self._heard.pop(told, set())
        for folder in wanted:
            self._told.setdefault(folder, set()).add(told)
            if folder not in heard or folder not in self._handles:
                self._add(folder)
        for folder in heard - wanted:
            self._told[folder].discard(told)
            if not self._told[folder]:
                del self._told[folder]
                self._remove(folder)
        if wanted:
            self._heard[told] = wanted

    def _add(self, folder: Path) -> None:
        if self._inotify is None:
            return
        from asyncinotify import Mask

        mask = (
            Mask.CLOSE_WRITE | Mask.CREATE | Mask.DELETE | Mask.MOVE | Mask.ATTRIB | Mask.DELETE_SELF | Mask.MOVE_SELF
        )
        try:
            handle = self._inotify.add_watch(folder, mask)
        except OSError as error:
            log.debug("%s is not watched: %s", folder, error)
            return
        if self._handles.get(folder) is not handle:
            # The path may lead elsewhere than it did: a folder above it was moved, and it was made anew.
            self._remove(folder)
            self._handles[folder] = handle
            self._paths.setdefault(handle, set()).add(folder)

    def _remove(self, folder: Path) -> None:
        handle = self._handles.pop(folder, None)
        if handle is None:
            return
        self._paths[handle].discard(folder)
        if not self._paths[handle]:
            self._let_go(handle)

    def _let_go(self, handle: Handle) -> None:
        del self._paths[handle]
        if self._inotify is not None:
            try:
                self._inotify.rm_watch(handle)
            except (OSError, KeyError, ValueError):
                # The kernel was first.
                return

    async def _listen(self) -> None:
        assert self._inotify is not None
        async for event in self._inotify:
            for told in self._concerned(event):
                told()

    def _concerned(self, event: Event) -> set[Told]:
        from asyncinotify import Mask

        if event.mask & Mask.Q_OVERFLOW:
            return set(self._heard)
        handle = event.watch
        if handle is None or handle not in self._paths:
            # Nobody wants it any more.
            return set()
        concerned = {told for folder in self._paths[handle] for told in self._told[folder]}
        if event.mask & (Mask.IGNORED | Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.UNMOUNT):
            # The folder itself is gone; the next listing adds it again if it is back.
            for folder in self._paths[handle]:
                del self._handles[folder]
            self._let_go(handle)
        return concerned
