"""What an order tells of the past: the beat, the last run, the steps that are recorded, and the journal of a dream."""

from __future__ import annotations

from datetime import datetime, timedelta

from wakeful.core.agents import Runner
from wakeful.core.items import Observation
from wakeful.core.journal import Journal
from wakeful.core.lifecycle import Kind, Lifecycle, State
from wakeful.core.orders import Order
from wakeful.core.runs import Ending, Result
from wakeful.store.protocol import TaskEnd
from wakeful.testing.contracts.store_case import (
    BY_US,
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
    operator,
    tick,
    work,
)

DAY = Lifecycle("add", (State("add", next="sleep"), State("sleep", kind=Kind.rem, next="add")))


def said(summary: str) -> Ending:
    return Ending(exit_code=0, result=Result(summary=summary))


class OrdersContract(StoreCase):
    def a_dreamer(self) -> None:
        self.declare(an_agent("moss", lifecycle=DAY), "wren")

    def one_beat(self, ending: Ending = DONE, at: timedelta = timedelta()) -> Order:
        """One beat of moss, from its start to its end."""
        order = self.start(tick("moss", NOW + at), NOW + at)
        self.end(order, ending, NOW + at)
        return order

    def dream(self, at: timedelta) -> Journal:
        """The journal that the next beat of moss is given; it then ends done."""
        order = self.one_beat(DONE, at)
        assert order.journal is not None
        return order.journal

    # -- the beat

    def test_the_number_of_the_beat_grows_when_one_is_settled_not_when_one_is_tried(self) -> None:
        self.declare("moss")
        beats = [
            self.one_beat(ending, n * MINUTE).beat for n, ending in enumerate((FAILED, KILLED, DONE, NO_WORK, DONE))
        ]
        assert beats == [0, 0, 0, 1, 2]

    # -- the last run

    def test_a_first_run_is_told_of_no_other(self) -> None:
        self.declare("moss")
        assert self.one_beat().last is None

    def test_a_run_is_told_what_came_of_the_one_before_it(self) -> None:
        self.declare("moss", "wren")
        endings = (said("wrote a page"), FAILED, BY_US, NO_WORK, DONE)
        told = [self.one_beat(ending, n * MINUTE).last for n, ending in enumerate((*endings, DONE))]
        assert told == [
            None,
            "done: wrote a page",
            "failed: exit code 1",
            "killed: ended by operator",
            "no_work: NO-WORK",
            "done",
        ]
        assert self.start(operator("wren", NOW + HOUR), NOW + HOUR).last is None

    def test_a_run_that_was_void_is_not_the_last_one(self) -> None:
        self.declare("moss")
        self.one_beat(said("wrote a page"))
        order = self.start(tick("moss", NOW + MINUTE), NOW + MINUTE)
        self.store.void(order.run.id, order.run.epoch, NOW + MINUTE)
        (again,) = self.serve(NOW + 2 * MINUTE)
        assert again.last == "done: wrote a page"

    # -- steps

    def test_the_steps_of_a_held_beat_are_handed_to_its_next_run(self) -> None:
        self.declare("moss")
        first = self.start(tick("moss"))
        self.store.save_step(first.run.id, first.run.epoch, "fetch", "a page", NOW)
        self.store.save_step(first.run.id, first.run.epoch, "send", None, NOW + SECOND)
        self.end(first, FAILED)
        second = self.start(tick("moss", NOW + MINUTE), NOW + MINUTE)
        assert (first.steps, second.steps) == ({}, {None: {"fetch": "a page", "send": None}})
        assert second.beat == first.beat
        self.end(second, DONE, NOW + MINUTE)
        assert self.start(tick("moss", NOW + HOUR), NOW + HOUR).steps == {}

    def test_a_run_of_the_inbox_is_not_told_the_steps_of_the_beat(self) -> None:
        self.declare("moss")
        first = self.start(tick("moss"))
        self.store.save_step(first.run.id, first.run.epoch, "fetch", "a page", NOW)
        self.end(first, FAILED)
        assert self.start(operator("moss", NOW + MINUTE), NOW + MINUTE).steps == {}

    def test_each_task_of_a_shift_is_handed_its_own_steps_and_those_without_any_are_left_out(self) -> None:
        self.declare(an_agent("moss", runner=Runner.handler))
        one, two, three = (self.task("moss") for _ in range(3))
        shift = self.start(work(one, "moss"))
        for task, name in ((one, "fetch"), (two, "send")):
            self.store.save_step(shift.run.id, shift.run.epoch, name, f"of {task}", NOW, task=task)
        self.end(shift, FAILED, NOW, TaskEnd(task=three, ending=FAILED))
        (again,) = self.serve(NOW + MINUTE)
        assert {task.id for task in again.tasks} == {one, two, three}
        assert again.steps == {one: {"fetch": f"of {one}"}, two: {"send": f"of {two}"}}

    # -- the journal

    def test_only_a_beat_in_a_state_of_rest_is_given_a_journal(self) -> None:
        self.a_dreamer()
        assert self.one_beat().journal is None
        order = self.start(operator("moss", NOW + MINUTE), NOW + MINUTE)
        assert (order.run.position.state, order.journal) == ("sleep", None)
        self.end(order, DONE, NOW + MINUTE)
        assert self.one_beat(at=2 * MINUTE).journal is not None

    def test_the_first_journal_has_everything_in_the_order_of_time(self) -> None:
        self.a_dreamer()
        self.one_beat(FAILED)
        self.one_beat(said("wrote a page"), MINUTE)
        self.message("moss")
        order = self.start(operator("moss", NOW + 2 * MINUTE), NOW + 2 * MINUTE)
        self.end(order, NO_WORK, NOW + 3 * MINUTE)
        self.end(self.start(operator("wren", NOW + 3 * MINUTE), NOW + 3 * MINUTE), DONE, NOW + 3 * MINUTE)
        journal = self.dream(at=4 * MINUTE)
        assert (journal.agent, journal.since, journal.until) == ("moss", None, NOW + 4 * MINUTE)
        entries = [(e.at - NOW, e.state, e.cause, e.outcome, e.summary, e.reason) for e in journal.entries]
        assert entries == [
            (0 * MINUTE, "add", "operator", "failed", "", "exit code 1"),
            (1 * MINUTE, "add", "operator", "done", "wrote a page", ""),
            (3 * MINUTE, "inbox", "operator", "no_work", "NO-WORK", ""),
        ]

    def test_a_journal_begins_after_the_last_dream_that_was_done(self) -> None:
        self.a_dreamer()
        self.one_beat(said("before"))
        self.dream(at=MINUTE)
        self.one_beat(said("since"), 2 * MINUTE)
        # A dream that failed settles nothing: the next one is told of it, and of all that it was told.
        order = self.one_beat(FAILED, 3 * MINUTE)
        assert order.journal is not None
        journal = self.dream(at=4 * MINUTE)
        assert journal.since == order.journal.since == NOW + MINUTE
        assert [(e.state, e.outcome, e.summary) for e in order.journal.entries] == [("add", "done", "since")]
        assert [(e.state, e.outcome) for e in journal.entries] == [("add", "done"), ("sleep", "failed")]

    def test_a_journal_is_not_confused_by_a_clock_that_was_set_back(self) -> None:
        self.a_dreamer()
        self.one_beat(said("before"), HOUR)
        self.dream(at=HOUR + MINUTE)
        self.one_beat(said("since"))
        journal = self.dream(at=MINUTE)
        assert [(e.summary, e.at) for e in journal.entries] == [("since", NOW)]

    def test_a_journal_has_the_newest_runs_and_no_more_than_it_can_hold(self) -> None:
        self.a_dreamer()
        for n in range(510):
            self.one_beat(BY_US, n * MINUTE)
        self.one_beat(DONE, 510 * MINUTE)
        entries = self.dream(at=511 * MINUTE).entries
        assert len(entries) == 500
        assert (entries[0].at, entries[-1].at) == (NOW + 11 * MINUTE, NOW + 510 * MINUTE)

    def test_a_journal_names_the_dead_that_the_agent_tried_since(self) -> None:
        self.a_dreamer()
        tasks = {title: self.task("moss", subject=title, max_retries=0) for title in ("early", "mended", "late")}
        self.task_ends(tasks["early"], FAILED, NOW)
        self.one_beat()
        assert self.dream(at=MINUTE).dead == ("early: exit code 1",)
        self.task_ends(tasks["mended"], DONE, NOW + 2 * MINUTE)
        self.task_ends(tasks["late"], KILLED, NOW + 3 * MINUTE)
        self.one_beat(at=4 * MINUTE)
        assert self.dream(at=5 * MINUTE).dead == ("late: ran past its wall clock",)

    def task_ends(self, task: int, ending: Ending, now: datetime) -> None:
        self.end(self.start(work(task, "moss", now), now), ending, now)

    def test_a_journal_names_the_messages_that_two_runs_failed_on(self) -> None:
        self.a_dreamer()
        self.one_beat()
        self.message("moss", subject="answered")
        self.end(self.start(operator("moss", NOW + MINUTE), NOW + MINUTE), DONE, NOW + MINUTE)
        self.message("moss", subject="too hard")
        self.end(self.start(operator("moss", NOW + 2 * MINUTE), NOW + 2 * MINUTE), BY_US, NOW + 2 * MINUTE)
        assert self.restless(at=3 * MINUTE) == ()
        self.message("moss", subject="fresh")
        assert self.restless(at=4 * MINUTE) == ("too hard",)

    def restless(self, at: timedelta) -> tuple[str, ...]:
        """What a dream is told that then fails."""
        order = self.one_beat(FAILED, at)
        assert order.journal is not None
        return order.journal.restless

    def test_a_journal_names_the_mirrored_items_that_three_runs_were_shown(self) -> None:
        self.a_dreamer()
        self.one_beat()
        for generation in "123":
            at = NOW + int(generation) * MINUTE
            seen = (("busy.md", generation), ("calm.md", "1"), ("slow.md", min(generation, "2")))
            self.store.observe("folder", "moss", [Observation(external_id=a, fingerprint=b) for a, b in seen], at)
            (order,) = self.serve(at + 5 * SECOND)
            self.end(order, DONE, at + 5 * SECOND)
        assert self.restless(at=10 * MINUTE) == ("busy.md",)
