"""The small warm process that guardians are forked from: a fork costs a millisecond, an interpreter ten times that.

It knows nothing of runs. A request is two handles: the order, in memory, and the line to answer on; the answer is the
process handle of a guardian. The line goes on to the guardian, who closes it when the run has begun, or never will.
Guardians are buried by the kernel. When its caller is gone, the nursery goes; they stay.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from wakeful.runners.cage import available, sweep
from wakeful.runners.guardian import Guardian
from wakeful.runners.processes import is_zombie, start_time

# Guardians that are made ready before they are needed. Making one takes the processor from the run that has just been
# placed: as long as there are a few, that waits for a quiet moment, in seconds.
SPARES = 3
FEW = 2
_QUIET = 0.02


class Spare:
    """A guardian that is ready, and waits for its run."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.line = line
        self.handle = os.pidfd_open(pid)

    def hand(self, order: bytes, line: socket.socket) -> bool:
        """Give it its run; False if it is no longer there."""
        try:
            sent = socket.send_fds(self.line, [order], [line.fileno()])
            self.line.sendall(memoryview(order)[sent:])
            return True
        except ConnectionError:
            return False
        finally:
            self.line.close()


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
        self._replenish(FEW)
        poller = select.poll()
        poller.register(self.connection, select.POLLIN)
        while True:
            if len(self.spares) < SPARES and not poller.poll(_QUIET * 1000):
                self._replenish(SPARES)
            data, handles, _, _ = socket.recv_fds(self.connection, 1, 2)
            if not data:
                return
            if len(handles) == 2:
                self._place(handles[0], socket.socket(fileno=handles[1]))
            self._replenish(FEW)

    def _place(self, memory: int, line: socket.socket) -> None:
        with os.fdopen(memory, "rb") as file:
            file.seek(0)
            order = file.read()
        while True:
            spare = self.spares.pop(0) if self.spares else self._fork(line)
            if spare.hand(order, line):
                break
            os.close(spare.handle)
        _answer(line, spare.handle)

    def _replenish(self, number: int) -> None:
        while len(self.spares) < number:
            self.spares.append(self._fork())

    def _fork(self, *open_lines: socket.socket) -> Spare:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            for other in self.spares:
                os.close(other.handle)
            for line in (ours, self.connection, *open_lines, *(other.line for other in self.spares)):
                line.close()
            _guard(theirs, self.mounts)
        theirs.close()
        return Spare(pid, ours)


def _answer(line: socket.socket, handle: int) -> None:
    try:
        socket.send_fds(line, [b"!"], [handle])
    except OSError:
        # Whoever asked has gone; the run is held all the same.
        return
    finally:
        line.close()
        os.close(handle)


def _guard(line: socket.socket, mounts: dict[str, str]) -> None:
    status = 1
    order: dict[str, Any] = {}
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.disable()
        guardian = Guardian(mounts)
        guardian.prepare()
        order, asking = _read_order(line)
        if order:
            guardian.run(order, asking)
        else:
            guardian.dismiss()
        status = 0
    except BaseException as error:
        _complain(order, error)
    finally:
        os._exit(status)


def _read_order(line: socket.socket) -> tuple[dict[str, Any], int]:
    """The order, once it is whole, and the line of whoever asks; nothing if the nursery went before it was."""
    head, handles, _, _ = socket.recv_fds(line, 65536, 1, socket.MSG_CMSG_CLOEXEC)
    message = b"".join([head, *iter(lambda: line.recv(65536), b"")])
    line.close()
    try:
        order: dict[str, Any] = json.loads(message)
    except ValueError:
        return {}, -1
    return order, handles[0]


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
