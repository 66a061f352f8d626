"""The data folder: one process writes in it at any time.

The lock is a kernel lock on an open file, so that it dies with its holder and needs no cleaning up.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from wakeful.core.errors import Busy, Mistake, Sick, WakefulError

_STEP = 0.02
_SICK = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)
# What runs, workers and checks leave, and what agents work in and remember.
PARTS = ("runs", "work", "memory", "workers", "checks")


class DataFolder:
    """`.wakeful/` beside the fleet file: store, tokens, logs. Private to its owner."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @property
    def database(self) -> Path:
        return self.path / "wakeful.db"

    def create(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(0o700)
        except OSError as error:
            raise Mistake(f"cannot use {self.path} as data folder: {error.strerror}", "name another") from error

    def close_off(self) -> None:
        """Its parts are private too, by themselves and not only by what they lie in; a link leads where it leads."""
        for part in (self.path / name for name in PARTS):
            if part.is_symlink():
                continue
            try:
                part.mkdir(mode=0o700, exist_ok=True)
                if part.stat().st_mode & 0o077:
                    part.chmod(0o700)
            except OSError as error:
                raise Mistake(f"cannot use {part}: {error.strerror}", "move it away; it is made anew") from error

    def lock(self, patience: float = 5.0) -> None:
        """Wait at most `patience` seconds for the one writer's lock, then raise `Busy`."""
        self.create()
        handle = self._open()
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(handle)
                    raise Busy(f"{self.path} is in use by another wakeful process") from None
                time.sleep(_STEP)
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(handle)
            raise _unlockable(self.path / "lock", error) from error
        self._lock = handle

    def _open(self) -> int:
        file = self.path / "lock"
        try:
            return os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unlockable(file, error) from error

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> DataFolder:
        self.lock()
        return self

    def __exit__(self, *_: object) -> None:
        self.unlock()


def _unlockable(file: Path, error: OSError) -> WakefulError:
    """A disk that takes no writes is in trouble, and may be well again; anything else is for a person to mend."""
    if error.errno in _SICK:
        return Sick(f"cannot write {file}: {error.strerror}")
    return Mistake(f"cannot open {file}: {error.strerror}", "remove it, or name another folder")
