"""The small warm process that guardians are forked from: a fork costs a millisecond, an interpreter ten times that.

It knows nothing of runs. It reads an order, forks, and answers with the process handle of the guardian, which is buried
by the kernel when it has ended. When its caller is gone, the nursery goes; the guardians stay.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import struct
import sys
from typing import Any

from wakeful.runners.cage import available
from wakeful.runners.guardian import Guardian

LENGTH = struct.Struct("!I")

# Guardians that are made ready before they are needed.
SPARES = 2


def receive(connection: socket.socket) -> bytes | None:
    """One message, or None when the caller is gone."""
    header = _exactly(connection, LENGTH.size)
    return None if header is None else _exactly(connection, LENGTH.unpack(header)[0])


def _exactly(connection: socket.socket, length: int) -> bytes | None:
    parts = b""
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            return None
        parts += part
    return parts


class Spare:
    """A guardian that is ready, and waits for its run."""

    def __init__(self, pid: int, line: int) -> None:
        self.pid = pid
        self.line = line
        self.handle = os.pidfd_open(pid)

    def hand(self, order: bytes) -> bool:
        """Give it its run; False if it is no longer there."""
        message = memoryview(order)
        try:
            while message:
                message = message[os.write(self.line, message) :]
            return True
        except BrokenPipeError:
            return False
        finally:
            os.close(self.line)


class Nursery:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.mounts = available()
        self.spares: list[Spare] = []

    def serve(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        # Reaped by the kernel: nobody asks us how a guardian ended, its record says it.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        gc.collect()
        gc.freeze()
        self._replenish()
        while (order := receive(self.connection)) is not None:
            self._place(order)
            self._replenish()

    def _place(self, order: bytes) -> None:
        while True:
            spare = self.spares.pop(0) if self.spares else self._fork()
            if spare.hand(order):
                break
            os.close(spare.handle)
        socket.send_fds(self.connection, [LENGTH.pack(spare.pid)], [spare.handle])
        os.close(spare.handle)

    def _replenish(self) -> None:
        while len(self.spares) < SPARES:
            self.spares.append(self._fork())

    def _fork(self) -> Spare:
        read, write = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            os.close(write)
            for other in self.spares:
                os.close(other.line)
                os.close(other.handle)
            self.connection.close()
            _guard(read, self.mounts)
        os.close(read)
        return Spare(pid, write)


def _guard(line: int, mounts: dict[str, str]) -> None:
    status, order = 1, {}
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.disable()
        guardian = Guardian(mounts)
        guardian.prepare()
        message = b"".join(iter(lambda: os.read(line, 65536), b""))
        os.close(line)
        if message:
            order = json.loads(message)
            guardian.run(order)
        else:
            guardian.dismiss()
        status = 0
    except BaseException as error:
        _complain(order, error)
    finally:
        os._exit(status)


def _complain(order: dict[str, Any], error: BaseException) -> None:
    """A guardian that fails says why, where a person would look."""
    import traceback

    if order:
        with open(os.path.join(order["folder"], "guardian.err"), "w") as file:
            file.write("".join(traceback.format_exception(error)))


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    Nursery(connection).serve()


if __name__ == "__main__":
    main()
