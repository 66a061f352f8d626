"""A pause is the presence of its row: the fleet's, an agent's or a source's; no run begins in its scope."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wakeful.core.events import EventKind
from wakeful.core.items import Ring, State
from wakeful.core.wakes import Cause, Pause
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
    news,
    operator,
    peer,
    timer,
    work,
)

FLEET = Pause(scope="fleet", owner="operator", reason="a bad deploy", since=NOW)
MOSS = replace(FLEET, scope="agent:moss")
HOOKS = replace(FLEET, scope="source:hooks")
SCOPES = pytest.mark.parametrize("pause", [FLEET, MOSS, HOOKS], ids=lambda pause: pause.scope)
BEAT = NOW + HOUR


class PausesContract(StoreCase):
    def test_a_pause_is_there_after_being_reopened(self) -> None:
        self.store.pause(FLEET, NOW)
        self.store.pause(replace(MOSS, until=NOW + HOUR), NOW)
        self.reopen()
        assert set(self.store.pauses()) == {FLEET, replace(MOSS, until=NOW + HOUR)}

    @SCOPES
    def test_no_run_begins_in_the_scope_of_a_pause_whatever_the_cause(self, pause: Pause) -> None:
        self.declare("moss", "wren")
        self.store.pause(pause, NOW)
        task = self.task("moss", source="hooks")
        item = self.message("moss", ring=Ring.news, source="hooks")
        wakes = [
            news("moss", BEAT, item=item, source="hooks"),
            peer("moss", "wren", BEAT, source="hooks"),
            work(task, "moss", BEAT, source="hooks"),
            timer("moss", BEAT, source="hooks"),
        ]
        for wake in wakes:
            verdict = self.decide(wake, BEAT).verdict
            assert (verdict.kind, verdict.guard, verdict.numbers) == (DEFER, "paused", {"scope": pause.scope})
        told = self.decide(operator("moss", BEAT, source="hooks"), BEAT).verdict
        assert (told.kind, told.guard) == (REFUSE, "paused")
        assert self.store.runs() == []

    def test_a_paused_agent_leaves_the_others_alone_and_a_paused_source_what_came_otherwise(self) -> None:
        self.declare("moss", "wren")
        self.store.pause(MOSS, NOW)
        self.store.pause(HOOKS, NOW)
        assert self.decide(operator("wren")).verdict.kind is ADMIT
        item = self.message("wren", ring=Ring.news, source="board")
        assert self.decide(news("wren", item=item, source="board")).verdict.guard == "busy"

    @SCOPES
    def test_sources_go_on_recording_during_a_pause(self, pause: Pause) -> None:
        self.declare("moss")
        self.store.pause(pause, NOW)
        item = self.message("moss", ring=Ring.news, source="hooks")
        assert self.item(item).state is State.open

    @SCOPES
    def test_what_waited_for_a_pause_is_tried_as_it_ends(self, pause: Pause) -> None:
        self.declare("moss")
        self.store.pause(pause, NOW)
        item = self.message("moss", ring=Ring.news, source="hooks")
        self.decide(news("moss", item=item, source="hooks"))
        assert self.due(NOW + 10 * MINUTE) == []
        assert self.store.resume(pause.scope, "rana", NOW + 10 * MINUTE)
        (order,) = self.serve(NOW + 10 * MINUTE)
        assert [shown.id for shown in order.items] == [item]

    def test_a_beat_that_waited_for_a_pause_alone_follows_its_end_at_once(self) -> None:
        self.declare("moss")
        self.store.pause(FLEET, NOW)
        self.serve(BEAT)
        self.store.resume("fleet", "rana", BEAT)
        assert len(self.serve(BEAT + SECOND)) == 1

    def test_overdue_beats_are_let_go_one_after_the_other(self) -> None:
        names = [f"a{n}" for n in range(20)]
        self.declare(*names, sessions=99)
        self.store.pause(FLEET, NOW)
        self.serve(BEAT)
        self.store.resume("fleet", "rana", BEAT)
        begun = [len(self.serve(BEAT + second * SECOND)) for second in range(13)]
        assert sum(begun) == 20
        assert max(begun) < 7

    def test_to_resume_what_is_not_paused_says_so(self) -> None:
        assert self.store.resume("fleet", "rana", NOW) is False

    def test_a_pause_of_the_same_scope_and_owner_replaces_the_first(self) -> None:
        self.store.pause(FLEET, NOW)
        again = replace(FLEET, reason="lunch", until=NOW + HOUR)
        self.store.pause(again, NOW)
        assert self.store.pauses() == [again]

    def test_a_pause_of_another_owner_stands_beside_the_first_and_must_be_lifted_too(self) -> None:
        self.declare("moss")
        self.store.pause(FLEET, NOW)
        self.store.pause(replace(FLEET, owner="file"), NOW)
        assert self.store.resume("fleet", "rana", NOW, owner="operator")
        assert [pause.owner for pause in self.store.pauses()] == ["file"]
        assert self.decide(operator("moss")).verdict.guard == "paused"
        assert not self.store.resume("fleet", "rana", NOW, owner="operator")
        assert self.store.resume("fleet", "rana", NOW)
        assert self.decide(operator("moss")).verdict.kind is ADMIT

    def test_a_pause_with_an_end_holds_until_then_and_tells_it(self) -> None:
        self.declare("moss")
        until = NOW + 2 * HOUR
        self.store.pause(replace(MOSS, until=until), NOW)
        (wake,) = self.due(BEAT)
        verdict = self.decide(wake, BEAT).verdict
        assert verdict.guard == "paused" and verdict.until is not None
        assert until <= verdict.until < until + MINUTE
        assert self.serve(until - SECOND) == []
        assert self.store.due(until - SECOND).next_at == until
        orders = self.serve(until) or self.serve(until + MINUTE)
        assert [order.agent.name for order in orders] == ["moss"]
        assert self.store.pauses() == []

    def test_a_pause_that_has_run_out_holds_nobody_even_before_it_is_lifted(self) -> None:
        self.declare("moss")
        self.store.pause(replace(MOSS, until=NOW + MINUTE), NOW)
        assert self.decide(operator("moss", NOW + MINUTE), NOW + MINUTE).verdict.kind is ADMIT

    def test_what_two_pauses_hold_is_held_until_both_have_ended(self) -> None:
        self.declare("moss")
        self.store.pause(replace(FLEET, until=NOW + 10 * MINUTE), NOW)
        self.store.pause(replace(MOSS, until=NOW + 20 * MINUTE), NOW)
        self.message("moss", ring=Ring.news)
        begun = [(minute, order) for minute in range(30) for order in self.serve(NOW + minute * MINUTE)]
        ((minute, _),) = begun
        assert minute in (20, 21)

    # -- runs that are open

    def test_a_run_under_way_goes_on_and_may_end(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        self.store.pause(FLEET, NOW)
        assert self.row(order.run.id).state == "running"
        self.end(order, DONE, NOW + MINUTE)
        assert self.row(order.run.id).outcome == "done"

    @pytest.mark.parametrize("pause", [FLEET, MOSS, HOOKS], ids=lambda pause: pause.scope)
    def test_a_run_that_nobody_has_claimed_is_taken_back(self, pause: Pause) -> None:
        self.declare("moss", "wren")
        item = self.message("moss", ring=Ring.news, source="hooks")
        decision = self.decide(news("moss", item=item, source="hooks"))
        assert decision.verdict.kind is ADMIT
        self.store.pause(pause, NOW + SECOND)
        assert self.claim(NOW + SECOND) == []
        assert self.row(decision.run).state == "void"
        self.serve(NOW + MINUTE)
        assert [row.guard for row in self.store.wakes(agent="moss")] == ["paused"]
        self.store.resume(pause.scope, "rana", NOW + HOUR - 2 * MINUTE)
        (order,) = self.serve(NOW + HOUR - MINUTE)
        assert order.run.wake == decision.wake

    def test_a_pause_of_another_agent_takes_nothing_back(self) -> None:
        self.declare("moss", "wren")
        self.decide(operator("wren"))
        self.store.pause(MOSS, NOW)
        assert [order.agent.name for order in self.claim()] == ["wren"]

    def test_a_pause_of_an_address_holds_every_replica_behind_it(self) -> None:
        self.declare(*(an_agent(f"moss-{n}", address="moss") for n in (1, 2)), sessions=9)
        decision = self.decide(operator("moss-1"))
        self.store.pause(MOSS, NOW)
        assert self.decide(operator("moss")).verdict.guard == "paused"
        assert self.decide(operator("moss-2")).verdict.guard == "paused"
        assert self.claim() == []
        assert self.row(decision.run).state == "void"

    def test_what_was_busy_when_the_pause_came_is_offered_after_it(self) -> None:
        self.declare("moss", "wren")
        self.decide(operator("moss"))
        waiting = self.ring("moss", "wren")
        assert waiting.verdict.guard == "busy"
        self.store.pause(MOSS, NOW + SECOND)
        self.serve(NOW + 2 * SECOND)
        self.store.resume("agent:moss", "rana", NOW + MINUTE)
        (order,) = self.serve(NOW + 2 * MINUTE)
        assert (order.run.wake, order.run.cause) == (waiting.wake, Cause.peer)

    def test_a_paused_source_does_not_hold_up_the_agents_other_tasks(self) -> None:
        self.declare("moss")
        self.store.pause(HOOKS, NOW)
        held = self.task("moss", source="hooks")
        free = self.task("moss")
        for second in range(3):
            self.serve(NOW + second * SECOND)
        assert [task for run in self.store.runs() for task in run.tasks] == [free]
        assert self.item(held).state is State.pending

    def test_pauses_and_their_ends_are_told_with_who_made_them(self) -> None:
        self.declare("moss")
        self.store.pause(MOSS, NOW)
        self.store.resume("agent:moss", "rana", NOW + MINUTE)
        paused, resumed = self.store.events(agent="moss")[-2:]
        assert (paused.kind, resumed.kind) == (EventKind.paused, EventKind.resumed)
        assert (paused.fields or {})["reason"] == "a bad deploy"
        assert (resumed.fields or {})["by"] == "rana"
