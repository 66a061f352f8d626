"""`decide` and `finish` with their commits, durable: many wakes in one transaction, and one alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from time import perf_counter

from benchmarks.fleets import LEASE, START, STEP, done, fleet_of, message, name_of, peer, timer
from benchmarks.lines import DECIDE_ADMITTED, DECIDE_ONE, DECIDE_REFUSED, FINISH_ONE
from wakeful.core.admission import admit
from wakeful.core.items import Ring
from wakeful.core.settlement import settle
from wakeful.core.wakes import VerdictKind, Wake
from wakeful.store.protocol import Decision
from wakeful.store.sqlite import open_sqlite

AGENTS = 1_000
BATCH = 100


class Deciding:
    def __init__(self, folder: Path, seconds: float) -> None:
        self._seconds = seconds
        self._store = open_sqlite(folder / "decide.db")
        self._store.declare(fleet_of(AGENTS), START)
        self._now = START
        # The first hundred are rung for and never run, so that what rings stays; the others beat.
        self._rung = [name_of(index) for index in range(BATCH)]
        letters = [message(name, f"ring-{name}", ring=Ring.peer) for name in self._rung]
        recorded = self._store.record(letters, START)
        self._items = dict(zip(self._rung, (item.id for item in recorded), strict=True))
        self._beating = self._batches()

    def _batches(self) -> Iterator[list[str]]:
        starts = range(BATCH, AGENTS, BATCH)
        for first in cycle(starts):
            if first == BATCH:
                self._now += STEP
            yield [name_of(index) for index in range(first, first + BATCH)]

    def sample(self) -> dict[str, float]:
        one, finish = self._one_by_one()
        return {
            DECIDE_REFUSED: self._rate(self._refuse),
            DECIDE_ADMITTED: self._rate(self._admit),
            DECIDE_ONE: one,
            FINISH_ONE: finish,
        }

    def _rate(self, batch: Callable[[], float]) -> float:
        """Batches until the time is spent; only what `batch` says it took is counted."""
        taken, batches = 0.0, 0
        while taken < self._seconds:
            taken += batch()
            batches += 1
        return batches * BATCH / taken

    def _refuse(self) -> float:
        wakes = [peer(name, self._items[name], self._now) for name in self._rung]
        return self._decide(wakes, VerdictKind.refuse)

    def _admit(self) -> float:
        wakes = [timer(name, self._now) for name in next(self._beating)]
        taken = self._decide(wakes, VerdictKind.admit)
        orders = self._store.claim("bench", self._now, LEASE)
        self._store.finish([done(order) for order in orders], settle, self._now)
        return taken

    def _one_by_one(self) -> tuple[float, float]:
        deciding, finishing, runs = 0.0, 0.0, 0
        while deciding + finishing < self._seconds:
            for name in next(self._beating):
                deciding += self._decide([timer(name, self._now)], VerdictKind.admit)
            orders = self._store.claim("bench", self._now, LEASE)
            started = perf_counter()
            for order in orders:
                self._store.finish([done(order)], settle, self._now)
            finishing += perf_counter() - started
            runs += len(orders)
        return runs / deciding, runs / finishing

    def _decide(self, wakes: list[Wake], expected: VerdictKind) -> float:
        started = perf_counter()
        decisions = self._store.decide(wakes, admit, self._now)
        taken = perf_counter() - started
        must_be(decisions, expected)
        return taken

    def close(self) -> None:
        self._store.close()


def must_be(decisions: list[Decision], expected: VerdictKind) -> None:
    """A benchmark of refusals that were admissions would be a lie."""
    for decision in decisions:
        assert decision.verdict.kind is expected, decision
