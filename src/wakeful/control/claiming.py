"""A run takes a task of its agent's queues for itself, and says of what it holds how it ended.

Laws:
- A run about a beat or its inbox is given one ready task at a time; a run about tasks has those that it was begun for.
- Whoever holds a task ends its attempt: completed, or failed and then tried again like any other. What it says nothing
  of ends with the run (see `core.settlement.left_behind`).
- Having nothing to do is an answer, with the reason; only a run can claim.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from wakeful.control.callers import Caller
from wakeful.control.queue import Queue
from wakeful.control.rows import Row
from wakeful.control.seeing import seen_task
from wakeful.control.takers import Takers, paused_words
from wakeful.control.task_rows import whole_task
from wakeful.core.errors import Ended, Mistake, Unknown
from wakeful.core.items import Item, State
from wakeful.core.runs import Ending, Result
from wakeful.core.wakes import Subject
from wakeful.store.protocol import Attempt, RunRow, Store, TaskEnd

NOTHING_READY = "no task of yours is ready"


class Claiming(Queue):
    async def claim_task(self, caller: Caller, *, task: int | None = None) -> Row:
        """A ready task of the agent's own queues, for this run; `held` are all that it has under way. Without a task
        that can be had, `task` is null and `reason` says why."""
        if caller.run is None:
            raise Mistake(
                "a task is claimed by a run, and this is none",
                "give it to an agent (add_task, wakeful task add), or end it (complete_task, wakeful task done)",
            )
        now, run, epoch = self.clock(), caller.run, caller.epoch or 0

        def known(store: Store) -> tuple[bool, Item | None]:
            """What it has already: all that it is about, or the one that it names."""
            wanted = None if task is None else seen_task(store, caller, task)
            row = _run(store, run)
            about = row.subject is Subject.task
            mine = [item for item in held(store, row) if wanted is None or item.id == wanted.id]
            return about, next(iter(mine), None) if about or wanted is not None else None

        about, item = await self.access.read(known)
        if item is None and not about:
            item = await self.access.write(lambda store: store.take_task(run, epoch, now, task=task))
        return await self.access.read(lambda store: self._claimed(store, caller, item, task, about))

    def _claimed(self, store: Store, caller: Caller, item: Item | None, task: int | None, about: bool) -> Row:
        row = _run(store, caller.run or 0)
        return {
            "task": None if item is None else self._told(store, caller, item),
            "held": [each.id for each in held(store, row)],
            "reason": self._why_none(store, caller, task, about) if item is None else None,
        }

    def _why_none(self, store: Store, caller: Caller, task: int | None, about: bool) -> str:
        if about:
            return "this run is about tasks of its own, and has none of that left: its next run takes what comes"
        agent = store.agent(caller.name)
        pause = None if agent is None else Takers(store, self.clock()).held(agent)
        if pause is not None:
            return f"{caller.name} is {paused_words(pause)}"
        if task is None:
            return NOTHING_READY
        item = seen_task(store, caller, task)
        if any(attempt.run == caller.run for attempt in store.attempts(task)):
            return f"this run has tried task {task} already: a later one may take it"
        told = self._waits(store, caller).of_one(item)
        return f"task {task} is {item.state}" + (f", and waits for {told}" if told else "")

    async def _ended_by_holder(self, caller: Caller, task: int, ending: Ending, result: str | None) -> Row | None:
        """None where it is not this run that has the task under way."""
        if caller.run is None:
            return None
        now, run, epoch = self.clock(), caller.run, caller.epoch or 0

        def write(store: Store) -> Row | None:
            item = seen_task(store, caller, task)
            attempt = _under_way(store, task, run)
            if attempt is None:
                return None
            if item.state is not State.in_progress:
                raise Ended(f"task {task} is {item.state}: it was taken from this run", "leave it as it is")
            end = TaskEnd(task=task, ending=_lasting(ending, attempt, now), result=result)
            store.finish_tasks(run, epoch, [end], now)
            return whole_task(store, item)

        before = await self.access.write(write)
        if before is None:
            return None
        return {**await self.task(caller, task=task), "was": before["state"], "removed": False}


def completed() -> Ending:
    return Ending(exit_code=0, result=Result(outcome="done"))


def given_up(reason: str, agent: str) -> Ending:
    return Ending(result=Result(outcome="failed", error=reason or f"given up by {agent}"))


def held(store: Store, run: RunRow) -> list[Item]:
    """The tasks that this run has under way, in the order of their numbers."""
    items = (store.item(task) for task in sorted(run.tasks))
    return [
        item
        for item in items
        if item is not None and item.state is State.in_progress and _under_way(store, item.id, run.id) is not None
    ]


def _under_way(store: Store, task: int, run: int) -> Attempt | None:
    found = (attempt for attempt in store.attempts(task) if attempt.run == run and attempt.ended_at is None)
    return next(found, None)


def _run(store: Store, run: int) -> RunRow:
    row = store.run(run)
    if row is None:
        raise Unknown(f"no run {run}")
    return row


def _lasting(ending: Ending, attempt: Attempt, now: datetime) -> Ending:
    """Since when the task was under way, not the run."""
    return replace(ending, elapsed=max(now - attempt.started_at, timedelta()))
