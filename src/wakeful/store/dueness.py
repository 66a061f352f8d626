"""What asks for a decision now. Reads only; everything it finds goes through the one door."""

from __future__ import annotations

from datetime import datetime, timedelta

from wakeful.core.items import Ring
from wakeful.core.wakes import Cause, Pool, Subject, Wake, order
from wakeful.store.base import SqlBase
from wakeful.store.protocol import Due
from wakeful.store.rows import from_micros, to_micros, to_wake
from wakeful.store.session import Reading, Row

UNCLAIMED_FOR = timedelta(seconds=5)

# How far down the queue for a slot we look, so that an agent's better wake may take its older one's place.
_WINDOW = 32

_RING_CAUSES = {Ring.silent: Cause.news, Ring.news: Cause.news, Ring.peer: Cause.peer, Ring.operator: Cause.operator}


class Dueness(SqlBase):
    def due(self, now: datetime, *, limit: int = 100) -> Due:
        reader, micros = self.session.reader(), to_micros(now)
        found = [_timer(row) for row in reader.all("due_standings", now=micros, limit=limit)]
        found += [to_wake(row) for row in reader.all("due_wakes", now=micros, limit=limit)]
        found += [_ringing(row) for row in reader.all("ringing_items", now=micros, limit=limit)]
        found += self._for_slots(reader, now)
        wakes = order(_distinct(found))[:limit]
        return Due(wakes=tuple(wakes), next_at=now if wakes else self._next(reader, now))

    def _for_slots(self, reader: Reading, now: datetime) -> list[Wake]:
        """As many from the head of each queue as there are free slots; then fresh tasks for what is left."""
        fleet, open_runs = reader.one("fleet_row"), reader.one("slots_open")
        if fleet is None or open_runs is None:
            return []
        found: list[Wake] = []
        for pool in Pool:
            free = fleet[pool.value] - open_runs[pool.value]
            if free <= 0:
                continue
            rows = reader.all("wakes_for_slots", pool=pool.value, limit=max(free, _WINDOW))
            heads = order([to_wake(row) for row in rows])[:free]
            found += heads
            if pool is Pool.workers and free > len(heads):
                found += self._tasks(reader, now, free - len(heads))
        return found

    def _tasks(self, reader: Reading, now: datetime, free: int) -> list[Wake]:
        rows = reader.all("ready_tasks", limit=free)
        rows += reader.all("later_tasks", now=to_micros(now), limit=free)
        targets: set[tuple[str | None, str | None]] = set()
        found: list[Wake] = []
        for row in rows:
            # A queue stands behind one wake; two at once would only wait for each other.
            target = (row["agent"], row["role"] if row["agent"] is None else None)
            if target not in targets or row["agent"] is None:
                targets.add(target)
                found.append(_task(row, now))
        return found[:free]

    def _next(self, reader: Reading, now: datetime) -> datetime | None:
        row = reader.one("next_instant", now=to_micros(now))
        unclaimed = reader.one("oldest_unclaimed")
        moments = [from_micros(row["at"])] if row and row["at"] is not None else []
        if unclaimed and unclaimed["at"] is not None:
            moments.append(from_micros(unclaimed["at"]) + UNCLAIMED_FOR)
        return min(moments, default=None)


def _distinct(wakes: list[Wake]) -> list[Wake]:
    """A waiting wake can be due for two reasons at once."""
    known = {wake.id: wake for wake in wakes if wake.id}
    return [*known.values(), *(wake for wake in wakes if not wake.id)]


def _timer(row: Row) -> Wake:
    return Wake(agent=row["agent"], cause=Cause.timer, subject=Subject.beat, requested_at=from_micros(row["due_at"]))


def _ringing(row: Row) -> Wake:
    return Wake(
        agent=row["agent"],
        cause=_RING_CAUSES[Ring(row["ring"])],
        subject=Subject.inbox,
        requested_at=from_micros(row["ring_at"]),
        sender=row["sender"],
        item=row["id"],
        source=row["source"],
        by_run=row["by_run"],
    )


def _task(row: Row, now: datetime) -> Wake:
    return Wake(
        agent=row["agent"],
        role=None if row["agent"] else row["role"],
        cause=Cause.task,
        subject=Subject.task,
        requested_at=min(from_micros(row["created_at"]), now),
        task=row["id"],
        source=row["source"],
        by_run=row["by_run"],
    )
