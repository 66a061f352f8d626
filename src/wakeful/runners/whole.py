"""Files that appear whole or not at all, and the clock that guardians and their callers share."""

from __future__ import annotations

import json
import os
import time
from itertools import count

# How long a disk that cannot be written to is waited for, and how often it is tried meanwhile.
PATIENCE, _REST = 3600.0, 0.5
# Two threads of one process may write the same file at once.
_serial = count()


def now() -> float:
    """Seconds since boot, suspended time included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def write_whole(path: str, value: object, *, sync: bool = False) -> None:
    write_bytes(path, json.dumps(value).encode(), sync=sync)


def write_bytes(path: str, data: bytes, *, sync: bool = False) -> None:
    """Either the old file or the new one, never a part; with `sync`, on the disk when this returns."""
    temporary = f"{path}.{os.getpid()}.{next(_serial)}"
    file = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        if sync:
            os.fsync(file)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(file)
    if sync:
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)


def write_at_last(path: str, value: object) -> None:
    """On the disk, however long that is full: what is told here nobody else knows."""
    until = now() + PATIENCE
    while True:
        try:
            return write_whole(path, value, sync=True)
        except OSError:
            if now() >= until:
                raise
        time.sleep(_REST)


def create_whole(path: str, value: object) -> bool:
    """Create a file with its content, or find that somebody else has: exclusive and whole at once."""
    temporary = f"{path}.{os.getpid()}.{next(_serial)}"
    file = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    os.write(file, json.dumps(value).encode())
    os.close(file)
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
