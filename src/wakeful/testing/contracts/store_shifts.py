"""A shift leases many tasks to one warm run, each settled by itself; steps are recorded once and survive a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wakeful.core.agents import Runner
from wakeful.core.errors import Stale, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import State
from wakeful.core.runs import Ending, Outcome, Result
from wakeful.store.protocol import Order, TaskEnd
from wakeful.testing.contracts.store_case import (
    DONE,
    FAILED,
    HOUR,
    KILLED,
    MINUTE,
    NO_WORK,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    timer,
)

HANDLER = an_agent("moss", runner=Runner.handler, roles=("editor",))
BEAT = NOW + HOUR


class ShiftsContract(StoreCase):
    def shift(self, *tasks: int) -> Order:
        (order,) = self.serve(NOW)
        assert {task.id for task in order.tasks} == set(tasks)
        return order

    def settle_one(self, order: Order, task: int, ending: object = DONE, **more: str) -> Outcome | None:
        end = TaskEnd(task=task, ending=ending, **more)  # type: ignore[arg-type]
        (outcome,) = self.store.finish_tasks(order.run.id, order.run.epoch, [end], NOW + MINUTE)
        return outcome

    def test_a_handler_takes_a_shift_of_its_own_tasks_and_those_of_its_roles(self) -> None:
        self.declare(HANDLER, "wren")
        tasks = [self.task("moss"), self.task(role="editor"), self.task("moss")]
        self.task("moss", not_before=BEAT)
        self.task(role="painter")
        order = self.shift(*tasks)
        assert all(self.item(task).state is State.in_progress for task in tasks)
        assert len(self.store.runs()) == 1
        assert order.run.subject == "task"

    def test_a_shift_is_at_most_32_tasks_and_the_rest_waits_for_the_next(self) -> None:
        self.declare(HANDLER)
        self.end(self.shift(self.task("moss")), DONE, NOW)
        tasks = [self.task("moss") for _ in range(40)]
        order = self.shift(*tasks[:32])
        self.end(order, DONE, NOW + SECOND)
        (order,) = self.serve(NOW + SECOND)
        assert [task.id for task in order.tasks] == tasks[32:]

    def test_while_nobody_knows_how_long_they_take_a_shift_takes_few(self) -> None:
        self.declare(HANDLER)
        tasks = [self.task("moss") for _ in range(40)]
        self.shift(*tasks[:4])

    def test_what_takes_long_is_taken_one_by_one(self) -> None:
        self.declare(HANDLER)
        first, second, third = (self.task("moss") for _ in range(3))
        self.end(self.shift(first, second, third), DONE, NOW + MINUTE)
        more = [self.task("moss") for _ in range(3)]
        (order,) = self.serve(NOW + MINUTE)
        assert [task.id for task in order.tasks] == more[:1]

    def test_a_shift_leaves_their_share_to_the_idle_of_its_role(self) -> None:
        names = ("moss", "wren", "hale")
        self.declare(*(an_agent(name, runner=Runner.handler, roles=("editor",)) for name in names))
        for name in names:
            self.task(name)
        for order in self.serve(NOW):
            self.end(order, DONE, NOW)
        for _ in range(9):
            self.task(role="editor")
        orders = [order for _ in names for order in self.serve(NOW)]
        assert sorted(len(order.tasks) for order in orders) == [3, 3, 3]
        assert {order.run.agent for order in orders} == set(names)

    def test_a_process_takes_one_task_at_a_time(self) -> None:
        self.declare("moss")
        tasks = [self.task("moss"), self.task("moss")]
        self.shift(tasks[0])

    def test_a_shift_keeps_the_order_of_a_key(self) -> None:
        self.declare(HANDLER)
        first, _ = self.task("moss", key="book"), self.task("moss", key="book")
        other = self.task("moss", key="film")
        self.shift(first, other)

    def test_each_task_of_a_shift_is_settled_by_itself_while_the_run_goes_on(self) -> None:
        self.declare(HANDLER)
        good, idle, bad, left = (self.task("moss") for _ in range(4))
        order = self.shift(good, idle, bad, left)
        assert self.settle_one(order, good, DONE, result="swept") is Outcome.done
        assert self.settle_one(order, idle, NO_WORK) is Outcome.no_work
        assert self.settle_one(order, bad, FAILED) is Outcome.failed
        self.reopen()
        assert [self.item(task).state for task in (good, idle, bad, left)] == [
            State.completed,
            State.completed,
            State.failed,
            State.in_progress,
        ]
        assert (self.item(good).result, self.item(good).closed_at) == ("swept", NOW + MINUTE)
        assert self.item(bad).not_before == NOW + MINUTE + 30 * SECOND
        assert self.row(order.run.id).state == "running"
        told = [event.item for event in self.store.events() if event.kind is EventKind.task_ended]
        assert told == [good, idle, bad]

    def test_the_result_of_a_task_is_what_was_returned_else_declared_else_said_else_printed(self) -> None:
        self.declare(HANDLER)
        declared = Result(outcome="done", summary="said", value='{"pages": 2}')
        endings = [
            (Ending(exit_code=0, result=declared), "returned"),
            (Ending(exit_code=0, result=declared), None),
            (Ending(exit_code=0, result=replace(declared, value=None), output="printed"), None),
            (Ending(exit_code=0, output="printed", printed="printed"), None),
        ]
        tasks = [self.task("moss") for _ in endings]
        order = self.shift(*tasks)
        ends = [
            TaskEnd(task=task, ending=ending, result=result)
            for task, (ending, result) in zip(tasks, endings, strict=True)
        ]
        self.store.finish_tasks(order.run.id, order.run.epoch, ends, NOW)
        assert [self.item(task).result for task in tasks] == ["returned", '{"pages": 2}', "said", "printed"]
        assert [self.store.attempts(task)[0].output for task in tasks] == ["", "", "", "printed"]

    def test_a_run_about_one_task_has_the_limit_of_that_task(self) -> None:
        self.declare("moss")
        self.task("moss", timeout=90 * SECOND)
        (order,) = self.serve(NOW)
        assert order.deadline == NOW + 90 * SECOND
        assert [task.timeout for task in order.tasks] == [90 * SECOND]

    def test_the_end_of_a_shift_settles_only_what_is_left_of_it(self) -> None:
        self.declare(HANDLER)
        good, named, left = (self.task("moss") for _ in range(3))
        order = self.shift(good, named, left)
        self.settle_one(order, good)
        before = self.item(good)
        self.end(order, KILLED, NOW + 2 * MINUTE, TaskEnd(task=named, ending=DONE, result="late"))
        assert self.item(good) == before
        assert (self.item(named).state, self.item(named).result) == (State.completed, "late")
        assert (self.item(left).state, self.item(left).attempts) == (State.failed, 1)
        assert self.row(order.run.id).tasks == (good, named, left)

    def test_a_task_of_a_shift_ends_once_and_only_in_its_own_run_and_epoch(self) -> None:
        self.declare(HANDLER)
        task, other = self.task("moss"), self.task("moss", not_before=BEAT)
        order = self.shift(task)
        self.settle_one(order, task)
        before = [self.item(id) for id in (task, other)]
        assert [self.settle_one(order, id, FAILED) for id in (task, other, 999)] == [None, None, None]
        assert [self.item(id) for id in (task, other)] == before
        end = TaskEnd(task=task, ending=DONE)
        with pytest.raises(Stale):
            self.store.finish_tasks(order.run.id, order.run.epoch + 1, [end], NOW)
        self.end(order)
        with pytest.raises(Stale):
            self.settle_one(order, task)

    def test_many_tasks_of_a_shift_are_settled_at_once_each_with_its_own_end(self) -> None:
        self.declare(HANDLER)
        good, bad, left, cancelled = (self.task("moss") for _ in range(4))
        order = self.shift(good, bad, left, cancelled)
        self.store.change_task(cancelled, "cancel", "rana", NOW)
        told = [(good, DONE), (bad, FAILED), (999, DONE), (good, FAILED), (cancelled, DONE)]
        ends = [TaskEnd(task=task, ending=ending) for task, ending in told]
        outcomes = self.store.finish_tasks(order.run.id, order.run.epoch, ends, NOW + MINUTE)
        assert outcomes == [Outcome.done, Outcome.failed, None, None, None]
        states = [self.item(task).state for task in (good, bad, left, cancelled)]
        assert states == [State.completed, State.failed, State.in_progress, State.cancelled]
        told_of = [event for event in self.store.events() if event.kind is EventKind.task_ended]
        assert [event.item for event in told_of] == [good, bad, cancelled]
        # What was taken from the run stays as it is, and is told as that.
        assert [(event.fields or {})["state"] for event in told_of] == ["completed", "failed", "cancelled"]
        (late,) = self.store.attempts(cancelled)
        assert (late.outcome, late.counted, self.item(cancelled).attempts) == (Outcome.done, False, 0)

    def test_an_attempt_in_a_shift_is_as_long_as_the_task_itself_took(self) -> None:
        self.declare(HANDLER)
        plain, bad, unsaid = (self.task("moss") for _ in range(3))
        order = self.shift(plain, bad, unsaid)
        ends = [
            TaskEnd(task=plain, ending=replace(DONE, elapsed=2 * SECOND)),
            TaskEnd(task=bad, ending=replace(FAILED, elapsed=3 * SECOND)),
            TaskEnd(task=unsaid, ending=replace(DONE, elapsed=HOUR)),
        ]
        self.store.finish_tasks(order.run.id, order.run.epoch, ends, NOW + MINUTE)
        tried = [self.store.attempts(task)[0] for task in (plain, bad, unsaid)]
        assert [attempt.ended_at for attempt in tried] == [NOW + MINUTE] * 3
        # None begins before its run.
        assert [attempt.started_at for attempt in tried] == [NOW + 58 * SECOND, NOW + 57 * SECOND, NOW]

    def test_what_a_failed_attempt_printed_is_not_the_result_of_the_task(self) -> None:
        self.declare("moss")
        task = self.task("moss")
        (order,) = self.serve(NOW)
        self.end(order, replace(FAILED, output="no such server"), NOW)
        assert (self.item(task).state, self.item(task).result) == (State.failed, None)
        (order,) = self.serve(NOW + MINUTE)
        self.end(order, DONE, NOW + MINUTE)
        assert (self.item(task).state, self.item(task).result) == (State.completed, None)

    # -- steps

    def test_a_step_is_recorded_once_and_never_replaced(self) -> None:
        self.declare("moss")
        task = self.task("moss")
        order = self.shift(task)
        run, epoch = order.run.id, order.run.epoch
        self.store.save_step(run, epoch, "fetch", None, NOW, task=task)
        assert self.store.steps(run, task=task) == {"fetch": None}
        self.store.save_step(run, epoch, "fetch", "a page", NOW, task=task)
        self.store.save_step(run, epoch, "fetch", "another page", NOW, task=task)
        self.store.save_step(run, epoch, "fetch", None, NOW, task=task)
        self.reopen()
        assert self.store.steps(run, task=task) == {"fetch": "a page"}

    def test_the_steps_of_a_task_are_there_for_its_next_try_and_gone_when_it_is_settled(self) -> None:
        self.declare("moss")
        task = self.task("moss")
        order = self.shift(task)
        self.store.save_step(order.run.id, order.run.epoch, "fetch", "a page", NOW, task=task)
        self.end(order, FAILED)
        (order,) = self.serve(NOW + 30 * SECOND)
        assert self.store.steps(order.run.id, task=task) == {"fetch": "a page"}
        self.end(order, DONE, NOW + 30 * SECOND)
        assert self.store.steps(order.run.id, task=task) == {}

    def test_the_tasks_of_a_shift_have_steps_of_their_own(self) -> None:
        self.declare(HANDLER)
        one, other = self.task("moss"), self.task("moss")
        order = self.shift(one, other)
        self.store.save_step(order.run.id, order.run.epoch, "fetch", "a page", NOW, task=one)
        assert self.store.steps(order.run.id, task=other) == {}

    def test_the_steps_of_a_beat_hold_as_long_as_the_beat_does(self) -> None:
        self.declare("moss")
        order = self.start(timer("moss", BEAT), BEAT)
        self.store.save_step(order.run.id, order.run.epoch, "fetch", "a page", BEAT)
        self.end(order, FAILED, BEAT)
        held = self.start(timer("moss", BEAT + HOUR), BEAT + HOUR)
        assert self.store.steps(held.run.id) == {"fetch": "a page"}
        self.end(held, DONE, BEAT + HOUR)
        fresh = self.start(timer("moss", BEAT + 2 * HOUR), BEAT + 2 * HOUR)
        assert self.store.steps(fresh.run.id) == {}

    def test_a_step_of_an_ended_run_an_older_epoch_or_another_task_is_refused(self) -> None:
        self.declare("moss")
        task, other = self.task("moss"), self.task("moss", not_before=BEAT)
        order = self.shift(task)
        run, epoch = order.run.id, order.run.epoch
        for old in (
            {"epoch": epoch - 1, "task": task},
            {"epoch": epoch, "task": other},
        ):
            with pytest.raises(Stale):
                self.store.save_step(run, old["epoch"], "fetch", "a page", NOW, task=old["task"])
        self.end(order)
        with pytest.raises(Stale):
            self.store.save_step(run, epoch, "fetch", "a page", NOW, task=task)

    def test_the_steps_of_an_unknown_run_are_unknown(self) -> None:
        with pytest.raises(Unknown):
            self.store.steps(999)
