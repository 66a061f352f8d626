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

# How far down a queue we look before we look elsewhere; at first, only so far beyond what is free.
_WINDOW = 32
_FEW = 6
# How many that have just fallen due are put in their order before they stand in the queue with the others.
SIGHT = 1000

# What else asks for a decision than tasks, and who waits for a slot: beats, wakes that waited, items.
_OTHERWISE = ("due_standings", "due_wakes", "ringing_items")

_RING_CAUSES = {Ring.silent: Cause.news, Ring.news: Cause.news, Ring.peer: Cause.peer, Ring.operator: Cause.operator}


class Dueness(SqlBase):
    def due(self, now: datetime, *, limit: int = 100) -> Due:
        reader, asked = self.session.reader(), {"now": to_micros(now), "limit": limit}
        beats, waited, ringing, slots, unclaimed, following = reader.lists(
            *((query, asked) for query in (*_OTHERWISE, "free_slots", "oldest_unclaimed", "next_instant"))
        )
        found = [_timer(row) for row in beats] + [to_wake(row) for row in waited] + [_ringing(row) for row in ringing]
        found += self._for_slots(reader, slots, now)
        wakes = order(_distinct(found))[:limit]
        since = _earliest(unclaimed)
        next_at = now if wakes else _next(_earliest(following), since)
        return Due(wakes=tuple(wakes), next_at=next_at, unclaimed=since is not None)

    def ready(self, now: datetime) -> list[Wake]:
        one = {"now": to_micros(now), "limit": 1}
        *others, slots = self.session.lists(*((query, one) for query in (*_OTHERWISE, "free_slots")))
        # Where a beat, a wake that waited or an item asks as well, who comes first is for the next turn to say.
        wakes = [] if any(others) else _distinct(self._for_slots(self.session, slots, now))
        return order(wakes) if all(wake.cause is Cause.task for wake in wakes) else []

    def _for_slots(self, reader: Reading, slots: list[Row], now: datetime) -> list[Wake]:
        """As many from the head of each queue as there are free slots; then fresh tasks for what is left."""
        free = {pool: slots[0][pool.value] for pool in Pool if slots and slots[0][pool.value] > 0}
        asked = [("wakes_for_slots", {"pool": pool.value, "limit": max(free[pool], _WINDOW)}) for pool in free]
        workers = free.get(Pool.workers, 0)
        if workers:
            later = {"window": _WINDOW, "sight": SIGHT, "now": to_micros(now)}
            asked += [("first_ready", {"window": workers + _FEW}), ("first_later", later)]
        rows = reader.lists(*asked) if asked else []
        found: list[Wake] = []
        for (pool, most), waiting in zip(free.items(), rows, strict=False):
            heads = order([to_wake(row) for row in waiting])[:most]
            found += heads
            if pool is Pool.workers and most > len(heads):
                found += self._tasks(reader, now, most - len(heads), (rows[-2], workers + _FEW), rows[-1])
        return found

    def _tasks(
        self, reader: Reading, now: datetime, free: int, first: tuple[list[Row], int], later: list[Row]
    ) -> list[Wake]:
        """The heads of the queues that nobody waits for: of an agent's one, of a role's as many as are idle in it. One
        that had to wait for an agent would go before what comes meanwhile and has a better place."""
        rows = self._ready(reader, free, *first) + self._later(reader, free, later, to_micros(now))
        rows.sort(key=lambda row: (row["place"], row["id"]))
        taken: set[str] = set()
        idle: dict[str, int] = {}
        found: list[Wake] = []
        for row in rows:
            if len(found) == free:
                break
            agent, role = row["agent"], row["role"]
            if agent is None:
                if role not in idle:
                    (counted,) = reader.all("idle_in_role", role=role, limit=free)
                    idle[role] = counted["idle"]
                idle[role] -= 1
                if idle[role] >= 0:
                    found.append(_task(row, now))
            elif agent not in taken:
                taken.add(agent)
                found.append(_task(row, now))
        return found

    def _ready(self, reader: Reading, free: int, first: list[Row], window: int) -> list[Row]:
        """From `first`, the head of all queues together; or from further down, if need be from each queue's own."""
        while not _will_do(first, window, free):
            if window == _WINDOW:
                targets = [row["target"] for row in reader.all("ready_targets")]
                return [row for target in targets for row in reader.all("ready_tasks", target=target, limit=free)]
            first, window = reader.all("first_ready", window=_WINDOW), _WINDOW
        return [row for row in first if row["open"]]

    def _later(self, reader: Reading, free: int, first: list[Row], now: int) -> list[Row]:
        if _will_do(first, _WINDOW, free):
            return [row for row in first if row["open"]]
        targets = [row["target"] for row in reader.all("later_targets")]
        asked = {"limit": free, "sight": SIGHT, "now": now}
        return [row for target in targets for row in reader.all("later_tasks", target=target, **asked)]


def _earliest(rows: list[Row]) -> datetime | None:
    return from_micros(rows[0]["at"]) if rows and rows[0]["at"] is not None else None


def _next(following: datetime | None, unclaimed: datetime | None) -> datetime | None:
    moments = [moment for moment in (following, unclaimed and unclaimed + UNCLAIMED_FOR) if moment is not None]
    return min(moments, default=None)


def _will_do(first: list[Row], window: int, free: int) -> bool:
    """Usually the first few tasks are enough; not where a long queue that is held up stands before the others."""
    return len(first) < window or sum(row["open"] for row in first) >= free


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
