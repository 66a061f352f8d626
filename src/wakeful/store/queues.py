"""Tasks as they are found: page by page, by what they are and whose.

Law: a page costs what is on it, or what is open; what failed is found without what went well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from wakeful.core.items import PRIORITY_RANKS, Item, State, read_priority
from wakeful.store.base import SqlBase
from wakeful.store.inboxes import items_of
from wakeful.store.listing import LAST_ID, ids_of, page_of
from wakeful.store.protocol import Attempt, TaskFilter
from wakeful.store.recording import role_target
from wakeful.store.rows import to_attempt
from wakeful.store.session import Reading, Row

# What did not go well, and what is open: each has an index of its own.
_ASIDE = frozenset({State.dead_letter, State.blocked, State.failed, State.cancelled})
_OPEN = frozenset({State.pending, State.in_progress, State.failed, State.blocked})


# From the oldest on, and from the newest back.
_ALL = ("list_tasks", "latest_tasks")
_GONE_WRONG = ("aside_tasks", "latest_aside_tasks")
_QUEUED = ("queued_tasks", "latest_queued_tasks")
_UNENDED = ("open_tasks", "latest_open_tasks")


class Queues(SqlBase):
    def tasks(self, filter: TaskFilter, *, after: int = 0, before: int | None = None, limit: int = 100) -> list[Item]:
        reader = self.session.reader()
        asked = {**_asked(filter), "after": after, "before": LAST_ID if before is None else before, "limit": limit}
        found = {id for query, more in _ways(filter, before) for id in ids_of(reader.all(query, **asked, **more))}
        return list(items_of(reader, page_of(list(found), before, limit)).values())

    def attempts_of(self, tasks: Sequence[int]) -> dict[int, list[Attempt]]:
        found: dict[int, list[Attempt]] = {}
        for row in self.session.reader().all("attempts_of", tasks=json.dumps(list(tasks))):
            found.setdefault(row["item"], []).append(to_attempt(row))
        return found

    def count_tasks(self, filter: TaskFilter) -> dict[str, int]:
        return _counted(self.session.reader(), filter)

    def keyed_task(self, dedupe: str) -> Item | None:
        reader = self.session.reader()
        found = ids_of(reader.all("keyed_task", dedupe=dedupe))
        return next(iter(items_of(reader, found).values()), None)

    def dependencies(self, task: int) -> list[tuple[int, str]]:
        return [(row["id"], row["state"]) for row in self.session.reader().all("needed_by", item=task)]


def _ways(filter: TaskFilter, before: int | None) -> list[tuple[str, Row]]:
    """The queries that together find these, none of them more than a page; the shortest that there are."""
    end = 0 if before is None else 1
    states = frozenset(filter.states)
    if not states or State.completed in states:
        return [(_ALL[end], {})]
    ways: list[tuple[str, Row]] = [(_GONE_WRONG[end], {"state": state}) for state in sorted(states & _ASIDE)]
    if State.in_progress in states:
        ways.append(("held_tasks", {}))
    if State.pending in states:
        queues = [role_target(filter.role)] if filter.role and not filter.agents else filter.agents
        ways += [(_QUEUED[end], {"target": queue}) for queue in queues]
        ways += [] if queues else [(_UNENDED[end], {})]
    return ways


def _counted(reader: Reading, filter: TaskFilter) -> dict[str, int]:
    states = frozenset(filter.states)
    if filter == TaskFilter():
        # Asked again and again by whoever watches.
        return {row["state"]: row["tasks"] for row in reader.all("count_all_tasks") if row["tasks"]}
    query = "count_tasks"
    if states and states <= _ASIDE:
        query = "count_aside_tasks"
    elif states and states <= _OPEN:
        query = "count_open_tasks"
    return {row["state"]: row["tasks"] for row in reader.all(query, **_asked(filter))}


def _asked(filter: TaskFilter) -> Row:
    return {
        "states": json.dumps(filter.states) if filter.states else None,
        "agents": json.dumps(filter.agents) if filter.agents else None,
        "role": filter.role,
        "sender": filter.sender,
        "tag": filter.tag,
        "key": filter.key,
        "source": filter.source,
        "priority": None if filter.priority is None else PRIORITY_RANKS[read_priority(filter.priority)],
        "text": filter.text,
    }
