"""The one door: what is admitted opens a run, what is deferred waits and is offered again, what is refused is kept."""

from __future__ import annotations

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Limits
from wakeful.core.errors import Unknown
from wakeful.core.events import EventKind
from wakeful.core.facts import Facts
from wakeful.core.items import Ring, State
from wakeful.core.wakes import Cause, Subject, Verdict, Wake, refuse
from wakeful.core.windows import parse_window
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DEFER,
    DONE,
    HOUR,
    MINUTE,
    NO_WORK,
    NOW,
    REFUSE,
    SECOND,
    StoreCase,
    an_agent,
    news,
    operator,
    peer,
    tick,
    timer,
    work,
)


class DecidingContract(StoreCase):
    # -- admit

    def test_an_admitted_wake_opens_a_run(self) -> None:
        self.declare("moss")
        decision = self.decide(operator("moss", reason="look"))
        assert (decision.verdict.kind, decision.agent) == (ADMIT, "moss")
        run = self.row(decision.run)
        assert (run.agent, run.cause, run.subject, run.state) == ("moss", Cause.operator, Subject.inbox, "admitted")
        assert (run.wake, run.admitted_at, run.started_at, run.outcome) == (decision.wake, NOW, None, None)
        (row,) = self.store.wakes()
        assert (row.state, row.run, row.wake.reason) == ("admitted", decision.run, "look")

    def test_a_decision_is_there_after_being_reopened(self) -> None:
        self.declare("moss")
        decision = self.decide(operator("moss"))
        before = (self.store.runs(), self.store.wakes(), self.store.events())
        self.reopen()
        assert (self.store.runs(), self.store.wakes(), self.store.events()) == before
        assert self.decide(news("moss")).verdict.guard is not None
        (order,) = self.claim()
        assert order.run.id == decision.run

    def test_the_store_asks_the_opinion_it_was_handed_and_has_none_of_its_own(self) -> None:
        self.declare("moss")
        asked: list[tuple[Wake, Facts, Limits]] = []

        def never(wake: Wake, facts: Facts, limits: Limits) -> Verdict:
            asked.append((wake, facts, limits))
            return refuse("busy", "never")

        (decision,) = self.store.decide([operator("moss")], never, NOW)
        assert (decision.verdict.kind, decision.run, self.store.runs()) == (REFUSE, None, [])
        ((wake, facts, _),) = asked
        assert (wake.agent, facts.now, facts.open_run, facts.slots_taken) == ("moss", NOW, None, 0)

    def test_when_the_opinion_fails_nothing_of_the_batch_is_kept(self) -> None:
        self.declare("moss", "wren")

        def shaky(wake: Wake, facts: Facts, limits: Limits) -> Verdict:
            if wake.agent == "wren":
                raise RuntimeError("no opinion")
            return admit(wake, facts, limits)

        with pytest.raises(RuntimeError):
            self.store.decide([operator("moss"), operator("wren")], shaky, NOW)
        assert (self.store.wakes(), self.store.runs()) == ([], [])

    def test_a_wake_of_an_unknown_agent_is_refused_with_its_batch(self) -> None:
        self.declare("moss")
        with pytest.raises(Unknown):
            self.store.decide([operator("moss"), operator("nobody")], admit, NOW)
        assert (self.store.wakes(), self.store.runs()) == ([], [])

    def test_every_verdict_is_told_with_the_facts_it_was_reached_on(self) -> None:
        self.declare("moss")
        first = self.decide(operator("moss"))
        second = self.decide(news("moss", item=self.message("moss", ring=Ring.news)))
        told = [event for event in self.store.events(agent="moss") if event.kind is EventKind.decided]
        assert [(event.wake, event.run) for event in told] == [(first.wake, first.run), (second.wake, None)]
        fields = told[1].fields or {}
        assert fields["cause"] == "news"
        assert fields["verdict"]["guard"] == "busy"  # type: ignore[index]
        assert fields["facts"]["open_run"] == first.run  # type: ignore[index]

    # -- defer: busy

    def test_a_busy_agent_has_the_wake_wait_and_it_is_offered_when_the_run_ends(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        busy = self.ring("moss", "wren")
        assert (busy.verdict.kind, busy.verdict.guard, busy.run) == (DEFER, "busy", None)
        assert self.due(NOW + 9 * MINUTE) == []
        self.end(order, DONE, NOW + MINUTE)
        (wake,) = self.due(NOW + MINUTE)
        assert (wake.id, wake.cause, wake.requested_at) == (busy.wake, Cause.peer, NOW)
        again = self.decide(wake, NOW + MINUTE)
        assert (again.verdict.kind, again.wake) == (ADMIT, busy.wake)
        assert self.waiting() == []

    def test_news_that_came_during_a_run_is_offered_two_seconds_after_it(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        item = self.message("moss", ring=Ring.news)
        assert self.decide(news("moss", item=item)).verdict.guard == "busy"
        self.end(order, DONE, NOW + MINUTE)
        assert self.due(NOW + MINUTE + SECOND) == []
        assert self.store.due(NOW + MINUTE).next_at == NOW + MINUTE + 2 * SECOND
        (order,) = self.serve(NOW + MINUTE + 2 * SECOND)
        assert [shown.id for shown in order.items] == [item]

    def test_a_wake_whose_message_the_run_has_shown_is_found_moot(self) -> None:
        self.declare("moss", "wren")
        admitted = self.decide(operator("moss"))
        busy = self.ring("moss", "wren")
        (order,) = self.claim()
        assert order.run.id == admitted.run
        assert len(order.items) == 1
        self.end(order, DONE, NOW + MINUTE)
        self.serve(NOW + MINUTE)
        (row,) = [row for row in self.store.wakes() if row.wake.id == busy.wake]
        assert (row.state, row.guard) == ("refused", "moot")
        assert len(self.store.runs()) == 1

    def test_a_beat_due_while_the_agent_is_busy_runs_when_it_is_free(self) -> None:
        self.declare("moss")
        at = NOW + HOUR
        order = self.start(operator("moss", at - SECOND), at - SECOND)
        self.serve(at)
        assert [wake.cause for wake in self.waiting("moss")] == [Cause.timer]
        assert self.due(at) == []
        self.end(order, NO_WORK, at + MINUTE)
        (order,) = self.serve(at + MINUTE)
        assert (order.run.cause, order.run.subject) == (Cause.timer, Subject.beat)

    def test_a_wake_that_waited_for_a_run_that_became_void_is_offered_again(self) -> None:
        self.declare("moss", "wren")
        first = self.decide(operator("moss"))
        waiting = self.ring("moss", "wren")
        assert waiting.verdict.guard == "busy"
        self.store.void(first.run or 0, 0, NOW + SECOND)
        assert waiting.wake in [wake.id for wake in self.due(NOW + SECOND)]

    # -- defer: one waiting row of a kind

    def test_a_second_request_of_one_kind_joins_the_one_that_waits(self) -> None:
        self.declare("moss", "wren", "hale")
        order = self.start(operator("moss"))
        first = self.ring("moss", "wren")
        second = self.ring("moss", "hale")
        third = self.ring("moss", "wren")
        assert first.verdict.guard == "busy"
        assert (second.joined, third.joined) == (first.wake, first.wake)
        assert {second.verdict.kind, third.verdict.kind} == {DEFER}
        rows = {row.wake.id: row for row in self.store.wakes(agent="moss")}
        assert [rows[id].state for id in (first.wake, second.wake, third.wake)] == ["waiting", "joined", "joined"]
        assert rows[second.wake].joined == first.wake
        assert rows[second.wake].wake.sender == "hale"
        self.end(order, DONE, NOW + MINUTE)
        (order,) = self.serve(NOW + MINUTE)
        assert order.run.wake == first.wake
        assert len(order.items) == 3
        assert self.wakes_of("moss") == 1

    def test_requests_of_another_cause_or_subject_wait_for_themselves(self) -> None:
        self.declare("moss", "wren")
        self.start(operator("moss"))
        task, other = self.task("moss"), self.task("moss")
        self.message("moss", ring=Ring.news)
        for wake in (peer("moss", "wren"), news("moss"), operator("moss"), tick("moss"), work(task, "moss")):
            assert self.decide(wake).joined is None
        assert self.decide(work(other, "moss")).joined is None
        assert len(self.waiting("moss")) == 6

    def test_several_waiting_wakes_are_tried_operator_peer_timer_task_news(self) -> None:
        self.declare("moss", "wren")
        at = NOW + HOUR
        order = self.start(operator("moss", at), at)
        item, task = self.message("moss", now=at, ring=Ring.news), self.task("moss", at)
        self.decide(news("moss", at, item=item), at)
        self.decide(work(task, "moss", at), at)
        self.decide(timer("moss", at), at)
        self.ring("moss", "wren", at)
        self.decide(operator("moss", at), at)
        self.end(order, NO_WORK, at + MINUTE)
        later = at + 2 * MINUTE
        assert [wake.cause for wake in self.due(later) if wake.agent == "moss"] == [
            Cause.operator,
            Cause.peer,
            Cause.timer,
            Cause.task,
            Cause.news,
        ]

    # -- defer: until an instant

    def test_a_wake_deferred_until_an_instant_is_offered_at_that_instant(self) -> None:
        quiet = Limits(quiet_hours=(parse_window("11:00-13:30"),))
        self.declare(an_agent("moss", limits=quiet))
        (wake,) = self.due(NOW + HOUR)
        decision = self.decide(wake, NOW + HOUR)
        until = NOW + HOUR + 30 * MINUTE
        assert (decision.verdict.guard, decision.verdict.until) == ("quiet_hours", until)
        assert self.due(until - SECOND) == []
        assert self.store.due(NOW + HOUR).next_at == until
        (order,) = self.serve(until)
        assert order.run.wake == decision.wake

    def test_every_guard_is_walked_again_each_time(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        busy = self.ring("moss", "wren")
        self.store.set("moss", {"wakes_per_day": 0}, "rana", NOW)
        self.end(order, DONE, NOW + MINUTE)
        self.serve(NOW + MINUTE)
        (row,) = [row for row in self.store.wakes() if row.wake.id == busy.wake]
        assert (row.state, row.guard) == ("refused", "wakes_per_day")

    def test_a_wake_decided_since_is_moot_for_whoever_comes_second(self) -> None:
        self.declare("moss")
        self.store.ask([operator("moss")], NOW)
        (asked,) = self.due()
        assert self.decide(asked).verdict.kind is ADMIT
        late = self.decide(asked)
        assert (late.verdict.kind, late.verdict.guard) == (REFUSE, "moot")
        assert len(self.store.runs()) == 1

    # -- refuse

    def test_a_refused_wake_keeps_its_message_and_keeps_it_silent_until_the_beat(self) -> None:
        self.declare(an_agent("moss", limits=Limits(wakes_per_day=0)), "wren")
        item = self.call("moss", "wren")
        (wake,) = self.due()
        decision = self.decide(wake)
        assert (decision.verdict.kind, decision.verdict.guard) == (REFUSE, "wakes_per_day")
        assert (self.item(item).state, self.item(item).shown) == (State.open, None)
        assert self.due(NOW + HOUR - SECOND) == []
        (row,) = self.store.wakes()
        assert (row.state, row.guard, row.run) == ("refused", "wakes_per_day", None)
        (order, *_) = [o for o in self.serve(NOW + HOUR) if o.agent.name == "moss"]
        assert [shown.id for shown in order.items] == [item]

    def test_a_refused_wake_is_not_charged(self) -> None:
        self.declare(an_agent("moss", limits=Limits(wakes_per_pair=0)), "wren")
        assert self.ring("moss", "wren").verdict.guard == "wakes_per_pair"
        assert self.wakes_of("moss") == 0

    # -- recorded undecided

    def test_a_wake_can_be_recorded_while_nobody_is_there_to_decide_it(self) -> None:
        self.declare("moss")
        (id,) = self.store.ask([operator("moss")], NOW)
        assert self.store.runs() == []
        self.reopen()
        (wake,) = self.due()
        assert wake.id == id
        (order,) = self.serve(NOW)
        assert order.run.wake == id

    def test_a_second_undecided_request_joins_the_first(self) -> None:
        self.declare("moss")
        self.store.ask([operator("moss"), operator("moss")], NOW)
        assert sorted(row.state for row in self.store.wakes()) == ["joined", "waiting"]

    def test_a_message_that_was_asked_for_undecided_is_not_asked_for_again(self) -> None:
        self.declare("moss", "wren")
        item = self.call("moss", "wren")
        (id,) = self.store.ask([peer("moss", "wren", item=item)], NOW)
        assert [wake.id for wake in self.due()] == [id]

    def test_asking_for_an_unknown_agent_is_refused(self) -> None:
        with pytest.raises(Unknown):
            self.store.ask([operator("moss")], NOW)

    # -- slots

    def test_no_more_runs_are_open_than_there_are_slots(self) -> None:
        self.declare("a", "b", "c", "d")
        decisions = self.store.decide([operator(name) for name in "abcd"], admit, NOW)
        assert [decision.verdict.guard for decision in decisions] == [None, None, "slots", "slots"]
        assert len(self.store.runs(open=True)) == 2
        assert self.due() == []

    def test_a_free_slot_goes_to_whoever_has_waited_longest(self) -> None:
        names = ["a", "b", "c", "d", "e"]
        self.declare(*names, sessions=1)
        for second, name in enumerate(names):
            self.decide(operator(name, NOW + second * SECOND), NOW + second * SECOND)
        for second, name in enumerate(names, 10):
            now = NOW + second * SECOND
            (order,) = self.claim(now)
            assert order.agent.name == name
            self.end(order, DONE, now)
            self.store.decide(self.store.due(now).wakes, admit, now)

    def test_nobody_overtakes_those_who_wait_for_a_slot(self) -> None:
        self.declare("a", "b", "c", sessions=1)
        order = self.start(operator("a"))
        assert self.decide(operator("b", NOW + SECOND), NOW + SECOND).verdict.guard == "slots"
        self.end(order, DONE, NOW + MINUTE)
        late = self.decide(operator("c", NOW + MINUTE), NOW + MINUTE)
        assert late.verdict.guard == "slots"
        (order,) = self.serve(NOW + MINUTE)
        assert order.agent.name == "b"

    def test_tasks_have_slots_of_their_own(self) -> None:
        self.declare("a", "b", "c", "d", "e", "f", sessions=1, workers=2)
        tasks = {name: self.task(name) for name in "bcd"}
        assert self.decide(operator("a")).verdict.kind is ADMIT
        said = [self.decide(work(task, name)).verdict.guard for name, task in tasks.items()]
        assert said == [None, None, "slots"]
        assert self.decide(operator("e")).verdict.guard == "slots"
