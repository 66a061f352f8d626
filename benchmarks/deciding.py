"""`decide` and `finish` with their commits, durable: many wakes in one transaction, and one alone.

Only the verb that is measured is timed; what brings the agents back to where they were is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from time import perf_counter

from benchmarks.fleets import LEASE, START, STEP, done, fleet_of, message, name_of, peer, timer
from wakeful.core.admission import admit
from wakeful.core.items import Ring
from wakeful.core.settlement import settle
from wakeful.core.wakes import VerdictKind, Wake
from wakeful.store.protocol import Decision
from wakeful.store.sqlite import open_sqlite

AGENTS = 1_000
BATCH = 100


class Deciding:
    def __init__(self, folder: Path) -> None:
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
        for first in cycle(range(BATCH, AGENTS, BATCH)):
            if first == BATCH:
                self._now += STEP
            yield [name_of(index) for index in range(first, first + BATCH)]

    def refuse(self, seconds: float) -> tuple[int, float]:
        made, elapsed = 0, 0.0
        while elapsed < seconds:
            wakes = [peer(name, self._items[name], self._now) for name in self._rung]
            elapsed += self._decide(wakes, VerdictKind.refuse)
            made += BATCH
        return made, elapsed

    def admit(self, seconds: float) -> tuple[int, float]:
        made, elapsed = 0, 0.0
        while elapsed < seconds:
            wakes = [timer(name, self._now) for name in next(self._beating)]
            elapsed += self._decide(wakes, VerdictKind.admit)
            made += BATCH
            self._end_all()
        return made, elapsed

    def admit_one(self, seconds: float) -> tuple[int, float]:
        made, elapsed = 0, 0.0
        while elapsed < seconds:
            for name in next(self._beating):
                elapsed += self._decide([timer(name, self._now)], VerdictKind.admit)
                made += 1
                if elapsed >= seconds:
                    break
            self._end_all()
        return made, elapsed

    def finish_one(self, seconds: float) -> tuple[int, float]:
        made, elapsed = 0, 0.0
        while elapsed < seconds:
            self._decide([timer(name, self._now) for name in next(self._beating)], VerdictKind.admit)
            orders = self._store.claim("bench", self._now, LEASE)
            while orders and elapsed < seconds:
                end = done(orders.pop())
                started = perf_counter()
                self._store.finish([end], settle, self._now)
                elapsed += perf_counter() - started
                made += 1
            self._store.finish([done(order) for order in orders], settle, self._now)
        return made, elapsed

    def _end_all(self) -> None:
        orders = self._store.claim("bench", self._now, LEASE)
        self._store.finish([done(order) for order in orders], settle, self._now)

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
