"""What is done to tasks by hand, what that does to those that depend on them, and the order of a key."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from wakeful.core.agents import Limits, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.errors import Mistake, Stale, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import State
from wakeful.core.runs import Ending, ErrorClass, Result
from wakeful.core.wakes import Cause, Subject
from wakeful.store.protocol import Order, TaskEnd
from wakeful.testing.contracts.store_case import DONE, FAILED, HOUR, MINUTE, NOW, SECOND, StoreCase, an_agent, operator

# Without a timer: what runs is a task.
MOSS = an_agent("moss", cadence=Cadence())
WREN = an_agent("wren", cadence=Cadence())
PARKED = Ending(exit_code=1, result=Result(error="no key", error_class=ErrorClass.config))
HALE = an_agent("hale", runner=Runner.handler, cadence=Cadence(), roles=("editor",))
SKYE = an_agent("skye", runner=Runner.handler, cadence=Cadence(), roles=("editor",))


class ChangesContract(StoreCase):
    def states(self, *tasks: int) -> list[str]:
        return [self.item(task).state.value for task in tasks]

    def change(self, task: int, change: str, now: datetime = NOW, **more: str) -> None:
        self.store.change_task(task, change, "rana", now, **more)

    def one(self, now: datetime = NOW) -> Order:
        (order,) = self.serve(now)
        return order

    # -- what depends on it

    def test_what_depends_on_a_dead_task_is_blocked_all_the_way_down_and_names_what_it_waits_for(self) -> None:
        self.declare(MOSS)
        a = self.task("moss", max_retries=0)
        b = self.task("moss", depends_on=(a,))
        c = self.task("moss", depends_on=(b,))
        other = self.task("moss", depends_on=(self.task("moss", not_before=NOW + HOUR),))
        self.end(self.one(), FAILED)
        assert self.states(a, b, c, other) == ["dead_letter", "blocked", "blocked", "pending"]
        assert self.item(b).error == f"depends on task {a}, which is dead_letter"
        assert self.item(c).error == f"depends on task {b}, which is blocked"

    def test_a_dead_task_taken_up_again_frees_a_diamond_of_tasks(self) -> None:
        self.declare(MOSS)
        a = self.task("moss")
        b, c = self.task("moss", depends_on=(a,)), self.task("moss", depends_on=(a,))
        d = self.task("moss", depends_on=(b, c))
        self.change(a, "fail")
        assert self.states(b, c, d) == ["blocked"] * 3
        self.change(a, "retry")
        assert self.states(a, b, c, d) == ["pending"] * 4
        assert [self.item(task).error for task in (b, c, d)] == [None] * 3
        begun = []
        for n in range(4):
            order = self.one(NOW + n * SECOND)
            begun.append(order.tasks[0].id)
            self.end(order, DONE, NOW + n * SECOND)
        assert begun == [a, b, c, d]

    def test_what_depends_on_a_parked_task_is_blocked_until_that_is_taken_up_or_completed(self) -> None:
        self.declare(MOSS)
        for change in ("retry", "complete"):
            a = self.task("moss", max_retries=0)
            b = self.task("moss", depends_on=(a,))
            c = self.task("moss", depends_on=(b,))
            self.end(self.one(), PARKED)
            assert self.states(a, b, c) == ["blocked"] * 3
            late = self.task("moss", depends_on=(a,))
            assert self.states(a, b, c, late) == ["blocked"] * 4
            assert self.item(b).error == self.item(late).error == f"depends on task {a}, which is blocked"
            self.change(a, change)
            assert self.states(b, c, late) == ["pending"] * 3
            assert [self.item(task).waits_for for task in (b, c, late)] == [
                int(change == "retry"),
                1,
                change == "retry",
            ]
            self.store.change_tasks([a, b, c, late], "cancel", "rana", NOW)

    def test_what_waits_for_two_dead_tasks_is_freed_when_both_are_taken_up(self) -> None:
        self.declare(MOSS)
        a, b = self.task("moss"), self.task("moss")
        c = self.task("moss", depends_on=(a, b))
        for task in (a, b):
            self.change(task, "fail")
        self.change(a, "retry")
        assert self.states(c) == ["blocked"]
        self.change(b, "retry")
        assert self.states(c) == ["pending"]

    def test_what_is_blocked_for_a_reason_of_its_own_is_not_freed_with_what_it_needs(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence(), limits=Limits(chain=0)))
        a = self.task("moss", not_before=NOW + HOUR)
        self.task("moss")
        run = self.one().run.id
        deep = self.task("moss", by_run=run, depends_on=(a,))
        last = self.task("moss", depends_on=(deep,))
        why = self.item(deep).error or ""
        assert why.startswith("chain: ")
        assert self.item(last).error == f"depends on task {deep}, which is blocked"
        self.change(a, "fail")
        self.change(a, "retry")
        assert (self.item(deep).state, self.item(deep).error) == (State.blocked, why)
        self.change(deep, "retry")
        assert self.states(a, deep, last) == ["pending"] * 3

    def test_a_blocked_task_cannot_be_taken_up_before_what_it_needs(self) -> None:
        self.declare(MOSS)
        a = self.task("moss")
        b = self.task("moss", depends_on=(a,))
        self.change(a, "fail")
        with pytest.raises(Mistake, match=f"depends on task {a}, which is dead_letter"):
            self.change(b, "retry")
        assert self.store.change_tasks([b, a], "retry", "rana", NOW) == [a]
        assert self.states(a, b) == ["pending", "pending"]

    def test_many_that_end_at_once_free_what_waits_for_all_of_them(self) -> None:
        self.declare(HALE)
        needs = tuple(self.task("hale") for _ in range(4))
        last = self.task("hale", depends_on=needs)
        order = self.one()
        assert [task.id for task in order.tasks] == list(needs)
        ends = [TaskEnd(task=task, ending=DONE) for task in needs]
        self.store.finish_tasks(order.run.id, order.run.epoch, ends, NOW)
        assert (self.item(last).state, self.item(last).waits_for) == (State.pending, 0)

    # -- ended by hand

    def test_a_task_completed_by_hand_keeps_its_result_and_frees_what_waits_for_it(self) -> None:
        self.declare(MOSS)
        a = self.task("moss")
        b = self.task("moss", depends_on=(a,))
        done = self.store.change_task(a, "complete", "rana", NOW, result='{"n": 1}')
        assert (done.state, done.result, done.error) == (State.completed, '{"n": 1}', None)
        assert self.one().tasks[0].id == b

    def test_whoever_holds_a_run_is_asked_to_end_the_task_that_was_taken_from_it(self) -> None:
        self.store.join("one", "attic", "", NOW, MINUTE)
        self.declare(HALE)
        tasks = [self.task("hale") for _ in range(3)]
        order = self.one()
        self.change(tasks[1], "cancel", NOW + SECOND)
        (stop,) = self.store.stopping("one")
        assert (stop.run, stop.epoch, stop.by, stop.task) == (order.run.id, order.run.epoch, "rana", tasks[1])
        assert self.store.renew("one", [(order.run.id, order.run.epoch)], NOW + SECOND, MINUTE).next_at == NOW + SECOND
        self.end(order, DONE, NOW + MINUTE)
        assert self.store.stopping("one") == []
        assert self.states(*tasks) == ["completed", "cancelled", "completed"]

    @pytest.mark.parametrize("shift", [False, True])
    def test_a_task_that_is_cancelled_before_its_run_is_claimed_never_begins(self, shift: bool) -> None:
        self.declare(HALE)
        tasks = [self.task("hale") for _ in range(1 + shift)]
        (decision,) = [self.decide(wake) for wake in self.due()]
        assert decision.run is not None
        self.change(tasks[0], "cancel")
        orders = self.claim()
        assert [[task.id for task in order.tasks] for order in orders] == ([[tasks[1]]] if shift else [])
        assert self.store.attempts(tasks[0]) == []
        for order in orders:
            self.end(order, DONE)
        assert self.serve(NOW + MINUTE) == []
        assert self.states(*tasks) == ["cancelled", "completed"][: 1 + shift]

    def test_a_step_of_a_task_that_was_taken_away_is_refused(self) -> None:
        self.declare(MOSS)
        task = self.task("moss")
        order = self.one()
        self.store.save_step(order.run.id, order.run.epoch, "fetch", "a page", NOW, task=task)
        self.change(task, "cancel")
        with pytest.raises(Stale):
            self.store.save_step(order.run.id, order.run.epoch, "write", "a line", NOW, task=task)
        assert self.store.steps(order.run.id, task=task) == {}

    def test_a_task_taken_up_again_counts_its_attempts_anew_and_keeps_its_history(self) -> None:
        self.declare(MOSS)
        task = self.task("moss", max_retries=1)
        now = NOW
        for round in range(2):
            for _ in range(2):
                order = self.one(now)
                self.end(order, FAILED, now)
                now = self.item(task).not_before or now
            assert self.states(task) == ["dead_letter"]
            assert len(self.store.attempts(task)) == 2 * (round + 1)
            self.change(task, "retry", now)
            assert (self.item(task).attempts, self.item(task).error) == (0, None)

    def test_many_are_changed_at_once_those_whose_state_allows_it(self) -> None:
        self.declare(MOSS)
        tasks = [self.task("moss") for _ in range(4)]
        message = self.message("moss")
        self.change(tasks[1], "complete")
        wanted = [tasks[0], 9_999, tasks[1], message, tasks[2], tasks[0]]
        assert self.store.change_tasks(wanted, "cancel", "rana", NOW, reason="too late") == [tasks[0], tasks[2]]
        assert self.states(*tasks) == ["cancelled", "completed", "cancelled", "pending"]
        assert self.item(tasks[0]).error == "too late"
        assert len(self.store.events(kinds=(EventKind.task_changed,))) == 3
        with pytest.raises(Mistake, match="unknown change"):
            self.store.change_tasks(tasks, "forget", "rana", NOW)

    # -- removed

    def test_what_has_ended_is_removed_and_told_whole(self) -> None:
        self.declare(MOSS)
        task = self.task(
            "moss", subject="sweep", body="the yard", payload="[1]", dedupe="k", max_retries=0, tags=("yard",)
        )
        order = self.one()
        self.store.save_step(order.run.id, order.run.epoch, "fetch", None, NOW, task=task)
        with pytest.raises(Mistake, match="in_progress"):
            self.change(task, "remove")
        self.end(order, FAILED)
        gone = self.store.change_task(task, "remove", "rana", NOW + MINUTE, reason="a mistake")
        assert (gone.id, gone.state) == (task, State.dead_letter)
        assert self.store.item(task) is None
        assert self.store.attempts(task) == []
        assert self.store.keyed_task("k") is None
        told = self.store.events()[-1]
        fields = told.fields or {}
        assert (told.kind, told.item, told.agent) == (EventKind.task_changed, task, "moss")
        assert {key: fields[key] for key in ("change", "by", "from", "state", "reason")} == {
            "change": "remove",
            "by": "rana",
            "from": "dead_letter",
            "state": "removed",
            "reason": "a mistake",
        }
        assert (fields["subject"], fields["body"], fields["payload"]) == ("sweep", "the yard", "[1]")
        assert (fields["dedupe"], fields["tags"], fields["error"]) == ("k", ["yard"], gone.error)
        tries = fields["tries"]
        assert isinstance(tries, list) and [attempt["outcome"] for attempt in tries] == ["failed"]
        with pytest.raises(Unknown):
            self.change(task, "remove")
        # Its key is free, and its run can be forgotten.
        assert self.task("moss", NOW + MINUTE, dedupe="k") > task

    def test_a_task_that_a_run_is_still_at_is_not_removed(self) -> None:
        self.declare(MOSS)
        task = self.task("moss")
        order = self.one()
        self.change(task, "cancel")
        with pytest.raises(Mistake, match=f"run {order.run.id} is still at task {task}"):
            self.change(task, "remove")
        assert self.store.change_tasks([task], "remove", "rana", NOW) == []
        self.end(order, DONE)
        self.change(task, "remove")
        assert self.store.item(task) is None

    def test_what_waits_for_a_removed_task_says_so_and_goes_on_only_when_it_is_told_to(self) -> None:
        self.declare(MOSS)
        a = self.task("moss")
        b = self.task("moss", depends_on=(a,))
        c = self.task("moss", depends_on=(b,))
        self.change(a, "cancel")
        self.change(a, "remove")
        assert self.states(b, c) == ["blocked", "blocked"]
        assert self.item(b).error == f"depends on task {a}, which is removed"
        assert self.serve(NOW + MINUTE) == []
        self.change(b, "retry", NOW + MINUTE)
        assert self.states(b, c) == ["pending", "pending"]
        order = self.one(NOW + MINUTE)
        self.end(order, DONE, NOW + MINUTE)
        assert (order.tasks[0].id, self.item(c).waits_for) == (b, 0)

    def test_what_waited_for_a_removed_task_is_not_freed_by_another(self) -> None:
        self.declare(MOSS)
        a, b = self.task("moss"), self.task("moss")
        c = self.task("moss", depends_on=(a, b))
        for task in (b, a):
            self.change(task, "fail")
        self.change(a, "remove")
        self.change(b, "retry")
        assert (self.item(c).state, self.item(c).error) == (State.blocked, f"depends on task {a}, which is removed")
        self.change(c, "retry")
        assert (self.item(c).state, self.item(c).waits_for) == (State.pending, 1)
        self.end(self.one(), DONE)
        assert self.one(NOW + SECOND).tasks[0].id == c

    def test_what_waited_for_a_completed_task_goes_on_when_that_is_removed(self) -> None:
        self.declare(MOSS)
        a = self.task("moss")
        b = self.task("moss", depends_on=(a,), not_before=NOW + HOUR)
        self.change(a, "complete")
        self.change(a, "remove")
        assert self.states(b) == ["pending"]
        assert self.one(NOW + HOUR).tasks[0].id == b

    # -- the order of a key

    def test_upload_delete_and_upload_again_are_done_in_their_order(self) -> None:
        self.declare(MOSS, WREN)
        tasks = [self.task(agent, key="report.pdf", max_retries=1) for agent in ("moss", "wren", "moss")]
        other = self.task("wren", key="letter.txt")
        orders = self.serve(NOW)
        assert sorted(order.tasks[0].id for order in orders) == [tasks[0], other]
        for order in orders:
            self.end(order, FAILED if order.tasks[0].id == tasks[0] else DONE, NOW)
        # The first has failed and waits for its next try: nobody overtakes it.
        assert self.serve(NOW + SECOND) == []
        order = self.one(NOW + MINUTE)
        assert order.tasks[0].id == tasks[0]
        self.end(order, FAILED, NOW + MINUTE)
        assert self.states(*tasks) == ["dead_letter", "pending", "pending"]
        # It is dead: the next goes on; that one is cancelled while it waits: the last goes on.
        self.change(tasks[1], "cancel", NOW + MINUTE)
        order = self.one(NOW + 2 * MINUTE)
        assert order.tasks[0].id == tasks[2]

    def test_two_of_one_key_are_never_in_one_shift_nor_in_two(self) -> None:
        self.declare(HALE, SKYE)
        tasks = [self.task(None, role="editor", key="k") for _ in range(3)]
        others = [self.task(None, role="editor") for _ in range(2)]
        held = [task.id for _ in range(2) for order in self.serve(NOW) for task in order.tasks]
        assert sorted(held) == [tasks[0], *others]
        assert self.serve(NOW + SECOND) == []

    def test_an_older_one_that_is_taken_up_again_waits_for_the_one_under_way(self) -> None:
        self.declare(MOSS, WREN)
        first = self.task("moss", key="k")
        second = self.task("wren", key="k")
        self.change(first, "fail")
        order = self.one()
        assert order.tasks[0].id == second
        self.change(first, "retry")
        assert self.serve(NOW + SECOND) == []
        self.end(order, DONE, NOW + SECOND)
        assert self.one(NOW + 2 * SECOND).tasks[0].id == first

    def test_the_next_of_a_key_waits_for_the_worker_from_which_the_one_before_was_taken(self) -> None:
        self.declare(MOSS, WREN)
        first, second = self.task("moss", key="k"), self.task("wren", key="k")
        order = self.one()
        self.change(first, "fail")
        assert self.serve(NOW + SECOND) == []
        with pytest.raises(Mistake, match="still at task"):
            self.change(first, "retry")
        self.end(order, DONE, NOW + SECOND)
        assert self.one(NOW + 2 * SECOND).tasks[0].id == second

    def test_the_steps_of_a_dead_task_are_there_when_it_is_taken_up_again(self) -> None:
        self.declare(MOSS)
        task = self.task("moss", max_retries=0)
        order = self.one()
        self.store.save_step(order.run.id, order.run.epoch, "fetch", "a page", NOW, task=task)
        self.end(order, FAILED)
        self.change(task, "retry")
        order = self.one(NOW + MINUTE)
        assert self.store.steps(order.run.id, task=task) == {"fetch": "a page"}
        self.end(order, DONE, NOW + MINUTE)
        assert self.store.steps(order.run.id, task=task) == {}

    def test_a_shift_leaves_out_what_shares_a_key_with_the_shift_of_another(self) -> None:
        self.declare(HALE, SKYE)
        first, second = (self.task(None, role="editor", key="k") for _ in range(2))
        self.change(first, "fail")
        order = self.one()
        assert [task.id for task in order.tasks] == [second]
        self.change(first, "retry")
        other = self.task(None, NOW + SECOND, role="editor")
        assert [task.id for task in self.one(NOW + SECOND).tasks] == [other]
        self.end(order, DONE, NOW + 2 * SECOND)
        assert [task.id for task in self.one(NOW + 3 * SECOND).tasks] == [first]

    def test_one_that_has_waited_for_its_agent_lets_an_older_one_pass_that_is_taken_up_again(self) -> None:
        self.declare(MOSS, WREN)
        first = self.task("wren", key="k")
        self.change(first, "fail")
        busy = self.task("moss")
        second = self.task("moss", key="k")
        order = self.one()
        assert order.tasks[0].id == busy
        self.store.ask([replace(operator("moss"), cause=Cause.task, subject=Subject.task, task=second)], NOW)
        self.change(first, "retry", NOW + SECOND)
        self.end(order, DONE, NOW + SECOND)
        held = [order.tasks[0].id for order in self.serve(NOW + 2 * SECOND)]
        assert held == [first]
        assert self.states(second) == ["pending"]
