"""Tasks, their attempts and dependencies: a task ends once, and stands where its attempts and its events leave it."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import timedelta
from typing import Any

from wakeful.control.auditing.findings import REST, TASKS, Findings, micros, moment, moment_or_none
from wakeful.control.auditing.history import History
from wakeful.control.auditing.item_rows import ItemRows, Task
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.tales import TaskChange, TaskEnd
from wakeful.control.auditing.wake_rows import WakeRows
from wakeful.core.items import HEAD_START
from wakeful.core.retries import retry_or_bury

Row = dict[str, Any]

TERMINAL = ("completed", "cancelled", "dead_letter")
# In these no dependency of it will ever be completed.
_NEVER = ("cancelled", "dead_letter")
_NEEDS = re.compile(r"depends on task (\d+)")
_HEAD_START = HEAD_START // timedelta(microseconds=1)


class TaskRows:
    def __init__(self, history: History, items: ItemRows, runs: RunRows, wakes: WakeRows, findings: Findings) -> None:
        self.history = history
        self.items = items
        self.runs = runs
        self.wakes = wakes
        self.findings = findings
        self.tried: dict[int, list[Row]] = defaultdict(list)
        # Runs that tried a task that is still there: retention keeps them.
        self.kept_runs: set[int] = set()
        # What an open task depends on.
        self.needed: set[int] = set()
        changes = history.tales.changes.values()
        self.removed = any(change.change == "remove" for changed in changes for change in changed)
        # Of beats: the subject, and how the row is called.
        self.beat_steps: list[tuple[str, str]] = []
        # Recorded, and not there: the subject and the name.
        self.lost_steps: list[tuple[str, str]] = []

    def read(self) -> None:
        self._attempts()
        needs = self._dependencies()
        waiting = (id for id, row in self.items.tasks.items() if row["state"] not in TERMINAL)
        self.needed = {need for id in waiting for need in needs.get(id, ())}
        for id, row in self.items.tasks.items():
            self._task(id, row, needs.get(id, []))
            self._waits(row, needs.get(id, []))
        self._steps()

    # -- attempts ---------------------------------------------------------------------------------------------
    def _attempts(self) -> None:
        found: set[tuple[int, int]] = set()
        for row in self.history.pages.of("attempt"):
            item, run = row["item"], row["run"]
            found.add((item, run))
            self.tried[item].append(row)
            self.kept_runs.add(run)
            self._attempt(row, f"attempt {item}/{run}")
        for (item, run), end in self.history.tales.ends.items():
            if (item, run) not in found and item in self.items.tasks:
                rows = (f"attempt {item}/{run}", f"event {end.event}")
                self.findings.add(TASKS, rows, f"an attempt of run {run} at task {item}", "no such row")
        for run, tale in self.history.tales.runs.items():
            if tale.started is None or tale.voided_at is not None or run not in self.runs.states:
                continue
            for item in tale.started.get("tasks", ()):
                if (item, run) not in found and item in self.items.tasks and (item, run) not in self.history.tales.ends:
                    rows = (f"attempt {item}/{run}", f"run {run}")
                    self.findings.add(TASKS, rows, f"an attempt of run {run} at task {item}", "no such row")
        for (item, run), (event, _) in self.history.tales.taken.items():
            void = run in self.history.tales.runs and self.history.tales.runs[run].voided_at is not None
            if (item, run) not in found and item in self.items.tasks and run in self.runs.states and not void:
                rows = (f"attempt {item}/{run}", f"event {event}")
                self.findings.add(TASKS, rows, f"an attempt of run {run} at task {item}, which it took", "no such row")
        tried = {run for _, run in found}
        for run, row in self.runs.open.items():
            if row["subject"] == "task" and run not in tried:
                self.findings.add(TASKS, f"run {run}", "an attempt at a task in an open run about one", "no such row")

    def _attempt(self, row: Row, named: str) -> None:
        item, run = row["item"], row["run"]
        end = self.history.tales.ends.get((item, run))
        if item not in self.items.tasks or run not in self.runs.states:
            missing = f"run {run}" if item in self.items.tasks else f"item {item}"
            self.findings.add(TASKS, (named, missing), f"{missing}, which the row rests on", "it is not there")
        elif row["ended_at"] is None:
            if run not in self.runs.open:
                self.findings.add(TASKS, (named, f"run {run}"), "an end, as its run has one", "no end")
            elif end is not None:
                self.findings.add(TASKS, (named, f"event {end.event}"), f"an end at {end.outcome}", "no end")
        elif end is None:
            if self.history.covers(row["ended_at"]):
                at = moment_or_none(row["ended_at"])
                self.findings.add(TASKS, named, f"an event that ended it at {at}", "no event does")
        else:
            for column, expected in (("ended_at", end.at), ("outcome", end.outcome), ("error", end.error)):
                self.findings.hold(TASKS, named, f"{column} as its event tells it,", expected, row[column])
        tale = self.history.tales.runs.get(run)
        if row["stop_by"] is not None and tale is not None:
            changes = self.history.tales.changes.get(item, ())
            if not any(change.event > tale.event and change.told["by"] == row["stop_by"] for change in changes):
                self.findings.add(
                    TASKS, named, f"an event that {row['stop_by']} took the task from it", "no event does"
                )
        if tale is not None and tale.opened is not None:
            # Of one that has ended, when the task itself began.
            begun, ended = self._begun(row, named, tale.opened.at, tale.subject), row["ended_at"]
            if ended is None or not begun <= row["started_at"] <= max(begun, ended):
                when = "begun when its run was admitted, or took it,"
                self.findings.hold(TASKS, named, when, begun, row["started_at"])

    def _begun(self, row: Row, named: str, admitted: int, subject: str | None) -> int:
        """With its run; or when it was taken by one that is about something else."""
        taken = self.history.tales.taken.get((row["item"], row["run"]))
        if taken is None and subject != "task":
            self.findings.add(TASKS, named, f"an event that run {row['run']} took the task", "no event does")
        return admitted if taken is None else taken[1]

    # -- tasks ------------------------------------------------------------------------------------------------
    def _task(self, id: int, row: Task, needs: list[int]) -> None:
        named, hold = f"item {id}", self.findings.hold
        hold(TASKS, named, "in the queue of", row["agent"] or f"role:{row['role']}", row["target"])
        changes = self.history.tales.changes.get(id)
        told = self.history.tales.last_end.get(id) or (changes[-1] if changes else None)
        open_attempt = next((tried for tried in self.tried.get(id, ()) if tried["ended_at"] is None), None)
        if row["state"] == "in_progress":
            if open_attempt is None or open_attempt["run"] != row["held_by"]:
                expected = f"an attempt of run {row['held_by']}, which holds it, under way"
                self.findings.add(TASKS, named, expected, "no such attempt")
        elif row["state"] in TERMINAL or (told is not None and told.state in TERMINAL):
            self._ended(row, named, told)
        elif told is not None and told.state == "blocked":
            hold(TASKS, named, "state as its events leave it,", "blocked", row["state"])
        elif row["state"] == "blocked":
            self._blocked(row, named, needs)
        if open_attempt is not None and row["state"] != "in_progress" and open_attempt["stop_by"] is None:
            rows = (named, f"attempt {id}/{open_attempt['run']}")
            self.findings.add(
                TASKS, rows, f"that it is in progress, as run {open_attempt['run']} is at it", row["state"]
            )
        if self.history.covers(row["created_at"]):
            self._tries(row, named)
        if isinstance(told, TaskEnd) and told.state == row["state"] and (row["error"] or "") != told.error:
            hold(TASKS, (named, f"event {told.event}"), "error as its last attempt left it,", told.error, row["error"])
        self._again(row, named, told)
        self._place(row, named, told, needs)

    def _again(self, row: Task, named: str, told: object) -> None:
        """Who failed is tried again after its backoff, or (lost with its node) at once; who never ran did not fail."""
        if row["state"] not in ("pending", "failed") or not self.history.covers(row["created_at"]):
            return
        if told is None and not self.tried.get(row["id"]):
            found = "failed" if row["state"] == "failed" else row["error"]
            self.findings.hold(TASKS, named, "never tried, and no error,", None, found)
        if not isinstance(told, TaskEnd) or told.state != "failed":
            return
        self.findings.hold(
            TASKS, (named, f"event {told.event}"), "state as its last attempt left it,", "failed", row["state"]
        )
        if row["not_before"] is None or told.retries is None:
            return
        retry = retry_or_bury(
            row["attempts"], told.retries, moment(told.at), seed=str(row["id"]), max_retries=row["max_retries"]
        )
        if retry.at is not None and row["not_before"] not in (micros(retry.at), told.at):
            expected, found = moment_or_none(micros(retry.at)), moment_or_none(row["not_before"])
            self.findings.hold(TASKS, (named, f"event {told.event}"), "tried again at", expected, found)

    def _place(self, row: Task, named: str, told: object, needs: list[int]) -> None:
        """Where it stands in its queue, and who has asked for it."""
        since = row["place"] + row["priority"] * _HEAD_START
        begun = max(row["created_at"], row["not_before"] or 0)
        fresh = told is None and not self.tried.get(row["id"]) and row["state"] == "pending"
        # Later than that stands what has waited for another task, and what has fallen due since.
        exact = row["not_before"] is not None and not needs
        if since < row["created_at"] or (fresh and (since < begun or (exact and since > begun))):
            expected = f"the place of priority {row['priority']} since {moment_or_none(begun)}"
            self.findings.add(TASKS, named, expected, f"one since {moment_or_none(since)}")
        asked = row["asked"]
        if asked is None or row["state"] == "in_progress":
            return
        about = self.wakes.about.get(asked, (None, None))[0]
        if self.wakes.states.get(asked) != "waiting" or about != row["id"]:
            expected = "a waiting wake for it, or none that it asked for"
            self.findings.add(TASKS, (named, f"wake {asked}"), expected, f"wake {asked} is not one")

    def _ended(self, row: Task, named: str, told: Any) -> None:
        if told is None:
            if self.history.covers(row["closed_at"]):
                at = moment_or_none(row["closed_at"])
                self.findings.add(TASKS, named, f"an event that left it {row['state']} at {at}", "no event does")
            return
        self.findings.hold(TASKS, named, "state as its events leave it,", told.state, row["state"])
        if told.state == row["state"] and not _came(told):
            expected, found = moment_or_none(told.at), moment_or_none(row["closed_at"])
            self.findings.hold(TASKS, named, "closed at", expected, found)

    def _blocked(self, row: Task, named: str, needed: list[int]) -> None:
        """By what it depends on, or (what a run added) by how long the chain is."""
        needs = _NEEDS.match(row["error"] or "")
        if needs is None:
            untold = not self.history.covers(row["created_at"]) or row["by_run"] is not None
            if not (untold and row["error"]):
                self.findings.add(TASKS, named, "a reason why it is blocked", row["error"])
            return
        other = self.items.tasks.get(int(needs[1]))
        if other is not None and int(needs[1]) not in needed:
            rows = (named, f"dependency {row['id']}/{needs[1]}")
            self.findings.add(TASKS, rows, f"a row that it depends on task {needs[1]}", "no such row")
        if other is not None and other["state"] not in (*_NEVER, "blocked"):
            rows = (named, f"item {needs[1]}")
            self.findings.add(TASKS, rows, f"task {needs[1]} in its way", f"that is {other['state']}")

    def _tries(self, row: Task, named: str) -> None:
        tales, id = self.history.tales, row["id"]
        changes = tales.changes.get(id, ())
        renewed = max((change.event for change in changes if change.change == "retry"), default=0)
        counted = sum(change.told["attempts"] for change in changes if _came(change) and not renewed)
        known = ((tales.ends.get((id, tried["run"])), tried) for tried in self.tried.get(id, ()))
        ends = sorted(((end, tried) for end, tried in known if end is not None), key=lambda pair: pair[0].event)
        for end, tried in ends:
            if not end.held or end.event < renewed:
                continue
            counted += tried["counted"]
            most = row["max_retries"]
            if most is None and end.retries is not None:
                most = end.retries.max_retries
            if most is None or not tried["counted"]:
                continue
            if (end.state == "failed" and counted > most) or (end.state == "dead_letter" and counted <= most):
                rows = (named, f"event {end.event}")
                expected = f"dead after {most} retries, and not before"
                self.findings.add(TASKS, rows, expected, f"{end.state} after {counted} attempts")
        if row["attempts"] != counted:
            every = (named, *(f"attempt {id}/{tried['run']}" for tried in self.tried.get(id, ())))
            self.findings.hold(TASKS, every, "attempts, counted", counted, row["attempts"])
        shown = "1" if any(end.held for end, _ in ends) else None
        self.findings.hold(TASKS, named, "shown, by outcomes, as", shown, row["shown"])

    # -- what depends on what ---------------------------------------------------------------------------------
    def _dependencies(self) -> dict[int, list[int]]:
        needs: dict[int, list[int]] = defaultdict(list)
        for row in self.history.pages.of("dependency"):
            for id in (row["item"], row["needs"]):
                if id not in self.items.tasks:
                    rows = (f"dependency {row['item']}/{row['needs']}", f"item {id}")
                    self.findings.add(TASKS, rows, f"task {id}, which the row rests on", "it is not there")
            needs[row["item"]].append(row["needs"])
        return needs

    def _waits(self, row: Task, needs: list[int]) -> None:
        named, id = f"item {row['id']}", row["id"]
        states = {need: self.items.tasks[need]["state"] for need in needs if need in self.items.tasks}
        open_needs = sum(state != "completed" for state in states.values())
        ready = row["state"] in ("pending", "failed", "in_progress")
        # What was removed or swept is no longer counted, until the task is taken up again.
        by_run = row["state"] == "completed" and id in self.history.tales.last_end
        fewer = row["waits_for"] > open_needs and not (ready or by_run) and (self.removed or self.history.late)
        if row["waits_for"] != open_needs and not fewer:
            rows = (named, *(f"dependency {id}/{need}" for need in needs))
            self.findings.hold(TASKS, rows, "waiting for so many tasks,", open_needs, row["waits_for"])
        dead = [need for need, state in states.items() if state in _NEVER]
        if dead and ready:
            rows = (named, f"item {dead[0]}")
            self.findings.add(TASKS, rows, f"blocked, as task {dead[0]} is {states[dead[0]]}", row["state"])

    def _steps(self) -> None:
        kept: set[tuple[str, str]] = set()
        for row in self.history.pages.of("step"):
            kept.add((row["subject"], row["name"]))
            kind, _, name = row["subject"].partition(":")
            named = f"step {row['subject']} {row['name']}"
            if kind == "task":
                task = self.items.tasks.get(int(name)) if name.isdecimal() else None
                # A dead one may be taken up again, and goes on from its steps.
                if task is None or task["state"] in ("completed", "cancelled"):
                    found = "it is not there" if task is None else f"it is {task['state']}"
                    self.findings.add(REST, named, f"a task {name} that may go on from this step", found)
            else:
                self.beat_steps.append((row["subject"], named))
        self.lost_steps = sorted(self.history.tales.steps - kept)
        for subject, step in self.lost_steps:
            task = self.items.tasks.get(int(subject.partition(":")[2])) if subject.startswith("task:") else None
            if task is not None and task["state"] not in ("completed", "cancelled"):
                self.findings.add(REST, f"step {subject} {step}", "a step that was recorded", "it is not there")


def _came(told: object) -> bool:
    """Whether it is told as it was in another queue, from which it was handed to us."""
    return isinstance(told, TaskChange) and told.change == "import"
