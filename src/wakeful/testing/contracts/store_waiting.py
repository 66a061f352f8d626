"""What a deferred wake waits for: it is tried again when its reason can have changed, not sooner and not later."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Limits
from wakeful.core.cadence import Cadence
from wakeful.core.codec import write_time
from wakeful.core.items import Observation, Ring
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.core.wakes import Cause, Pause, Subject
from wakeful.core.windows import parse_window
from wakeful.testing.contracts.store_case import (
    DEFER,
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NOW,
    REFUSE,
    SECOND,
    StoreCase,
    an_agent,
    news,
    operator,
    peer,
    reported,
    tick,
    timer,
    work,
)

BEAT = NOW + HOUR


def editor(name: str, **limits: object) -> Agent:
    return an_agent(name, roles=("editor",), cadence=Cadence(), limits=Limits(**limits))  # type: ignore[arg-type]


class WaitingContract(StoreCase):
    # -- a retry

    def test_the_backoff_of_a_failed_run_is_not_cut_short_by_a_setting_or_an_edit(self) -> None:
        self.declare("moss", "wren")
        self.call("moss", "wren")
        (order,) = self.serve(NOW)
        self.end(order, FAILED)
        self.store.set("moss", {"burst": 19}, "rana", NOW + SECOND)
        self.declare(an_agent("moss", max_failures=9), "wren", now=NOW + 2 * SECOND)
        assert self.serve(NOW + 29 * SECOND) == []
        assert len(self.serve(NOW + 30 * SECOND)) == 1

    def test_a_fresh_request_does_not_wait_out_the_backoff_of_the_one_it_joins(self) -> None:
        self.declare("moss", "wren")
        first = self.call("moss", "wren")
        (order,) = self.serve(NOW)
        self.end(order, FAILED)
        second = self.call("moss", "wren", NOW + SECOND)
        joined = self.decide(peer("moss", "wren", NOW + SECOND, item=second), NOW + SECOND)
        assert (joined.verdict.kind, joined.joined) == (DEFER, order.run.wake)
        (order,) = self.serve(NOW + SECOND)
        assert [shown.id for shown in order.items] == [first, second]

    def test_who_joins_is_told_what_the_first_is_waiting_for(self) -> None:
        self.declare(an_agent("moss", limits=Limits(quiet_hours=(parse_window("11:00-13:30"),))))
        items = [self.message("moss", ring=Ring.news) for _ in range(2)]
        first, second = (self.decide(news("moss", item=item)) for item in items)
        assert second.joined == first.wake
        assert (second.verdict.guard, second.verdict.until) == ("quiet_hours", NOW + 90 * MINUTE)

    def test_each_run_says_which_try_at_its_subject_it_is(self) -> None:
        self.declare("moss")
        task, tries = self.task("moss"), []
        now = NOW
        for _ in range(3):
            (order,) = self.serve(now)
            tries.append(order.run.attempt)
            self.end(order, FAILED, now)
            now = self.item(task).not_before or now
        for hour in range(1, 4):
            order = self.start(tick("moss", NOW + hour * HOUR), NOW + hour * HOUR)
            tries.append(order.run.attempt)
            self.end(order, FAILED, NOW + hour * HOUR)
        assert tries == [1, 2, 3, 1, 2, 3]

    # -- a cooldown

    def test_a_cooldown_is_counted_from_an_admission_not_from_a_later_deferral(self) -> None:
        self.declare("moss", "wren")
        self.call("moss", "wren")
        (order,) = self.serve(NOW)
        self.end(order, FAILED)
        self.store.pause(Pause(scope="fleet", owner="operator", reason="", since=NOW), NOW)
        self.serve(NOW + 30 * SECOND)
        assert [row.guard for row in self.store.wakes(agent="moss")] == ["paused"]
        known = self.store.why(peer("moss", "wren", NOW + MINUTE), NOW + MINUTE)
        assert known.facts.last_peer_wake_at == NOW

    # -- money

    def test_money_that_comes_back_in_the_morning_does_not_let_all_go_at_once(self) -> None:
        limits = Limits(fleet_usd_per_day=100, reserve_usd=60)
        self.declare(*(an_agent(name, limits=limits) for name in "ab"))
        order = self.start(operator("a"))
        self.message("b", ring=Ring.news)
        (wake,) = self.due()
        verdict = self.decide(wake).verdict
        assert (verdict.guard, verdict.until is not None) == ("spend", True)
        assert verdict.until is not None
        morning = verdict.until - SECOND
        self.end(order, reported(usd=1), morning)
        assert [wake.cause for wake in self.due(morning) if wake.agent == "b" and wake.subject is Subject.inbox] == []
        assert [wake.agent for wake in self.due(verdict.until) if wake.subject is Subject.inbox] == ["b"]

    def test_what_waits_for_money_is_tried_again_when_some_comes_back(self) -> None:
        limits = Limits(fleet_usd_per_day=100, reserve_usd=60)
        self.declare(an_agent("a", limits=limits), an_agent("b", limits=limits))
        order = self.start(timer("a", BEAT), BEAT)
        assert self.decide(timer("b", BEAT), BEAT).verdict.guard == "spend"
        assert self.due(BEAT + MINUTE) == []
        self.end(order, reported(usd=10), BEAT + MINUTE)
        (order,) = self.serve(BEAT + MINUTE)
        assert order.agent.name == "b"

    def test_money_that_is_too_little_for_those_before_is_offered_to_those_behind(self) -> None:
        limits = Limits(fleet_usd_per_day=100, reserve_usd=98)
        dear = [an_agent(f"dear{n:02}", limits=replace(limits, reserve_usd=60)) for n in range(30)]
        cheap = [an_agent(name, limits=replace(limits, reserve_usd=5)) for name in ("y-cheap", "z-cheap")]
        self.declare(an_agent("spender", limits=limits, cadence=Cadence()), *dear, *cheap, sessions=9)
        order = self.start(operator("spender"))
        while self.due(BEAT):
            assert self.serve(BEAT) == []
        self.end(order, reported(usd=60), BEAT + MINUTE)
        # The clock stands still: nobody is offered the same money twice, or this would go on for ever.
        rounds = 0
        began: list[str] = []
        while self.due(BEAT + MINUTE):
            assert len(self.due(BEAT + MINUTE)) <= 20
            began += [order.agent.name for order in self.serve(BEAT + MINUTE)]
            rounds += 1
        assert (began, rounds) == (["y-cheap", "z-cheap"], 3)
        events = self.store.events(limit=10_000)
        told = Counter(event.agent for event in events if event.kind == "decided" and event.at == BEAT + MINUTE)
        assert sorted(told.items()) == [(agent.name, 1) for agent in sorted((*dear, *cheap), key=lambda a: a.name)]
        assert self.due(BEAT + HOUR) == []

    def test_who_is_told_again_that_there_is_no_money_without_an_offer_offers_nothing(self) -> None:
        limits = Limits(fleet_usd_per_day=100, reserve_usd=60)
        self.declare(*(an_agent(name, limits=limits) for name in "abc"))
        self.start(timer("a", BEAT), BEAT)
        first, _ = (self.decide(timer(name, BEAT), BEAT) for name in "bc")
        (wake,) = self.waiting("b")
        assert wake.id == first.wake
        assert self.decide(wake, BEAT + MINUTE).verdict.guard == "spend"
        assert self.due(BEAT + MINUTE) == []

    def test_what_was_reserved_for_a_void_run_comes_back_to_those_who_wait(self) -> None:
        limits = Limits(fleet_usd_per_day=100, reserve_usd=60)
        self.declare(an_agent("a", limits=limits), an_agent("b", limits=limits))
        order = self.start(timer("a", BEAT), BEAT)
        self.decide(timer("b", BEAT), BEAT)
        self.store.void(order.run.id, order.run.epoch, BEAT + MINUTE)
        assert {wake.agent for wake in self.due(BEAT + MINUTE)} == {"a", "b"}

    # -- a gate

    def test_a_beat_does_not_wait_for_the_gate_of_a_state_that_it_has_left(self) -> None:
        gated = State("write", next="plan", min_interval=9 * HOUR)
        self.declare(an_agent("moss", lifecycle=Lifecycle("write", (gated, State("plan", next="write")))))
        for hour in (1, 2):  # write, then plan
            self.end(self.start(timer("moss", NOW + hour * HOUR), NOW + hour * HOUR), DONE, NOW + hour * HOUR)
        held = self.decide(timer("moss", NOW + 3 * HOUR), NOW + 3 * HOUR)
        assert held.verdict.guard == "state_gate"
        self.end(self.start(tick("moss", NOW + 4 * HOUR), NOW + 4 * HOUR), DONE, NOW + 4 * HOUR)
        orders = [order for minute in (0, 1) for order in self.serve(NOW + 5 * HOUR + minute * MINUTE)]
        assert [(order.run.cause, order.run.position.state) for order in orders] == [(Cause.timer, "plan")]

    # -- somebody of several

    def test_the_task_of_a_role_waits_for_whoever_can_take_it_soonest(self) -> None:
        self.declare(editor("a", usd_per_day=100), editor("b"))
        self.end(self.start(operator("a")), reported(usd=100))
        order = self.start(operator("b"))
        decision = self.decide(work(self.task(role="editor"), role="editor"))
        assert (decision.verdict.kind, decision.verdict.guard) == (DEFER, "busy")
        self.end(order, DONE, NOW + MINUTE)
        (order,) = self.serve(NOW + MINUTE)
        assert order.agent.name == "b"

    def test_a_disabled_replica_does_not_speak_for_its_address(self) -> None:
        on, off = an_agent("moss-1", address="moss"), an_agent("moss-2", address="moss", enabled=False)
        self.declare(on, off, "wren")
        order = self.start(operator("moss-1"))
        waiting = self.ring("moss", "wren")
        assert (waiting.verdict.kind, waiting.verdict.guard) == (DEFER, "busy")
        self.end(order, DONE, NOW + MINUTE)
        (order,) = self.serve(NOW + MINUTE)
        assert order.run.wake == waiting.wake

    def test_no_replica_is_paid_to_look_at_an_inbox_that_another_one_has_taken(self) -> None:
        self.declare(*(an_agent(f"moss-{n}", address="moss") for n in (1, 2)), "wren", sessions=9)
        item = self.call("moss", "wren")
        self.message("moss", ring=Ring.news)
        self.store.decide(self.store.due(NOW).wakes, admit, NOW)
        (order,) = self.claim()
        assert item in [shown.id for shown in order.items]
        assert len(self.store.runs(open=True)) == 1

    # -- who is gone

    @pytest.mark.parametrize("enabled", [None, False])
    def test_an_agent_removed_or_disabled_during_its_run_gets_no_beat_at_its_end(self, enabled: bool | None) -> None:
        self.declare("moss")
        order = self.start(timer("moss", BEAT), BEAT)
        left = [] if enabled is None else [an_agent("moss", enabled=enabled)]
        self.declare(*left, now=BEAT)
        self.end(order, DONE, BEAT + MINUTE)
        assert self.standing("moss").due_at is None
        assert self.due(BEAT + 9 * HOUR) == []
        assert self.store.due(BEAT + MINUTE).next_at is None

    def test_what_the_operator_rang_for_is_moot_once_it_was_shown(self) -> None:
        self.declare("moss")
        item = self.message("moss", ring=Ring.operator)
        self.end(self.start(operator("moss", item=item)))
        assert self.decide(operator("moss", item=item)).verdict.kind is REFUSE
        self.end(self.start(operator("moss")))

    def test_a_new_generation_for_later_rings_at_its_time_whatever_became_of_the_old_wake(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        self.store.observe("folder", "moss", [Observation(external_id="a", fingerprint="1")], NOW)
        (wake,) = self.due()
        assert self.decide(wake).verdict.guard == "busy"
        later = Observation(external_id="a", fingerprint="2", not_before=NOW + 30 * MINUTE)
        self.store.observe("folder", "moss", [later], NOW + SECOND)
        self.end(order, DONE, NOW + 2 * SECOND)
        for second in range(3, 9):
            assert self.serve(NOW + second * SECOND) == []
        (order,) = self.serve(NOW + 30 * MINUTE)
        assert [shown.fingerprint for shown in order.items] == ["2"]

    def test_whatever_is_deferred_is_not_offered_again_at_the_same_instant(self) -> None:
        self.declare(
            an_agent("quiet", limits=Limits(quiet_hours=(parse_window("00:00-24:00"),))),
            an_agent("poor", limits=Limits(usd_per_day=0)),
            an_agent("slow", limits=Limits(minutes_per_day=0, minutes_declared=True)),
            an_agent("burst", limits=Limits(burst=0)),
            "busy",
            "paused",
            sessions=1,
        )
        self.store.pause(Pause(scope="agent:paused", owner="operator", reason="", since=NOW), NOW)
        self.start(operator("busy", BEAT - SECOND), BEAT - SECOND)
        self.serve(BEAT)
        guards = {row.guard for row in self.store.wakes(state="waiting")}
        assert guards == {"quiet_hours", "spend", "minutes_per_day", "burst", "busy", "paused"}
        assert self.due(BEAT) == []
        following = self.store.due(BEAT).next_at
        assert following is not None and following > BEAT

    # -- an operator's ticks

    def test_a_tick_asked_for_while_no_engine_lives_is_decided_by_the_next_one(self) -> None:
        self.declare("moss")
        ids = self.store.ask([tick("moss") for _ in range(3)], NOW)
        assert self.store.runs() == []
        self.reopen()
        # A start holds timers back for the grace, but nobody who asked.
        self.declare("moss", now=NOW + MINUTE, boot=True, grace=HOUR)
        (order,) = self.serve(NOW + MINUTE)
        assert (order.run.wake, order.run.cause, order.run.subject) == (ids[0], Cause.operator, "beat")
        self.end(order, DONE, NOW + 2 * MINUTE)
        assert self.serve(NOW + 2 * MINUTE) == []

    @pytest.mark.parametrize("engine", ["lives", "is away"])
    def test_ten_ticks_during_a_run_become_one_more_run(self, engine: str) -> None:
        self.declare("moss")
        order = self.start(tick("moss"))
        for n in range(10):
            wake = tick("moss", NOW + n * SECOND)
            if engine == "lives":
                self.decide(wake, NOW + n * SECOND)
            else:
                self.store.ask([wake], NOW + n * SECOND)
        assert [row.state for row in self.store.wakes()] == ["admitted", "waiting", *["joined"] * 9]
        assert self.serve(NOW + 20 * SECOND) == []
        self.end(order, DONE, NOW + MINUTE)
        (again,) = self.serve(NOW + MINUTE)
        self.end(again, DONE, NOW + 2 * MINUTE)
        assert self.serve(NOW + 2 * MINUTE) == []
        assert len(self.store.runs()) == 2
        assert self.standing("moss").due_at == NOW + 2 * MINUTE + HOUR

    def test_a_beat_asked_for_at_an_instant_waits_for_it_and_is_asked_for_once(self) -> None:
        self.declare("moss")
        at = NOW + 30 * MINUTE
        wake = timer("moss", NOW, slot=write_time(at), sender="rana")
        (first,), (second,) = (self.store.ask([wake], NOW) for _ in range(2))
        assert first == second
        assert self.due(at - SECOND) == []
        assert self.store.due(NOW).next_at == at
        self.declare(an_agent("moss", max_failures=9), now=NOW + MINUTE)
        (order,) = self.serve(at)
        assert (order.run.wake, order.run.subject) == (first, "beat")
