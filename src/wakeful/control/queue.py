"""The queue looked at: tasks by what is known of them, one task whole, what is dead, and how many there are.

Laws:
- A run is told of what it may see (see `seeing`), and of nothing else.
- A page costs a few reads, however many tasks are on it.
"""

from __future__ import annotations

from dataclasses import replace

from wakeful.control.base import Base, bounded, find, numbered
from wakeful.control.callers import Caller
from wakeful.control.rows import Row, listing
from wakeful.control.seeing import is_seen, keys_of, may_see, seen_task
from wakeful.control.task_rows import listed_task, whole_task
from wakeful.control.waiting import Waits
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Item, State, read_priority
from wakeful.core.tasks import TASK_STATES, read_key, scoped_key
from wakeful.core.wording import quoted, readable
from wakeful.store.protocol import Store, TaskFilter


class Queue(Base):
    async def tasks(
        self,
        caller: Caller,
        *,
        agent: str | None = None,
        role: str | None = None,
        state: list[str] | None = None,
        tag: str | None = None,
        causal_key: str | None = None,
        source: str | None = None,
        priority: str | None = None,
        text: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> Row:
        """The queue. Oldest first; with `before`, the newest ones before it, newest first."""
        wanted = asked_for(role, state, tag, causal_key, source, priority, text)
        return await self._listed(caller, agent, wanted, after, before, limit)

    async def dead(
        self,
        caller: Caller,
        *,
        agent: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        causal_key: str | None = None,
        source: str | None = None,
        priority: str | None = None,
        text: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> Row:
        """The tasks that were given up, each with its last error; their history is with the task."""
        wanted = asked_for(role, [State.dead_letter], tag, causal_key, source, priority, text)
        return await self._listed(caller, agent, wanted, after, before, limit)

    async def _listed(
        self, caller: Caller, agent: str | None, wanted: TaskFilter, after: int, before: int | None, limit: int
    ) -> Row:
        most = bounded(limit)
        numbered("task", after=after, before=before)

        def read(store: Store) -> Row:
            found = {
                item.id: item
                for each in _seen_by(store, caller, addressed(store, agent, wanted))
                for item in store.tasks(each, after=after, before=before, limit=most + 1)
            }
            items = [found[id] for id in sorted(found, reverse=before is not None)]
            more = items[most - 1].id if len(items) > most else None
            page = items[:most]
            if not caller.is_operator:
                own = find(store, caller.name)
                page = [item for item in page if is_seen(store, own, item)]
            tries = store.attempts_of([item.id for item in page])
            waits = self._waits(store, caller).of(page)
            return listing([listed_task(item, tries.get(item.id, []), waits[item.id]) for item in page], more)

        return await self.access.read(read)

    def _waits(self, store: Store, caller: Caller) -> Waits:
        up = self.beside is not None or bool(self.nodes_up(store))
        seen = None if caller.is_operator else lambda item: may_see(store, caller, item)
        return Waits(store, self.clock(), up=up, may_see=seen)

    def _told(self, store: Store, caller: Caller, item: Item) -> Row:
        """One task whole, with what it waits for."""
        return {**whole_task(store, item), "waiting_for": self._waits(store, caller).of_one(item)}

    async def count_tasks(
        self,
        caller: Caller,
        *,
        agent: str | None = None,
        role: str | None = None,
        state: list[str] | None = None,
        tag: str | None = None,
        causal_key: str | None = None,
        source: str | None = None,
        priority: str | None = None,
        text: str | None = None,
    ) -> Row:
        """How many there are in each state."""
        wanted = asked_for(role, state, tag, causal_key, source, priority, text)
        found = await self.access.read(lambda store: store.count_tasks(addressed(store, agent, wanted)))
        counts = {word.value: found[word.value] for word in TASK_STATES if found.get(word.value)}
        return {"counts": counts, "total": sum(counts.values())}

    async def task(self, caller: Caller, *, task: int) -> Row:
        """One task whole: its attempts, what it depends on, its steps, and why it waits."""
        return await self.access.read(lambda store: self._told(store, caller, seen_task(store, caller, task)))

    async def keyed_task(self, caller: Caller, *, message_id: str) -> Row:
        """The task that was added under that key: the caller's own, or for the operator any, as it is kept."""

        def read(store: Store) -> Row:
            key = read_key(message_id)
            own = [scoped_key(scope, key) for scope in dict.fromkeys((keys_of(store, caller), caller.name))]
            names = [*own, key] if caller.is_operator else own
            item = next((found for name in names if (found := store.keyed_task(name)) is not None), None)
            if item is None:
                raise Unknown(f"no task was added under the key {quoted(message_id)}")
            return self._told(store, caller, item)

        return await self.access.read(read)


# ---- which tasks


def asked_for(
    role: str | None,
    state: list[str] | None,
    tag: str | None,
    causal_key: str | None,
    source: str | None,
    priority: str | None,
    text: str | None,
) -> TaskFilter:
    for word in state or ():
        if word not in TASK_STATES:
            raise Mistake(f"unknown state of tasks {quoted(str(word))}", f"use one of {', '.join(TASK_STATES)}")
    return TaskFilter(
        role=readable(role, "the role") or None,
        states=tuple(dict.fromkeys(str(word) for word in state or ())),
        tag=readable(tag, "the tag") or None,
        key=readable(causal_key, "the causal key") or None,
        source=readable(source, "the source") or None,
        priority=None if priority is None else read_priority(priority).value,
        text=readable(text, "the text") or None,
    )


def addressed(store: Store, agent: str | None, wanted: TaskFilter) -> TaskFilter:
    """An agent's own tasks, and those of the address that it shares."""
    return wanted if agent is None else replace(wanted, agents=tuple(sorted(find(store, agent).names)))


def _seen_by(store: Store, caller: Caller, wanted: TaskFilter) -> list[TaskFilter]:
    """The same question, put so that only what a run may see is found."""
    if caller.is_operator:
        return [wanted]
    target = find(store, caller.name)
    asked = [replace(wanted, sender=caller.name)]
    own = target.names & set(wanted.agents) if wanted.agents else target.names
    if own and wanted.role is None:
        asked.append(replace(wanted, agents=tuple(sorted(own))))
    if not wanted.agents:
        asked += [replace(wanted, role=role) for role in target.first.agent.roles if wanted.role in (None, role)]
    return asked
