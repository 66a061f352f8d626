"""What arrives: messages, tasks, and lists that are mirrored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import PRIORITY_RANKS, TERMINAL, Kind, NewItem, Observation, Ring, State
from wakeful.core.ledger import Edges, edges
from wakeful.store.base import SqlBase
from wakeful.store.protocol import Recorded
from wakeful.store.rows import micros_or_none, to_micros
from wakeful.store.session import Row

# How long a silent message to an agent without a timer waits for some other run to show it.
SWEEP = timedelta(minutes=30)

# Queue items have one generation; mirrored ones get the fingerprint of their source.
FIRST_GENERATION = "1"


class Recording(SqlBase):
    def record(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        with self.session.transaction("record"):
            return self.record_all(items, now)

    def record_all(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        return [self.record_one(item, now) for item in items]

    def record_one(self, item: NewItem, now: datetime) -> Recorded:
        waits_for, blocked = self._needs(item) if item.depends_on else (0, "")
        id = self._insert(item_parameters(item, now, waits_for))
        if id is None:
            return self.known(item)
        for needs in item.depends_on:
            self.session.write("put_dependency", item=id, needs=needs)
        if blocked:
            self._block(id, blocked)
        return Recorded(id=id)

    def _insert(self, parameters: Row) -> int | None:
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
        came = (item.kind.value, item.agent, item.role, item.subject, item.body)
        if (row["kind"], row["agent"], row["role"], row["subject"], row["body"]) != came:
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

    def observe(self, source: str, agent: str, observed: Sequence[Observation] | None, now: datetime) -> Edges:
        with self.session.transaction("observe"):
            rows = {row["external_id"]: row for row in self.session.all("mirrored", source=source, agent=agent)}
            known = {id: row["fingerprint"] for id, row in rows.items()}
            seen = {thing.external_id: thing for thing in observed or ()}
            prints = {id: thing.fingerprint for id, thing in seen.items()}
            found = edges(known, None if observed is None else prints)
            for id in found.new:
                self._mirror(source, agent, seen[id], now)
            for id in found.changed:
                self._change(rows[id], seen[id], now)
            for id in found.gone:
                self.session.write("close_mirrored", item=rows[id]["id"], now=to_micros(now))
                fields = {"source": source, "external_id": id}
                self.event(EventKind.gone, now, agent=agent, item=rows[id]["id"], fields=fields)
            return found

    def _mirror(self, source: str, agent: str, thing: Observation, now: datetime) -> None:
        item = NewItem(
            kind=Kind.message,
            agent=agent,
            subject=thing.subject or thing.external_id,
            body=thing.body,
            ring=Ring.news,
            source=source,
            not_before=thing.not_before,
        )
        parameters = item_parameters(item, now, 0)
        parameters.update(external_id=thing.external_id, fingerprint=thing.fingerprint)
        self._insert(parameters)

    def _change(self, row: Row, thing: Observation, now: datetime) -> None:
        self.session.write(
            "change_mirrored",
            item=row["id"],
            fingerprint=thing.fingerprint,
            subject=thing.subject or thing.external_id,
            body=thing.body,
            not_before=micros_or_none(thing.not_before),
            ring_at=to_micros(thing.not_before or now),
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
        "now": micros,
    }
