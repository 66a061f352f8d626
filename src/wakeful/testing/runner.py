"""Runs that take only virtual time, under guardians that outlive the engine.

Laws:
- A guardian starts a run at most once: `start` creates the `started` mark, and so does a veto; the first one wins.
- An exit record is written once, by the guardian alone. A guardian that died leaves none.
- A script says in advance how long a run takes, what its agent does meanwhile and how it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from wakeful.core.orders import Order
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.store.protocol import TaskEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Something that the agent does in the course of its run."""

    after: timedelta
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run will do: its acts, the ends of the tasks of its shift (after, end), and its own end."""

    duration: timedelta
    ending: Ending
    acts: tuple[Act, ...] = ()
    tasks: tuple[tuple[timedelta, TaskEnd], ...] = ()


Script = Callable[[Order], Plan]


def done(summary: str = "", usage: Spend | None = None) -> Ending:
    return Ending(exit_code=0, result=Result(outcome="done", summary=summary, usage=usage))


def no_work(usage: Spend | None = None) -> Ending:
    return Ending(exit_code=0, result=Result(outcome="no_work", usage=usage))


def failed(error: str = "it broke", usage: Spend | None = None) -> Ending:
    return Ending(exit_code=1, result=Result(error=error, usage=usage))


def always(ending: Ending, duration: timedelta = timedelta(minutes=1)) -> Script:
    """The same for every order."""
    return lambda order: Plan(duration=duration, ending=ending)


@dataclass(slots=True, kw_only=True)
class Guardian:
    """One run in the hands of its guardian. `exit` is the exit record."""

    order: Order
    plan: Plan
    started: timedelta
    ends: timedelta
    alive: bool = True
    exit: Ending | None = None
    ended: timedelta | None = None
    acted: int = 0
    tasks_ended: int = 0
    task_exits: list[TaskEnd] = field(default_factory=list)

    @property
    def next_at(self) -> timedelta:
        """When something happens next, if it goes on living."""
        times = [self.ends]
        if self.acted < len(self.plan.acts):
            times.append(self.started + self.plan.acts[self.acted].after)
        if self.tasks_ended < len(self.plan.tasks):
            times.append(self.started + self.plan.tasks[self.tasks_ended][0])
        return min(times)


class VirtualRunner:
    """All guardians of one machine, by run."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.guardians: dict[int, Guardian] = {}
        self.vetoed: set[int] = set()

    def start(self, order: Order, elapsed: timedelta) -> Guardian | None:
        """None when recovery vetoed the start, or it was made already: the agent is not executed again."""
        if order.run.id in self.vetoed or order.run.id in self.guardians:
            return None
        plan = self._script(order)
        guardian = Guardian(order=order, plan=plan, started=elapsed, ends=elapsed + plan.duration)
        self.guardians[order.run.id] = guardian
        return guardian

    def veto(self, run: int) -> bool:
        """Whether the veto came before the start."""
        if run in self.guardians:
            return False
        self.vetoed.add(run)
        return True

    def alive(self) -> list[Guardian]:
        return [guardian for guardian in self.guardians.values() if guardian.alive]

    def next_at(self) -> timedelta | None:
        return min((guardian.next_at for guardian in self.alive()), default=None)

    def acts_due(self, elapsed: timedelta) -> list[tuple[Guardian, Act]]:
        """What agents do by now, once each, in the order of the runs."""
        found = []
        for guardian in self.alive():
            acts = guardian.plan.acts
            while guardian.acted < len(acts) and guardian.started + acts[guardian.acted].after <= elapsed:
                found.append((guardian, acts[guardian.acted]))
                guardian.acted += 1
        return found

    def write_exits(self, elapsed: timedelta) -> list[Guardian]:
        """Every guardian whose time has come writes its exit record; those that did so now are returned."""
        ended = []
        for guardian in self.alive():
            tasks = guardian.plan.tasks
            while guardian.tasks_ended < len(tasks) and guardian.started + tasks[guardian.tasks_ended][0] <= elapsed:
                guardian.task_exits.append(tasks[guardian.tasks_ended][1])
                guardian.tasks_ended += 1
            if guardian.ends <= elapsed:
                # Then, and not when somebody looks.
                self._end(guardian, guardian.plan.ending, guardian.ends)
                ended.append(guardian)
        return ended

    def kill(self, run: int, by: str, elapsed: timedelta) -> bool:
        """End a live run by request; whether there was one."""
        guardian = self.guardians.get(run)
        if guardian is None or not guardian.alive:
            return False
        self._end(guardian, Ending(by=by), elapsed)
        return True

    def end_task(self, run: int, task: int, by: str) -> None:
        """End one task of a live shift by request, if it has not ended."""
        guardian = self.guardians[run]
        left = guardian.plan.tasks[guardian.tasks_ended :]
        if guardian.alive and any(end.task == task for _, end in left):
            rest = tuple((after, end) for after, end in left if end.task != task)
            guardian.plan = replace(guardian.plan, tasks=guardian.plan.tasks[: guardian.tasks_ended] + rest)
            guardian.task_exits.append(TaskEnd(task=task, ending=Ending(by=by)))

    def lose(self, guardian: Guardian, elapsed: timedelta) -> None:
        """The guardian dies with its run and leaves no record."""
        guardian.alive = False
        guardian.ended = elapsed

    def _end(self, guardian: Guardian, ending: Ending, elapsed: timedelta) -> None:
        guardian.alive = False
        guardian.ended = elapsed
        guardian.exit = replace(ending, elapsed=elapsed - guardian.started)
