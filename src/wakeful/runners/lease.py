"""Until when a run may go on without a word from its engine.

Laws:
- A run is ended a margin before its lease is over, by whoever guards it; what has not begun by then never does.
- A later end is written into the run's folder, by the engine that asked for the run or by one that adopted it; it is
  looked for when the one that we know has come. An end that was given is never taken back.
- It needs nobody's clock to be right: seconds since boot, suspended time included, of the machine that the run is on.
- Only the standard library, little of it: guardians read leases.
"""

from __future__ import annotations

import os

from wakeful.runners.whole import create_whole, now, write_whole

_FILE = "lease"
# How a run ended that was ended at its fence.
FENCING = "fencing"
NEVER = float("inf")


class Lease:
    def __init__(self, folder: str, until: float | None, margin: float) -> None:
        self._path = os.path.join(folder, _FILE)
        self._margin = margin
        # When the run is to be ended; never, where there is nobody to fence it from.
        self.fence_at = NEVER if until is None else until - margin

    def over(self) -> bool:
        """Whether the time has come, and nobody has written a later one."""
        if now() < self.fence_at:
            return False
        try:
            with open(self._path) as file:
                self.fence_at = max(self.fence_at, float(file.read()) - self._margin)
        except (OSError, ValueError):
            return True
        return now() >= self.fence_at

    def lift(self) -> None:
        """The run is being ended: it is not to be ended again."""
        self.fence_at = NEVER


def extend(folder: str, until: float) -> None:
    """A later end. Where it cannot be written, the run ends as if nobody had been there to write it."""
    try:
        write_whole(os.path.join(folder, _FILE), until)
    except OSError:
        return


def veto(folder: str) -> bool:
    """Make sure that a run which has not begun never will; False when somebody else was first, with the one or the
    other."""
    return create_whole(os.path.join(folder, "started"), {"veto": True})
