"""What is sent: messages and tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.core.items import PRIORITY_RANKS, TERMINAL, Kind, NewItem, Ring, State
from wakeful.store.base import SqlBase
from wakeful.store.protocol import Recorded
from wakeful.store.rows import micros_or_none, to_micros
from wakeful.store.session import Row

# How long a silent message to an agent without a timer waits for some other run to show it.
SWEEP = timedelta(minutes=30)

# Queue items have one generation; mirrored ones get the fingerprint of their source.
FIRST_GENERATION = "1"

# Of two items under one key.
_SAME = ("kind", "agent", "role", "subject", "body", "metadata", "type")


class Recording(SqlBase):
    def record(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        with self.session.transaction("record"):
            return self.record_all(items, now)

    def record_all(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        return [self.record_one(item, now) for item in items]

    def record_one(self, item: NewItem, now: datetime) -> Recorded:
        waits_for, blocked = self._needs(item) if item.depends_on else (0, "")
        id = self.insert_item(item_parameters(item, now, waits_for))
        if id is None:
            return self.known(item)
        for needs in item.depends_on:
            self.session.write("put_dependency", item=id, needs=needs)
        if blocked:
            self._block(id, blocked)
        return Recorded(id=id)

    def insert_item(self, parameters: Row) -> int | None:
        try:
            return self.session.insert("put_item", **parameters)
        except self.session.broken as error:
            if not self.session.unreferenced(error):
                raise
            raise Unknown(f"no agent is called {parameters['agent']}") from error

    def known(self, item: NewItem) -> Recorded:
        """The item that came before under the same key; it must be the same item."""
        row = self.session.one("item_by_dedupe", dedupe=item.dedupe)
        if row is None:
            raise Conflict(f"the key {item.dedupe!r} is taken")
        same = (item.kind, item.agent, item.role, item.subject, item.body, item.metadata, item.type)
        if (*(row[key] for key in _SAME), row["priority"]) != (*same, PRIORITY_RANKS[item.priority]):
            raise Conflict(f"the key {item.dedupe!r} was used before for something else, item {row['id']}")
        return Recorded(id=row["id"], duplicate=True)

    def _needs(self, item: NewItem) -> tuple[int, str]:
        """How many dependencies are not completed yet, and which of them never will be."""
        waits_for, blocked = 0, ""
        for needs in item.depends_on:
            row = self.session.one("open_needs", needs=needs)
            if row is None:
                raise Unknown(f"no task {needs} to depend on")
            if row["state"] != State.completed:
                waits_for += 1
                if State(row["state"]) in TERMINAL:
                    blocked = f"depends on task {needs}, which is {row['state']}"
        return waits_for, blocked

    def _block(self, id: int, reason: str) -> None:
        self.session.write(
            "change_task_state", item=id, state=State.blocked.value, error=reason, closed_at=None, again=False
        )


def role_target(role: str | None) -> str:
    return f"role:{role}"


def item_parameters(item: NewItem, now: datetime, waits_for: int) -> Row:
    message = item.kind is Kind.message
    if message and item.agent is None:
        raise Mistake("a message needs an agent", "name the agent that it is for")
    micros = to_micros(now)
    silent = not message or item.ring is Ring.silent
    return {
        "kind": item.kind.value,
        "state": "open" if message else "pending",
        "agent": item.agent,
        "role": item.role,
        "target": None if message else item.agent or role_target(item.role),
        "sender": item.sender,
        "origin": item.origin.value,
        "subject": item.subject,
        "body": item.body,
        "type": item.type.value,
        "priority": PRIORITY_RANKS[item.priority],
        "ring": "silent" if silent else item.ring.value,
        "ring_at": None if silent else micros_or_none(item.not_before) or micros,
        "sweep_at": to_micros(now + SWEEP) if message and silent else None,
        "dedupe": item.dedupe,
        "source": item.source,
        "external_id": None,
        "fingerprint": FIRST_GENERATION,
        "max_retries": item.max_retries,
        "key": item.key,
        "not_before": micros_or_none(item.not_before),
        "tags": json.dumps(item.tags) if item.tags else "[]",
        "waits_for": waits_for,
        "reply_to": item.reply_to,
        "by_run": item.by_run,
        "metadata": item.metadata,
        "now": micros,
    }
