"""The end of a run: each outcome moves its subject, exactly what it should, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from wakeful.core.agents import Agent, Limits
from wakeful.core.cadence import Cadence
from wakeful.core.errors import Stale
from wakeful.core.events import EventKind
from wakeful.core.items import Item, Priority, Ring, State
from wakeful.core.lifecycle import Lifecycle, Position
from wakeful.core.lifecycle import State as Phase
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result, Run
from wakeful.core.settlement import Settlement, settle
from wakeful.core.standing import Standing
from wakeful.core.wakes import Cause, Subject
from wakeful.store.protocol import Finish
from wakeful.store.running import MOST_SHOWN
from wakeful.testing.contracts.store_case import (
    ADMIT,
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
    TODAY,
    StoreCase,
    an_agent,
    news,
    operator,
    reported,
    tick,
    timer,
)

BEAT = NOW + HOUR
END = BEAT + 5 * MINUTE
DAY = Lifecycle("add", (Phase("add", repeat=2, next="audit"), Phase("audit", next="add")))
MOSS = an_agent("moss", lifecycle=DAY, cadence=Cadence(interval=10 * MINUTE))
SUCCESS = (Outcome.done, Outcome.no_work)
QUOTA = Ending(exit_code=1, result=Result(error="429", error_class=ErrorClass.quota, retry_at=END + HOUR))
AUTH = Ending(exit_code=1, result=Result(error="401", error_class=ErrorClass.auth))


class FinishingContract(StoreCase):
    # -- a beat

    @pytest.mark.parametrize(
        ("outcome", "position", "idle", "failures"),
        [
            (Outcome.done, Position("add", 1), 0, 0),
            (Outcome.no_work, Position("audit"), 1, 0),
            (Outcome.failed, Position("add"), 0, 1),
            (Outcome.killed, Position("add"), 0, 1),
        ],
    )
    def test_a_beat_moves_position_streaks_and_the_next_beat(
        self, outcome: Outcome, position: Position, idle: int, failures: int
    ) -> None:
        self.declare(MOSS)
        order = self.start(timer("moss", BEAT), BEAT)
        assert self.end(order, ENDINGS[outcome], END) is outcome
        self.reopen()
        stands = self.standing("moss")
        assert (stands.position, stands.idle_streak, stands.failure_streak) == (position, idle, failures)
        assert stands.due_at == END + 10 * MINUTE
        assert (stands.last_outcome, stands.last_ended_at) == (outcome.value, END)
        assert stands.ran_at("add") == (END if outcome is Outcome.done else None)
        run = self.row(order.run.id)
        assert (run.state, run.outcome, run.started_at, run.ended_at) == ("ended", outcome, BEAT, END)

    def test_a_day_is_walked_one_outcome_at_a_time_through_restarts(self) -> None:
        self.declare(MOSS)
        walked, now = [], BEAT
        for ending in (DONE, FAILED, DONE, NO_WORK, NO_WORK, DONE):
            (order,) = self.serve(now)
            self.end(order, ending, now)
            self.reopen()
            walked.append(self.standing("moss").position)
            due = self.standing("moss").due_at
            assert due is not None
            now = due
        assert walked == [
            Position("add", 1),
            Position("add", 1),
            Position("audit"),
            Position("add"),
            Position("audit"),
            Position("add"),
        ]

    @pytest.mark.parametrize("outcome", Outcome)
    def test_a_beat_is_shown_the_inbox_and_settles_it(self, outcome: Outcome) -> None:
        self.declare(MOSS)
        item = self.message("moss", "hello")
        order = self.start(timer("moss", BEAT), BEAT)
        assert [shown.id for shown in order.items] == [item]
        assert self.item(item).shown is None
        self.end(order, ENDINGS[outcome], END)
        found = self.item(item)
        closed = outcome in SUCCESS
        assert found.shown == found.fingerprint
        assert (found.state, found.closed_at) == ((State.closed, END) if closed else (State.open, None))
        assert found.unanswered == (0 if closed else 1)
        assert self.row(order.run.id).shown == (item,)
        assert self.due(END) == []

    @pytest.mark.parametrize("ending", [FAILED, KILLED, LOST])
    def test_what_a_failed_run_was_shown_is_put_before_the_next_run(self, ending: Ending) -> None:
        self.declare(MOSS)
        old = self.message("moss", "old")
        self.end(self.start(timer("moss", BEAT), BEAT), ending, END)
        urgent = self.message("moss", "new", now=END, priority=Priority.urgent)
        (order,) = self.serve(END + 10 * MINUTE)
        assert [item.id for item in order.items] == [old, urgent]

    def test_a_heap_of_what_runs_failed_on_does_not_crowd_out_what_is_more_urgent(self) -> None:
        self.declare(MOSS)
        old = [self.message("moss", f"old {number}") for number in range(MOST_SHOWN + 1)]
        self.end(self.start(timer("moss", BEAT), BEAT), FAILED, END)
        urgent = self.message("moss", "new", now=END, priority=Priority.urgent)
        (order,) = self.serve(END + 10 * MINUTE)
        assert [item.id for item in order.items] == [*old[: MOST_SHOWN - 1], urgent]

    def test_a_tick_of_the_operator_runs_the_beat(self) -> None:
        self.declare(MOSS)
        self.end(self.start(tick("moss")), DONE, NOW + MINUTE)
        assert self.standing("moss").position == Position("add", 1)
        assert self.standing("moss").due_at == NOW + 11 * MINUTE

    # -- an inbox run

    @pytest.mark.parametrize("outcome", Outcome)
    def test_an_inbox_run_never_moves_the_position(self, outcome: Outcome) -> None:
        self.declare(MOSS)
        self.end(self.start(timer("moss", BEAT), BEAT), NO_WORK, BEAT)
        before = self.standing("moss")
        item = self.message("moss", now=BEAT, ring=Ring.news)
        order = self.start(news("moss", BEAT, item=item), BEAT)
        assert order.run.subject is Subject.inbox
        self.end(order, ENDINGS[outcome], BEAT + MINUTE)
        after = self.standing("moss")
        assert (after.position, after.gates, after.failure_streak) == (before.position, before.gates, 0)
        assert self.item(item).state is (State.closed if outcome in SUCCESS else State.open)
        assert self.item(item).shown == self.item(item).fingerprint

    def test_an_inbox_run_that_is_done_makes_the_cadence_hot_again(self) -> None:
        self.declare(an_agent("moss"))
        for hour in (1, 2):
            self.end(self.start(timer("moss", NOW + hour * HOUR), NOW + hour * HOUR), NO_WORK, NOW + hour * HOUR)
        now = NOW + 2 * HOUR
        assert self.standing("moss").idle_streak == 2
        self.end(self.start(operator("moss", now), now), NO_WORK, now)
        assert self.standing("moss").idle_streak == 2
        self.end(self.start(operator("moss", now), now), DONE, now)
        assert (self.standing("moss").idle_streak, self.standing("moss").due_at) == (0, now + HOUR)

    def test_a_failed_inbox_run_is_tried_three_times_more_then_waits_for_the_beat(self) -> None:
        self.declare("moss", "wren")
        item = self.call("moss", "wren")
        now, waits = NOW, []
        for _ in range(4):
            (order,) = self.serve(now)
            assert [shown.id for shown in order.items] == [item]
            self.end(order, FAILED, now)
            later = self.store.due(now).next_at
            assert later is not None
            waits.append(later - now)
            now = later
        assert waits[:3] == [30 * SECOND, 60 * SECOND, 120 * SECOND]
        assert now == BEAT
        assert [run.attempt for run in self.store.runs()] == [1, 2, 3, 4]
        assert len(self.store.wakes()) == 1
        assert self.wakes_of("moss") == 1
        assert self.item(item).unanswered == 4
        orders = self.serve(BEAT)
        assert [[shown.id for shown in order.items] for order in orders if order.agent.name == "moss"] == [[item]]

    def test_an_agent_without_a_timer_is_swept_for_what_it_failed_to_answer(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence()))
        item = self.message("moss", ring=Ring.news)
        now = NOW
        for _ in range(5):
            (order,) = self.serve(now)
            assert [shown.id for shown in order.items] == [item]
            self.end(order, FAILED, now)
            later = self.store.due(now).next_at
            assert later is not None and later > now
            now = later

    # -- what we ended ourselves, and classes of error

    @pytest.mark.parametrize("wake", [timer("moss", BEAT), operator("moss", BEAT)], ids=["beat", "inbox"])
    def test_a_run_that_we_ended_counts_against_nobody(self, wake: object) -> None:
        self.declare(replace(MOSS, max_failures=1))
        order = self.start(wake, BEAT)  # type: ignore[arg-type]
        assert self.end(order, BY_US, END) is Outcome.killed
        assert self.standing("moss").failure_streak == 0
        assert (self.store.pauses(), self.waiting()) == ([], [])
        assert "operator" in self.row(order.run.id).reason

    @pytest.mark.parametrize("ending", [FAILED, KILLED, LOST])
    def test_five_failed_beats_in_a_row_are_a_quarantine(self, ending: Ending) -> None:
        self.declare(MOSS)
        now = BEAT
        for streak in range(1, 6):
            (order,) = self.serve(now)
            assert self.store.pauses() == []
            self.end(order, ending, now)
            assert self.standing("moss").failure_streak == streak
            now += 10 * MINUTE
        (pause,) = self.store.pauses()
        assert (pause.scope, pause.owner, pause.until) == ("agent:moss", "quarantine", None)
        assert self.serve(now + 100 * HOUR) == []
        assert self.store.resume("agent:moss", "rana", now)
        assert len(self.serve(now + MINUTE)) == 1

    def test_a_used_up_quota_is_waited_out_and_is_no_failure(self) -> None:
        self.declare(replace(MOSS, max_failures=1))
        self.end(self.start(timer("moss", BEAT), BEAT), QUOTA, END)
        (pause,) = self.store.pauses()
        assert (pause.owner, pause.until) == ("quota", END + HOUR)
        assert self.standing("moss").failure_streak == 0
        assert self.serve(END + 59 * MINUTE) == []
        begun = self.serve(END + 60 * MINUTE) + self.serve(END + 61 * MINUTE)
        assert [order.run.cause for order in begun] == [Cause.timer]

    def test_broken_credentials_are_parked_at_once(self) -> None:
        self.declare(MOSS)
        self.end(self.start(operator("moss", BEAT), BEAT), AUTH, END)
        (pause,) = self.store.pauses()
        assert (pause.owner, pause.until) == ("quarantine", None)
        assert "401" in pause.reason
        assert self.waiting() == []

    # -- once

    def test_a_run_ends_once(self) -> None:
        self.declare(MOSS)
        order = self.start(timer("moss", BEAT), BEAT)
        self.end(order, DONE, END)
        before = (self.standing("moss"), self.store.events())
        for ending in (DONE, FAILED):
            with pytest.raises(Stale):
                self.end(order, ending, END + MINUTE)
        assert (self.standing("moss"), self.store.events()) == before

    @pytest.mark.parametrize("offset", [-1, 1])
    def test_an_end_of_another_epoch_is_refused(self, offset: int) -> None:
        self.declare(MOSS)
        order = self.start(timer("moss", BEAT), BEAT)
        end = Finish(run=order.run.id, epoch=order.run.epoch + offset, ending=DONE)
        with pytest.raises(Stale):
            self.store.finish([end], settle, END)
        assert self.row(order.run.id).state == "running"
        assert self.end(order, DONE, END) is Outcome.done

    def test_a_run_that_was_never_claimed_cannot_end(self) -> None:
        self.declare(MOSS)
        run = self.decide(timer("moss", BEAT), BEAT).run
        with pytest.raises(Stale):
            self.store.finish([Finish(run=run or 0, epoch=0, ending=DONE)], settle, END)

    def test_of_a_batch_with_one_stale_end_nothing_is_kept(self) -> None:
        self.declare(MOSS, "wren")
        orders = [self.start(operator("moss")), self.start(operator("wren"))]
        self.end(orders[1])
        ends = [Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE) for order in orders]
        with pytest.raises(Stale):
            self.store.finish(ends, settle, NOW + MINUTE)
        assert self.row(orders[0].run.id).state == "running"

    def test_many_runs_end_in_one_call(self) -> None:
        self.declare(MOSS, "wren")
        orders = [self.start(operator("moss")), self.start(operator("wren"))]
        endings = [DONE, FAILED]
        ends = [
            Finish(run=order.run.id, epoch=order.run.epoch, ending=ending)
            for order, ending in zip(orders, endings, strict=True)
        ]
        assert self.store.finish(ends, settle, NOW + MINUTE) == [Outcome.done, Outcome.failed]

    # -- nothing else

    def test_an_end_moves_only_the_agent_it_belongs_to(self) -> None:
        self.declare(MOSS, "wren")
        item = self.message("wren", "for wren")
        before = (self.standing("wren"), self.item(item))
        self.end(self.start(timer("moss", BEAT), BEAT), DONE, END)
        assert (self.standing("wren"), self.item(item)) == before

    def test_a_message_that_came_during_the_run_is_not_touched_by_its_end(self) -> None:
        self.declare(MOSS)
        order = self.start(timer("moss", BEAT), BEAT)
        item = self.message("moss", now=BEAT + SECOND)
        before: Item = self.item(item)
        self.end(order, DONE, END)
        assert self.item(item) == before

    def test_the_store_writes_what_the_settlement_says(self) -> None:
        self.declare(MOSS)
        order = self.start(timer("moss", BEAT), BEAT)
        due = END + timedelta(days=3)

        def strange(
            run: Run, ending: Ending, standing: Standing, agent: Agent, now: datetime, *, began_with: Lifecycle
        ) -> Settlement:
            assert (run.id, run.position, began_with) == (order.run.id, Position("add"), DAY)
            moved = replace(standing, position=Position("audit", 0), idle_streak=7, failure_streak=3, due_at=due)
            usual = settle(run, ending, standing, agent, now, began_with=began_with)
            return replace(usual, standing=moved, reason="strange")

        end = Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)
        self.store.finish([end], strange, END)
        stands = self.standing("moss")
        assert (stands.position, stands.idle_streak, stands.failure_streak) == (Position("audit"), 7, 3)
        assert stands.due_at == due
        assert self.row(order.run.id).reason == "strange"

    def test_an_end_is_told_with_its_outcome_and_where_the_agent_stands(self) -> None:
        self.declare(MOSS)
        order = self.start(timer("moss", BEAT), BEAT)
        self.end(order, reported(usd=7, summary="wrote a page"), END)
        told = self.store.events(agent="moss")[-1]
        assert (told.kind, told.run, told.at) == (EventKind.ended, order.run.id, END)
        fields = told.fields or {}
        assert (fields["outcome"], fields["position"], fields["stands"]) == ("done", ["add", 0], ["add", 1])
        run = self.row(order.run.id)
        assert (run.summary, run.spend.usd) == ("wrote a page", 7)
        assert self.store.total("agent:moss", TODAY, "usd") == 7

    def test_a_limit_on_minutes_sees_the_time_that_the_run_took(self) -> None:
        limits = Limits(minutes_per_day=1, minutes_declared=True)
        self.declare(replace(MOSS, limits=limits))
        order = self.start(timer("moss", BEAT), BEAT)
        self.end(order, replace(DONE, elapsed=MINUTE), END)
        assert self.store.total("agent:moss", TODAY, "ms") == 60_000
        (wake,) = self.due(END + 10 * MINUTE)
        assert wake.cause is Cause.timer
        assert self.decide(wake, END + 10 * MINUTE).verdict.guard == "minutes_per_day"
        assert self.decide(operator("moss", END), END).verdict.kind is ADMIT
