"""A beat that a CHECK held back: it waits under that name, moves the standing, and never begins a run."""

from __future__ import annotations

from datetime import datetime, timedelta

from wakeful.core.admission import admit
from wakeful.core.agents import Limits
from wakeful.core.cadence import Cadence
from wakeful.core.events import EventKind
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.core.settlement import skip_beat
from wakeful.core.wakes import Cause, Pause, Wake
from wakeful.core.windows import Window
from wakeful.store.protocol import Decision
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DEFER,
    DONE,
    HOUR,
    MINUTE,
    NOW,
    REFUSE,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    tick,
)

DUE = NOW + HOUR
DAY = Lifecycle("add", (State("add", repeat=2, next="audit"), State("audit", next="add")))
SOON = an_agent("moss", cadence=Cadence(interval=SECOND))


class CheckingContract(StoreCase):
    def beat(self, now: datetime) -> Wake:
        (wake,) = (wake for wake in self.due(now) if wake.cause is Cause.timer)
        return wake

    def skip(self, now: datetime, wake: Wake | None = None) -> Decision:
        return self.store.skip(wake or self.beat(now), "nothing new", admit, skip_beat, now)

    def test_a_beat_that_would_be_admitted_waits_for_its_next_due_instant_under_the_name_check(self) -> None:
        self.declare(SOON)
        decision = self.skip(DUE)
        verdict = decision.verdict
        assert (verdict.kind, verdict.guard, verdict.reason) == (DEFER, "check", "nothing new")
        assert (verdict.until, verdict.numbers) == (DUE + MINUTE, {"idle_streak": 1})
        assert (decision.run, self.store.runs()) == (None, [])
        (row,) = self.store.wakes(state="waiting")
        assert (row.wake.id, row.guard, row.reason, row.retry_at) == (
            decision.wake,
            "check",
            "nothing new",
            DUE + MINUTE,
        )

    def test_the_position_holds_and_the_idle_backoff_applies(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence(interval=SECOND), lifecycle=DAY))
        before, at = self.standing("moss"), DUE
        for streak, minutes in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30)):
            self.skip(at)
            stands = self.standing("moss")
            assert (stands.idle_streak, stands.due_at) == (streak, at + minutes * MINUTE)
            assert (stands.position, stands.last_outcome, stands.failure_streak) == (before.position, None, 0)
            at = at + minutes * MINUTE
        assert len(self.store.wakes()) == 1

    def test_it_is_due_at_that_instant_and_not_before_and_may_then_be_admitted(self) -> None:
        self.declare(SOON)
        self.skip(DUE)
        assert self.due(DUE + MINUTE - SECOND) == []
        assert self.store.due(DUE).next_at == DUE + MINUTE
        (order,) = self.serve(DUE + MINUTE)
        self.end(order, DONE, DUE + MINUTE)
        stands = self.standing("moss")
        assert (stands.idle_streak, stands.due_at) == (0, DUE + MINUTE + SECOND)

    def test_the_verdict_is_told_as_an_event_with_what_it_counted(self) -> None:
        self.declare(SOON)
        decision = self.skip(DUE)
        (event,) = self.store.events(kinds=(EventKind.decided,))
        told = (event.fields or {})["verdict"]
        assert isinstance(told, dict)
        assert (event.agent, event.wake, event.run) == ("moss", decision.wake, None)
        assert (told["kind"], told["guard"], told["numbers"]) == ("defer", "check", {"idle_streak": 1})

    def test_where_a_guard_objects_its_word_stands_and_the_standing_stays(self) -> None:
        quiet = Window(start_minute=13 * 60, end_minute=16 * 60)
        self.declare("moss", "wren", an_agent("hale", limits=Limits(quiet_hours=(quiet,))))
        self.start(operator("wren", DUE), DUE)
        self.store.pause(Pause(scope="agent:moss", owner="rana", reason="lunch", since=NOW), NOW)
        for name, guard in (("moss", "paused"), ("wren", "busy"), ("hale", "quiet_hours")):
            before = self.standing(name)
            wake = next(wake for wake in self.due(DUE) if wake.agent == name and wake.cause is Cause.timer)
            decision = self.skip(DUE, wake)
            assert (decision.verdict.kind, decision.verdict.guard) == (DEFER, guard)
            assert self.standing(name) == before

    def test_a_beat_that_was_run_or_moved_meanwhile_is_moot(self) -> None:
        self.declare(SOON)
        wake = self.beat(DUE)
        self.end(self.start(tick("moss", DUE), DUE), DONE, DUE + MINUTE)
        before = self.standing("moss")
        decision = self.skip(DUE + MINUTE, wake)
        assert (decision.verdict.kind, decision.verdict.guard) == (REFUSE, "moot")
        assert self.standing("moss") == before
        assert [wake.agent for wake in self.due(DUE + MINUTE + SECOND)] == ["moss"]

    def test_other_work_makes_the_beat_due_as_soon_as_it_would_be_without_a_check(self) -> None:
        self.declare(SOON)
        for n in range(4):
            self.skip(DUE + n * HOUR)
        at = DUE + 3 * HOUR + MINUTE
        self.end(self.start(operator("moss", at), at), DONE, at)
        assert self.standing("moss").due_at == at + SECOND
        assert self.due(at) == []
        assert [wake.cause for wake in self.due(at + SECOND)] == [Cause.timer]
        assert self.decide(self.beat(at + SECOND), at + SECOND).verdict.kind is ADMIT

    def test_an_operators_tick_moves_what_a_check_held_back(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence(interval=2 * MINUTE)))
        for n in range(5):
            self.skip(DUE + n * HOUR)
        at = DUE + 4 * HOUR + MINUTE
        self.end(self.start(tick("moss", at), at), DONE, at)
        assert self.due(at + 2 * MINUTE - SECOND) == []
        assert [wake.cause for wake in self.due(at + 2 * MINUTE)] == [Cause.timer]

    def test_a_clock_that_was_set_back_does_not_lengthen_the_wait_past_a_start(self) -> None:
        self.declare(SOON)
        self.skip(DUE)
        early = NOW - timedelta(days=1)
        self.declare(SOON, now=early, boot=True, grace=SECOND)
        due_at = self.standing("moss").due_at
        assert due_at is not None and due_at <= early + HOUR
        assert [wake.cause for wake in self.due(due_at)] == [Cause.timer]

    def test_a_beat_of_its_own_that_a_check_holds_back_does_not_wait_for_ever(self) -> None:
        at = NOW + 2 * HOUR
        self.declare(an_agent("moss", cadence=Cadence(), one_offs=(at,)))
        decision = self.skip(at)
        assert (decision.verdict.kind, decision.verdict.guard) == (REFUSE, "check")
        assert (self.waiting(), self.store.runs()) == ([], [])
