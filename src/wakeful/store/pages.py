"""What every page of a store file was when it was written, so that a file that went bad is refused and never believed.

SQLite has no sums of its own for the pages of a file, and takes a log that went bad for one that ends there.

Laws:
- Beside the file lie the sums of its pages. Pages reach the file by a checkpoint only, and their sums are on the disk
  before the checkpoint begins: after a crash a page is as its sum says, or it is still in the log, which then counts.
- Before a file is opened its pages are compared with their sums, and its log must hold at least what the index of the
  log, which lies beside it too, knows to be committed. The log is looked at in a copy: who opens it cuts it short.
- Another program may have opened the file after its process was killed: who closes it last puts the log into it, and
  takes the log away. Then, and only then, pages that differ are believed, if SQLite finds the file whole.
- Nothing is mended here, and nothing is created in place of what is gone.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw

from wakeful.core.errors import Mistake

SUFFIX = "-sums"
_MAGIC = b"wakeful sums 1\n\0"
# The size of a page, and whether somebody writes to the file, or was killed when it did.
_HEAD = struct.Struct(">16sI?11x")
_SUM = struct.Struct(">I")
_LOG_HEAD, _FRAME_HEAD = 32, 24
# SQLite keeps its locks there, and never writes the page.
_LOCK_BYTE = 0x40000000
_CHUNK = 1 << 20
# How much of the log's index is read: twice its head, and how much of the log is in the file.
_INDEX_HEAD, _INDEX = 48, 100


def sums_of(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def forget(path: Path) -> None:
    """Whoever keeps no sums leaves none that do not hold."""
    sums_of(path).unlink(missing_ok=True)


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@dataclass(frozen=True, slots=True)
class Known:
    """What the index of a log says: how many frames are committed, and how many of them are in the file."""

    frames: int
    in_file: int


def known(path: Path) -> Known:
    """Nothing, where there is no index or it was being written. To be asked before this process opens the file."""
    try:
        with open(path.with_name(f"{path.name}-shm"), "rb") as file:
            head = file.read(_INDEX)
    except OSError:
        head = b""
    one, other = head[:_INDEX_HEAD], head[_INDEX_HEAD : 2 * _INDEX_HEAD]
    if len(head) < _INDEX or one != other or not any(one) or not _is_whole(one):
        return Known(0, 0)
    return Known(*struct.unpack_from("=I", head, 16), *struct.unpack_from("=I", head, 2 * _INDEX_HEAD))


def _is_whole(head: bytes) -> bool:
    first = second = 0
    for one, other in struct.iter_unpack("=II", head[:40]):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return (first, second) == struct.unpack_from("=II", head, 40)


def verify(path: Path) -> bool:
    """Before the file is opened. Whether there are sums that hold for it; raises a `Mistake` that names it."""
    sums = sums_of(path)
    try:
        written = sums.read_bytes()
    except FileNotFoundError:
        return False
    if not any(written[: _HEAD.size]):
        # Whoever began them was killed before they were whole.
        return False
    if len(written) < _HEAD.size or _HEAD.unpack_from(written)[0] != _MAGIC:
        raise _damaged(sums, "it does not begin as it should")
    if not path.exists():
        raise Mistake(
            f"{path} is gone, and what is beside it says that there was one",
            f"put it back, or restore a backup; to begin anew remove {sums} too",
        )
    _, size, in_use = _HEAD.unpack_from(written)
    expected = [number for (number,) in _SUM.iter_unpack(written[_HEAD.size : len(written) // 4 * 4])]
    why = _differs(path, size, expected)
    if not why:
        _verify_log(path)
        return True
    if in_use and _length(log_of(path)) == 0 and _is_sound(path):
        return False
    raise _damaged(path, why, sums)


def _differs(path: Path, size: int, expected: list[int]) -> str:
    """How the file is another than it was; empty if it is not."""
    logged = _frames(path, size)
    page = 0
    for page, found in enumerate(_pages(path, size), 1):
        if page > len(expected):
            break
        if page not in logged and expected[page - 1] != found and not _is_of_locks(page, size):
            return f"page {page} is not as it was written"
    missing = [number for number in range(page + 1, len(expected) + 1) if number not in logged]
    return f"it ends before page {missing[0]} of {len(expected)}" if missing else ""


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _is_sound(path: Path) -> bool:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error:
        return False
    try:
        return bool(connection.pragma("integrity_check") == "ok")
    except apsw.Error:
        return False
    finally:
        connection.close()


def _verify_log(path: Path) -> None:
    committed = known(path)
    if committed.frames <= committed.in_file:
        return
    readable = _readable(path)
    if readable < committed.frames:
        why = f"{committed.frames} pages were committed to it, and {readable} of them can be read"
        raise _damaged(log_of(path), why)


def _readable(path: Path) -> int:
    """How many frames of the log SQLite would take up."""
    if not log_of(path).exists():
        return 0
    with TemporaryDirectory(prefix="wakeful-") as folder:
        copy = Path(folder) / path.name
        with open(path, "rb") as file:
            copy.write_bytes(file.read(_CHUNK))
        shutil.copyfile(log_of(path), log_of(copy))
        connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.pragma("schema_version")
            return known(copy).frames
        except (apsw.NotADBError, apsw.CorruptError):
            return 0
        finally:
            connection.close()


def _damaged(path: Path, why: str, sums: Path | None = None) -> Mistake:
    remedy = "restore a backup with wakeful restore; nothing here was changed"
    if sums is not None:
        remedy += f"; if another program was meant to change it, remove {sums}"
    return Mistake(f"{path} is damaged: {why}", remedy)


def _is_of_locks(page: int, size: int) -> bool:
    return page == _LOCK_BYTE // size + 1


def _pages(path: Path, size: int) -> Iterator[int]:
    """The sum of each whole page of the file."""
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            view = memoryview(chunk)
            for at in range(0, len(chunk) - size + 1, size):
                yield zlib.crc32(view[at : at + size])


def _frames(path: Path, size: int) -> set[int]:
    """The pages that the log may hold."""
    try:
        with open(log_of(path), "rb") as log:
            return set(_places(memoryview(log.read()), size))
    except FileNotFoundError:
        return set()


def _places(log: memoryview, size: int) -> dict[int, int]:
    """The pages of a log, each with the place of its last frame."""
    found: dict[int, int] = {}
    salts = bytes(log[16:24])
    for at in range(_LOG_HEAD, len(log) - _FRAME_HEAD - size + 1, _FRAME_HEAD + size):
        if log[at + 8 : at + 16] == salts:
            found[int.from_bytes(log[at : at + 4], "big")] = at + _FRAME_HEAD
    return found


class Sums:
    """The sums of a file that is open here for writing."""

    def __init__(self, path: Path, page_size: int) -> None:
        self._path = path
        self._size = page_size
        self._handle = os.open(sums_of(path), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def begin(self) -> None:
        """Of a file that has none that hold: as it is now."""
        written = b"".join(_SUM.pack(found) for found in _pages(self._path, self._size))
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, written, _HEAD.size)
        self.mark(in_use=True)

    def mark(self, *, in_use: bool) -> None:
        os.pwrite(self._handle, _HEAD.pack(_MAGIC, self._size, in_use), 0)
        os.fsync(self._handle)

    def note(self, frames: int) -> None:
        """What is in the log now, before it goes into the file: so many frames of it. What was undone may stand behind
        them. The index is not asked here: to close it once more would let go of every lock that SQLite holds on it."""
        length = _LOG_HEAD + frames * (_FRAME_HEAD + self._size)
        with open(log_of(self._path), "rb") as file:
            log = memoryview(file.read(length))
        places = _places(log, self._size)
        if not places:
            return
        numbers = sorted(places)
        for first, last in _stretches(numbers):
            sums = [zlib.crc32(log[(at := places[page]) : at + self._size]) for page in range(first, last + 1)]
            os.pwrite(self._handle, b"".join(map(_SUM.pack, sums)), _HEAD.size + (first - 1) * _SUM.size)
        os.fdatasync(self._handle)

    def close(self) -> None:
        os.close(self._handle)


def _stretches(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
