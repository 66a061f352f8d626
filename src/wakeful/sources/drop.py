"""A folder that takes tasks as JSON files: whoever can write into it is the operator.

Laws:
- A file is taken by moving it aside, durably, before anything of it is recorded; from then on it has a name of its own
  by which it is recorded once, however often we crash before it is removed.
- A file that does not parse may be half written: it is refused only after it was left alone for two seconds.
- Nothing is lost: what cannot be used is moved to `refused/`, with the reason beside it, and never over something else.
- Links are not followed; pipes, sockets and devices are not opened.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from wakeful.sources.protocol import Dropped, Haul

FOLDER = "drop"
SUFFIX = ".json"
TAKEN, REFUSED = ".taken", "refused"
WHY = ".why.txt"
LARGEST = 1_000_000
MOST_TASKS = 10_000
# One haul; the bytes are what is read before it is full.
MOST_FILES = 500
MOST_BYTES = 16_000_000
# Seconds without a change after which a file is as whole as it will be.
SETTLED = 2.0
LONGEST_NAME = 200

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Stamps(NamedTuple):
    inode: int
    mtime_ns: int
    size: int


class Unfit(Exception):
    """Nothing in this file can be used, and waiting will not change that."""


def drop_in(data: Path) -> Drop:
    """The drop folder of a data folder."""
    return Drop(data / FOLDER)


class Drop:
    def __init__(self, path: Path) -> None:
        self.path = path
        # Files that do not parse, and since when they have borne these stamps.
        self._unsettled: dict[str, tuple[Stamps, float]] = {}

    def make(self) -> None:
        for folder in (self.path, self.path / TAKEN, self.path / REFUSED):
            folder.mkdir(mode=0o700, exist_ok=True)

    def take(self, elapsed: float) -> Haul:
        left = list(self._left())
        return Haul(files=tuple(left), more=True) if left else self._fresh(elapsed)

    def _left(self) -> Iterator[Dropped]:
        """What was taken before and never dealt with."""
        for folder in sorted(self._folders()):
            names = sorted(os.listdir(self.path / TAKEN / folder))
            if not names:
                os.rmdir(self.path / TAKEN / folder)
            yield from (self._read_again(folder, name) for name in names[:MOST_FILES])
            if names:
                return

    def _folders(self) -> list[str]:
        with os.scandir(self.path / TAKEN) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]

    def _read_again(self, folder: str, name: str) -> Dropped:
        try:
            return self._dropped(folder, name, _tasks(_content(self.path / TAKEN / folder / name)))
        except (Unfit, ValueError) as unfit:
            return self._dropped(folder, name, why=str(unfit))

    def _fresh(self, elapsed: float) -> Haul:
        names = sorted(self._names())
        seen, folder = self._unsettled, uuid.uuid4().hex
        self._unsettled = {}
        found: list[Dropped] = []
        size = 0
        for name in names:
            if len(found) >= MOST_FILES or size >= MOST_BYTES:
                self._unsettled |= {name: kept for name, kept in seen.items() if name not in self._unsettled}
                break
            dropped, length = self._look(folder, name, seen, elapsed)
            size += length
            if dropped is not None:
                found.append(dropped)
        taken = self._move(folder, found)
        more = len(found) >= MOST_FILES or size >= MOST_BYTES
        return Haul(files=taken, unsettled=bool(self._unsettled), more=more or len(taken) < len(found))

    def _names(self) -> Iterator[str]:
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                    yield entry.name

    def _look(
        self, folder: str, name: str, seen: dict[str, tuple[Stamps, float]], elapsed: float
    ) -> tuple[Dropped | None, int]:
        path = self.path / name
        try:
            stamps = _stamps(os.lstat(path))
            content = _content(path)
            return self._dropped(folder, name, _tasks(content)), len(content)
        except FileNotFoundError:
            return None, 0
        except Unfit as unfit:
            return self._dropped(folder, name, why=str(unfit)), 0
        except ValueError as broken:
            before = seen.get(name)
            since = before[1] if before is not None and before[0] == stamps else elapsed
            if elapsed - since >= SETTLED:
                return self._dropped(folder, name, why=str(broken)), stamps.size
            self._unsettled[name] = (stamps, since)
            return None, stamps.size

    def _dropped(self, folder: str, name: str, tasks: tuple[object, ...] = (), why: str = "") -> Dropped:
        return Dropped(id=f"{folder}/{name}", name=name, tasks=tasks, why=why)

    def _move(self, folder: str, files: list[Dropped]) -> tuple[Dropped, ...]:
        """Those that are ours from now on, also if the machine stops here; one that was changed or taken away since it
        was read is for the next haul."""
        if not files:
            return ()
        target = self.path / TAKEN / folder
        target.mkdir(mode=0o700)
        moved = []
        for file in files:
            try:
                before = _stamps(os.lstat(self.path / file.name))
                os.rename(self.path / file.name, target / file.name)
            except FileNotFoundError:
                continue
            if before == _stamps(os.lstat(target / file.name)):
                moved.append(file)
        for changed in (target, target.parent, self.path):
            _sync(changed)
        return tuple(moved)

    def remove(self, files: Iterable[Dropped]) -> None:
        folders = set()
        for file in files:
            (self.path / TAKEN / file.id).unlink(missing_ok=True)
            folders.add(os.path.dirname(file.id))
        self._tidy(folders)

    def refuse(self, file: Dropped, why: str) -> None:
        name = self._free(file.name)
        # The reason first: a file that stands there without one would be a riddle.
        (self.path / REFUSED / f"{name}{WHY}").write_text(f"{why}\n", encoding="utf-8", errors="backslashreplace")
        os.rename(self.path / TAKEN / file.id, self.path / REFUSED / name)
        self._tidy({os.path.dirname(file.id)})

    def _free(self, name: str) -> str:
        """A name that nothing has there yet, and that leaves room for what is put behind it."""
        stem = os.fsdecode(os.fsencode(name.removesuffix(SUFFIX))[:LONGEST_NAME])
        number, free = 1, f"{stem}{SUFFIX}"
        while any(os.path.lexists(self.path / REFUSED / taken) for taken in (free, f"{free}{WHY}")):
            number += 1
            free = f"{stem}-{number}{SUFFIX}"
        return free

    def _tidy(self, folders: Iterable[str]) -> None:
        for folder in folders:
            path = self.path / TAKEN / folder
            if not os.listdir(path):
                os.rmdir(path)


def _content(path: Path) -> bytes:
    """What a regular file of a sensible size holds."""
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
        if kind != stat.S_IFREG:
            raise Unfit(f"expected a file, found {_KINDS.get(kind, 'something else')}: move the file itself here")
        file = os.open(path, _READING)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unfit(f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    try:
        size = os.fstat(file).st_size
        if size > LARGEST:
            raise Unfit(f"{size:,} bytes, and a file may have {LARGEST:,}: put the tasks into several files")
        with open(file, "rb", closefd=False) as stream:
            return stream.read(LARGEST + 1)
    except OSError as error:
        raise Unfit(f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    finally:
        os.close(file)


_KINDS = {
    stat.S_IFLNK: "a link, which is not followed",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _tasks(content: bytes) -> tuple[object, ...]:
    """A task or a list of them. `ValueError` where more of the file may still come."""
    if not content.strip():
        raise ValueError("the file is empty: expected a task, or a list of tasks, as JSON")
    try:
        told = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte 0x{content[error.start]:02x} at {error.start}") from None
    except RecursionError:
        raise Unfit("nested too deeply: make it flatter") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    tasks = tuple(told) if isinstance(told, list) else (told,)
    if not tasks:
        raise Unfit("there is no task in it: expected a task, or a list of tasks")
    if len(tasks) > MOST_TASKS:
        raise Unfit(f"{len(tasks):,} tasks, and a file may have {MOST_TASKS:,}: put them into several files")
    return tasks


def _stamps(about: os.stat_result) -> Stamps:
    return Stamps(about.st_ino, about.st_mtime_ns, about.st_size)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
