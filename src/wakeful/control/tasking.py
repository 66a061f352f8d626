"""Tasks are added here: for an agent, for a role, or a one-off that is done at once.

Laws:
- What is said of a task is read by `core.tasks`, whoever says it; here it gets its sender, and its sender's keys.
- A batch is recorded whole or not at all, and a mistake in it is told with its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.control.base import find
from wakeful.control.callers import Caller, Forbidden
from wakeful.control.requests import Requests, origin_of, reply, scoped
from wakeful.control.rows import Row, listing
from wakeful.control.tainted import TASK, must_have
from wakeful.control.task_rows import added_task, whole_task
from wakeful.core.durations import read_duration
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Item, Kind, NewItem, Origin, Priority, State
from wakeful.core.tasks import UTC_ZONE, Sender, read_task
from wakeful.core.wakes import ONE_OFF, Cause, Subject, Wake
from wakeful.core.wording import readable
from wakeful.store.protocol import Recorded, Store

LONGEST_TITLE = 80
MOST_AT_ONCE = 1_000


class Tasking(Requests):
    async def run(
        self,
        caller: Caller,
        *,
        agent: str,
        prompt: str,
        title: str | None = None,
        timeout: str | None = None,
        key: str | None = None,
    ) -> Row:
        """A one-off: a task without retries, on the same path as everything else. It never moves the position."""
        if not prompt.strip():
            raise Mistake("the prompt is empty", "say what the agent is to do")
        now = self.clock()
        item = NewItem(
            kind=Kind.task,
            agent=agent,
            sender=caller.name,
            origin=Origin.operator,
            subject=readable(title, "the title") or _first_line(prompt),
            body=readable(prompt, "the prompt"),
            priority=Priority.high,
            max_retries=0,
            timeout=None if timeout is None else read_duration(timeout.strip()),
            source=ONE_OFF,
            dedupe=scoped(caller, key),
        )
        wake = Wake(
            agent=agent,
            cause=Cause.task,
            subject=Subject.task,
            requested_at=now,
            sender=caller.name,
            source=ONE_OFF,
        )
        answer = await self._asked(wake, item, now)
        return {"task_id": answer.item, **reply(answer, caller), "message_id": None}

    async def add_task(
        self,
        caller: Caller,
        *,
        title: str,
        agent: str | None = None,
        role: str | None = None,
        description: str = "",
        payload: Any = None,
        priority: str = "normal",
        tags: list[str] | None = None,
        key: str | None = None,
        causal_key: str | None = None,
        depends_on: list[int | str] | None = None,
        not_before: str | None = None,
        max_retries: int | None = None,
        timeout: str | None = None,
    ) -> Row:
        """A task for an agent, or for whoever has the role; an engine takes it as soon as somebody is free."""
        fields = {
            "title": title,
            "agent": agent,
            "role": role,
            "description": description,
            "payload": payload,
            "priority": priority,
            "tags": tags,
            "key": key,
            "causal_key": causal_key,
            "depends_on": depends_on,
            "not_before": not_before,
            "max_retries": max_retries,
            "timeout": timeout,
        }
        now = self.clock()

        def read(store: Store) -> NewItem:
            must_have(store, caller, TASK)
            return _read(store, caller, fields, now, Zones())

        item = await self.access.read(read)
        (recorded,) = await self.access.write(lambda store: store.record([item], now))
        if _is_free(item, recorded):
            return {**added_task(item, recorded.id, now), "duplicate": False}
        task = await self.access.read(lambda store: whole_task(store, found_task(store, recorded.id)))
        return {**task, "duplicate": recorded.duplicate}

    async def add_tasks(self, caller: Caller, *, tasks: list[dict[str, Any]]) -> Row:
        """Many at once, each as in `add_task`. They may depend on one another by their keys, in any order."""
        if not tasks or len(tasks) > MOST_AT_ONCE:
            raise Mistake(f"expected 1 to {MOST_AT_ONCE:,} tasks, found {len(tasks):,}", "send them in several parts")
        now, zones = self.clock(), Zones()

        def read(store: Store) -> list[NewItem]:
            must_have(store, caller, TASK)
            return [_placed(store, caller, fields, now, zones, place) for place, fields in enumerate(tasks, 1)]

        items = await self.access.read(read)
        recorded = await self.access.write(lambda store: store.record(items, now))
        return await self.access.read(lambda store: listing(_told(store, items, recorded)))


@dataclass(slots=True)
class Zones:
    """The time zones of agents, each looked up once."""

    known: dict[str, ZoneInfo]

    def __init__(self) -> None:
        self.known = {}

    def of(self, store: Store, agent: object) -> ZoneInfo:
        if not isinstance(agent, str):
            return UTC_ZONE
        if agent not in self.known:
            self.known[agent] = ZoneInfo(find(store, agent).first.agent.timezone)
        return self.known[agent]


def _read(store: Store, caller: Caller, fields: dict[str, Any], now: datetime, zones: Zones) -> NewItem:
    if not caller.is_operator and isinstance(fields, dict) and "past" in fields:
        raise Forbidden(f"{caller.name} may not say what became of a task elsewhere: only the operator may")
    agent = fields.get("agent") if isinstance(fields, dict) else None
    sender = Sender(caller.name, origin_of(caller), caller.run)
    return read_task(fields, now, sender, zones.of(store, agent), past=caller.is_operator)


def _placed(store: Store, caller: Caller, fields: dict[str, Any], now: datetime, zones: Zones, place: int) -> NewItem:
    try:
        return _read(store, caller, fields, now, zones)
    except Mistake as mistake:
        raise Mistake(f"task {place} of the batch: {mistake.reason}", mistake.remedy) from None
    except Unknown as unknown:
        raise Unknown(f"task {place} of the batch: {unknown}") from None


def _is_free(item: NewItem, recorded: Recorded) -> bool:
    """Whether it was recorded as it was said, and is pending; of any other the store knows how it stands."""
    return not (recorded.duplicate or item.depends_on or item.needs or item.past or item.by_run)


def _told(store: Store, items: list[NewItem], recorded: list[Recorded]) -> list[Row]:
    rows = []
    for item, known in zip(items, recorded, strict=True):
        state = State.pending if _is_free(item, known) else found_task(store, known.id).state
        rows.append({"id": known.id, "state": state.value, "duplicate": known.duplicate})
    return rows


def found_task(store: Store, task: int) -> Item:
    item = store.item(task)
    if item is None or item.kind is not Kind.task:
        raise Unknown(f"no task {task}")
    return item


def _first_line(prompt: str) -> str:
    line = prompt.strip().splitlines()[0]
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"
