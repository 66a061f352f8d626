"""What depends on a task: it goes on when that is completed, and is blocked when it never will be.

Laws:
- What depends, directly or not, on a task that is dead, cancelled, parked or removed is blocked, and names what it
  waits for.
- Once nothing that it needs is in the way any more, what was blocked for that is taken up again, and so on down.
- What waited for another one stands in line from when it no longer does.
- Of one key only the oldest that is open is not `behind`. What is not may be offered, and is looked at again before it
  begins; so nobody who frees a key misses one that another adds to it, or frees.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import HEAD_START, TERMINAL, NewItem, State
from wakeful.core.tasks import spoken_key
from wakeful.store.base import SqlBase
from wakeful.store.protocol import Recorded
from wakeful.store.rows import to_micros
from wakeful.store.session import Row

# How it begins to say so; what is blocked for another reason is not taken up with what it needs.
NEEDS = "depends on task "

# What needs one of these waits for ever.
NEVER = frozenset({State.cancelled, State.dead_letter, State.blocked})

# What has been removed leaves no row to name.
REMOVED = "removed"


class Depending(SqlBase):
    def tasks_closed(self, tasks: Sequence[tuple[int, State]], now: datetime) -> None:
        """These have ended, or are parked."""
        # A dead task may be taken up again: then a step that is recorded is not done again.
        over = [item for item, state in tasks if state in TERMINAL and state is not State.dead_letter]
        if over:
            self.session.write("forget_task_steps", tasks=json.dumps(over))
        done = {item for item, state in tasks if state is State.completed}
        never = [(item, state.value) for item, state in tasks if state in NEVER]
        waiting = self.needed([*done, *(item for item, _ in never)]) if done or never else []
        freed = [row for row in waiting if row["needs"] in done]
        self.session.many("free_dependent", [{"item": row["item"], **_standing(now)} for row in freed])
        if any(row["state"] == State.blocked for row in freed):
            self.free_dependents(sorted(done), now)
        if len(freed) < len(waiting):
            self.block_dependents(never)

    def needed(self, tasks: Iterable[int]) -> list[Row]:
        """Those that depend on one of these."""
        return self.session.all("dependents", tasks=json.dumps(sorted(tasks)))

    def block_dependents(self, tasks: Sequence[tuple[int, str]]) -> None:
        """These are in the way of what depends on them, and that of what depends on it."""
        while tasks:
            states = dict(tasks)
            held = {row["item"]: row["needs"] for row in self.needed(states) if row["state"] in ("pending", "failed")}
            errors = {item: f"{NEEDS}{needs}, which is {states[needs]}" for item, needs in held.items()}
            self.session.many("block_task", [{"item": item, "error": error} for item, error in errors.items()])
            tasks = [(item, State.blocked.value) for item in held]

    def task_removed(self, task: int, state: State) -> None:
        """What went on when it was completed goes on; what waits for it in vain names it as it is now."""
        if state is State.completed:
            return
        error = f"{NEEDS}{task}, which is {REMOVED}"
        held = [row["item"] for row in self.needed([task]) if row["state"] == State.blocked]
        self.session.many("retell_block", [{"item": item, "was": f"{NEEDS}%", "error": error} for item in held])

    def free_dependents(self, tasks: Sequence[int], now: datetime) -> None:
        """These are no longer in the way."""
        while tasks:
            held = {row["item"] for row in self.needed(tasks) if row["state"] == State.blocked}
            if not held:
                return
            asked = {"tasks": json.dumps(sorted(held)), "needs": f"{NEEDS}%", "removed": f"%{REMOVED}"}
            tasks = [row["id"] for row in self.session.all("to_unblock", **asked)]
            self.session.many("unblock_task", [{"item": item, **_standing(now)} for item in tasks])

    def hold_keys(self, keys: Collection[str], *, shared: bool = False) -> None:
        """Until the commit nobody else closes a task of these; nor adds one, unless it is `shared`."""

    def free_keys(self, keys: Collection[str]) -> None:
        """Whatever is now the first of these is no longer behind another one."""
        self.session.many("free_keys", [{"key": key} for key in sorted(keys)])

    def depend(self, items: Sequence[NewItem], recorded: Sequence[Recorded]) -> None:
        """What is new among these waits for what it needs: tasks that are known, or others of these, by their keys."""
        fresh = [
            (answer.id, item)
            for item, answer in zip(items, recorded, strict=True)
            if (item.depends_on or item.needs) and not answer.duplicate
        ]
        if not fresh:
            return
        keys = {item.dedupe: answer.id for item, answer in zip(items, recorded, strict=True) if item.dedupe is not None}
        keys.update(self._keyed({key for _, item in fresh for key in item.needs if key not in keys}))
        rows = []
        for id, item in fresh:
            needs = {*item.depends_on, *(keys[key] for key in item.needs)}
            rows += [{"item": id, "needs": need} for need in sorted(needs)]
        states = self._states({row["needs"] for row in rows})
        self.session.many("put_dependency", rows)
        self.session.many("count_needs", [{"item": id} for id, _ in fresh])
        self.block_dependents([(need, state) for need, state in states.items() if state in NEVER])

    def _keyed(self, keys: set[str]) -> dict[str, int]:
        found = {row["dedupe"]: row["id"] for row in self.items_known_by(sorted(keys)) if row["kind"] == "task"}
        missing = min(keys - found.keys(), default=None)
        if missing is not None:
            raise Unknown(f"no task was recorded under the key {spoken_key(missing)!r} to depend on")
        return found

    def items_known_by(self, keys: Sequence[str]) -> list[Row]:
        """Those that were recorded under these idempotency keys."""
        return self.session.all("items_by_dedupe", keys=json.dumps(keys)) if keys else []

    def _states(self, tasks: set[int]) -> Mapping[int, str]:
        rows = self.session.all("needed_tasks", tasks=json.dumps(sorted(tasks)))
        found = {row["id"]: row["state"] for row in rows}
        missing = min(tasks - found.keys(), default=None)
        if missing is not None:
            raise Unknown(f"no task {missing} to depend on")
        return found


def _standing(now: datetime) -> Row:
    """From when on a task that goes on stands in line, and what a rank of its priority is worth."""
    return {"now": to_micros(now), "rank": HEAD_START // timedelta(microseconds=1)}


def refuse_circles(items: Sequence[NewItem]) -> None:
    """Who needs itself, by way of others, could never begin; of one causal key, each waits for the one before it."""
    if not any(item.needs for item in items):
        return
    keyed = {item.dedupe: number for number, item in enumerate(items) if item.dedupe is not None}
    before: dict[str, int] = {}
    needs: list[list[int]] = []
    for number, item in enumerate(items):
        needs.append([keyed[key] for key in item.needs if key in keyed])
        if item.key is not None:
            needs[-1] += [before[item.key]] if item.key in before else []
            before[item.key] = number
    circle = _circle(needs)
    if circle:
        names = " -> ".join(_spoken(items[number]) for number in circle)
        raise Mistake(f"tasks depend on each other in a circle: {names}", "take one of these dependencies out")


def _spoken(item: NewItem) -> str:
    return item.subject if item.dedupe is None else spoken_key(item.dedupe, item.sender)


def _circle(needs: Sequence[Sequence[int]]) -> list[int]:
    sound: set[int] = set()
    for first in range(len(needs)):
        # In the order in which they were reached.
        path: dict[int, None] = {}
        ahead = [] if first in sound else [iter(needs[first])]
        path[first] = None
        while ahead:
            number = next(ahead[-1], None)
            if number is None:
                ahead.pop()
                sound.add(path.popitem()[0])
            elif number in path:
                reached = list(path)
                return [*reached[reached.index(number) :], number]
            elif number not in sound:
                path[number] = None
                ahead.append(iter(needs[number]))
    return []
