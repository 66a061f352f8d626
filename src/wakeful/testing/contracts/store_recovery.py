"""From admission to the recorded start, and back: claims, leases, epochs, void runs, and what nobody claimed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from wakeful.core.agents import Limits
from wakeful.core.errors import Stale
from wakeful.core.events import EventKind
from wakeful.core.items import State
from wakeful.core.runs import Outcome
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DONE,
    FAILED,
    HOUR,
    LEASE,
    MINUTE,
    NOW,
    SECOND,
    TODAY,
    StoreCase,
    an_agent,
    operator,
    peer,
    timer,
)

BEAT = NOW + HOUR


class RecoveryContract(StoreCase):
    # -- claim

    def test_a_claim_is_the_recorded_start(self) -> None:
        self.declare("moss")
        item = self.message("moss")
        decision = self.decide(operator("moss"))
        (order,) = self.claim(NOW + SECOND, "one")
        assert (order.run.id, order.run.epoch, order.run.started_at) == (decision.run, 1, NOW + SECOND)
        assert (order.agent.name, order.standing.agent, order.deadline) == ("moss", "moss", NOW + SECOND + 15 * MINUTE)
        assert order.wake is not None and order.wake.id == decision.wake
        assert [shown.id for shown in order.items] == [item]
        self.reopen()
        run = self.row(order.run.id)
        assert (run.state, run.node, run.epoch, run.started_at) == ("running", "one", 1, NOW + SECOND)
        assert run.shown == (item,)
        told = self.store.events(agent="moss")[-1]
        assert (told.kind, told.run) == (EventKind.started, order.run.id)

    def test_what_is_admitted_and_not_claimed_asks_for_somebody_until_it_is(self) -> None:
        self.declare("moss")
        assert not self.store.due(NOW).unclaimed
        self.decide(operator("moss"))
        due = self.store.due(NOW + SECOND)
        assert (due.wakes, due.unclaimed, due.next_at) == ((), True, NOW + 5 * SECOND)
        self.claim(NOW + SECOND)
        assert not self.store.due(NOW + SECOND).unclaimed

    def test_a_run_is_claimed_once(self) -> None:
        self.declare("moss")
        self.decide(operator("moss"))
        assert len(self.claim(node="one")) == 1
        assert self.claim(node="two") == []

    def test_a_claim_takes_no_more_than_it_asked_for_and_the_oldest_first(self) -> None:
        self.declare("a", "b", "c", sessions=9)
        runs = [self.decide(operator(name)).run for name in "abc"]
        first = self.store.claim("one", NOW, LEASE, limit=2)
        rest = self.store.claim("two", NOW, LEASE, limit=2)
        assert [order.run.id for order in first + rest] == runs

    def test_each_start_of_an_agent_has_a_higher_epoch(self) -> None:
        self.declare("moss")
        epochs = []
        for n in range(3):
            order = self.start(operator("moss", NOW + n * SECOND), NOW + n * SECOND)
            epochs.append(order.run.epoch)
            self.end(order, DONE, NOW + n * SECOND)
            self.reopen()
        assert epochs == [1, 2, 3]

    # -- renew

    def test_a_lease_is_renewed_for_its_holder_in_its_epoch_alone(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        run, epoch = order.run.id, order.run.epoch
        for node in ("one", "two"):
            self.store.join(node, node, "", NOW, LEASE)
        assert self.store.renew("one", [(run, epoch)], NOW + SECOND, LEASE).runs == (run,)
        assert self.store.renew("two", [(run, epoch)], NOW + SECOND, LEASE).runs == ()
        assert self.store.renew("one", [(run, epoch - 1), (999, 1)], NOW + SECOND, LEASE).runs == ()
        self.end(order)
        assert self.store.renew("one", [(run, epoch)], NOW + SECOND, LEASE).runs == ()

    # -- void

    @pytest.mark.parametrize("claimed", [False, True])
    def test_a_void_run_gives_back_its_charge_and_its_wake_waits_again(self, claimed: bool) -> None:
        self.declare(an_agent("moss", limits=Limits(usd_per_day=1000)), "wren")
        item = self.call("moss", "wren")
        decision = self.decide(peer("moss", "wren", item=item))
        assert self.wakes_of("moss") == 1
        assert self.store.total("fleet", TODAY, "usd") == 100
        epoch = self.claim()[0].run.epoch if claimed else 0
        self.store.void(decision.run or 0, epoch, NOW + SECOND)
        self.reopen()
        run = self.row(decision.run)
        assert (run.state, run.outcome, run.ended_at) == ("void", None, NOW + SECOND)
        assert self.wakes_of("moss") == 0
        assert self.store.total("fleet", TODAY, "usd") == self.store.total("agent:moss", TODAY, "usd") == 0
        assert (self.item(item).state, self.item(item).shown) == (State.open, None)
        (wake,) = self.due(NOW + SECOND)
        assert (wake.id, wake.attempt) == (decision.wake, 1)
        again = self.start(wake, NOW + SECOND)
        assert [shown.id for shown in again.items] == [item]
        assert self.wakes_of("moss") == 1

    def test_a_void_run_has_used_up_nothing(self) -> None:
        self.declare(an_agent("moss", limits=Limits(cooldown=timedelta(), wakes_per_pair=1, burst=1)), "wren")
        decision = self.ring("moss", "wren")
        self.store.void(decision.run or 0, 0, NOW)
        known = self.store.why(peer("moss", "wren"), NOW).facts
        assert (known.last_peer_wake_at, known.wakes_today, known.pair_wakes_today) == (None, 0, 0)
        assert (known.burst_starts, known.open_run, known.slots_taken) == (0, None, 0)
        (wake,) = self.due()
        assert self.decide(wake).verdict.kind is ADMIT

    def test_a_void_beat_leaves_the_standing_as_it_was(self) -> None:
        self.declare("moss")
        before = self.standing("moss")
        order = self.start(timer("moss", BEAT), BEAT)
        self.store.void(order.run.id, order.run.epoch, BEAT)
        assert self.standing("moss") == before
        (order,) = self.serve(BEAT)
        assert order.run.subject == "beat"

    def test_a_void_task_run_is_no_attempt(self) -> None:
        self.declare("moss")
        task = self.task("moss", max_retries=0)
        (order,) = self.serve(NOW)
        self.store.void(order.run.id, order.run.epoch, NOW)
        assert (self.item(task).state, self.item(task).attempts) == (State.pending, 0)
        assert self.store.attempts(task) == []
        (order,) = self.serve(NOW + SECOND)
        assert [leased.id for leased in order.tasks] == [task]

    def test_what_has_ended_cannot_be_void_and_what_is_void_cannot_end(self) -> None:
        self.declare("moss")
        ended = self.start(operator("moss"))
        self.end(ended)
        void = self.start(operator("moss"))
        self.store.void(void.run.id, void.run.epoch, NOW)
        for order in (ended, void):
            with pytest.raises(Stale):
                self.store.void(order.run.id, order.run.epoch, NOW)
            with pytest.raises(Stale):
                self.end(order)

    def test_a_veto_of_an_older_epoch_is_refused(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        with pytest.raises(Stale):
            self.store.void(order.run.id, order.run.epoch - 1, NOW)
        assert self.row(order.run.id).state == "running"

    # -- expire

    def test_a_run_that_nobody_claims_within_five_seconds_goes_back_to_waiting(self) -> None:
        self.declare("moss", "wren")
        decision = self.ring("moss", "wren")
        assert self.store.expire(NOW + 4 * SECOND) == []
        assert self.store.due(NOW).next_at == NOW + 5 * SECOND
        assert self.store.expire(NOW + 5 * SECOND) == [decision.run]
        assert self.wakes_of("moss") == 0
        (order,) = self.serve(NOW + 5 * SECOND)
        assert order.run.wake == decision.wake
        assert self.store.expire(NOW + HOUR) == []

    def test_the_slot_of_a_run_that_nobody_claimed_goes_to_whoever_waits_for_it(self) -> None:
        self.declare("a", "b", sessions=1)
        self.decide(operator("a"))
        assert self.decide(operator("b", NOW + SECOND), NOW + SECOND).verdict.guard == "slots"
        self.store.expire(NOW + 5 * SECOND)
        begun = self.serve(NOW + 5 * SECOND)
        assert [order.agent.name for order in begun] == ["a"]
        self.end(begun[0], DONE, NOW + MINUTE)
        assert [order.agent.name for order in self.serve(NOW + MINUTE)] == ["b"]

    # -- lost

    def test_a_lost_run_is_an_attempt_and_its_late_end_is_refused(self) -> None:
        self.declare("moss")
        order = self.start(timer("moss", BEAT), BEAT)
        self.reopen()
        lost = Finish(run=order.run.id, epoch=order.run.epoch, ending=replace(FAILED, lost=True))
        assert self.store.finish([lost], settle, BEAT + MINUTE) == [Outcome.killed]
        assert self.standing("moss").failure_streak == 1
        with pytest.raises(Stale):
            self.end(order, DONE, BEAT + MINUTE)
