"""Tasks: leased to one run at a time, tried again or buried with their whole history, in the order of their keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from wakeful.core.agents import Agent
from wakeful.core.cadence import Cadence
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.events import EventKind
from wakeful.core.guards import RELEASE
from wakeful.core.items import Priority, State
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result
from wakeful.core.wakes import Cause, Pause, Subject
from wakeful.core.windows import spread
from wakeful.store.protocol import Order, TaskEnd
from wakeful.testing.contracts.store_case import (
    BY_US,
    DONE,
    ENDINGS,
    FAILED,
    HOUR,
    KILLED,
    LOST,
    MINUTE,
    NO_WORK,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
)

AUTH = Ending(exit_code=1, result=Result(error="401", error_class=ErrorClass.auth))
QUOTA = Ending(exit_code=1, result=Result(error="429", error_class=ErrorClass.quota, retry_at=NOW + HOUR))


def editor(name: str) -> Agent:
    return an_agent(name, roles=("editor",), cadence=Cadence())


class TasksContract(StoreCase):
    def take(self, now: datetime = NOW) -> Order:
        (order,) = self.serve(now)
        return order

    # -- one task, one run

    def test_a_ready_task_is_leased_to_a_run_that_is_shown_nothing_else(self) -> None:
        self.declare("moss")
        self.message("moss", "not for this run")
        task = self.task("moss", subject="sweep", body="the floor")
        order = self.take()
        assert (order.run.cause, order.run.subject, order.items) == (Cause.task, Subject.task, ())
        assert [(leased.id, leased.state, leased.body) for leased in order.tasks] == [
            (task, State.in_progress, "the floor")
        ]
        assert self.row(order.run.id).tasks == (task,)
        assert order.deadline == NOW + 30 * MINUTE
        assert self.serve(NOW + SECOND) == []

    @pytest.mark.parametrize(
        ("outcome", "state", "wait"),
        [
            (Outcome.done, State.completed, None),
            (Outcome.no_work, State.completed, None),
            (Outcome.failed, State.failed, 30 * SECOND),
            (Outcome.killed, State.failed, 30 * SECOND),
        ],
    )
    def test_an_outcome_closes_the_task_or_has_it_tried_again(
        self, outcome: Outcome, state: State, wait: object
    ) -> None:
        self.declare("moss")
        task = self.task("moss")
        before = self.standing("moss")
        order = self.take()
        self.end(order, ENDINGS[outcome], NOW + MINUTE)
        self.reopen()
        found = self.item(task)
        assert (found.state, found.attempts) == (state, 1)
        assert found.not_before == (None if wait is None else NOW + MINUTE + wait)  # type: ignore[operator]
        assert found.closed_at == (NOW + MINUTE if state is State.completed else None)
        after = self.standing("moss")
        assert (after.position, after.failure_streak, after.gates) == (before.position, 0, before.gates)

    def test_a_result_is_kept_with_the_task(self) -> None:
        self.declare("moss")
        task = self.task("moss")
        order = self.take()
        self.end(order, DONE, NOW, TaskEnd(task=task, ending=DONE, result="swept"))
        assert self.item(task).result == "swept"

    def test_a_task_is_tried_six_times_then_buried_with_its_whole_history(self) -> None:
        self.declare("moss")
        task, now, waits = self.task("moss"), NOW, []
        endings = [FAILED, KILLED, LOST, replace(FAILED, exit_code=7), FAILED, replace(FAILED, exit_code=9)]
        for ending in endings:
            (order,) = [order for order in self.serve(now) if order.tasks]
            self.end(order, ending, now)
            later = self.item(task).not_before
            if later is not None:
                assert [wake for wake in self.due(later - SECOND) if wake.task] == []
                waits.append((later - now).total_seconds())
                now = later
        assert waits == [30, 60, 120, 240, 480]
        found = self.item(task)
        assert (found.state, found.attempts, found.closed_at) == (State.dead_letter, 6, now)
        history = self.store.attempts(task)
        assert [attempt.exit_code for attempt in history] == [1, None, None, 7, 1, 9]
        assert [attempt.outcome for attempt in history] == ["failed", "killed", "killed", "failed", "failed", "failed"]
        assert all(attempt.counted and attempt.error and attempt.ended_at for attempt in history)
        assert len({attempt.run for attempt in history}) == 6
        assert [wake for wake in self.due(now + 9 * HOUR) if wake.task] == []

    @pytest.mark.parametrize("ending", [LOST, Ending(orphaned=True)])
    def test_an_attempt_that_was_lost_began_when_its_run_did(self, ending: Ending) -> None:
        self.declare("moss")
        task = self.task("moss")
        self.end(self.take(), ending, NOW + MINUTE)
        (attempt,) = self.store.attempts(task)
        assert (attempt.started_at, attempt.ended_at) == (NOW, NOW + MINUTE)

    def test_a_task_without_retries_is_dead_after_its_first_failure(self) -> None:
        self.declare("moss")
        task = self.task("moss", max_retries=0)
        self.end(self.take(), FAILED)
        assert self.item(task).state is State.dead_letter

    def test_a_task_that_we_ended_ourselves_waits_again_without_an_attempt(self) -> None:
        self.declare("moss")
        task = self.task("moss", max_retries=0)
        self.end(self.take(), BY_US)
        found = self.item(task)
        assert (found.state, found.attempts) == (State.pending, 0)
        (attempt,) = self.store.attempts(task)
        assert (attempt.counted, attempt.outcome) == (False, Outcome.killed)

    def test_a_quota_is_waited_out_and_broken_credentials_are_parked(self) -> None:
        self.declare("moss", "wren")
        tasks = [self.task("moss"), self.task("wren")]
        for order in self.serve(NOW):
            self.end(order, QUOTA if order.agent.name == "moss" else AUTH)
        held, parked = (self.item(task) for task in tasks)
        # And a moment more: those of one quota do not begin together.
        again = NOW + HOUR + spread("moss", RELEASE)
        assert (held.state, held.attempts, held.not_before) == (State.pending, 0, again)
        assert (parked.state, parked.closed_at) == (State.blocked, None)
        assert "401" in (parked.error or "")

    # -- who, and in which order

    def test_urgent_tasks_go_first_then_the_oldest(self) -> None:
        self.declare("moss")
        first, second = self.task("moss"), self.task("moss")
        urgent, low = self.task("moss", priority=Priority.urgent), self.task("moss", priority=Priority.low)
        done = []
        for n in range(4):
            order = self.take(NOW + n * SECOND)
            done += [task.id for task in order.tasks]
            self.end(order, DONE, NOW + n * SECOND)
        assert done == [urgent, first, second, low]

    def test_a_task_for_later_is_not_offered_before_its_time(self) -> None:
        self.declare("moss")
        task = self.task("moss", not_before=NOW + 30 * MINUTE)
        assert self.due(NOW + 29 * MINUTE) == []
        assert self.store.due(NOW).next_at == NOW + 30 * MINUTE
        assert [leased.id for leased in self.take(NOW + 30 * MINUTE).tasks] == [task]

    def test_the_task_of_a_role_goes_to_the_idle_agent_that_has_rested_longest(self) -> None:
        self.declare(*(editor(name) for name in ("a", "b", "c")), sessions=9)
        for n, name in enumerate(("b", "c", "a")):
            now = NOW + n * SECOND
            self.end(self.start(operator(name, now), now), DONE, now)
        taken = []
        for n in range(3):
            self.task(role="editor", now=NOW + MINUTE)
            order = self.take(NOW + MINUTE + n * SECOND)
            taken.append(order.agent.name)
        assert taken == ["b", "c", "a"]

    def test_the_task_of_a_role_waits_while_all_are_busy_and_goes_to_the_first_that_is_free(self) -> None:
        self.declare(editor("a"), editor("b"), sessions=9)
        orders = {name: self.start(operator(name)) for name in ("a", "b")}
        task = self.task(role="editor")
        assert self.serve(NOW) == []
        self.end(orders["b"], DONE, NOW + MINUTE)
        order = self.take(NOW + MINUTE)
        assert (order.agent.name, [leased.id for leased in order.tasks]) == ("b", [task])

    def test_the_task_of_a_role_does_not_wait_for_a_paused_agent_while_another_comes_free(self) -> None:
        self.declare(editor("a"), editor("b"), sessions=9)
        order = self.start(operator("b"))
        self.store.pause(Pause(scope="agent:a", owner="operator", reason="", since=NOW), NOW)
        self.task(role="editor")
        assert self.serve(NOW) == []
        self.end(order, DONE, NOW + MINUTE)
        assert self.take(NOW + MINUTE).agent.name == "b"

    def test_the_task_of_a_role_finds_the_one_agent_that_may_run_among_many(self) -> None:
        names = [f"a{n:02}" for n in range(12)]
        self.declare(*(editor(name) for name in names))
        for name in names[:-1]:
            self.store.pause(Pause(scope=f"agent:{name}", owner="operator", reason="", since=NOW), NOW)
        self.task(role="editor")
        assert self.take().agent.name == names[-1]

    def test_the_task_of_a_role_that_nobody_has_waits_for_somebody_who_has_it(self) -> None:
        self.declare("moss")
        self.task(role="editor")
        assert self.due(NOW + MINUTE) == []
        self.declare("moss", editor("a"), now=NOW + MINUTE)
        assert self.take(NOW + MINUTE).agent.name == "a"

    def test_a_key_keeps_its_order_and_other_keys_go_on(self) -> None:
        self.declare(*(editor(name) for name in ("a", "b", "c")), sessions=9, workers=9)
        first = self.task(role="editor", key="book")
        second = self.task(role="editor", key="book")
        other = self.task(role="editor", key="film")
        begun = [order for n in range(3) for order in self.serve(NOW + n * SECOND)]
        assert sorted(task.id for order in begun for task in order.tasks) == [first, other]
        (order,) = [order for order in begun if order.tasks[0].id == first]
        self.end(order, FAILED, NOW + MINUTE)
        later = self.item(first).not_before
        assert later is not None
        assert self.serve(later - SECOND) == []
        (order,) = self.serve(later)
        assert order.tasks[0].id == first
        self.end(order, DONE, later)
        (order,) = self.serve(later)
        assert order.tasks[0].id == second

    def test_a_long_queue_is_worked_off_in_its_order(self) -> None:
        self.declare("moss", "wren")
        tasks = [self.task("moss") for _ in range(5)]
        begun = []
        for n in range(12):
            for order in self.serve(NOW + n * SECOND):
                begun += [task.id for task in order.tasks]
                self.end(order, DONE, NOW + n * SECOND)
        assert begun == tasks

    # -- dependencies

    def test_a_task_waits_for_what_it_depends_on(self) -> None:
        self.declare("moss")
        needs = (self.task("moss"), self.task("moss"))
        task = self.task("moss", depends_on=needs, priority=Priority.urgent)
        begun = []
        for n in range(3):
            order = self.take(NOW + n * SECOND)
            begun.append(order.tasks[0].id)
            self.end(order, (DONE, NO_WORK, DONE)[n], NOW + n * SECOND)
        assert begun == [*needs, task]

    def test_what_depends_on_a_completed_task_is_ready_at_once(self) -> None:
        self.declare("moss")
        needs = self.task("moss")
        self.end(self.take())
        task = self.task("moss", depends_on=(needs,))
        assert self.take(NOW + SECOND).tasks[0].id == task

    @pytest.mark.parametrize("change", ["cancel", "fail"])
    def test_what_depends_on_a_task_that_never_will_be_completed_is_blocked_and_says_why(self, change: str) -> None:
        self.declare("moss")
        needs = self.task("moss", not_before=NOW + HOUR)
        early = self.task("moss", depends_on=(needs,))
        self.store.change_task(needs, change, "rana", NOW)
        late = self.task("moss", depends_on=(needs,))
        for task in (early, late):
            assert self.item(task).state is State.blocked
            assert str(needs) in (self.item(task).error or "")
        assert self.due(NOW + HOUR - SECOND) == []

    def test_a_dead_task_taken_up_again_frees_what_it_blocked(self) -> None:
        self.declare("moss")
        needs = self.task("moss", max_retries=0)
        task = self.task("moss", depends_on=(needs,))
        self.end(self.take(), FAILED)
        assert self.item(task).state is State.blocked
        self.store.change_task(needs, "retry", "rana", NOW + MINUTE)
        self.end(self.take(NOW + MINUTE), DONE, NOW + MINUTE)
        assert self.take(NOW + 2 * MINUTE).tasks[0].id == task

    # -- an operator's changes

    @pytest.mark.parametrize(
        ("change", "state"),
        [("cancel", State.cancelled), ("complete", State.completed), ("fail", State.dead_letter)],
    )
    def test_an_operator_may_end_a_task_and_its_end_is_final(self, change: str, state: State) -> None:
        self.declare("moss")
        task = self.task("moss")
        changed = self.store.change_task(task, change, "rana", NOW + MINUTE)
        assert (changed.state, changed.closed_at) == (state, NOW + MINUTE)
        self.reopen()
        assert self.item(task) == changed
        assert self.due(NOW + MINUTE) == []
        told = self.store.events()[-1]
        assert (told.kind, told.item, (told.fields or {})["by"]) == (EventKind.task_changed, task, "rana")
        for other in ("cancel", "complete", "fail"):
            with pytest.raises(Mistake):
                self.store.change_task(task, other, "rana", NOW + MINUTE)
        assert self.item(task) == changed

    @pytest.mark.parametrize("ending", [DONE, FAILED])
    def test_the_end_of_a_run_does_not_undo_the_cancelling_of_its_task(self, ending: Ending) -> None:
        self.declare("moss")
        task = self.task("moss")
        order = self.take()
        cancelled = self.store.change_task(task, "cancel", "rana", NOW)
        self.end(order, ending, NOW + MINUTE)
        assert self.item(task) == cancelled
        (attempt,) = self.store.attempts(task)
        assert attempt.ended_at == NOW + MINUTE

    def test_a_dead_letter_is_taken_up_again_with_its_history(self) -> None:
        self.declare("moss")
        task = self.task("moss", max_retries=0)
        self.end(self.take(), FAILED)
        again = self.store.change_task(task, "retry", "rana", NOW + MINUTE)
        assert (again.state, again.closed_at) == (State.pending, None)
        self.end(self.take(NOW + MINUTE), DONE, NOW + MINUTE)
        assert self.item(task).state is State.completed
        assert [attempt.outcome for attempt in self.store.attempts(task)] == ["failed", "done"]

    def test_only_what_is_dead_failed_or_blocked_is_taken_up_again(self) -> None:
        self.declare("moss")
        task = self.task("moss")
        with pytest.raises(Mistake):
            self.store.change_task(task, "retry", "rana", NOW)
        order = self.take()
        with pytest.raises(Mistake):
            self.store.change_task(task, "retry", "rana", NOW)
        self.end(order)
        with pytest.raises(Mistake):
            self.store.change_task(task, "retry", "rana", NOW)

    def test_a_failed_task_taken_up_again_does_not_wait_out_its_backoff(self) -> None:
        self.declare("moss")
        task = self.task("moss")
        self.end(self.take(), FAILED)
        self.store.change_task(task, "retry", "rana", NOW + SECOND)
        assert self.take(NOW + SECOND).tasks[0].id == task

    def test_changes_of_what_is_no_task_or_that_nobody_knows_are_refused(self) -> None:
        self.declare("moss")
        message, task = self.message("moss"), self.task("moss")
        for id in (message, 999):
            with pytest.raises(Unknown):
                self.store.change_task(id, "cancel", "rana", NOW)
        with pytest.raises(Mistake):
            self.store.change_task(task, "paint", "rana", NOW)
