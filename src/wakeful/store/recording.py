"""What is sent: messages and tasks.

Laws:
- One idempotency key is one item: the same again is found, something else under the key is a conflict, unless it is
  said to be that item whatever else it says.
- A batch is recorded whole or not at all; who needs whom in it may come in any order, but not in a circle.
- A task that a run adds stands one deeper than that run. Too deep it is recorded all the same, and blocked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from wakeful.core.errors import Conflict, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import PRIORITY_RANKS, NewItem, Past
from wakeful.core.tasks import spoken_key
from wakeful.store.depending import Depending, refuse_circles
from wakeful.store.entries import SWEEP as SWEEP
from wakeful.store.entries import is_task, message_row, task_rows
from wakeful.store.entries import role_target as role_target
from wakeful.store.protocol import Recorded
from wakeful.store.session import Row


class Recording(Depending):
    def record(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        with self.session.transaction("record"):
            return self.record_all(items, now)

    def record_all(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        refuse_circles(items)
        recorded: list[Recorded] = []
        for tasks, alike in groupby(items, is_task):
            recorded += self._record_alike(list(alike), now, tasks=tasks)
        self.depend(items, recorded)
        for item, answer in zip(items, recorded, strict=True):
            if item.past is not None and not answer.duplicate:
                self._tell_past(answer.id, item, item.past, now)
        return recorded

    def _tell_past(self, task: int, item: NewItem, past: Past, now: datetime) -> None:
        """What no run of ours has done to a task is told when it comes."""
        fields = {"change": "import", "by": item.sender, "state": past.state.value, "attempts": past.attempts}
        self.event(EventKind.task_changed, now, agent=item.agent, item=task, fields=fields)

    def _record_alike(self, items: list[NewItem], now: datetime, *, tasks: bool) -> list[Recorded]:
        try:
            if tasks:
                return self._record_tasks(items, now)
            return self.insert_items("put_item", items, [message_row(item, now) for item in items])
        except self.session.broken as error:
            if not self.session.unreferenced(error):
                raise
            raise self._nobody_of(items) from error

    def _record_tasks(self, items: list[NewItem], now: datetime) -> list[Recorded]:
        keys = [item.key for item in items if item.key is not None]
        self.hold_keys(set(keys), shared=True)
        recorded = self.insert_items("put_task", items, task_rows(items, now, self._depths(items)))
        if len(set(keys)) < len(keys):
            # One that is told to come before another in this batch may be known, and done.
            self.free_keys({key for key, times in Counter(keys).items() if times > 1})
        return recorded

    def insert_message(self, row: Row) -> None:
        """One that has been made into a row, with what is its source's own."""
        try:
            self.session.inserts("put_item", [row])
        except self.session.broken as error:
            if not self.session.unreferenced(error):
                raise
            raise Unknown(f"no agent is called {row['agent']}") from error

    def _depths(self, items: list[NewItem]) -> dict[int, tuple[int, str | None]]:
        """Of the runs that add these: how deep those stand, and where that is too deep, why they may not begin."""
        found: dict[int, tuple[int, str | None]] = {}
        for run in {item.by_run for item in items if item.by_run is not None}:
            wake, agent = self.session.lists(("depth_of_run", {"run": run}), ("run_agent", {"run": run}))
            if not wake or not agent:
                continue
            depth, limit = wake[0]["depth"] + 1, self.read_agent(agent[0]).limits.chain
            too_deep = f"chain: this task is {depth} away from its root, the limit is {limit}"
            found[run] = depth, too_deep if depth > limit else None
        return found

    def insert_items(self, query: str, items: list[NewItem], rows: list[Row]) -> list[Recorded]:
        """Each under its key, or the one that is known by it."""
        if len(items) == 1:
            id = self.session.insert(query, **rows[0])
            return [self.known(items[0]) if id is None else Recorded(id=id)]
        known = self._known_keys([item.dedupe for item in items if item.dedupe is not None])
        first: dict[str, int] = {}
        fresh = []
        for number, item in enumerate(items):
            if item.dedupe is None or (item.dedupe not in known and item.dedupe not in first):
                fresh.append(number)
            if item.dedupe is not None:
                first.setdefault(item.dedupe, number)
        ids = dict(zip(fresh, self.session.inserts(query, [rows[number] for number in fresh]), strict=True))
        if len(fresh) == len(items):
            return [Recorded(id=id) for id in ids.values()]
        return [
            Recorded(id=ids[number]) if number in ids else self.known(item, known.get(item.dedupe or ""))
            for number, item in enumerate(items)
        ]

    def keyed_items(self, keys: Sequence[str]) -> dict[str, int]:
        return {row["dedupe"]: row["id"] for row in self.items_known_by(keys)}

    def _known_keys(self, keys: list[str]) -> dict[str, Row]:
        return {row["dedupe"]: row for row in self.items_known_by(keys)}

    def _nobody_of(self, items: Sequence[NewItem]) -> Unknown:
        """Whom one of these is for, who is not there."""
        names = dict.fromkeys(item.agent for item in items if item.agent is not None)
        found = self.session.reader().lists(*(("address_row", {"name": name}) for name in names))
        missing = next((name for name, rows in zip(names, found, strict=True) if not rows), None)
        return Unknown(f"no agent is called {missing}")

    def known(self, item: NewItem, row: Row | None = None) -> Recorded:
        """The item that came before under the same key; it must be the same item."""
        key = spoken_key(item.dedupe or "", item.sender)
        if row is None:
            found = self._known_keys([item.dedupe or ""])
            if not found:
                raise Conflict(f"the key {key!r} is taken")
            (row,) = found.values()
        if not item.once and _told(row) != _meant(item):
            raise Conflict(f"the key {key!r} was used before for something else, {row['kind']} {row['id']}")
        return Recorded(id=row["id"], duplicate=True)


def _told(row: Row) -> tuple[object, ...]:
    same = (row["kind"], row["agent"], row["role"], row["subject"], row["body"], row["metadata"], row["type"])
    return (*same, row["payload"], row["priority"])


def _meant(item: NewItem) -> tuple[object, ...]:
    same = (item.kind, item.agent, item.role, item.subject, item.body, item.metadata, item.type)
    return (*same, item.payload, PRIORITY_RANKS[item.priority])
