"""What only the kernel can promise, for those who guard others: who inherits, who dies with whom, who is woken in time.

Elsewhere than on Linux none of it is promised, and nothing is done.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from math import inf

_SET_PDEATHSIG = 1
_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
_ABSOLUTE = 1

# Loaded before a fork: between that and the first instruction of an agent there is no time to lose.
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Moment(ctypes.Structure):
    """How often, and when first: seconds and billionths of each."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every", "every_billionths", "at", "at_billionths"))


def inherit_orphans() -> None:
    """Whatever processes below us leave behind becomes our child."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def be_called(name: str) -> None:
    """As a listing of processes shows us; of fifteen letters at most."""
    _prctl(_SET_NAME, name.encode())


def _prctl(option: int, value: int | bytes) -> None:
    if sys.platform == "linux":
        _LIBC.prctl(option, value, 0, 0, 0)


class Alarm:
    """A handle that can be waited on, ready at a given second since boot; after a suspension that is over, at once."""

    def __init__(self) -> None:
        self.handle: int = _LIBC.timerfd_create(time.CLOCK_BOOTTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.handle < 0:
            raise OSError(ctypes.get_errno(), "no timer could be made")
        self._at = inf

    def set(self, at: float) -> None:
        """Infinity is never. What was rung before is forgotten."""
        if at == self._at:
            return
        self._at = at
        seconds, fraction = divmod(max(at, 1e-6), 1) if at < inf else (0.0, 0.0)
        moment = _Moment(0, 0, int(seconds), int(fraction * 1e9))
        _LIBC.timerfd_settime(self.handle, _ABSOLUTE, ctypes.byref(moment), None)
