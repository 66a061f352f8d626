"""What befalls the nodes of a world at the moments at which they are open to it, drawn from the seed."""

from __future__ import annotations

from collections import Counter
from random import Random

COMMITS = ("crash before", "crash after", "away before", "away after", "full")


class Faults:
    def __init__(self, dice: Random, shape: Random) -> None:
        """How likely each is, is a matter of the seed: many worlds have little of it, some have a lot."""
        self._dice = dice
        self.on = True
        self.met: list[str] = []
        # How often each kind of trouble came, also those that are drawn elsewhere: what no longer comes proves nothing.
        self.counts: Counter[str] = Counter()
        self._crash = shape.choice((0.0, 0.0001, 0.0004, 0.0015))
        self._commit = shape.choice((0.0, 0.0005, 0.002, 0.006))
        self._kinds = [kind for kind in COMMITS if shape.random() < 0.8] or list(COMMITS)
        self._lost = shape.choice((0.0, 0.05, 0.5, 1.0))
        self._slow = shape.choice((0.0, 0.02, 0.2))

    def note(self, trouble: str, site: str) -> None:
        self.met.append(f"{trouble} {site}")
        self.count(trouble)

    def count(self, kind: str) -> None:
        self.counts[kind] += 1

    def at_await(self, weight: int = 1) -> bool:
        return self.on and self._crash > 0 and self._dice.random() < self._crash * weight

    def at_commit(self, weight: int = 1) -> str | None:
        if not self.on or self._commit == 0 or self._dice.random() >= self._commit * weight:
            return None
        return self._dice.choice(self._kinds)

    def hints(self) -> list[float]:
        """After how many seconds a hint arrives, each time that it does."""
        if not self.on:
            return [0.0]
        if self._dice.random() < self._lost:
            self.count("hint lost")
            return []
        delays = [self._dice.choice((0.0, 0.0, 0.01, 3.0)) for _ in range(self._dice.choice((1, 1, 1, 2)))]
        if len(delays) > 1:
            self.count("hint twice")
        if max(delays) > 1:
            self.count("hint late")
        return delays

    def slow_start(self) -> float:
        if not self.on or self._dice.random() >= self._slow:
            return 0.0
        self.count("slow start")
        return self._dice.choice((0.5, 5.0, 90.0))
