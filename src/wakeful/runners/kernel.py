"""What only the kernel can promise about processes, for those who guard others: who inherits, who dies with whom.

Elsewhere than on Linux none of it is promised, and nothing is done.
"""

from __future__ import annotations

import ctypes
import signal
import sys

_SET_PDEATHSIG = 1
_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36

# Loaded before a fork: between that and the first instruction of an agent there is no time to lose.
_LIBC = ctypes.CDLL(None, use_errno=True)


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
