"""One look into a folder, and what the next look need not read again.

Laws:
- Each regular file is one thing. Names that editors and uploads use while they write, and what is in subfolders, are
  not: `done/` belongs to the agent.
- A link is never followed, whatever it points at; a pipe, a socket or a device is never opened.
- A file that is being written is shown as it was before, or not yet. What was read is of one moment.
- A folder that cannot be read is unknown. A file in it that cannot is a thing that says so.
- A file is lasting: inode, ctime and content together are of one file at one moment. A mount that was away, or a folder
  that was replaced and put back, brings back the very files.
- A file whose stamps are those of the last look is not read again, unless it was read so soon after its change
  that a second change could bear the same stamps.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from wakeful.core.items import Observation
from wakeful.core.ledger import file_fingerprint
from wakeful.sources import text
from wakeful.sources.aside import Unreadable
from wakeful.sources.settling import is_whole

# Bytes: files up to this size are known by what they hold, and shown whole.
SMALL = 64 * 1024
# All that is shown of one folder at once; what comes after is named only.
MOST_SHOWN = 32 * 1024 * 1024
MOST_FILES = 200_000
# Stamps of files are a few milliseconds coarse; and other machines' clocks are near ours at best.
_COARSE = 0.1

_TEMPORARY = re.compile(
    r"\.|(?:#.*#|4913|.*(?:~|\.(?:tmp|temp|part|partial|filepart|crdownload|download|sw[nopx])))\Z", re.I | re.S
)
_LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Stamps(NamedTuple):
    """What changes when a file does."""

    mtime_ns: int
    ctime_ns: int
    inode: int
    size: int


class Kept(NamedTuple):
    stamps: Stamps
    thing: Observation
    # False where the same stamps need not mean the same content.
    sure: bool


class Moving(NamedTuple):
    stamps: Stamps
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found, and what is remembered of it; names are as the system gives them."""

    observed: tuple[Observation, ...] = ()
    kept: Mapping[str, Kept] = field(default_factory=dict)
    # Files that somebody writes, and since when they have borne these stamps.
    moving: Mapping[str, Moving] = field(default_factory=dict)
    device: int | None = None
    # Which folder it was: another one may come into its place.
    inode: int | None = None


class Listing:
    """One look: `now` is the calendar and `elapsed` a clock that is never set, both in seconds."""

    def __init__(self, folder: Path, before: Look, *, now: float, elapsed: float) -> None:
        self._folder = folder
        self._before = before
        self._now = now
        self._elapsed = elapsed
        self._aborted = threading.Event()
        self._kept: dict[str, Kept] = {}
        self._moving: dict[str, Moving] = {}
        self._shown = 0
        # How many files were looked at so far: one that no longer rises hangs.
        self.progress = 0

    def abort(self) -> None:
        self._aborted.set()

    def do(self) -> Look:
        try:
            listing = os.open(self._folder, _LISTING)
        except OSError as error:
            raise Unreadable(self._why(error)) from None
        try:
            about = os.fstat(listing)
            with os.scandir(listing) as entries:
                for entry in entries:
                    self._meet(listing, entry)
        except OSError as error:
            raise Unreadable(self._why(error)) from None
        finally:
            os.close(listing)
        if not (self._kept or self._moving) and was_unmounted(self._before, about.st_dev):
            raise Unreadable(f"{self._shown_path()}: empty, and on another device than before: is it mounted?")
        return Look(
            observed=self._observed(),
            kept=self._kept,
            moving=self._moving,
            device=about.st_dev,
            inode=about.st_ino,
        )

    def _observed(self) -> tuple[Observation, ...]:
        """In the order of their names. To sort a large folder takes a while: it is done when something has changed."""
        before = self._before.kept
        if len(before) == len(self._kept) and all(before.get(name) is kept for name, kept in self._kept.items()):
            return self._before.observed
        return tuple(self._kept[name].thing for name in sorted(self._kept))

    def _meet(self, listing: int, entry: os.DirEntry[str]) -> None:
        self.progress += 1
        if self._aborted.is_set():
            raise Unreadable(f"{self._shown_path()}: the look was broken off")
        if _TEMPORARY.match(entry.name):
            return
        try:
            about = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISREG(about.st_mode):
            self._meet_file(listing, entry.name, about)
        elif stat.S_ISLNK(about.st_mode):
            self._keep(entry.name, stamps_of(about), "[a link, which is not followed]")
        if len(self._kept) > MOST_FILES:
            raise Unreadable(f"{self._shown_path()}: more than {MOST_FILES:,} files; move what is done elsewhere")

    def _meet_file(self, listing: int, name: str, about: os.stat_result) -> None:
        stamps = stamps_of(about)
        known = self._before.kept.get(name)
        if known is not None and known.sure and known.stamps == stamps:
            self._kept[name] = known
            self._shown += len(known.thing.body)
            return
        try:
            file = os.open(name, READING, dir_fd=listing)
        except FileNotFoundError:
            return
        except BlockingIOError:
            self._leave(name, stamps)
            return
        except OSError as error:
            self._keep(name, stamps, f"[cannot be read: {error.strerror}]")
            return
        try:
            self._read(name, file, stamps)
        finally:
            os.close(file)

    def _read(self, name: str, file: int, stamps: Stamps) -> None:
        if not _is(file, stamps) or not is_whole(file, self._rest(name, stamps)):
            self._leave(name, stamps)
            return
        try:
            content = first(file, SMALL)
        except OSError as error:
            self._keep(name, stamps, f"[cannot be read: {error.strerror}]")
            return
        if not _is(file, stamps):
            self._leave(name, stamps)
            return
        small = stamps.size <= SMALL
        digest = sha256(content).hexdigest()[:32] if small else None
        self._keep(name, stamps, self._body(name, content, stamps.size), digest)

    def _body(self, name: str, content: bytes, size: int) -> str:
        place = text.name(str(self._folder / name))
        if b"\0" in content:
            return f"[not shown: {size:,} bytes that are no text, in {place}]"
        if self._shown + len(content) > MOST_SHOWN:
            return f"[not shown: {size:,} bytes, in {place}; too much waits in this folder]"
        body = text.beginning(content, complete=size <= SMALL)
        return body if size <= SMALL else f"{body}\n[cut here: the whole of it, {size:,} bytes, is in {place}]"

    def _keep(self, name: str, stamps: Stamps, body: str, digest: str | None = None) -> None:
        id = text.name(name)
        fingerprint = file_fingerprint(
            path=id,
            mtime_ns=stamps.mtime_ns,
            ctime_ns=stamps.ctime_ns,
            inode=stamps.inode,
            size=stamps.size,
            content_hash=digest,
        )
        known = self._before.kept.get(name)
        thing = Observation(external_id=id, fingerprint=fingerprint, subject=id, body=body, lasting=True)
        if known is not None and known.thing.fingerprint == fingerprint:
            thing = known.thing
        kept = Kept(stamps, thing, self._now - stamps.ctime_ns / 1e9 > _COARSE)
        self._kept[name] = known if known is not None and known == kept else kept
        self._shown += len(thing.body)

    def _leave(self, name: str, stamps: Stamps) -> None:
        """It is being written: as it was before, or not yet."""
        moving = self._before.moving.get(name)
        since = moving.since if moving is not None and moving.stamps == stamps else self._elapsed
        self._moving[name] = Moving(stamps, since)
        known = self._before.kept.get(name)
        if known is not None:
            self._kept[name] = known
            self._shown += len(known.thing.body)

    def _rest(self, name: str, stamps: Stamps) -> float:
        """By the calendar, or, where its clock is wrong, by how long we have seen it so."""
        moving = self._before.moving.get(name)
        seen = self._elapsed - moving.since if moving is not None and moving.stamps == stamps else 0.0
        return max(self._now - stamps.ctime_ns / 1e9, seen)

    def _why(self, error: OSError) -> str:
        place = self._shown_path()
        if self._folder.is_symlink():
            return f"{place}: a link, which is not followed; name the folder that it leads to"
        if isinstance(error, FileNotFoundError):
            return f"{place}: no such folder"
        return f"{place}: {error.strerror or error}"

    def _shown_path(self) -> str:
        return text.name(str(self._folder))


def was_unmounted(before: Look, device: int) -> bool:
    """A mount that is gone leaves an empty folder behind, on the device below."""
    return bool(before.kept) and before.device is not None and before.device != device


class Nearest:
    """The folder, or the one above it in which it would come into being."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def do(self) -> Path:
        return next((place for place in (self._folder, *self._folder.parents) if place.is_dir()), Path("/"))

    def abort(self) -> None:
        """It is over in no time, or hangs where nothing can be done about it."""


def stamps_of(about: os.stat_result) -> Stamps:
    return Stamps(about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size)


def _is(file: int, stamps: Stamps) -> bool:
    return stamps_of(os.fstat(file)) == stamps


def first(file: int, most: int) -> bytes:
    pieces = []
    while most > 0 and (piece := os.read(file, most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
