"""10,000 tasks, three clerks, and kill -9 of an engine, of a guardian, of a worker or of a handler every half to two
seconds, on SQLite and on two nodes of one PostgreSQL: each task is completed, dead or cancelled; none is executed again
once its completion is recorded, no recorded step is taken again, tasks of one key go in order, and no two executions of
a task overlap.

TASKS=1000 KILLS=30 SEED=7 in the environment change how many, how often at most, and when.
"""

import os
import random
import time
from collections.abc import Iterator
from typing import Any

from soak.queueing import Beside, Queue, Reaper, fleet
from soak.standing import TWO
from soak.traces import ENDED
from wakeful.core.items import Item, State

TASKS = int(os.environ.get("TASKS", "10000"))
KILLS = int(os.environ.get("KILLS", "1000"))
SEED = int(os.environ.get("SEED", "2026"))
# So long after the last kill, in seconds: the longest wait for a retry, and the work itself.
LONGEST = 120.0 + TASKS / 20


def a_task(number: int, dice: random.Random) -> dict[str, Any]:
    told: dict[str, Any] = {"number": number}
    task: dict[str, Any] = {"title": f"task {number}", "role": "clerk", "key": f"task-{number}", "max_retries": 6}
    kind = number % 30
    # Most are short; a kill falls into those that are not.
    told["seconds"] = dice.choice((0.0,) * 12 + (0.005, 0.01, 0.02, 0.05, 0.1, 0.4))
    if kind == 0:
        told["fails"] = "always"
        task["max_retries"] = dice.randrange(3)
    elif kind in (1, 2):
        told["fails"] = "once"
    elif kind in (3, 4, 5):
        told["steps"] = ["read", "think", "write"]
    if number % 10 in (6, 7, 8):
        task["causal_key"] = f"key-{number // 10}"
    if number % 8 == 3:
        task |= {"role": None, "agent": f"clerk-{dice.randint(1, 3)}"}
    return {**task, "payload": told, "priority": dice.choice(("low", "normal", "normal", "high", "urgent"))}


class Canceller:
    """Cancels one in twenty of them: what is under way, or whatever it is."""

    def __init__(self, queue: Queue, dice: random.Random) -> None:
        self._queue, self._dice = queue, dice
        self.added: list[int] = []
        # An answer may be lost with its engine, after the deed.
        self.asked: set[int] = set()
        self.answered: set[int] = set()

    def cancel_one(self) -> None:
        if len(self.asked) >= TASKS / 20:
            return
        at_work = self._queue.at_work() if self._dice.random() < 0.5 else []
        if choice := at_work or self.added:
            task = self._dice.choice(choice)
            self.asked.add(task)
            if self._queue.cancel(task):
                self.answered.add(task)

    def complaints(self, tasks: dict[int, Item]) -> Iterator[str]:
        cancelled = {task.id for task in tasks.values() if task.state is State.cancelled}
        for task in sorted(cancelled - self.asked):
            yield f"task {task} is cancelled, and nobody asked for it"
        for task in sorted(self.answered - cancelled):
            yield f"task {task} was cancelled, and is {tasks[task].state}"


def test_every_task_ends_once_however_often_whoever_works_at_it_is_killed(ground, address, say):
    # A shared store has two nodes on it.
    here = ground(fleet(3), store=address, more={TWO: address} if address else None)
    queue, dice = Queue(here), random.Random(SEED)
    reaper, canceller = Reaper(here, random.Random(SEED + 1)), Canceller(queue, random.Random(SEED + 2))
    try:
        for node in here.nodes:
            node.up()
        struggle(queue, [a_task(number, dice) for number in range(TASKS)], reaper, canceller, say)
        counts = queue.counts()
        for node in here.nodes:
            node.drain()
        say(f"{counts}; {len(canceller.asked)} were to be cancelled")
        assert sum(counts.get(state, 0) for state in ENDED) == sum(counts.values()) == TASKS
        tasks, attempts = queue.known()
        complaints = [*queue.check(tasks, attempts), *canceller.complaints(tasks)]
        assert complaints[:20] == [], f"{len(complaints)} in all"
    except BaseException:
        say(f"SEED={SEED} TASKS={TASKS} KILLS={KILLS}")
        raise


def struggle(queue: Queue, tasks: list[dict[str, Any]], reaper: Reaper, canceller: Canceller, say) -> None:
    """They are added, worked at and cancelled, and everybody is killed, until they are over."""
    began = time.monotonic()
    killing = Beside(reaper.kill_one, lambda: reaper.dice.uniform(0.5, 2.0))
    cancelling = Beside(canceller.cancel_one, lambda: 0.1)
    with killing, cancelling:
        for start in range(0, TASKS, 100):
            canceller.added += queue.add(tasks[start : start + 100])
        while (over := ended(queue)) < TASKS and sum(reaper.killed.values()) < KILLS:
            assert killing.failed is cancelling.failed is None
            say_how(say, over, reaper, began)
            time.sleep(5)
    assert len(set(canceller.added)) == TASKS
    calm = time.monotonic()
    while (over := ended(queue)) < TASKS:
        assert time.monotonic() - calm < LONGEST, f"{queue.counts()}\n{queue.ground.log()}"
        time.sleep(0.5)
    say_how(say, over, reaper, began)


def ended(queue: Queue) -> int:
    counts = queue.counts()
    return sum(counts.get(state, 0) for state in ENDED)


def say_how(say, over: int, reaper: Reaper, began: float) -> None:
    killed = ", ".join(f"{count} {what}s" for what, count in reaper.killed.items())
    say(f"{over} of {TASKS} tasks are over; killed {killed}; {time.monotonic() - began:.0f} s")
