"""What a run prints, kept byte for byte in a file: all of it, or its head and its tail.

Law: memory does not grow with the output. The head is the first half of the file, the tail a ring in its second half,
put in order when the run has ended, with a line between them that says how much was left out.
"""

from __future__ import annotations

import os
from typing import Any

from wakeful.runners.redaction import Redactor
from wakeful.runners.whole import write_bytes

_MARKER = b"\n[... %d bytes left out ...]\n"
# Room for the longest marker, so that the file never grows beyond its limit.
_MARKER_ROOM = 64
_LEAST = 1024
_MOST_OF_A_FILE = 2 * 1024 * 1024


class Capture:
    def __init__(self, path: str, limit: int) -> None:
        self.path = path
        limit = max(limit, _LEAST)
        self.head = limit // 2
        self.ring = limit - self.head - _MARKER_ROOM
        self.total = 0
        self.error: str | None = None
        self.file = -1
        try:
            self.file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self.error = str(error)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            place, room = self._place()
            try:
                written = os.pwrite(self.file, view[:room], place)
            except OSError as error:
                # A full disk costs the output, never the run: what it does is worth more than what it says.
                self.error, written = self.error or str(error), min(room, len(view))
            self.total += written
            view = view[written:]

    def _place(self) -> tuple[int, int]:
        """Where the next byte goes, and how many may follow it there."""
        if self.total < self.head:
            return self.total, self.head - self.total
        turn = (self.total - self.head) % self.ring
        return self.head + turn, self.ring - turn

    @property
    def left_out(self) -> int:
        return max(self.total - self.head - self.ring, 0)

    def told(self) -> dict[str, Any]:
        """As the exit record tells of it."""
        return {"bytes": self.total, "left_out": self.left_out, "error": self.error}

    def close(self) -> None:
        if self.file < 0:
            return
        if self.left_out:
            try:
                self._put_in_order()
            except OSError as error:
                self.error = str(error)
        os.close(self.file)

    def _put_in_order(self) -> None:
        temporary = self.path + ".whole"
        target = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        turn = (self.total - self.head) % self.ring
        self._copy(target, 0, self.head)
        os.write(target, _MARKER % self.left_out)
        self._copy(target, self.head + turn, self.ring - turn)
        self._copy(target, self.head, turn)
        os.close(target)
        os.replace(temporary, self.path)

    def _copy(self, target: int, start: int, length: int) -> None:
        end = start + length
        while start < end:
            sent = os.sendfile(target, self.file, start, end - start)
            if not sent:
                break
            start += sent


def redact_file(path: str, secrets: list[str]) -> None:
    """Of a plain file only; what a link leads to is not ours to change."""
    if not secrets or not os.path.isfile(path) or os.path.islink(path):
        return
    redactor = Redactor(secrets)
    with open(path, "rb") as file:
        clean = redactor.feed(file.read(_MOST_OF_A_FILE)) + redactor.flush()
    write_bytes(path, clean)
