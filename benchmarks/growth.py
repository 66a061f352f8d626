"""What a verb costs in a fleet of 100, 10,000 and 100,000 agents, each with an open message.

The store is not durable here, so that the disk does not hide what grows. The agents that are asked for are drawn
from the whole fleet, and are the same each time: the first decision on an agent also reads its declaration, and
is a line of its own.
"""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.deciding import must_be
from benchmarks.fleets import LEASE, START, STEP, done, fleet_of, message, name_of, peer, timer
from benchmarks.lines import ADMIT, ADOPT, DECLARE, DECLARE_AGAIN, DUE_NONE, DUE_PAGE, FINISH, FIRST, REFUSE
from wakeful.core.admission import admit
from wakeful.core.items import Ring
from wakeful.core.settlement import settle
from wakeful.core.wakes import VerdictKind
from wakeful.store.sqlite import open_sqlite

DRAWN = 50
LOOKS = 20
# As many runs are open at a time as a fleet of this kind would have.
OPEN = 10
_BATCH = 1_000


class Growth:
    """One fleet of one size."""

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        # What happens once in the life of a store, or of an agent in it: microseconds, and seconds for the whole.
        self.built: dict[str, float] = {}
        self.whole: dict[str, float] = {}
        self._store = open_sqlite(folder / f"growth-{size}.db", durable=False)
        self._now = START
        self._declare()
        drawn = random.Random(size).sample(range(size), 2 * DRAWN)
        self._beating = [name_of(index) for index in drawn[:DRAWN]]
        self._rung = [name_of(index) for index in drawn[DRAWN:]]
        for first in range(0, size, _BATCH):
            names = [name_of(index) for index in range(first, min(first + _BATCH, size))]
            self._store.record([message(name, f"open-{name}") for name in names], START)
        letters = [message(name, f"ring-{name}", ring=Ring.peer) for name in self._rung]
        self._items = [item.id for item in self._store.record(letters, START)]
        self._warm_up()

    def _declare(self) -> None:
        fleet = fleet_of(self.size)
        started = perf_counter()
        self._store.declare(fleet, START)
        taken = perf_counter() - started
        self.built[ADOPT] = taken / self.size * 1e6
        started = perf_counter()
        self._store.declare(fleet, START, boot=True)
        self.whole = {DECLARE: taken, DECLARE_AGAIN: perf_counter() - started}

    def _warm_up(self) -> None:
        """The first decisions; then the caches hold what they will hold."""
        self._now += STEP
        first, _ = self._beats()
        self.built[FIRST] = median(first)
        self._refusals()

    def sample(self) -> dict[str, float]:
        """One pass over the agents that were drawn: the median cost of each verb."""
        self._now += STEP
        admitted, finished = self._beats()
        return {
            ADMIT: median(admitted),
            FINISH: median(finished),
            REFUSE: median(self._refusals()),
            DUE_NONE: self._looks(beats_due=False),
            DUE_PAGE: self._looks(beats_due=True),
        }

    def _beats(self) -> tuple[list[float], list[float]]:
        decided, finished = [], []
        for first in range(0, DRAWN, OPEN):
            for name in self._beating[first : first + OPEN]:
                wakes = [timer(name, self._now)]
                started = perf_counter()
                decisions = self._store.decide(wakes, admit, self._now)
                decided.append((perf_counter() - started) * 1e6)
                must_be(decisions, VerdictKind.admit)
            for order in self._store.claim("bench", self._now, LEASE):
                started = perf_counter()
                self._store.finish([done(order)], settle, self._now)
                finished.append((perf_counter() - started) * 1e6)
        assert len(finished) == DRAWN
        return decided, finished

    def _refusals(self) -> list[float]:
        costs = []
        for name, item in zip(self._rung, self._items, strict=True):
            wakes = [peer(name, item, self._now)]
            started = perf_counter()
            decisions = self._store.decide(wakes, admit, self._now)
            costs.append((perf_counter() - started) * 1e6)
            must_be(decisions, VerdictKind.refuse)
        return costs

    def _looks(self, *, beats_due: bool) -> float:
        moment = self._now + STEP if beats_due else START
        costs = []
        for _ in range(LOOKS):
            started = perf_counter()
            due = self._store.due(moment)
            costs.append((perf_counter() - started) * 1e6)
            assert len(due.wakes) == (100 if beats_due else 0)
        return median(costs)

    def close(self) -> None:
        self._store.close()
