"""A copy of the store in one private file, and the look at one before it is trusted.

Laws:
- A backup appears whole, under its name, or not at all; no file that is there already is ever replaced.
- To look at a backup changes nothing, not even beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from wakeful.core.errors import Mistake, TooOld
from wakeful.store.migrate import versions_of

# "wake" in ASCII, in the header of every store file.
APPLICATION_ID = 0x77616B65

_ELSEWHERE = "name another file"


def copy(source: apsw.Connection, path: Path) -> None:
    """Copy whatever the source sees now; its writer is not held up."""
    if os.path.lexists(path):
        raise Mistake(f"{path} exists already", _ELSEWHERE)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise Mistake(f"cannot write {path}: {error.strerror}", _ELSEWHERE) from error
    try:
        _fill(source, unfinished)
        _sync(unfinished)
        _place(unfinished, path)
        _sync(path.parent)
    except (OSError, apsw.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Mistake(f"cannot write {path}: {reason}", f"make room, or {_ELSEWHERE}") from error
    finally:
        for left in (unfinished, unfinished.with_name(f"{unfinished.name}-journal")):
            left.unlink(missing_ok=True)


def _fill(source: apsw.Connection, path: Path) -> None:
    target = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # All pages at once: between two steps a writer could make us begin again, for ever.
        with target.backup("main", source, "main") as under_way:
            while not under_way.done:
                under_way.step(-1)
        # One file, that needs no other beside it.
        target.pragma("journal_mode", "delete")
    finally:
        target.close()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _place(unfinished: Path, path: Path) -> None:
    """A link, unlike a rename, never replaces what somebody else has put there meanwhile."""
    try:
        os.link(unfinished, path, follow_symlinks=False)
    except FileExistsError:
        raise Mistake(f"{path} exists already", _ELSEWHERE) from None
    except OSError:
        # A file system without links; the name was free a moment ago.
        unfinished.rename(path)


def verify(path: Path) -> None:
    """Whether a backup is whole, ours, and of a schema that this code knows; raises a `Mistake` that names it."""
    if not path.is_file():
        raise Mistake(f"there is no backup {path}", "name a file that `wakeful backup` made")
    waiting = path.with_name(f"{path.name}-wal")
    if waiting.exists() and waiting.stat().st_size:
        raise Mistake(f"{waiting} holds changes that are not in {path}", "make a backup with `wakeful backup`")
    try:
        # Immutable: nothing is created beside it, and no lock is asked for.
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error as error:
        raise _damaged(path, str(error)) from error
    try:
        _look(path, connection)
    except apsw.Error as error:
        raise _damaged(path, str(error)) from error
    finally:
        connection.close()


def _look(path: Path, connection: apsw.Connection) -> None:
    if connection.pragma("application_id") != APPLICATION_ID:
        raise Mistake(f"{path} is not a wakeful store", "name a file that `wakeful backup` made")
    found = [line for (text,) in connection.execute("PRAGMA quick_check") for line in text.splitlines()]
    if found != ["ok"]:
        raise _damaged(path, found[-1])
    try:
        versions_of(connection)
    except TooOld as error:
        raise Mistake(f"{path}: {error}") from error


def _damaged(path: Path, why: str) -> Mistake:
    return Mistake(f"{path} is damaged, or no wakeful store: {why}", "use another backup; this one was left untouched")
