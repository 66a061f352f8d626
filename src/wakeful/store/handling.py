"""What is done to an inbox by hand: read, or put off.

Laws:
- Whatever is read or put off is no longer held: a run that was shown it does not settle it.
- A mirrored item is closed by its source alone; a task has changes of its own.
- What cannot be done to one is done to none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from wakeful.core.codec import encode
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import Kind
from wakeful.store.base import SqlBase
from wakeful.store.rows import to_micros
from wakeful.store.session import Row


class Handling(SqlBase):
    def mark_read(self, messages: Sequence[int], by: str, now: datetime) -> list[int]:
        with self.session.transaction("mark_read"):
            rows = self._in_inboxes(messages)
            mirrored = next((row for row in rows if row["external_id"] is not None), None)
            if mirrored is not None:
                reason = f"item {mirrored['id']} mirrors {mirrored['external_id']} of {mirrored['source']}"
                raise Mistake(reason, "take it away where it is, or snooze it")
            change = {"now": to_micros(now)}
            return self._change_open(rows, "mark_read", change, EventKind.marked_read, {"by": by}, now)

    def snooze(self, items: Sequence[int], until: datetime, by: str, now: datetime) -> list[int]:
        if until <= now:
            raise Mistake(f"{encode(until)} is not in the future", "name a later instant")
        with self.session.transaction("snooze"):
            told = {"by": by, "until": encode(until)}
            rows = self._in_inboxes(items)
            return self._change_open(rows, "snooze_item", {"until": to_micros(until)}, EventKind.snoozed, told, now)

    def _in_inboxes(self, items: Sequence[int]) -> list[Row]:
        wanted = list(dict.fromkeys(items))
        found = {row["id"]: row for row in self.session.all("items_by_hand", ids=json.dumps(wanted))}
        missing = next((item for item in wanted if item not in found), None)
        if missing is not None:
            raise Unknown(f"no item {missing}")
        task = next((row for row in found.values() if row["kind"] == Kind.task), None)
        if task is not None:
            raise Mistake(f"item {task['id']} is a task", "change it as a task: complete, cancel, fail or retry")
        return [found[item] for item in wanted]

    def _change_open(
        self, rows: list[Row], query: str, change: Row, kind: EventKind, told: Row, now: datetime
    ) -> list[int]:
        still_open = [row for row in rows if row["closed_at"] is None]
        self.session.many(query, [{"item": row["id"], **change} for row in still_open])
        for row in still_open:
            self.event(kind, now, agent=row["agent"], item=row["id"], fields=told)
        return [row["id"] for row in still_open]
