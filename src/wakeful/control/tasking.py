"""Tasks: for an agent, for a role, or a one-off that is done at once; and looking at them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.control.base import bounded, find, readable
from wakeful.control.callers import Caller
from wakeful.control.moments import read_moment
from wakeful.control.requests import Requests, origin_of, reply, scoped
from wakeful.control.rows import Row, listing, task_row
from wakeful.control.tainted import TASK, must_have
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Kind, NewItem, Origin, Priority, State, read_priority
from wakeful.core.wakes import ONE_OFF, Cause, Subject, Wake
from wakeful.fleet.names import read_name
from wakeful.store.protocol import Store

LONGEST_TITLE = 80
MOST_RETRIES = 1_000


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
        if timeout is not None:
            raise Mistake("one run cannot have a timeout of its own", "set TIMEOUT on the agent in the fleet file")
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
        depends_on: list[int] | None = None,
        not_before: str | None = None,
        max_retries: int | None = None,
    ) -> Row:
        """A task for an agent, or for whoever has the role; an engine takes it as soon as somebody is free."""
        now = self.clock()
        await self.access.read(lambda store: must_have(store, caller, TASK))
        if (agent is None) == (role is None):
            raise Mistake("a task is for an agent or for a role", "name one of them, and only one")
        if not title.strip():
            raise Mistake("the task has no title", "say in a few words what is to be done")
        if max_retries is not None and not 0 <= max_retries <= MOST_RETRIES:
            raise Mistake(f"expected a number of retries, found {max_retries}", f"write one from 0 to {MOST_RETRIES}")
        zone = ZoneInfo("UTC")
        if agent is not None:
            target = await self.access.read(lambda store: find(store, agent))
            zone = ZoneInfo(target.first.agent.timezone)
        item = NewItem(
            kind=Kind.task,
            agent=agent,
            role=None if role is None else read_name(role, "a role"),
            sender=caller.name,
            origin=origin_of(caller),
            subject=readable(title, "the title"),
            body=_task_body(description, payload),
            priority=read_priority(priority),
            dedupe=scoped(caller, key),
            key=readable(causal_key, "the causal key") or None,
            not_before=None if not_before is None else read_moment(not_before, now, zone),
            depends_on=tuple(dict.fromkeys(depends_on or ())),
            tags=tuple(readable(tag, "a tag") for tag in tags or ()),
            max_retries=max_retries,
            by_run=caller.run,
        )
        recorded = (await self.access.write(lambda store: store.record([item], now)))[0]
        task = await self.access.read(lambda store: _task(store, recorded.id))
        return {**task, "duplicate": recorded.duplicate}

    async def tasks(
        self, caller: Caller, *, agent: str | None = None, state: str | None = None, after: int = 0, limit: int = 100
    ) -> Row:
        most = bounded(limit)
        if state is not None and state not in _TASK_STATES:
            raise Mistake(f"unknown state of tasks {state!r}", f"use one of {', '.join(_TASK_STATES)}")

        def read(store: Store) -> Row:
            names: Iterable[str | None] = [None] if agent is None else find(store, agent).names
            found = [
                item
                for name in names
                for item in store.items(agent=name, kind="task", state=state, after=after, limit=most + 1)
            ]
            items = sorted(found, key=lambda item: item.id)
            more = items[most - 1].id if len(items) > most else None
            return listing([task_row(item, store.attempts(item.id)) for item in items[:most]], more)

        return await self.access.read(read)

    async def task(self, caller: Caller, *, task: int) -> Row:
        def read(store: Store) -> Row:
            item = store.item(task)
            if item is None or item.kind is not Kind.task:
                raise Unknown(f"no task {task}")
            return task_row(item, store.attempts(task))

        return await self.access.read(read)


_TASK_STATES = tuple(state.value for state in State if state not in (State.open, State.closed))


def _first_line(prompt: str) -> str:
    line = prompt.strip().splitlines()[0]
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"


def _task_body(description: str, payload: Any) -> str:
    """What the run is given: a text for people and models, or JSON for a handler."""
    if payload is None:
        return readable(description, "the description")
    if description:
        raise Mistake("a task has one body, found a description and a payload", "put the one into the other")
    return readable(json.dumps(payload, ensure_ascii=False), "the payload")


def _task(store: Store, id: int) -> Row:
    item = store.item(id)
    assert item is not None
    return task_row(item, store.attempts(id))
