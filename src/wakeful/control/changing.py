"""What a person may do to tasks: call one done or failed, cancel it, take it up again, take it away; one, or many.

Laws:
- Each is one transition: what has ended stays as it ended. Only what is dead, failed or blocked is taken up again, and
  only what has ended is taken away.
- Many are changed a page at a time, each page in one transaction; what could not be changed is told, with its state.
  Without a filter nothing is meant, unless `all` says so.
- A run may end tasks that its own agent added, and the attempt at one that it holds (see `claiming`).
"""

from __future__ import annotations

from dataclasses import replace

from wakeful.control.base import bounded, numbered, storable
from wakeful.control.callers import Caller, Forbidden
from wakeful.control.claiming import Claiming, completed, given_up
from wakeful.control.queue import addressed, asked_for
from wakeful.control.rows import Row
from wakeful.control.seeing import added_by, seen_task
from wakeful.control.tainted import TASK, must_have
from wakeful.control.task_rows import whole_task
from wakeful.core.errors import Ended, Mistake
from wakeful.core.items import TERMINAL, Item, Kind, State
from wakeful.core.tasks import TASK_STATES
from wakeful.core.wording import quoted, readable
from wakeful.store.protocol import Store, TaskFilter

PAGE = 500

_ENDED = tuple(state for state in TASK_STATES if state in TERMINAL)
_OPEN = tuple(state for state in TASK_STATES if state not in TERMINAL)
# What each change is called in the store, and the states from which it leads anywhere.
CHANGES: dict[str, tuple[str, tuple[State, ...]]] = {
    "cancel": ("cancel", _OPEN),
    "retry": ("retry", (State.failed, State.blocked, State.dead_letter)),
    "done": ("complete", _OPEN),
    "fail": ("fail", _OPEN),
    "remove": ("remove", _ENDED),
}
_TO = {
    "cancel": State.cancelled,
    "retry": State.pending,
    "done": State.completed,
    "fail": State.dead_letter,
}


class Changing(Claiming):
    async def cancel_task(self, caller: Caller, *, task: int, reason: str = "") -> Row:
        """The task is nobody's any more; a worker that is at it is stopped."""
        return await self._changed(caller, task, "cancel", reason)

    async def retry_task(self, caller: Caller, *, task: int) -> Row:
        """The task is taken up again. Its attempts are counted anew; their history stays."""
        return await self._changed(caller, task, "retry")

    async def complete_task(self, caller: Caller, *, task: int, result: str | None = None) -> Row:
        """The task is done, whoever did it."""
        told = None if result is None else readable(result, "the result")
        ended = await self._ended_by_holder(caller, task, completed(), told)
        return ended or await self._changed(caller, task, "done", result=told)

    async def fail_task(self, caller: Caller, *, task: int, reason: str = "") -> Row:
        """Nobody is to try the task again: it is dead, with the reason. Of what a run holds the attempt ends, and the
        task is tried again like any other that failed."""
        ended = await self._ended_by_holder(caller, task, given_up(readable(reason, "the reason"), caller.name), None)
        return ended or await self._changed(caller, task, "fail", reason)

    async def remove_task(self, caller: Caller, *, task: int) -> Row:
        """The task is gone, and only the events tell of it."""
        return await self._changed(caller, task, "remove")

    async def replay(self, caller: Caller, *, task: int) -> Row:
        """A dead task is taken up again."""
        await self.access.read(lambda store: _must_be_dead(seen_task(store, caller, task)))
        return await self._changed(caller, task, "retry")

    async def discard(self, caller: Caller, *, task: int) -> Row:
        """A dead task is taken away."""
        await self.access.read(lambda store: _must_be_dead(seen_task(store, caller, task)))
        return await self._changed(caller, task, "remove")

    async def _changed(
        self, caller: Caller, task: int, change: str, reason: str = "", result: str | None = None
    ) -> Row:
        now = self.clock()
        why = readable(reason, "the reason")
        told = None if result is None else readable(result, "the result")

        def write(store: Store) -> Row:
            """As it stood before, and as it stands now; of what is gone, as it stood."""
            item = seen_task(store, caller, task)
            _may_change(store, caller, item)
            before = whole_task(store, item)
            store.change_task(task, CHANGES[change][0], caller.name, now, reason=why, result=told)
            return before

        before = await self.access.write(write)
        after = before if change == "remove" else await self.task(caller, task=task)
        return {**after, "was": before["state"], "removed": change == "remove"}

    async def change_tasks(
        self,
        caller: Caller,
        *,
        change: str,
        tasks: list[int] | None = None,
        all: bool = False,
        agent: str | None = None,
        role: str | None = None,
        state: list[str] | None = None,
        tag: str | None = None,
        causal_key: str | None = None,
        source: str | None = None,
        priority: str | None = None,
        text: str | None = None,
        reason: str = "",
        result: str | None = None,
        after: int = 0,
        until: int | None = None,
        limit: int = PAGE,
    ) -> Row:
        """Many tasks at once, a page at a time. `next` is where the next begins, `until` the last that is meant."""
        now, (word, from_states) = self.clock(), _change(change)
        why = readable(reason, "the reason")
        told = None if result is None else readable(result, "the result")
        if told is not None and change != "done":
            raise Mistake(f"a task that is to {change} has no result", "leave the result out")
        wanted = asked_for(role, state, tag, causal_key, source, priority, text)
        most = min(bounded(limit), PAGE)
        numbered("task", after=after, until=until)

        def read(store: Store) -> tuple[list[Item], list[int], int | None]:
            meant = addressed(store, agent, wanted)
            if tasks is not None:
                return _named(store, tasks, meant)
            if meant == TaskFilter() and not all:
                raise Mistake("which tasks?", "name them, or what they have in common; or say all")
            allowed = tuple(each for each in from_states if not meant.states or each in meant.states)
            if not allowed:
                return [], [], None
            page = store.tasks(replace(meant, states=allowed), after=after, limit=most + 1)
            inside = [item for item in page if until is None or item.id <= until]
            more = inside[most - 1].id if len(inside) > most else None
            return inside[:most], [], more

        items, missing, more = await self.access.read(read)
        ids = [item.id for item in items if not wanted.states or item.state in wanted.states]
        changed = (
            await self.access.write(
                lambda store: store.change_tasks(ids, word, caller.name, now, reason=why, result=told)
            )
            if ids
            else []
        )
        left = [item for item in items if item.id not in set(changed)]
        rest = await self.access.read(lambda store: [(item, _state_row(store, item.id)) for item in left])
        # What went where it was to go with another of them, as a dependent does, is not left behind.
        gone = [item.id for item, row in rest if row["state"] == _TO.get(change) != item.state]
        unchanged = [row for item, row in rest if item.id not in gone]
        return {
            "change": change,
            "changed": sorted([*changed, *gone]),
            "unchanged": [*unchanged, *map(_gone, missing)],
            "next": more,
        }


def _change(change: str) -> tuple[str, tuple[State, ...]]:
    if change not in CHANGES:
        raise Mistake(f"unknown change {quoted(change)}", f"use one of {', '.join(CHANGES)}")
    return CHANGES[change]


def _named(store: Store, tasks: list[int], wanted: TaskFilter) -> tuple[list[Item], list[int], None]:
    """Those that are there, and the numbers that no task has; of a filter only the state may be said beside them."""
    if wanted != TaskFilter(states=wanted.states):
        raise Mistake("found both tasks and what they have in common", "say one of them")
    if not tasks or len(tasks) > PAGE:
        raise Mistake(f"expected 1 to {PAGE} tasks, found {len(tasks):,}", "name them in several parts")
    found, missing = [], []
    for id in dict.fromkeys(tasks):
        item = store.item(id) if storable(id) else None
        if item is None or item.kind is not Kind.task:
            missing.append(id)
        else:
            found.append(item)
    return found, missing, None


def _state_row(store: Store, id: int) -> Row:
    item = store.item(id)
    return _gone(id) if item is None else {"id": id, "state": item.state.value, "why": item.error}


def _gone(id: int) -> Row:
    return {"id": id, "state": None, "why": None}


def _must_be_dead(item: Item) -> None:
    if item.state is not State.dead_letter:
        raise Ended(f"task {item.id} is {item.state}, not dead", "see wakeful task show, and wakeful task retry or rm")


def _may_change(store: Store, caller: Caller, item: Item) -> None:
    if caller.is_operator:
        return
    run = store.run(caller.run or 0)
    if run is not None and item.id in run.tasks:
        if item.state in TERMINAL:
            raise Ended(f"task {item.id} is {item.state} already", "a task ends once")
        raise Ended(
            f"task {item.id} is one that this run holds or held",
            "complete it, or say that it failed, while the run is at it",
        )
    if not added_by(store, caller.name, item):
        raise Forbidden(f"{caller.name} may end tasks that it added itself, and task {item.id} is not one of them")
    must_have(store, caller, TASK)
