"""What the tasks of a shift print, told apart.

Laws:
- Everything that a task writes to its standard output and error is its own: the process that does the tasks puts a mark
  behind each task's output, in the same pipe, before it says that the task has ended. The mark is drawn at random.
- Memory does not grow with the output. Of each task its end is kept for its record; the whole shift goes to a
  file, bounded too. What is registered as a secret is in neither.
"""

from __future__ import annotations

import os
import time

from wakeful.runners.capture import Capture
from wakeful.runners.redaction import Redactor

# Kept of one task's output, for a person and for a dead letter.
KEPT = 4_000
_CHUNK = 64 * 1024
_LITTLE = 1024
_INDEX = 4
_MARK = 16
_NOBODY = -1
# Somebody whom a task left behind may print for ever, in seconds.
_LONGEST_REST = 1.0


def new_mark() -> bytes:
    return os.urandom(_MARK)


def mark_for(mark: bytes, index: int) -> bytes:
    return mark + b"%0*x" % (_INDEX, index)


class _Kept:
    """The last of what one task printed."""

    def __init__(self) -> None:
        self.tail = b""
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self.tail = (self.tail + data[-KEPT:])[-KEPT:]

    def text(self) -> str:
        left_out = self.total - len(self.tail)
        # A character may have been cut in two.
        tail = self.tail.decode(errors="replace").replace("\0", "\ufffd")
        return f"[... {left_out} bytes left out ...]\n{tail.lstrip(chr(0xFFFD))}" if left_out else tail


class Output:
    """The reading end of the pipe that one process prints to."""

    def __init__(self, pipe: int, mark: bytes) -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self._mark = mark
        self._rest = b""
        self._current = _Kept()
        self._ended: dict[int, str] = {}
        self.at_end = False
        # Whether there was little to read, the last time.
        self.little = False
        self._capture: Capture | None = None
        self._path, self._limit = "", 0
        self._redactor: Redactor | None = None

    def begin(self, path: str, limit: int, secrets: list[str]) -> None:
        """Another shift: its output goes to that file, which is made when there is some."""
        self._path, self._limit = path, limit
        self._current = _Kept()
        self._redactor = Redactor(secrets) if secrets else None

    def resume(self, other: Output) -> None:
        """Go on with the shift that another process began."""
        self._path, self._limit, self._redactor = other._path, other._limit, other._redactor
        self._capture, other._capture = other._capture, None

    def read(self) -> bool:
        """Take what is there; False when there was nothing."""
        try:
            data = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.at_end = True
            return False
        self.little = len(data) < _LITTLE
        first, *marked = (self._rest + data).split(self._mark)
        self._rest = b""
        if not marked:
            self._hold_back(first)
            return True
        self._keep(first)
        for part in marked[:-1]:
            self._close(int(part[:_INDEX], 16))
            self._keep(part[_INDEX:])
        if len(marked[-1]) < _INDEX:
            self._rest = self._mark + marked[-1]
        else:
            self._close(int(marked[-1][:_INDEX], 16))
            self._hold_back(marked[-1][_INDEX:])
        return True

    def _hold_back(self, part: bytes) -> None:
        """A mark may be cut in two between reads: what could be the beginning of one waits."""
        first = part.rfind(self._mark[:1], max(0, len(part) - len(self._mark)))
        while first >= 0 and not self._mark.startswith(part[first:]):
            first = part.rfind(self._mark[:1], max(0, len(part) - len(self._mark)), first)
        cut = len(part) if first < 0 else first
        self._rest = part[cut:]
        self._keep(part[:cut])

    def _keep(self, data: bytes) -> None:
        if self._redactor is not None and data:
            data = self._redactor.feed(data)
        self._put(data)

    def _put(self, data: bytes) -> None:
        if not data:
            return
        self._current.add(data)
        if self._capture is None and self._path:
            self._capture = Capture(self._path, self._limit)
        if self._capture is not None:
            self._capture.write(data)

    def _close(self, index: int) -> None:
        if self._redactor is not None:
            self._put(self._redactor.flush())
        self._ended[index] = self._current.text() if self._current.total else ""
        self._current = _Kept() if self._current.total else self._current

    def take(self, index: int) -> str:
        """What a task that has said that it ended had printed: its mark is in the pipe."""
        while index not in self._ended and self.read():
            pass
        return self._ended.pop(index, "")

    def take_rest(self, index: int) -> str:
        """What a task that did not live to say that it ended had printed, as far as it has come."""
        most = time.monotonic() + _LONGEST_REST
        while self.read() and time.monotonic() < most:
            pass
        rest, self._rest = self._rest, b""
        self._keep(rest)
        self._close(_NOBODY)
        return self._ended.pop(index, "") + self._ended.pop(_NOBODY)

    def finish(self) -> None:
        """The shift is over."""
        if self._capture is not None:
            self._capture.close()
            self._capture = None
        self._path = ""

    def close(self) -> None:
        os.close(self.pipe)
