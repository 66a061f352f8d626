"""A run about something else takes a task for itself: leased to it, settled by itself, and never lost with it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from wakeful.control.auditing.audit import audit
from wakeful.core.agents import Limits
from wakeful.core.errors import Mistake, Stale
from wakeful.core.events import EventKind
from wakeful.core.items import Item, Priority, State
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result
from wakeful.core.wakes import FLEET, ONE_OFF, Pause, agent_scope, source_scope
from wakeful.store.protocol import Order, TaskEnd
from wakeful.testing.contracts.store_case import (
    ADMIT,
    BY_US,
    DEFER,
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NO_WORK,
    NOW,
    REFUSE,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    tick,
    work,
)

EDITOR = an_agent("moss", roles=("editor",))
SOON, LATER = NOW + SECOND, NOW + MINUTE


class TakingContract(StoreCase):
    def try_to_take(self, order: Order, now: datetime = SOON, task: int | None = None) -> Item | None:
        return self.store.take_task(order.run.id, order.run.epoch, now, task=task)

    def taken_by(self, order: Order, now: datetime = SOON, task: int | None = None) -> int:
        item = self.try_to_take(order, now, task)
        assert item is not None
        return item.id

    def completed_by(self, order: Order, task: int, now: datetime = LATER) -> Outcome | None:
        end = TaskEnd(task=task, ending=Ending(exit_code=0), result="written")
        return self.store.finish_tasks(order.run.id, order.run.epoch, [end], now)[0]

    def adds_up(self, now: datetime = LATER) -> bool:
        report = audit(self.store, now)
        assert report.adds_up, report
        return report.adds_up

    def test_a_beat_takes_the_best_placed_task_of_its_agents_queues_and_each_one_once(self) -> None:
        self.declare(EDITOR, "wren")
        beat = self.start(tick("moss"))
        self.task("wren")
        last, first, second = self.task("moss"), self.task(role="editor", priority=Priority.urgent), self.task("moss")
        self.task("moss", not_before=NOW + HOUR)
        found = [self.taken_by(beat) for _ in range(3)]
        assert found == [first, last, second]
        assert self.try_to_take(beat) is None
        assert all(self.item(task).state is State.in_progress for task in found)
        assert set(self.row(beat.run.id).tasks) == set(found) and self.row(beat.run.id).subject == "beat"
        assert len(self.store.runs()) == 1 and self.adds_up()

    def test_what_it_completes_is_completed_while_the_run_goes_on_and_its_beat_is_settled_by_itself(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task(role="editor")
        self.taken_by(beat)
        assert self.completed_by(beat, task) is Outcome.done
        assert (self.item(task).state, self.item(task).result) == (State.completed, "written")
        (attempt,) = self.store.attempts(task)
        assert (attempt.run, attempt.outcome, attempt.counted) == (beat.run.id, Outcome.done, True)
        assert self.completed_by(beat, task) is None
        assert self.end(beat, NO_WORK, LATER) is Outcome.no_work
        assert self.standing("moss").idle_streak == 1 and self.item(task).result == "written" and self.adds_up()

    @pytest.mark.parametrize("ending", [DONE, NO_WORK], ids=["done", "no_work"])
    def test_what_a_run_that_ends_well_has_not_completed_goes_back_as_a_failed_attempt(self, ending: Ending) -> None:
        self.declare(EDITOR)
        inbox, task = self.start(operator("moss")), self.task("moss")
        self.taken_by(inbox)
        self.end(inbox, ending, LATER)
        item = self.item(task)
        assert (item.state, item.attempts) == (State.failed, 1)
        assert item.error is not None and "without completing it" in item.error
        assert item.not_before is not None and item.not_before > LATER
        assert self.row(inbox.run.id).outcome in (Outcome.done, Outcome.no_work) and self.adds_up()

    def test_what_a_run_that_fails_has_not_completed_fails_with_it_and_is_dead_after_its_retries(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss", max_retries=0)
        self.taken_by(beat)
        self.end(beat, FAILED, LATER)
        (attempt,) = self.store.attempts(task)
        assert self.item(task).state is State.dead_letter and attempt.error == "exit code 1" and self.adds_up()

    def test_a_quota_that_is_used_up_puts_it_off_and_counts_as_no_attempt(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        said = Result(error="no more", error_class=ErrorClass.quota, retry_at=NOW + HOUR)
        self.end(beat, Ending(exit_code=1, result=said), LATER)
        assert (self.item(task).state, self.item(task).attempts) == (State.pending, 0) and self.adds_up()

    def test_a_run_that_we_end_gives_back_what_it_took_as_no_attempt(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        self.end(beat, BY_US, LATER)
        assert (self.item(task).state, self.item(task).attempts) == (State.pending, 0) and self.adds_up()

    def test_what_it_has_tried_it_does_not_get_again_but_the_next_run_does(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        given_up = TaskEnd(task=task, ending=Ending(result=Result(error="not today")))
        self.store.finish_tasks(beat.run.id, beat.run.epoch, [given_up], SOON)
        assert self.item(task).error == "not today"
        assert self.try_to_take(beat, NOW + HOUR) is None and self.try_to_take(beat, NOW + HOUR, task) is None
        self.end(beat, DONE, NOW + HOUR)
        again = self.start(tick("moss", NOW + HOUR), NOW + HOUR)
        assert self.taken_by(again, NOW + HOUR) == task
        assert self.completed_by(again, task, NOW + HOUR) is Outcome.done
        assert [attempt.outcome for attempt in self.store.attempts(task)] == ["failed", "done"]
        assert self.adds_up(NOW + HOUR)

    def test_a_task_that_is_named_is_taken_if_it_is_this_agents_and_could_begin(self) -> None:
        self.declare(EDITOR, "wren")
        beat = self.start(tick("moss"))
        foreign, first, named = self.task("wren"), self.task("moss"), self.task("moss")
        waits, later = self.task("moss", depends_on=(first,)), self.task("moss", not_before=NOW + HOUR)
        assert [self.try_to_take(beat, SOON, task) for task in (foreign, waits, later, 999)] == [None] * 4
        assert self.taken_by(beat, SOON, named) == named
        assert self.item(first).state is State.pending and self.adds_up()

    def test_a_one_off_has_a_run_of_its_own(self) -> None:
        self.declare(EDITOR)
        beat, one_off = self.start(tick("moss")), self.task("moss", source=ONE_OFF)
        assert self.try_to_take(beat) is None and self.try_to_take(beat, SOON, one_off) is None

    def test_a_run_about_tasks_takes_none(self) -> None:
        self.declare(EDITOR)
        mine = self.task("moss")
        order = self.start(work(mine, "moss"))
        self.task("moss")
        with pytest.raises(Mistake, match="about tasks of its own"):
            self.try_to_take(order)

    def test_an_older_epoch_and_a_run_that_has_ended_take_nothing(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        with pytest.raises(Stale):
            self.store.take_task(beat.run.id, beat.run.epoch - 1, SOON)
        self.end(beat, DONE, SOON)
        with pytest.raises(Stale):
            self.try_to_take(beat, LATER)
        assert self.item(task).state is State.pending

    @pytest.mark.parametrize("scope", [FLEET, agent_scope("moss"), source_scope("mail")])
    def test_nothing_is_taken_while_a_pause_holds_it(self, scope: str) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss", source="mail")
        self.store.pause(Pause(scope=scope, owner="operator", reason="", since=SOON), SOON)
        assert self.try_to_take(beat) is None
        self.store.resume(scope, "operator", SOON)
        assert self.taken_by(beat) == task and self.adds_up()

    def test_of_one_causal_key_one_is_held_at_a_time_whoever_has_it(self) -> None:
        self.declare(EDITOR, an_agent("wren", roles=("editor",)))
        beat, other = self.start(tick("moss")), self.start(tick("wren"))
        first, second = self.task(role="editor", key="report"), self.task(role="editor", key="report")
        assert self.taken_by(beat) == first
        assert self.try_to_take(other) is None
        self.completed_by(beat, first)
        assert self.taken_by(other, LATER) == second and self.adds_up()

    def test_a_task_that_waits_for_a_slot_may_be_taken_and_its_wake_is_then_moot(self) -> None:
        self.declare(EDITOR, "wren", workers=1)
        self.start(work(self.task("wren"), "wren"))
        waiting, next_one = self.task("moss"), self.task("moss")
        assert self.decide(work(waiting, "moss")).verdict.kind is DEFER
        beat = self.start(tick("moss"))
        assert self.taken_by(beat) == waiting
        self.serve(SOON)
        (row,) = [row for row in self.store.wakes(agent="moss") if row.wake.task == waiting]
        assert (row.state, row.guard) == ("refused", "moot")
        assert self.item(waiting).state is State.in_progress and self.taken_by(beat) == next_one and self.adds_up()

    def test_what_is_taken_is_offered_to_nobody_else(self) -> None:
        self.declare(EDITOR, an_agent("wren", roles=("editor",)))
        beat, task = self.start(tick("moss")), self.task(role="editor")
        (wake,) = self.due(SOON)
        self.taken_by(beat)
        assert self.due(SOON) == []
        assert self.decide(wake, SOON).verdict.kind is REFUSE
        self.end(beat, BY_US, SOON)
        later = NOW + HOUR / 2
        (order,) = self.serve(later)
        assert [each.id for each in order.tasks] == [task] and self.adds_up(later)

    def test_a_task_that_is_cancelled_meanwhile_ends_no_beat_and_completing_it_changes_nothing(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        self.store.change_task(task, "cancel", "operator", SOON)
        assert self.store.stopping("one") == []
        assert self.completed_by(beat, task) is None
        self.end(beat, DONE, LATER)
        assert self.item(task).state is State.cancelled and self.adds_up()

    def test_a_run_whose_node_is_gone_gives_back_what_it_took(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        lost = NOW + HOUR
        self.set_clock(lost)
        ((run, epoch),) = self.store.orphans(lost)
        assert (run, epoch) == (beat.run.id, beat.run.epoch)
        self.end(beat, Ending(orphaned=True), lost)
        assert (self.item(task).state, self.item(task).attempts) == (State.failed, 1)
        with pytest.raises(Stale):
            self.completed_by(beat, task, lost)
        assert self.adds_up(lost)

    def test_taking_is_told_by_an_event(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        (event,) = [event for event in self.store.events(limit=1000) if event.kind is EventKind.task_taken]
        assert (event.run, event.item, event.agent, event.at) == (beat.run.id, task, "moss", SOON)

    def test_what_a_run_adds_stands_deeper_than_what_it_took(self) -> None:
        chained = an_agent("moss", limits=Limits(chain=1))
        self.declare(chained)
        first = self.start(tick("moss"))
        near = self.task("moss", by_run=first.run.id)
        self.end(first, DONE, NOW)
        assert self.item(near).state is State.pending
        second = self.start(tick("moss"))
        far = self.task("moss", by_run=second.run.id)
        assert self.item(far).state is State.pending
        self.taken_by(second)
        too_far = self.task("moss", SOON, by_run=second.run.id)
        assert self.item(too_far).state is State.blocked
        assert self.decide(work(far, "moss", SOON, by_run=second.run.id), SOON).verdict.kind is not ADMIT
        assert self.adds_up()

    def test_steps_of_what_it_took_are_kept_until_it_is_completed(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        self.store.save_step(beat.run.id, beat.run.epoch, "fetch", "1", SOON, task=task)
        self.end(beat, FAILED, SOON)
        again = self.start(tick("moss", LATER), LATER)
        assert self.taken_by(again, LATER) == task
        assert self.store.steps(again.run.id, task=task) == {"fetch": "1"}
        self.completed_by(again, task)
        assert self.store.steps(again.run.id, task=task) == {} and self.adds_up()

    def test_retention_takes_a_beat_with_what_it_took_once_both_have_ended(self) -> None:
        self.declare(EDITOR)
        beat, task = self.start(tick("moss")), self.task("moss")
        self.taken_by(beat)
        self.completed_by(beat, task)
        self.end(beat, DONE, LATER)
        self.end(self.start(tick("moss", LATER), LATER), DONE, LATER)
        month = LATER + timedelta(days=31)
        for _ in range(2):
            self.store.forget(NOW + HOUR, NOW + HOUR, month)
        assert self.store.item(task) is None and self.store.run(beat.run.id) is None
        assert self.adds_up(month)

    def test_what_a_person_took_up_again_during_the_run_may_be_taken_and_completed_in_it(self) -> None:
        self.declare(EDITOR)
        task = self.task("moss")
        self.store.change_task(task, "fail", "operator", NOW)
        beat = self.start(tick("moss"))
        self.store.change_task(task, "retry", "operator", SOON)
        assert self.taken_by(beat) == task
        assert self.completed_by(beat, task) is Outcome.done
        assert self.item(task).state is State.completed and self.adds_up()
