"""The small warm process that guardians are forked from: a fork costs a millisecond, an interpreter ten times that.

It knows nothing of runs. A request is two handles: the order, in memory, and the line to answer on; the answer is the
process handle of a guardian. Guardians are buried by the kernel. When its caller is gone, the nursery goes; they stay.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any

from wakeful.runners.cage import available, sweep
from wakeful.runners.guardian import Guardian
from wakeful.runners.processes import is_zombie, start_time

# Guardians that are made ready before they are needed.
SPARES = 2


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
        # Whatever our caller ignores or blocks, an agent begins as any program does.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        # Reaped by the kernel: nobody asks us how a guardian ended, its record says it.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        sweep(self.mounts, lambda pid, started: start_time(pid) == started and not is_zombie(pid))
        gc.collect()
        gc.freeze()
        # Until a guardian can heed it, a TERM waits.
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGTERM})
        self._replenish()
        while True:
            data, handles, _, _ = socket.recv_fds(self.connection, 1, 2)
            if not data:
                return
            if len(handles) == 2:
                self._place(handles[0], socket.socket(fileno=handles[1]))
            self._replenish()

    def _place(self, memory: int, line: socket.socket) -> None:
        with os.fdopen(memory, "rb") as file:
            file.seek(0)
            order = file.read()
        while True:
            spare = self.spares.pop(0) if self.spares else self._fork()
            if spare.hand(order):
                break
            os.close(spare.handle)
        _answer(line, spare.handle)

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


def _answer(line: socket.socket, handle: int) -> None:
    try:
        socket.send_fds(line, [b"!"], [handle])
    except OSError:
        # Whoever asked has gone; the run is held all the same.
        return
    finally:
        line.close()
        os.close(handle)


def _guard(line: int, mounts: dict[str, str]) -> None:
    status = 1
    order: dict[str, Any] = {}
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.disable()
        guardian = Guardian(mounts)
        guardian.prepare()
        order = _read_order(line)
        if order:
            guardian.run(order)
        else:
            guardian.dismiss()
        status = 0
    except BaseException as error:
        _complain(order, error)
    finally:
        os._exit(status)


def _read_order(line: int) -> dict[str, Any]:
    """The order, once it is whole; nothing if the nursery went before it was."""
    message = b"".join(iter(lambda: os.read(line, 65536), b""))
    os.close(line)
    try:
        order: dict[str, Any] = json.loads(message)
    except ValueError:
        return {}
    return order


def _complain(order: dict[str, Any], error: BaseException) -> None:
    """A guardian that fails says why, where a person would look."""
    import traceback

    if order:
        path = os.path.join(order["folder"], "guardian.err")
        file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        os.write(file, "".join(traceback.format_exception(error)).encode())
        os.close(file)


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    Nursery(connection).serve()


if __name__ == "__main__":
    main()
