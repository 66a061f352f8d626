"""Tasks are added here: for an agent, for a role, or a one-off that is done at once.

Laws:
- What is said of a task is read by `core.tasks`, whoever says it; here it gets its sender, and its sender's keys.
- A batch is recorded whole or not at all, and a mistake in it is told with its place.
- A run gives nobody more retries or a longer timeout than that one has, and depends on what it may see.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from wakeful.control.callers import Caller, Forbidden
from wakeful.control.noting import note_act
from wakeful.control.requests import Requests, origin_of, reply
from wakeful.control.rows import Row, listing
from wakeful.control.seeing import found_task, keys_of, seen_task
from wakeful.control.tainted import TASK, must_have
from wakeful.control.takers import Takers, nobody_takes
from wakeful.control.task_rows import added_task, whole_task
from wakeful.core.durations import read_duration
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Kind, NewItem, Origin, Priority, State
from wakeful.core.tasks import Sender, read_key, read_task
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
        said: dict[str, Any] = {"agent": agent, "prompt": prompt, "title": title, "timeout": timeout, "key": key}
        return await self.one_off(caller, sender=caller.name, origin=Origin.operator, **said)

    async def one_off(
        self,
        caller: Caller,
        *,
        sender: str,
        origin: Origin,
        agent: str,
        prompt: str,
        title: str | None,
        timeout: str | None,
        key: str | None,
        act: str | None = None,
    ) -> Row:
        if not prompt.strip():
            raise Mistake("the prompt is empty", "say what the agent is to do")
        now = self.clock()
        item = NewItem(
            kind=Kind.task,
            agent=agent,
            sender=sender,
            origin=origin,
            subject=readable(title, "the title") or first_line(prompt),
            body=readable(prompt, "the prompt"),
            priority=Priority.high,
            max_retries=0,
            timeout=None if timeout is None else read_duration(timeout.strip()),
            source=ONE_OFF,
            dedupe=await self._key(caller, key),
        )
        wake = Wake(
            agent=agent,
            cause=Cause.task,
            subject=Subject.task,
            requested_at=now,
            sender=sender,
            source=ONE_OFF,
        )
        answer = await self._asked(wake, item, now, act)
        return {"task_id": answer.item, **reply(answer, caller, task=True)}

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

        def read(store: Store) -> tuple[NewItem, str | None]:
            must_have(store, caller, TASK)
            adding = _Adding(store, caller, now)
            item = adding.read(fields)
            return item, adding.warning(item)

        item, warning = await self.access.read(read)
        (recorded,) = await self.access.write(lambda store: _record(store, caller, [item], now))
        if _is_free(item, recorded):
            return {**added_task(item, recorded.id, now), "duplicate": False, "warning": warning}
        task = await self.access.read(lambda store: whole_task(store, found_task(store, recorded.id)))
        return {**task, "duplicate": recorded.duplicate, "warning": warning}

    async def add_tasks(self, caller: Caller, *, tasks: list[dict[str, Any]], key: str | None = None) -> Row:
        """Many at once, each as in `add_task`. They may depend on one another by their keys, in any order. With `key`
        those that have none of their own get one from it, by their place."""
        if not tasks or len(tasks) > MOST_AT_ONCE:
            raise Mistake(f"expected 1 to {MOST_AT_ONCE:,} tasks, found {len(tasks):,}", "send them in several parts")
        now, whole = self.clock(), read_key(key)

        def read(store: Store) -> tuple[list[NewItem], list[str | None]]:
            must_have(store, caller, TASK)
            adding = _Adding(store, caller, now)
            items = [_placed(adding, _keyed(fields, whole, place), place) for place, fields in enumerate(tasks, 1)]
            return items, [adding.warning(item) for item in items]

        items, warnings = await self.access.read(read)
        recorded = await self.access.write(lambda store: _record(store, caller, items, now))
        return await self.access.read(lambda store: listing(_told(store, items, recorded, warnings)))


def _record(store: Store, caller: Caller, items: list[NewItem], now: datetime) -> list[Recorded]:
    recorded = store.record(items, now)
    new = [known.id for known in recorded if not known.duplicate]
    if len(new) == 1 and len(items) == 1:
        note_act(store, caller, "add_task", now, agent=items[0].agent, item=new[0])
    elif new:
        note_act(store, caller, "add_tasks", now, tasks=len(new), first=new[0], last=new[-1])
    return recorded


class _Adding:
    """Tasks as one caller writes them; what several need to know is looked up once."""

    def __init__(self, store: Store, caller: Caller, now: datetime) -> None:
        self._store, self._caller, self._now = store, caller, now
        self._takers = Takers(store, now)
        self._sender = Sender(caller.name, origin_of(caller), caller.run, scope=keys_of(store, caller))

    def read(self, fields: dict[str, Any]) -> NewItem:
        by_run = not self._caller.is_operator
        if by_run and isinstance(fields, dict) and "past" in fields:
            raise Forbidden(f"{self._caller.name} may not say what became of a task elsewhere: only the operator may")
        agent = fields.get("agent") if isinstance(fields, dict) else None
        item = read_task(fields, self._now, self._sender, self._takers.zone(agent), past=not by_run)
        if by_run:
            self._takers.must_bear(item)
            for task in item.depends_on:
                seen_task(self._store, self._caller, task)
        return item

    def warning(self, item: NewItem) -> str | None:
        return nobody_takes(self._takers.nobody(item.agent, item.role))


def _keyed(fields: dict[str, Any], key: str | None, place: int) -> dict[str, Any]:
    """A batch that is sent again finds each of its tasks."""
    own = not isinstance(fields, dict) or fields.get("key") is not None
    return fields if key is None or own else {**fields, "key": f"{key}/{place}"}


def _placed(adding: _Adding, fields: dict[str, Any], place: int) -> NewItem:
    try:
        return adding.read(fields)
    except Mistake as mistake:
        raise Mistake(f"task {place} of the batch: {mistake.reason}", mistake.remedy) from None
    except Unknown as unknown:
        raise Unknown(f"task {place} of the batch: {unknown}") from None


def _is_free(item: NewItem, recorded: Recorded) -> bool:
    """Whether it was recorded as it was said, and is pending; of any other the store knows how it stands."""
    return not (recorded.duplicate or item.depends_on or item.needs or item.past or item.by_run)


def _told(store: Store, items: list[NewItem], recorded: list[Recorded], warnings: list[str | None]) -> list[Row]:
    rows = []
    for item, known, warning in zip(items, recorded, warnings, strict=True):
        state = State.pending if _is_free(item, known) else found_task(store, known.id).state
        rows.append({"id": known.id, "state": state.value, "duplicate": known.duplicate, "warning": warning})
    return rows


def first_line(prompt: str) -> str:
    line = prompt.strip().splitlines()[0]
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"
