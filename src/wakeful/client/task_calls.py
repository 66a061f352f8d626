# mypy: disable-error-code="empty-body"
"""What may be asked about tasks and steps, each declared once: see `calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.client.declared import asked

if TYPE_CHECKING:
    from wakeful.control import answers, task_answers


class TaskCalls:
    @asked
    def add_task(
        self,
        title: str,
        *,
        agent: str | None = None,
        role: str | None = None,
        description: str = "",
        payload: Any = None,
        priority: str = "normal",
        tags: list[str] | None = None,
        key: str | None = None,
        causal_key: str | None = None,
        depends_on: list[int | str] | None = None,
        not_before: str | None = None,
        max_retries: int | None = None,
        timeout: str | None = None,
    ) -> task_answers.AddedTask:
        """A task for an agent, or for whoever has the role; an engine takes it as soon as somebody is free."""

    @asked
    def add_tasks(self, tasks: list[dict[str, Any]], *, key: str | None = None) -> answers.Page[task_answers.AddedRow]:
        """Many at once, each as in `add_task`. They may depend on one another by their keys, in any order."""

    @asked
    def tasks(
        self,
        *,
        agent: str | None = None,
        role: str | None = None,
        state: list[str] | None = None,
        tag: str | None = None,
        causal_key: str | None = None,
        source: str | None = None,
        priority: str | None = None,
        text: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> answers.Page[task_answers.ListedTask]:
        """The queue, oldest first; with `before`, the newest ones before it, newest first."""

    @asked
    def count_tasks(
        self,
        *,
        agent: str | None = None,
        role: str | None = None,
        state: list[str] | None = None,
        tag: str | None = None,
        causal_key: str | None = None,
        source: str | None = None,
        priority: str | None = None,
        text: str | None = None,
    ) -> task_answers.Counts:
        """How many there are in each state."""

    @asked
    def task(self, task: int) -> task_answers.ShownTask:
        """One task whole: its attempts, what it depends on, its steps, and why it waits."""

    @asked
    def keyed_task(self, message_id: str) -> task_answers.ShownTask:
        """The task that was added under that key."""

    @asked
    def change_tasks(
        self,
        change: str,
        *,
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
        limit: int = 500,
    ) -> task_answers.ChangedTasks:
        """Many tasks at once, a page at a time: `next` is where the next begins, `until` the last that is meant."""

    @asked
    def claim_task(self, *, task: int | None = None) -> task_answers.ClaimedTask:
        """A ready task for this run to do beside its own: the given one, or the first that the agent may take."""

    @asked
    def cancel_task(self, task: int, *, reason: str = "") -> task_answers.ChangedTask:
        """The task is nobody's any more; a worker that is at it is stopped."""

    @asked
    def retry_task(self, task: int) -> task_answers.ChangedTask:
        """The task is taken up again. Its attempts are counted anew; their history stays."""

    @asked
    def complete_task(self, task: int, *, result: str | None = None) -> task_answers.ChangedTask:
        """The task is done, whoever did it."""

    @asked
    def fail_task(self, task: int, *, reason: str = "") -> task_answers.ChangedTask:
        """Nobody is to try the task again: it is dead, with the reason."""

    @asked
    def remove_task(self, task: int) -> task_answers.ChangedTask:
        """The task is gone, and only the events tell of it."""

    @asked
    def dead(
        self,
        *,
        agent: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        causal_key: str | None = None,
        source: str | None = None,
        priority: str | None = None,
        text: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> answers.Page[task_answers.ListedTask]:
        """The tasks that were given up, each with its last error; their history is with the task."""

    @asked
    def replay(self, task: int) -> task_answers.ChangedTask:
        """A dead task is taken up again."""

    @asked
    def discard(self, task: int) -> task_answers.ChangedTask:
        """A dead task is taken away."""

    @asked
    def steps(self, *, task: int | None = None) -> answers.Steps:
        """What is recorded of the task or beat of this run; for the operator, of any task."""

    @asked
    def save_step(
        self, name: str, *, result: Any = None, begun: bool = False, task: int | None = None
    ) -> answers.SavedStep:
        """The result of a step; or, with `begun`, that it is about to be taken. What was recorded first is told."""
