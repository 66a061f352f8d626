"""The queue looked at: tasks by what is known of them, one task whole, what is dead, and how many there are.

Law: a run sees the tasks that its agent added and those that are addressed to its agent or to one of its roles; of
anything else it does not learn that it exists.
"""

from __future__ import annotations

from dataclasses import replace

from wakeful.control.base import Base, Target, bounded, find, storable
from wakeful.control.callers import Caller
from wakeful.control.rows import Row, listing
from wakeful.control.task_rows import listed_task, whole_task
from wakeful.control.tasking import found_task
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Item, Kind, Origin, State, read_priority
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
        """Oldest first; with `before`, the newest ones before it, newest first."""
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
        if before is not None and not storable(before):
            raise Mistake(f"expected the number of a task as before, found {before!r}", "leave it out")

        def read(store: Store) -> Row:
            found = {
                item.id: item
                for each in _seen_by(store, caller, addressed(store, agent, wanted))
                for item in store.tasks(each, after=after, before=before, limit=most + 1)
            }
            items = [found[id] for id in sorted(found, reverse=before is not None)]
            more = items[most - 1].id if len(items) > most else None
            return listing([listed_task(store, item) for item in items[:most]], more)

        return await self.access.read(read)

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
        return await self.access.read(lambda store: whole_task(store, seen_task(store, caller, task)))

    async def keyed_task(self, caller: Caller, *, message_id: str) -> Row:
        """The task that was added under that key: the caller's own, or for the operator any, as it is kept."""

        def read(store: Store) -> Row:
            key = read_key(message_id) or ""
            item = store.keyed_task(scoped_key(caller.name, key))
            if item is None and caller.is_operator:
                item = store.keyed_task(key)
            if item is None:
                raise Unknown(f"no task was added under the key {quoted(message_id)}")
            return whole_task(store, seen_task(store, caller, item.id))

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


def seen_task(store: Store, caller: Caller, task: int) -> Item:
    item = found_task(store, task) if storable(task) else None
    if item is None or not (caller.is_operator or _may_see(find(store, caller.name), item)):
        raise Unknown(f"no task {task}")
    return item


def _may_see(target: Target, item: Item) -> bool:
    mine = item.agent in target.names or item.role in target.first.agent.roles
    return item.kind is Kind.task and (mine or added_by(target.first.agent.name, item))


def added_by(agent: str, item: Item) -> bool:
    return item.origin is Origin.agent and item.sender == agent
