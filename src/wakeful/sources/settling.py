"""Whether a file is whole, or somebody is still writing it.

Laws:
- The kernel is asked first: it grants a lease for reading only on a file that nobody has open for writing. Then a file
  is whole at the instant it is closed, however slowly it was written, and no wait is needed.
- Where the kernel does not say (another owner, another system, some network mounts), a file is whole that was left
  alone for a second. One that is held open and left alone is shown after five: some programs never close.
"""

from __future__ import annotations

import errno
import signal

try:
    import fcntl
except ImportError:  # pragma: no cover - not on any system that we run on
    fcntl = None  # type: ignore[assignment]

# Seconds without a change.
UNTOLD = 1.0
HELD_OPEN = 5.0

# Not in every Python's fcntl, and the same number on every Linux.
_F_SETSIG = 10


def being_written(file: int) -> bool | None:
    """Whether somebody has it open for writing; `file` is open for reading. None where the kernel does not say."""
    if fcntl is None or not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # Whoever opens the file meanwhile waits until we let go, and we are sent a signal: one that is ignored by
        # default, instead of SIGIO, which ends a process.
        fcntl.fcntl(file, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def is_whole(file: int, rest: float) -> bool:
    """`rest` is for how many seconds it is known not to have changed."""
    if rest >= HELD_OPEN:
        return True
    written = being_written(file)
    return rest >= UNTOLD if written is None else not written
