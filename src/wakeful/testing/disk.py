"""A disk that fails when it is told to: a VFS under SQLite, over the machine's own.

Laws:
- What fails is not done at all, and fails with the error that the kernel's would become.
- It counts what was asked of it while it watches, so that each single write can be made to fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

Fails = Callable[[int], bool]


def never(number: int) -> bool:
    return False


class Disk(apsw.VFS):
    """Named for `open_sqlite(disk=…)`; unregistered when it is garbage, so whoever uses it holds it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.writes = 0
        self.syncs = 0
        self.full: Fails = never
        self.failing: Fails = never

    def heal(self) -> None:
        self.full = self.failing = never

    def watch(self) -> None:
        """Count from here."""
        self.writes = self.syncs = 0

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _File(self, name, flags)

    def writing(self) -> None:
        self.writes += 1
        if self.full(self.writes):
            raise apsw.FullError("no space is left on this disk")

    def syncing(self) -> None:
        self.syncs += 1
        if self.failing(self.syncs):
            raise apsw.IOError("this disk cannot keep what it was given")


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.writing()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.syncing()
        super().xSync(flags)
