"""Where the engine dies: at a commit, before or after it, or between two of them.

The store calls the probe around each commit. A `Crash` before the commit rolls it back; one after it leaves the
change in place although nobody is told. Whoever catches it has lost all memory.
"""

from __future__ import annotations

from random import Random


class Crash(Exception):
    """The process is gone. What it had not written is gone with it."""

    @property
    def committed(self) -> bool:
        return str(self).startswith("after")


class Faults:
    def __init__(self, dice: Random, share: float) -> None:
        """`share` is the probability of a crash at each probed moment."""
        self._dice = dice
        self._share = share
        self.on = True
        self.crashes: list[str] = []

    def probe(self, moment: str, site: str) -> None:
        self.maybe(f"{moment} {site}")

    def maybe(self, where: str, weight: int = 1) -> None:
        if self.on and self._share and self._dice.random() < self._share * weight:
            self.crashes.append(where)
            raise Crash(where)
