"""An agent's messages: looked at, marked read, put off, and those that nobody ever dealt with.

Laws:
- A message closes with the outcome of a run that saw it; whoever marks it read says that no run is needed. What mirrors
  a file or a list closes where it came from, never here.
- A run reads, marks and snoozes what is addressed to its own agent; of anything else it does not learn that it exists.
- To ask twice changes nothing more: what is closed stays closed, and is told as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from wakeful.control.base import LONGEST_LIST, Base, Target, bounded, chosen, find, must_be_own, numbered, storable
from wakeful.control.callers import Caller
from wakeful.control.messages import FOLDER, message_rows
from wakeful.control.rows import Row, listing
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Item, Kind, MessageType, read_priority
from wakeful.core.moments import read_end, read_instant
from wakeful.store.protocol import Store, StuckRow

_MOST_STUCK = 10_000


class Inbox(Base):
    async def inbox(
        self,
        caller: Caller,
        *,
        agent: str,
        state: str = "open",
        sender: str | None = None,
        type: str | None = None,
        priority: str | None = None,
        thread: int | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> Row:
        """The agent's messages. Oldest first; with `before`, the newest ones before it, newest first. `priority` is the
        least one."""
        most, now = bounded(limit), self.clock()
        numbered("message", after=after)
        for name, number in (("thread", thread), ("before", before)):
            if number is not None and not storable(number):
                raise Mistake(f"expected the number of a message as {name}, found {number!r}", "leave it out")
        if state not in ("open", "closed", "all"):
            raise Mistake(f"unknown state of messages {state!r}", "use open, closed or all")
        wanted = {
            "kind": "message",
            "state": None if state == "all" else state,
            "sender": sender,
            "type": None if type is None else chosen(type, MessageType, "type of message").value,
            "priority": None if priority is None else read_priority(priority).value,
            "thread": thread,
        }
        span = {"after": after, "before": before, "limit": most + 1}

        def read(store: Store) -> Row:
            target = find(store, agent)
            must_be_own(caller, target, "the inbox")
            found = [item for name in target.names for item in store.items(agent=name, **wanted, **span)]  # type: ignore[arg-type]
            items = sorted(found, key=lambda item: item.id, reverse=before is not None)
            more = items[most - 1].id if len(items) > most else None
            return listing(message_rows(store, items[:most], now), more)

        return await self.access.read(read)

    async def mark_read(self, caller: Caller, *, agent: str, messages: list[int]) -> Row:
        """These messages need no run any more."""
        now = self.clock()
        _, ids = await self.access.read(lambda store: _named(store, caller, agent, messages))
        changed = await self.access.write(lambda store: store.mark_read(ids, caller.name, now))
        return await self.access.read(lambda store: _changed(store, ids, changed, now))

    async def snooze(self, caller: Caller, *, agent: str, messages: list[int], until: str) -> Row:
        """Puts messages out of sight until then; they ring when it comes."""
        now = self.clock()
        target, ids = await self.access.read(lambda store: _named(store, caller, agent, messages))
        moment = read_end(until, now, ZoneInfo(target.first.agent.timezone))
        changed = await self.access.write(lambda store: store.snooze(ids, moment, caller.name, now))
        told = await self.access.read(lambda store: _changed(store, ids, changed, now))
        return {**told, "until": write_time(moment)}

    async def stuck(self, caller: Caller, *, agent: str | None = None, after: str = "", limit: int = 100) -> Row:
        """What was put before runs that ended, and is still there, the longest first."""
        most, now, behind = bounded(limit), self.clock(), _read_place(after)

        def read(store: Store) -> Row:
            names: Iterable[str | None] = [None] if agent is None else find(store, agent).names
            # There are few, unless something is very wrong; then the first are as good as any.
            looked_at = most + 1 if behind is None else _MOST_STUCK
            found = [row for name in names for row in store.stuck(agent=name, limit=looked_at)]
            rows = [row for row in sorted(found, key=_place) if behind is None or _place(row) > behind]
            told = message_rows(store, [row.item for row in rows[:most]], now)
            listed = [{**row, **_stuck_row(stuck)} for row, stuck in zip(told, rows, strict=False)]
            more = len(rows) > most
            return {**listing(listed, _written_place(rows[most - 1]) if more else None), "more": more}

        return await self.access.read(read)


def _named(store: Store, caller: Caller, agent: str, messages: list[int]) -> tuple[Target, list[int]]:
    target = find(store, agent)
    must_be_own(caller, target, "the inbox")
    if not messages or len(messages) > LONGEST_LIST:
        raise Mistake(f"expected 1 to {LONGEST_LIST:,} messages, found {len(messages):,}", "name them by their numbers")
    for id in messages:
        item = store.item(id) if storable(id) else None
        if item is None or item.kind is not Kind.message or item.agent not in target.names:
            raise Unknown(f"no message {id} in the inbox of {target.name}")
    return target, list(dict.fromkeys(messages))


def _changed(store: Store, ids: list[int], changed: list[int], now: datetime) -> Row:
    """Each of them as it stands now, in the order in which they were named."""
    after = [item for id in ids if (item := store.item(id)) is not None]
    return {"changed": sorted(changed), **listing(message_rows(store, after, now))}


def _place(row: StuckRow) -> tuple[datetime, int]:
    return row.first_shown_at, row.item.id


def _written_place(row: StuckRow) -> str:
    return f"{write_time(row.first_shown_at)}/{row.item.id}"


def _read_place(after: str) -> tuple[datetime, int] | None:
    if not after:
        return None
    instant, _, id = after.partition("/")
    if not id.isascii() or not id.isdigit() or len(id) > 19:
        raise Mistake("expected where a page ended as after", "write the `next` of the page before, or leave it out")
    return read_instant(instant), int(id)


def _stuck_row(row: StuckRow) -> Row:
    return {
        "since": write_time(row.first_shown_at),
        "runs": row.runs,
        "last_run": row.last_run,
        "external_id": row.item.external_id,
        "advice": _advice(row.item),
    }


def _advice(item: Item) -> str:
    later = f"snooze it: wakeful inbox {item.agent} --snooze {item.id} --until 2h"
    if item.external_id is None:
        return f"mark it read: wakeful inbox {item.agent} --read {item.id}; or {later}"
    if item.source == FOLDER:
        return f"remove or change the file {item.external_id or item.subject}; or {later}"
    return f"settle {item.external_id or item.subject} where it comes from ({item.source}); or {later}"
