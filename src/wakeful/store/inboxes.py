"""Items as they are found: page by page, by what they are and whose; and those that nobody consumes.

Law: an agent's open messages are found without passing its past, and its inbox without passing its tasks.
"""

from __future__ import annotations

import json

from wakeful.core.items import PRIORITY_RANKS, Item, Kind, State, read_priority
from wakeful.store.base import SqlBase
from wakeful.store.listing import LAST_ID, LAST_NAME, ids_of, page_of
from wakeful.store.protocol import StuckRow
from wakeful.store.rows import from_micros, to_item
from wakeful.store.session import Reading

# From the oldest on, and from the newest back.
_OPEN = ("open_items", "latest_open_items")
_INBOX = ("inbox_items", "latest_inbox_items")


class Inboxes(SqlBase):
    def items(
        self,
        *,
        agent: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        sender: str | None = None,
        type: str | None = None,
        priority: str | None = None,
        thread: int | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Item]:
        reader = self.session.reader()
        span = {"after": after, "before": LAST_ID if before is None else before}
        least = 0 if priority is None else PRIORITY_RANKS[read_priority(priority)]
        asked = {
            **span,
            "agent": agent,
            "kind": kind,
            "state": state,
            "sender": sender,
            "type": type,
            "priority": least,
        }
        messages = kind == Kind.message or (kind is None and state in (State.open, State.closed))
        if thread is not None:
            found = page_of(ids_of(reader.all("thread_items", **asked, thread=thread)), before, limit)
        elif messages and state == State.open and agent is None:
            found = page_of(ids_of(reader.all("all_open_items", **asked)), before, limit)
        elif messages and agent is not None:
            oldest, newest = _OPEN if state == State.open else _INBOX
            found = ids_of(reader.all(oldest if before is None else newest, **asked, limit=limit))
        else:
            found = ids_of(reader.all("list_items" if before is None else "latest_items", **asked, limit=limit))
        return list(items_of(reader, found).values())

    def stuck(self, *, agent: str | None = None, limit: int = 100) -> list[StuckRow]:
        reader = self.session.reader()
        with reader.snapshot():
            rows = reader.all("stuck_items", first=agent or "", last=agent or LAST_NAME, limit=limit)
            items = items_of(reader, ids_of(rows))
        return [
            StuckRow(
                item=items[row["id"]],
                runs=row["runs"],
                first_shown_at=from_micros(row["first_shown_at"]),
                last_run=row["last_run"],
            )
            for row in rows
        ]


def items_of(reader: Reading, found: list[int]) -> dict[int, Item]:
    rows = reader.all("item_rows", ids=json.dumps(found)) if found else []
    return {row["id"]: to_item(row) for row in rows}
