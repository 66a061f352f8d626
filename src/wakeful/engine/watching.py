"""Hints that files have changed, from the kernel where it gives any. A hint may be repeated or lost: who is told looks.

Folders are watched, not files: an editor replaces a file, and a file that was missing may come.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncinotify import Inotify

log = logging.getLogger("wakeful.engine")


class Watch:
    """One kernel queue for all folders; none of it costs anything while nothing happens."""

    name = "watch"

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._told: dict[Path, set[Callable[[], None]]] = {}
        self._handles: dict[Path, object] = {}
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
        self.hears = False

    def folders(self, folders: Iterable[Path], told: Callable[[], None]) -> None:
        """From now on `told` is called after a change in any of these folders, and of no others."""
        wanted = set(folders)
        for folder in wanted:
            self._told.setdefault(folder, set()).add(told)
            self._add(folder)
        for folder, listeners in list(self._told.items()):
            if folder not in wanted and told in listeners:
                listeners.discard(told)
                if not listeners:
                    self._remove(folder)

    def _add(self, folder: Path) -> None:
        if self._inotify is None or folder in self._handles:
            return
        from asyncinotify import Mask

        mask = (
            Mask.CLOSE_WRITE | Mask.CREATE | Mask.DELETE | Mask.MOVE | Mask.ATTRIB | Mask.DELETE_SELF | Mask.MOVE_SELF
        )
        try:
            self._handles[folder] = self._inotify.add_watch(folder, mask)
        except OSError as error:
            log.debug("%s is not watched: %s", folder, error)

    def _remove(self, folder: Path) -> None:
        self._told.pop(folder, None)
        handle = self._handles.pop(folder, None)
        if self._inotify is not None and handle is not None:
            try:
                self._inotify.rm_watch(handle)  # type: ignore[arg-type]
            except (OSError, KeyError, ValueError):
                return

    async def _listen(self) -> None:
        assert self._inotify is not None
        from asyncinotify import Mask

        async for event in self._inotify:
            if event.mask & (Mask.IGNORED | Mask.DELETE_SELF | Mask.MOVE_SELF) and event.watch is not None:
                # The folder itself is gone, and the watch with it; the next listing adds it again if it is back.
                gone = [folder for folder, handle in self._handles.items() if handle is event.watch]
                for folder in gone:
                    self._handles.pop(folder, None)
            for told in {told for listeners in self._told.values() for told in listeners}:
                told()
