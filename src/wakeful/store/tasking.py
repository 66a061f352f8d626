"""Operators' changes to tasks, and the steps of runs."""

from __future__ import annotations

from datetime import datetime

from wakeful.core.errors import Mistake, Stale, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import TERMINAL, Item, Kind, State
from wakeful.store.finishing import Finishing, still_open
from wakeful.store.rows import to_item, to_micros
from wakeful.store.steps import beat_subject, task_subject

_CHANGES = {
    "cancel": State.cancelled,
    "complete": State.completed,
    "fail": State.dead_letter,
    "retry": State.pending,
}
_RETRIED = frozenset({State.dead_letter, State.failed, State.blocked})


class Tasking(Finishing):
    def change_task(self, task: int, change: str, by: str, now: datetime, *, reason: str = "") -> Item:
        if change not in _CHANGES:
            raise Mistake(f"unknown change {change!r}", f"use one of {', '.join(_CHANGES)}")
        with self.session.transaction("change_task"):
            item = self._task(task)
            state = _CHANGES[change]
            self._may(item, change)
            terminal = state in TERMINAL
            self.session.write(
                "change_task_state",
                item=task,
                state=state.value,
                error=reason or (None if change == "retry" else f"{change} by {by}"),
                closed_at=to_micros(now) if terminal else None,
                again=int(change == "retry"),
            )
            if terminal:
                self.tasks_closed([(task, state)])
            else:
                self.session.write("unblock_dependents", item=task)
            fields = {"change": change, "by": by, "from": item.state.value, "state": state.value}
            self.event(EventKind.task_changed, now, agent=item.agent, item=task, fields=fields)
            return self._task(task)

    def _task(self, task: int) -> Item:
        row = self.session.one("item_row", item=task)
        if row is None or row["kind"] != Kind.task:
            raise Unknown(f"no task {task}")
        return to_item(row)

    def _may(self, item: Item, change: str) -> None:
        if change == "retry":
            if item.state not in _RETRIED:
                raise Mistake(f"task {item.id} is {item.state}", "only dead, failed and blocked tasks can be retried")
        elif item.state in TERMINAL:
            raise Mistake(f"task {item.id} is {item.state} already", "a task ends once")

    def save_step(
        self,
        run: int,
        epoch: int,
        name: str,
        result: str | None,
        now: datetime,
        *,
        task: int | None = None,
    ) -> None:
        with self.session.transaction("save_step"):
            row = still_open(self.session.all("run_with_wake", run=run), run, epoch)
            subject = beat_subject(row["agent"], row["beat"]) if task is None else task_subject(task)
            if task is not None and self.session.one("task_of_run", run=run, item=task) is None:
                raise Stale(f"task {task} is not under way in run {run}")
            self.session.write("put_step", subject=subject, name=name, result=result, now=to_micros(now))

    def steps(self, run: int, *, task: int | None = None) -> dict[str, str | None]:
        reader = self.session.reader()
        row = reader.one("run_with_wake", run=run)
        if row is None:
            raise Unknown(f"no run {run}")
        subject = beat_subject(row["agent"], row["beat"]) if task is None else task_subject(task)
        return {step["name"]: step["result"] for step in reader.all("step_rows", subject=subject)}
