"""An org file whose open entries are pending: an agent's BOARD.

Laws:
- What another agent has claimed is not seen. When the claim is taken away it is news again.
- A board that is being written is shown as it was before, or not yet. One that cannot be read is unknown.
"""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

from wakeful.sources import text
from wakeful.sources.aside import Unreadable
from wakeful.sources.board_text import observed
from wakeful.sources.folder import READING, Look, Moving, Stamps, first, stamps_of
from wakeful.sources.settling import is_whole

NAME = "board"

# Bytes. Every look reads it whole.
LARGEST = 8 * 1024 * 1024


class Reading:
    """One look at a board; `now` is the calendar and `elapsed` a clock that is never set, both in seconds."""

    def __init__(self, folder: Path, before: Look, *, now: float, elapsed: float, name: str, address: str) -> None:
        self._folder, self._name, self._address = folder, name, address
        self._before = before
        self._now, self._elapsed = now, elapsed
        self._aborted = threading.Event()
        self.progress = 0

    def abort(self) -> None:
        self._aborted.set()

    def do(self) -> Look:
        try:
            about = os.stat(self._folder)
            file = os.open(self._folder / self._name, READING)
            try:
                return self._read(file, about)
            finally:
                os.close(file)
        except OSError as error:
            raise Unreadable(self._why(error)) from None

    def _read(self, file: int, folder: os.stat_result) -> Look:
        about = os.fstat(file)
        stamps = stamps_of(about)
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable(f"{self._shown()}: not a file")
        if stamps.size > LARGEST:
            raise Unreadable(f"{self._shown()}: larger than {LARGEST >> 20} MB; move what is done elsewhere")
        whole = is_whole(file, self._rest(stamps))
        content = first(file, LARGEST) if whole else b""
        if not whole or stamps_of(os.fstat(file)) != stamps:
            moving = Moving(stamps, self._since(stamps))
            return Look(
                observed=self._before.observed,
                moving={self._name: moving},
                device=folder.st_dev,
                inode=folder.st_ino,
            )
        found = observed(text.beginning(content, complete=True), self._address)
        return Look(observed=found, device=folder.st_dev, inode=folder.st_ino)

    def _since(self, stamps: Stamps) -> float:
        moving = self._before.moving.get(self._name)
        return moving.since if moving is not None and moving.stamps == stamps else self._elapsed

    def _rest(self, stamps: Stamps) -> float:
        """By the calendar, or, where its clock is wrong, by how long we have seen it so."""
        return max(self._now - stamps.ctime_ns / 1e9, self._elapsed - self._since(stamps))

    def _why(self, error: OSError) -> str:
        if (self._folder / self._name).is_symlink():
            return f"{self._shown()}: a link, which is not followed; name the file that it leads to"
        if isinstance(error, FileNotFoundError):
            return f"{self._shown()}: no such file"
        return f"{self._shown()}: {error.strerror or error}"

    def _shown(self) -> str:
        return text.name(str(self._folder / self._name))
