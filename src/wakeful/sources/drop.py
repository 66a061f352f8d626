"""A folder that takes tasks as JSON files: whoever can write into it is the operator.

Laws:
- A file is taken by moving it aside, durably, before anything of it is recorded; from then on it has a name of its own
  by which it is recorded once, however often we crash before it is removed.
- What is told of a file was read after it was moved. One that somebody wrote to since then is not removed but refused.
- A file that does not parse may be half written: it is refused only after it was left alone for two seconds.
- Nothing is lost: what cannot be used is moved to `refused/`, with the reason beside it, and never over something else.
- One file that cannot even be moved or removed is told of and tried again; the others go on.
- Links are not followed; pipes, sockets and devices are not opened.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from wakeful.core.wording import UNSTORABLE
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
# Seconds until what could not be dealt with is tried again.
AGAIN = 10.0
# Seconds after which a file that is still here should have been dealt with; a look is taken once a minute.
OVERDUE = 300.0
LONGEST_NAME = 200
CHANGED = "it was written to after its tasks had been recorded: what was added since is in none of them"

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Stamps(NamedTuple):
    inode: int
    mtime_ns: int
    ctime_ns: int
    size: int


class Look(NamedTuple):
    """What was found in a file; `content` is None where it was not read."""

    file: Dropped
    content: bytes | None


class Unfit(Exception):
    """Nothing in this file can be used, and waiting will not change that."""


def drop_in(data: Path) -> Drop:
    """The drop folder of a data folder."""
    return Drop(data / FOLDER)


class Drop:
    """Files are known by their path below the folder, or, once they are taken, below `.taken`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._elapsed = 0.0
        # Files that do not parse, and since when they have borne these stamps: as the last look found, and this one.
        self._seen: dict[str, tuple[Stamps, float]] = {}
        self._unsettled: dict[str, tuple[Stamps, float]] = {}
        # Files that nothing can be done with, why, and when to try again.
        self._stuck: dict[str, tuple[str, float]] = {}

    def make(self) -> None:
        for folder in (self.path, self.path / TAKEN, self.path / REFUSED):
            folder.mkdir(mode=0o700, exist_ok=True)

    def refused(self) -> int:
        try:
            return sum(not name.endswith(WHY) for name in os.listdir(self.path / REFUSED))
        except FileNotFoundError:
            return 0

    def waiting(self, now: float) -> list[str]:
        """The names of files that have been here for longer than anybody needs to deal with them; `now` is what the
        calendar says, in seconds since 1970."""
        kept = [(name, self.path / name) for name in sorted(self._names())]
        for folder in self._folders() if (self.path / TAKEN).is_dir() else ():
            kept += [(name, self.path / TAKEN / folder / name) for name in os.listdir(self.path / TAKEN / folder)]
        return [name for name, path in kept if now - _since(path, now) > OVERDUE]

    # ---- what is there

    def take(self, elapsed: float) -> Haul:
        self._elapsed, self._seen, self._unsettled = elapsed, self._unsettled, {}
        self._stuck = {id: known for id, known in self._stuck.items() if os.path.lexists(self._where(id))}
        looks, more = self._sift(self._left())
        if looks:
            self._unsettled |= self._seen
            return self._haul([look.file for look in looks], more=True)
        looks, more = self._sift(sorted(self._names()))
        if more:
            self._unsettled |= self._seen
        return self._haul(self._move(uuid.uuid4().hex, looks) if looks else [], more=more)

    def _haul(self, files: list[Dropped], *, more: bool) -> Haul:
        stuck = tuple((os.path.basename(id.rstrip("/")), why) for id, (why, _) in self._stuck.items())
        return Haul(files=tuple(files), unsettled=bool(self._unsettled), more=more, stuck=stuck)

    def _where(self, id: str) -> Path:
        return self.path / TAKEN / id if "/" in id else self.path / id

    def _left(self) -> Iterator[str]:
        """What was taken before and never dealt with."""
        for folder in sorted(self._folders()):
            try:
                names = sorted(os.listdir(self.path / TAKEN / folder))
            except OSError as error:
                self._stick(f"{folder}/", f"what was taken cannot be listed: {_told(error)}")
                continue
            if not names:
                self._tidy(folder)
            yield from (f"{folder}/{name}" for name in names)

    def _folders(self) -> list[str]:
        with os.scandir(self.path / TAKEN) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]

    def _names(self) -> Iterator[str]:
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                    yield entry.name

    def _sift(self, ids: Iterable[str]) -> tuple[list[Look], bool]:
        """Those that can be dealt with, and whether there is more than one haul takes."""
        found: list[Look] = []
        size = 0
        for id in ids:
            if len(found) >= MOST_FILES or size >= MOST_BYTES:
                return found, True
            if self._stuck.get(id, ("", self._elapsed))[1] > self._elapsed:
                continue
            self._stuck.pop(id, None)
            look = self._look(id)
            if look is not None:
                found.append(look)
                size += len(look.content or b"")
        return found, False

    def _look(self, id: str) -> Look | None:
        """None where it is gone, or may still be written."""
        file, content, before = Dropped(id=id, name=os.path.basename(id)), None, self._seen.pop(id, None)
        try:
            if UNSTORABLE.search(file.name):
                raise Unfit("its name is not UTF-8: rename it, and move it here again")
            content, stamps = _content(self._where(id))
            return Look(replace(file, tasks=_tasks(content), stamps=stamps), content)
        except FileNotFoundError:
            return None
        except Unfit as unfit:
            return Look(replace(file, why=str(unfit)), content)
        except ValueError as broken:
            since = before[1] if before is not None and before[0] == stamps else self._elapsed
            if self._elapsed - since >= SETTLED:
                return Look(replace(file, why=str(broken)), content)
            self._unsettled[id] = (stamps, since)
            return None

    def _move(self, folder: str, looks: list[Look]) -> list[Dropped]:
        """Those that are ours from now on, also if the machine stops here."""
        target = self.path / TAKEN / folder
        target.mkdir(mode=0o700)
        moved = []
        for look in looks:
            name = look.file.name
            try:
                os.rename(self.path / name, target / name)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._stick(name, f"it cannot be moved: {_told(error)}")
                continue
            moved.append(look)
        for changed in (target, target.parent, self.path):
            _sync(changed)
        if not moved:
            self._tidy(folder)
        return [file for look in moved if (file := self._moved(f"{folder}/{look.file.name}", look)) is not None]

    def _moved(self, id: str, before: Look) -> Dropped | None:
        """What was moved may be something else than what was looked at."""
        if before.content is not None:
            with suppress(OSError, Unfit):
                content, stamps = _content(self._where(id))
                if content == before.content:
                    return replace(before.file, id=id, stamps=stamps)
        look = self._look(id)
        return None if look is None else look.file

    # ---- what becomes of it

    def remove(self, files: Iterable[Dropped]) -> list[tuple[Dropped, str]]:
        changed, folders = [], set()
        for file in files:
            path = self._where(file.id)
            try:
                if file.stamps is not None and file.stamps != _stamps(os.lstat(path)):
                    changed.append(file)
                else:
                    path.unlink()
            except FileNotFoundError:
                pass
            except OSError as error:
                self._stick(file.id, f"it is recorded, and cannot be removed: {_told(error)}")
            folders.add(os.path.dirname(file.id))
        for folder in folders:
            self._tidy(folder)
        return [(file, CHANGED) for file in changed if self.refuse(file, CHANGED)]

    def refuse(self, file: Dropped, why: str) -> bool:
        name = self._free(file.name)
        beside = self.path / REFUSED / f"{name}{WHY}"
        try:
            # The reason first: a file that stands there without one would be a riddle.
            beside.write_text(f"{why}\n", encoding="utf-8", errors="backslashreplace")
            os.rename(self._where(file.id), self.path / REFUSED / name)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            self._stick(file.id, f"{why}; and it cannot be moved to {REFUSED}: {_told(error)}")
            return False
        self._tidy(os.path.dirname(file.id))
        return True

    def leave(self, file: Dropped, why: str) -> None:
        self._stick(file.id, why)

    def _stick(self, id: str, why: str) -> None:
        self._stuck[id] = (why, self._elapsed + AGAIN)

    def _free(self, name: str) -> str:
        """A name that nothing has there yet, and that leaves room for what is put behind it."""
        stem = os.fsdecode(os.fsencode(name.removesuffix(SUFFIX))[:LONGEST_NAME])
        number, free = 1, f"{stem}{SUFFIX}"
        while any(os.path.lexists(self.path / REFUSED / taken) for taken in (free, f"{free}{WHY}")):
            number += 1
            free = f"{stem}-{number}{SUFFIX}"
        return free

    def _tidy(self, folder: str) -> None:
        """A folder of which nothing is left; one that is not empty stays."""
        with suppress(OSError):
            os.rmdir(self.path / TAKEN / folder)


def _content(path: Path) -> tuple[bytes, Stamps]:
    """What a regular file of a sensible size holds, and its stamps from before it was read."""
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
        if kind != stat.S_IFREG:
            raise Unfit(f"expected a file, found {_KINDS.get(kind, 'something else')}: move the file itself here")
        file = os.open(path, _READING)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unfit(f"cannot be read: {_told(error)}") from None
    try:
        stamps = _stamps(os.fstat(file))
        if stamps.size > LARGEST:
            raise Unfit(f"{stamps.size:,} bytes, and a file may have {LARGEST:,}: put the tasks into several files")
        with open(file, "rb", closefd=False) as stream:
            return stream.read(LARGEST + 1), stamps
    except OSError as error:
        raise Unfit(f"cannot be read: {_told(error)}") from None
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
    return Stamps(about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_size)


def _since(path: Path, now: float) -> float:
    """When it was moved or changed last; now, if it is gone."""
    try:
        return os.lstat(path).st_ctime
    except FileNotFoundError:
        return now


def _told(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
