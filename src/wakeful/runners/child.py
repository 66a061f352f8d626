"""The process that does a worker's tasks, as the worker sees it: forked with the handler already imported.

Law: it is in a session of its own, holds nothing of the worker's but its end of the line, and dies with the worker.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import socket
import sys
import warnings
from collections.abc import Callable

from wakeful.runners.handlers import Hand, Handler
from wakeful.runners.kernel import be_called, die_with_parent, inherit_orphans
from wakeful.runners.link import Wire
from wakeful.runners.output import Output, new_mark
from wakeful.runners.processes import descendants, signal_all
from wakeful.runners.record import Page

# Where memory runs out for a whole control group, this is who should go.
_OUT_OF_MEMORY_SCORE = b"800"


def settle_in() -> None:
    """The worker inherits whatever its tasks leave behind, and can end it."""
    inherit_orphans()
    be_called("wakeful-worker")


class Child:
    def __init__(self, pid: int, wire: Wire, output: Output) -> None:
        self.pid = pid
        self.wire = wire
        self.output = output
        self.shifts = 0
        self.memory = 0
        # The task for whose sake it is being ended; -1 for the whole shift.
        self.condemned: int | None = None
        self.kill_at: float | None = None

    def end(self, *, politely: bool) -> None:
        """SIGTERM, or nothing that could be ignored, to it and everything below it."""
        tree = [self.pid, *descendants(self.pid)]
        if politely:
            signal_all(tree, signal.SIGTERM)
            return
        # Stopped first, so that nobody forks between the look and the blow.
        signal_all(tree, signal.SIGSTOP)
        signal_all([self.pid, *descendants(self.pid), *tree], signal.SIGKILL)

    def worn(self, shifts: int, growth: int) -> bool:
        return self.shifts >= shifts or self.grown(growth)

    def grown(self, most: int) -> bool:
        """Whether its own memory has grown by more than that since its first shift."""
        try:
            with open(f"/proc/{self.pid}/statm", "rb") as file:
                _, resident, shared, *_ = file.read().split()
        except (OSError, ValueError):
            return False
        size = (int(resident) - int(shared)) * resource.getpagesize()
        self.memory = self.memory or size
        return size - self.memory > most

    def close(self) -> None:
        self.wire.close()
        self.output.close()


def fork(handler: Handler, page: Page, memory: int | None, let_go: Callable[[], None]) -> Child:
    """`let_go` closes, in the new process, what only the worker should hold."""
    ours, theirs = socket.socketpair()
    reading, printing = os.pipe2(os.O_CLOEXEC)
    mark = new_mark()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Threads that a handler's imports have started do not come along; the guide says so.
        warnings.simplefilter("ignore", DeprecationWarning)
        parent, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            ours.close()
            os.close(reading)
            let_go()
            _become(parent, printing, memory)
            Hand(handler, theirs, printing, mark, page).serve()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(1)
        finally:
            os._exit(0)
    theirs.close()
    os.close(printing)
    return Child(pid, Wire(ours), Output(reading, mark))


def _become(parent: int, printing: int, memory: int | None) -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else signal.SIG_IGN)
    os.setsid()
    die_with_parent()
    if os.getppid() != parent:
        os._exit(0)
    be_called("wakeful-handler")
    os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
    for stream in (1, 2):
        os.dup2(printing, stream)
    # By lines, so that what a crashed handler printed is not lost with it.
    for text in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            text.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    faulthandler.enable(file=2)
    if memory is not None:
        _limit(memory)


def _limit(memory: int) -> None:
    """Beyond it a handler gets a MemoryError, which says more than a killed process."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:
        file.write(_OUT_OF_MEMORY_SCORE)
