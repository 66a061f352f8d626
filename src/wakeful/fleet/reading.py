"""Files as text: bounded, decoded, and with a fingerprint that tells later whether they have changed.

Law: nothing is read that is not a regular file, nothing larger than its limit, and no failure is a traceback.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field

from wakeful.fleet.diagnostics import Notes, Place

MEGABYTE = 1_000_000
ORG_LIMIT = 64 * MEGABYTE
YAML_LIMIT = 8 * MEGABYTE
LIFECYCLE_LIMIT = 1 * MEGABYTE
# A file written this shortly before it was read may change again without a new time stamp.
RACY_NS = 50_000_000

Fingerprint = tuple[int, int, int, int] | None
UNSETTLED: Fingerprint = (-1, -1, -1, -1)


@dataclass(slots=True)
class Traces:
    """What was looked at, and what it looked like: a path that was missing is part of it."""

    seen: dict[str, Fingerprint] = field(default_factory=dict)

    def changed(self) -> bool:
        return any(look(path) != fingerprint for path, fingerprint in self.seen.items())


def look(path: str) -> Fingerprint:
    try:
        return _fingerprint(os.stat(path))
    except (OSError, ValueError):
        return None


def read_text(path: str, limit: int, notes: Notes, traces: Traces) -> str | None:
    """The text of a file, or None with the reason in the notes."""
    traces.seen[path] = None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            data = _bounded(descriptor, path, limit, notes, traces)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        notes.error(Place(), f"cannot be read: {failure(error)}", "name a file that exists and may be read")
        return None
    return None if data is None else _decoded(data, notes)


def failure(error: OSError | ValueError) -> str:
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)


def _bounded(descriptor: int, path: str, limit: int, notes: Notes, traces: Traces) -> bytes | None:
    found = os.fstat(descriptor)
    settled = abs(time.time_ns() - found.st_mtime_ns) > RACY_NS
    traces.seen[path] = _fingerprint(found) if settled else UNSETTLED
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        notes.error(Place(), f"expected a file, found {kind}", "name the file itself")
        return None
    if found.st_size <= limit:
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
        if len(data) <= limit:
            return data
    notes.error(Place(), f"larger than {limit // MEGABYTE} MB", "split it, or write a large fleet in org")
    return None


def _decoded(data: bytes, notes: Notes) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        notes.error(Place(), "the file is UTF-16", "save it as UTF-8")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place(error.object[: error.start].decode("utf-8", "replace"))
        notes.error(place, f"the byte 0x{error.object[error.start]:02x} is not UTF-8", "save the file as UTF-8")
        return None
    for character, name in (("\0", "a NUL byte"), ("\x1b", "an escape character")):
        if (at := text.find(character)) >= 0:
            notes.error(_place(text[:at]), f"{name} stands in the file", "remove it")
            return None
    if not text.strip():
        notes.error(Place(), "the file is empty", "declare at least one agent, or one state of a lifecycle")
        return None
    return text.replace("\r\n", "\n")


def _place(before: str) -> Place:
    return Place(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _fingerprint(found: os.stat_result) -> Fingerprint:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size)
