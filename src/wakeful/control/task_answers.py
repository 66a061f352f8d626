"""What is answered about tasks, as types: as in a list, whole, as they were added or changed."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from wakeful.control.told import From, OriginName, OutcomeName, PriorityName, Step, TaskState, Time


class Task(From):
    """What is told of a task everywhere. `key` is its sender's own; `message_id` is another name for it."""

    id: int
    key: str | None
    title: str
    state: TaskState
    agent: str | None
    role: str | None
    priority: PriorityName
    result: str | None
    created_at: Time
    due_at: Time | None
    origin: OriginName
    description: str
    payload: Any
    tags: list[str]
    timeout: str | None
    message_id: str | None
    causal_key: str | None
    error: str | None
    max_retries: int | None
    waits_for: int
    run_id: int | None
    source: str | None
    closed_at: Time | None


class Attempt(TypedDict):
    error: str
    exit_code: int | None
    started_at: Time
    ended_at: Time | None
    outcome: OutcomeName | None
    counted: bool
    run_id: int
    duration_ms: int | None


class ListedTask(Task):
    attempts: list[Attempt]
    waiting_for: str | None


class PrintedAttempt(Attempt):
    output: str


class Dependency(TypedDict):
    id: int
    state: TaskState


class WholeTask(Task):
    attempts: list[PrintedAttempt]
    depends_on: list[Dependency]
    steps: list[Step]


class ShownTask(WholeTask):
    waiting_for: str | None


class AddedTask(WholeTask):
    duplicate: bool
    warning: str | None


class ChangedTask(WholeTask):
    """As it stands now, or stood before it was taken away; `was` is its state before."""

    waiting_for: NotRequired[str | None]
    was: TaskState
    removed: bool


class ClaimedTask(TypedDict):
    """`held` are the tasks that the run has under way; without a task, `reason` says why there is none."""

    task: ShownTask | None
    held: list[int]
    reason: str | None


class AddedRow(TypedDict):
    id: int
    state: TaskState
    duplicate: bool
    warning: str | None


class Unchanged(TypedDict):
    id: int
    state: TaskState | None
    why: str | None


class ChangedTasks(TypedDict):
    change: str
    changed: list[int]
    unchanged: list[Unchanged]
    next: int | None


class Counts(TypedDict):
    counts: dict[str, int]
    total: int
