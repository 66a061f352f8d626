"""Steps of a run, for any process: the intent is recorded, then the result; what is recorded is never done again.

Laws:
- A step belongs to the task that the run is at, or to the beat that it holds. An inbox run has none: it settles nothing
  that is tried again as one thing.
- A result is JSON that the store can keep, and is refused before the step is called done. A recorded one stays.
"""

from __future__ import annotations

import json
from typing import Any

from wakeful.control.base import Base
from wakeful.control.callers import Caller
from wakeful.control.rows import Row, listing
from wakeful.control.seeing import seen_task
from wakeful.control.task_rows import step_rows
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.wakes import Subject
from wakeful.core.wording import readable
from wakeful.store.protocol import Store

LONGEST_NAME = 255
LONGEST_RESULT = 1_000_000


class Checkpoints(Base):
    async def steps(self, caller: Caller, *, task: int | None = None) -> Row:
        """What is recorded of the task or beat of this run; for the operator, of any task."""

        def read(store: Store) -> Row:
            run, about = _whose(store, caller, task)
            found = store.steps(run, task=about) if run is not None else {}
            return {**listing(step_rows(found)), "task": about}

        return await self.access.read(read)

    async def save_step(
        self, caller: Caller, *, name: str, result: Any = None, begun: bool = False, task: int | None = None
    ) -> Row:
        """The result of a step; or, with `begun`, that it is about to be taken. What was recorded first is told."""
        now = self.clock()
        known = step_name(name)
        if begun and result is not None:
            raise Mistake("a step that is begun has no result yet", "send the one or the other")
        if caller.is_operator:
            raise Mistake("a step belongs to a run, and this is none", "call it in a run (save_step, wakeful step)")
        written = None if begun else written_result(json.dumps(result, ensure_ascii=False), name)
        run, about = await self.access.read(lambda store: _whose(store, caller, task))
        at, epoch = run or 0, caller.epoch or 0
        await self.access.write(lambda store: store.save_step(at, epoch, known, written, now, task=about))
        found = await self.access.read(lambda store: store.steps(at, task=about))
        (row,) = step_rows({known: found.get(known)})
        return {**row, "task": about}


def step_name(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_NAME:
        raise Mistake(f"expected the name of a step, of 1 to {LONGEST_NAME} characters", "name what it does")
    return readable(name, "the name of the step")


def written_result(result: str, name: str) -> str:
    """`result` is JSON."""
    if len(result.encode("utf-8", "surrogatepass")) > LONGEST_RESULT:
        raise Mistake(
            f"the result of step {name!r} takes more than {LONGEST_RESULT / 1e6:g} MB",
            "keep it in a file, and record the file's name",
        )
    return readable(result, f"the result of step {name!r}")


def _whose(store: Store, caller: Caller, task: int | None) -> tuple[int | None, int | None]:
    """The run whose steps they are, and the task; None for the beat."""
    if caller.is_operator:
        if task is None:
            raise Mistake("the steps of which task?", "name it by its number")
        attempts = store.attempts(seen_task(store, caller, task).id)
        return (attempts[-1].run if attempts else None), task
    row = store.run(caller.run or 0)
    if row is None:
        raise Unknown(f"no run {caller.run}")
    if task is not None and row.subject is not Subject.task and task in row.tasks:
        # One that the run took beside its subject.
        return row.id, task
    if row.subject is Subject.inbox:
        raise Mistake(
            "an inbox run keeps no steps", "add a task for what must not be done twice (add_task, wakeful task add)"
        )
    if row.subject is Subject.beat:
        if task is not None:
            raise Mistake(f"run {row.id} is about the beat, not about task {task}", "leave the task out")
        return row.id, None
    if task is None and len(row.tasks) != 1:
        raise Mistake(f"run {row.id} works on several tasks", "name the one that the step belongs to: --task NUMBER")
    about = row.tasks[0] if task is None else task
    if about not in row.tasks:
        raise Unknown(f"task {about} is not one of run {row.id}")
    return row.id, about
