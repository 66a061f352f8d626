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

# How far down a queue we look before we look elsewhere.
_WINDOW = 32
# How many that have just fallen due are put in their order before they stand in the queue with the others.
SIGHT = 1000

_RING_CAUSES = {Ring.silent: Cause.news, Ring.news: Cause.news, Ring.peer: Cause.peer, Ring.operator: Cause.operator}


class Dueness(SqlBase):
    def due(self, now: datetime, *, limit: int = 100) -> Due:
        reader, micros = self.session.reader(), to_micros(now)
        found = [_timer(row) for row in reader.all("due_standings", now=micros, limit=limit)]
        found += [to_wake(row) for row in reader.all("due_wakes", now=micros, limit=limit)]
        found += [_ringing(row) for row in reader.all("ringing_items", now=micros, limit=limit)]
        found += self._for_slots(reader, now)
        wakes = order(_distinct(found))[:limit]
        unclaimed = reader.one("oldest_unclaimed")
        since = from_micros(unclaimed["at"]) if unclaimed and unclaimed["at"] is not None else None
        next_at = now if wakes else self._next(reader, now, since)
        return Due(wakes=tuple(wakes), next_at=next_at, unclaimed=since is not None)

    def ready(self, now: datetime) -> list[Wake]:
        wakes = _distinct(self._for_slots(self.session, now))
        only_tasks = all(wake.cause is Cause.task for wake in wakes)
        return order(wakes) if only_tasks and not self._asks_otherwise(now) else []

    def _asks_otherwise(self, now: datetime) -> bool:
        """Whether a beat, a wake that waited or an item asks as well."""
        one = {"now": to_micros(now), "limit": 1}
        return any(self.session.lists(("due_standings", one), ("due_wakes", one), ("ringing_items", one)))

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
        """The heads of the queues that nobody waits for: of an agent's one, of a role's as many as are idle in it. One
        that had to wait for an agent would go before what comes meanwhile and has a better place."""
        rows = self._ready(reader, free) + self._later(reader, free, to_micros(now))
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

    def _ready(self, reader: Reading, free: int) -> list[Row]:
        first = reader.all("first_ready", window=_WINDOW)
        if _will_do(first, free):
            return [row for row in first if row["open"]]
        targets = [row["target"] for row in reader.all("ready_targets")]
        return [row for target in targets for row in reader.all("ready_tasks", target=target, limit=free)]

    def _later(self, reader: Reading, free: int, now: int) -> list[Row]:
        first = reader.all("first_later", window=_WINDOW, sight=SIGHT, now=now)
        if _will_do(first, free):
            return [row for row in first if row["open"]]
        targets = [row["target"] for row in reader.all("later_targets")]
        asked = {"limit": free, "sight": SIGHT, "now": now}
        return [row for target in targets for row in reader.all("later_tasks", target=target, **asked)]

    def _next(self, reader: Reading, now: datetime, unclaimed: datetime | None) -> datetime | None:
        row = reader.one("next_instant", now=to_micros(now))
        moments = [from_micros(row["at"])] if row and row["at"] is not None else []
        if unclaimed is not None:
            moments.append(unclaimed + UNCLAIMED_FOR)
        return min(moments, default=None)


def _will_do(first: list[Row], free: int) -> bool:
    """Usually the first few tasks are enough; not where a long queue that is held up stands before the others."""
    return len(first) < _WINDOW or sum(row["open"] for row in first) >= free


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
