"""Operators' changes to tasks, and the steps of runs.

Laws:
- A task ends once; what is dead, failed or blocked may be taken up again, with its history.
- A task that is taken from a run is no longer that run's at once; whoever holds the run is then asked to end it.
- What is removed is told whole by its event, and nothing is left that rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from wakeful.core.codec import encode
from wakeful.core.errors import Ended, Mistake, Stale, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import TERMINAL, Item, Kind, State, place
from wakeful.store.depending import NEVER, REMOVED
from wakeful.store.finishing import Finishing, still_open
from wakeful.store.rows import to_attempt, to_item, to_micros
from wakeful.store.steps import beat_subject, task_subject

_CHANGES = {
    "cancel": State.cancelled,
    "complete": State.completed,
    "fail": State.dead_letter,
    "retry": State.pending,
    "remove": None,
}
_RETRIED = frozenset({State.dead_letter, State.failed, State.blocked})

# What is told of a task that is removed.
_TOLD = ("kind", "subject", "body", "payload", "state", "attempts", "error", "result", "key", "dedupe", "tags")


class Tasking(Finishing):
    def change_task(
        self, task: int, change: str, by: str, now: datetime, *, reason: str = "", result: str | None = None
    ) -> Item:
        _known(change)
        with self.session.transaction("change_task"):
            item = self._task(task)
            complaint = self._objection(item, change)
            if complaint is not None:
                raise complaint
            self._alter(item, change, by, now, reason, result)
            return item if change == "remove" else self._task(task)

    def change_tasks(
        self,
        tasks: Sequence[int],
        change: str,
        by: str,
        now: datetime,
        *,
        reason: str = "",
        result: str | None = None,
    ) -> list[int]:
        _known(change)
        with self.session.transaction("change_tasks"):
            changed = []
            for task in dict.fromkeys(tasks):
                # One after the other: what is done to one may change what can be done to the next.
                row = self.session.one("item_row", item=task)
                if row is None or row["kind"] != Kind.task:
                    continue
                item = to_item(row)
                if self._objection(item, change) is None:
                    self._alter(item, change, by, now, reason, result)
                    changed.append(task)
            return changed

    def _task(self, task: int) -> Item:
        row = self.session.one("item_row", item=task)
        if row is None or row["kind"] != Kind.task:
            raise Unknown(f"no task {task}")
        return to_item(row)

    def _objection(self, item: Item, change: str) -> Ended | None:
        """Why this cannot be done to a task as it stands."""
        if change == "retry":
            return self._not_retried(item)
        if change == "remove":
            return self._not_removed(item)
        return Ended(f"task {item.id} is {item.state} already", "a task ends once") if item.state in TERMINAL else None

    def _not_retried(self, item: Item) -> Ended | None:
        put_off = item.state is State.pending and item.not_before is not None
        if item.state not in _RETRIED and not put_off:
            return Ended(
                f"task {item.id} is {item.state}", "only what is dead, failed, blocked or put off can be retried"
            )
        if item.state in TERMINAL and (still := self._still_at(item)) is not None:
            return still
        for row in self.session.all("needed_by", item=item.id):
            if row["state"] in NEVER:
                return Ended(f"task {item.id} depends on task {row['id']}, which is {row['state']}", "retry that first")
        return None

    def _not_removed(self, item: Item) -> Ended | None:
        if item.state not in TERMINAL:
            return Ended(f"task {item.id} is {item.state}", "cancel it first: only what has ended can be removed")
        return self._still_at(item)

    def _still_at(self, item: Item) -> Ended | None:
        """A task that was taken from its run is that worker's until the run has ended it."""
        row = self.session.one("attempt_under_way", item=item.id)
        if row is None:
            return None
        return Ended(f"run {row['run']} is still at task {item.id}", "try again when it has ended")

    def _alter(self, item: Item, change: str, by: str, now: datetime, reason: str, result: str | None) -> None:
        fields: dict[str, object] = {"change": change, "by": by, "from": item.state.value}
        state = _CHANGES[change]
        if state is None:
            fields.update(self._take_out(item), state=REMOVED)
        elif state is State.pending:
            self._renew_task(item, now)
            fields["state"] = state.value
        else:
            self._end_by_hand(item, state, by, now, reason or f"{change} by {by}", result)
            fields["state"] = state.value
        if reason:
            fields["reason"] = reason
        self.event(EventKind.task_changed, now, agent=item.agent, item=item.id, fields=fields)

    def _end_by_hand(self, item: Item, state: State, by: str, now: datetime, reason: str, result: str | None) -> None:
        if item.state is State.in_progress:
            self._take_away(item.id, by, now)
        keys = [] if item.key is None else [item.key]
        self.hold_keys(keys)
        self.session.write(
            "end_task",
            item=item.id,
            state=state.value,
            # What a completed task failed with before is in its attempts.
            error=None if state is State.completed else reason,
            result=result,
            now=to_micros(now),
        )
        self.tasks_closed([(item.id, state)], now)
        self.free_keys(keys)

    def _take_away(self, task: int, by: str, now: datetime) -> None:
        """From its run: one that nobody has begun does not begin it, of one under way it is noted for its holder."""
        row = self.session.one("attempt_under_way", item=task)
        if row is None:
            return
        if row["state"] == "running":
            self.session.write("stop_attempt", item=task, run=row["run"], by=by)
            return
        self.session.write("forget_attempt", item=task, run=row["run"])
        if self.session.one("attempts_of_run", run=row["run"]) is None:
            self.void_run(row["run"], row["epoch"], now)

    def _renew_task(self, item: Item, now: datetime) -> None:
        self.session.write("retry_task", item=item.id, place=to_micros(place(item.priority, now)))
        if item.key is not None:
            self.session.write("step_behind", key=item.key, item=item.id)
        self.free_dependents([item.id], now)

    def _take_out(self, item: Item) -> dict[str, object]:
        attempts = [to_attempt(row) for row in self.session.all("task_attempts", item=item.id)]
        told = {key: encode(getattr(item, key)) for key in _TOLD}
        self.task_removed(item.id, item.state)
        named = [{"item": item.id}]
        for query in ("forget_dependencies", "forget_dependents", "forget_showings", "forget_tries", "forget_item"):
            self.session.many(query, named)
        self.session.many("forget_steps", [{"subject": task_subject(item.id)}])
        return {**told, "created_at": encode(item.created_at), "tries": encode(attempts)}

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
            if task is not None and self.session.one("task_held", run=run, item=task) is None:
                raise Stale(f"task {task} is not under way in run {run}")
            new = self.session.run("put_step", subject=subject, name=name, result=result, now=to_micros(now))
            if new and result is not None:
                whose = {"name": name} if task is not None else {"name": name, "beat": row["beat"]}
                self.event(EventKind.step_saved, now, agent=row["agent"], run=run, item=task, fields=whose)

    def steps(self, run: int, *, task: int | None = None) -> dict[str, str | None]:
        reader = self.session.reader()
        row = reader.one("run_with_wake", run=run)
        if row is None:
            raise Unknown(f"no run {run}")
        subject = beat_subject(row["agent"], row["beat"]) if task is None else task_subject(task)
        return {step["name"]: step["result"] for step in reader.all("step_rows", subject=subject)}


def _known(change: str) -> None:
    if change not in _CHANGES:
        raise Mistake(f"unknown change {change!r}", f"use one of {', '.join(_CHANGES)}")
