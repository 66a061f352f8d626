"""The line between an engine and a worker, and between a worker and the process that does its tasks.

Laws:
- One message is one line: a letter, then JSON. A line of a shift's record is sent as it stands there, and begins
  with `{`.
- A worker never waits for whoever it tells: what cannot be sent yet is kept, and a listener that falls too far behind
  is let go. The record has everything; who comes back reads it.
- The socket lies in the worker's own folder, which is its owner's alone.
"""

from __future__ import annotations

import os
import socket
import sys

SOCKET = "socket"

# What an engine says: here is a shift; here is the answer to a request; stop.
SHIFT = b"S"
ANSWER = b"A"
STOP = b"X"
# What a worker says: I am ready; a handler asks; the run was vetoed, nothing of it was done.
HELLO = b"H"
REQUEST = b"R"
VETOED = b"V"
# What the process that does the tasks says: one has ended. It asks with REQUEST.
END = b"E"
# Between the parts of one line; JSON escapes it in its texts.
PART = b"\t"

MOST_UNSENT = 64 * 1024 * 1024
_CHUNK = 64 * 1024


class Wire:
    """A socket that is never waited for."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._received = bytearray()
        self._unsent = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def behind(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._unsent)

    def receive(self) -> list[bytes]:
        """The whole lines that have come, without their ends; `closed` is set when there will be no more."""
        scanned = len(self._received)
        while not self.closed:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self._received += data
            self.closed = not data
            if len(data) < _CHUNK:
                break
        end = self._received.rfind(b"\n", scanned)
        if end < 0:
            return []
        lines = bytes(self._received[:end]).split(b"\n")
        del self._received[: end + 1]
        return lines

    def send(self, data: bytes) -> None:
        if self.closed:
            return
        if self._unsent:
            self._unsent += data
        else:
            sent = self._try(data)
            if sent < len(data):
                self._unsent += memoryview(data)[sent:]
        if len(self._unsent) > MOST_UNSENT:
            self.close()

    def flush(self) -> None:
        if self._unsent and not self.closed:
            del self._unsent[: self._try(self._unsent)]

    def _try(self, data: bytes | bytearray) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.closed = True
            return len(data)

    def close(self) -> None:
        self.closed = True
        self._unsent.clear()
        self._socket.close()


class _Near:
    """A socket's address may have no more than 107 bytes, a folder's path many more: we go by the open folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        if sys.platform != "linux":
            return os.path.join(self.folder, SOCKET)
        self._handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._handle}/{SOCKET}"

    def __exit__(self, *_: object) -> None:
        if sys.platform == "linux":
            os.close(self._handle)


def listen(folder: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with _Near(folder) as address:
            listener.bind(address)
    finally:
        os.umask(before)
    listener.listen(16)
    listener.setblocking(False)
    return listener


def accept(listener: socket.socket) -> Wire | None:
    """The next who calls; nobody but our own user, and root, is let in."""
    try:
        connection, _ = listener.accept()
    except OSError:
        return None
    if _user(connection) in (os.getuid(), 0):
        return Wire(connection)
    connection.close()
    return None


def _user(connection: socket.socket) -> int:
    if sys.platform != "linux":
        return os.getuid()
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def connect(folder: str) -> socket.socket | None:
    """A connection to the worker in that folder; None while, or because, nobody listens there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        with _Near(folder) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        return None
    return connection
