"""What a renewal says beside: when anything asks for a decision, and up to where the events go.

Whatever `due` would find is due by a renewal as well; what nobody can decide on yet is not.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Agent
from wakeful.core.cadence import Cadence
from wakeful.core.items import Observation, Priority, Ring
from wakeful.core.wakes import Pause
from wakeful.store.protocol import Order
from wakeful.testing.contracts.store_case import (
    DONE,
    HOUR,
    LEASE,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    timer,
    work,
)

BEAT = NOW + HOUR
LONG = timedelta(days=9)


def idle(name: str, **changes: object) -> Agent:
    """An agent that no clock wakes."""
    return an_agent(name, cadence=Cadence(), **changes)


class InstantsContract(StoreCase):
    def next_at(self, now: datetime = NOW) -> datetime | None:
        """What a renewal says, which is never later than what there is to do."""
        self.set_clock(now)
        self.store.join("one", "attic", "", now, LEASE)
        next_at = self.store.renew("one", [], now, LEASE).next_at
        due = self.store.due(now)
        if due.wakes or due.unclaimed:
            assert next_at is not None and next_at <= now
        return next_at

    def hold(self, now: datetime = NOW) -> Order:
        """Claim a run, with a lease that does not end while we look."""
        self.set_clock(now)
        (order,) = self.store.claim("one", now, LONG)
        return order

    def test_an_empty_store_and_a_fleet_that_nothing_wakes_ask_for_nothing(self) -> None:
        assert self.next_at() is None
        self.declare(idle("moss"))
        assert self.next_at() is None

    def test_a_beat_asks_at_its_instant_until_it_is_decided(self) -> None:
        self.declare("moss", idle("wren"))
        assert self.next_at(NOW) == BEAT
        assert self.next_at(BEAT + HOUR) == BEAT
        self.decide(timer("moss", BEAT), BEAT)
        self.hold(BEAT)
        assert self.next_at(BEAT + HOUR) == BEAT + LONG

    def test_a_waiting_wake_asks_when_it_may_be_tried_again(self) -> None:
        self.declare(idle("moss"))
        self.decide(operator("moss"))
        self.hold()
        self.store.pause(Pause(scope="fleet", owner="operator", reason="", since=NOW, until=NOW + MINUTE), NOW)
        self.store.ask([timer("moss")], NOW)
        assert self.next_at() == NOW
        self.store.decide(self.due(), admit, NOW)
        assert self.next_at() == NOW + MINUTE

    def test_an_item_asks_when_it_rings_and_no_longer_once_it_has_asked(self) -> None:
        self.declare(idle("moss"), idle("wren"))
        self.decide(operator("moss"))
        self.hold()
        later = self.message("moss", ring=Ring.news, now=NOW + MINUTE)
        assert self.next_at(NOW + 2 * MINUTE) == self.store.due(NOW).next_at
        (wake,) = self.due(NOW + 2 * MINUTE)
        assert wake.item == later
        assert self.decide(wake, NOW + 2 * MINUTE).verdict.guard == "busy"
        assert (self.next_at(NOW + 2 * MINUTE) or NOW) > NOW + 2 * MINUTE

    def test_an_item_that_was_answered_is_silent(self) -> None:
        self.declare(idle("moss"))
        self.message("moss", ring=Ring.news)
        assert (self.next_at(NOW + MINUTE) or NOW + HOUR) <= NOW + MINUTE
        (order,) = self.serve(NOW + MINUTE)
        self.end(order, DONE, NOW + MINUTE)
        assert self.next_at(NOW + HOUR) is None

    def test_an_item_that_changed_and_changed_back_before_it_was_shown_again_is_silent(self) -> None:
        self.declare(idle("moss"))
        self.store.observe("folder", "moss", [Observation(external_id="a", fingerprint="1")], NOW)
        (order,) = self.serve(NOW + MINUTE)
        self.end(order, DONE, NOW + MINUTE)
        self.store.observe("folder", "moss", [Observation(external_id="a", fingerprint="2")], NOW + MINUTE)
        assert self.next_at(NOW + MINUTE) is not None
        self.store.observe("folder", "moss", [Observation(external_id="a", fingerprint="1")], NOW + MINUTE)
        assert (self.due(NOW + HOUR), self.next_at(NOW + HOUR)) == ([], None)

    def test_a_ready_task_asks_while_a_worker_is_free(self) -> None:
        self.declare(idle("moss"), idle("wren"), workers=1)
        self.task("moss")
        assert self.next_at() == NOW
        self.store.decide(self.due(), admit, NOW)
        order = self.hold()
        self.task("wren")
        assert self.next_at() == NOW + LONG
        self.end(order)
        assert self.next_at() == NOW

    def test_a_task_for_later_asks_at_its_time_and_then_while_a_worker_is_free(self) -> None:
        self.declare(idle("moss"), idle("wren"), workers=1)
        self.task("wren", not_before=NOW + MINUTE)
        assert self.next_at() == NOW + MINUTE
        assert self.next_at(NOW + MINUTE) == NOW + MINUTE
        self.task("moss")
        self.store.decide(self.due(), admit, NOW)
        self.hold()
        assert self.next_at() == NOW + MINUTE
        assert self.next_at(NOW + MINUTE) == NOW + LONG

    def test_a_task_that_is_held_up_does_not_ask(self) -> None:
        self.declare(idle("moss"), idle("wren", roles=("editor",)), idle("hale", enabled=False), workers=9)
        self.decide(operator("moss"))
        self.hold()
        first = self.task("moss", key="book")
        assert self.due() == []
        self.store.pause(Pause(scope="source:board", owner="operator", reason="", since=NOW), NOW)
        self.task("moss")
        self.task("wren", key="book")
        self.task("wren", source="board")
        self.task("wren", depends_on=(first,))
        self.task("hale")
        self.task(role="nobody")
        assert (self.due(), self.next_at()) == ([], NOW + LONG)

    @pytest.mark.parametrize("later", [None, NOW])
    def test_a_task_behind_many_that_are_held_up_is_not_missed(self, later: datetime | None) -> None:
        self.declare(idle("moss"))
        for _ in range(40):
            self.task(role="nobody", priority=Priority.high, not_before=later)
        self.task("moss", not_before=later)
        assert len(self.due()) == 1
        assert self.next_at() == NOW

    def test_whoever_waits_for_a_slot_asks_when_one_is_free(self) -> None:
        self.declare(idle("a"), idle("b"), sessions=1)
        self.decide(operator("a"))
        order = self.hold()
        self.decide(operator("b"))
        assert [row.guard for row in self.store.wakes(agent="b")] == ["slots"]
        assert self.next_at() == NOW + LONG
        self.end(order)
        assert self.next_at() == NOW

    def test_whoever_waits_for_a_worker_asks_when_one_is_free(self) -> None:
        self.declare(idle("a"), idle("b"), workers=1)
        tasks = [self.task(name) for name in "ab"]
        self.store.decide([work(task, name) for task, name in zip(tasks, "ab", strict=True)], admit, NOW)
        order = self.hold()
        assert [row.guard for row in self.store.wakes(agent="b")] == ["slots"]
        assert self.next_at() == NOW + LONG
        self.end(order)
        assert self.next_at() == NOW

    def test_an_admitted_run_asks_to_be_claimed_at_once(self) -> None:
        self.declare(idle("moss"))
        self.decide(operator("moss"))
        assert self.next_at() == NOW
        self.hold()
        assert self.next_at() == NOW + LONG

    def test_a_pause_asks_to_be_lifted_at_its_end(self) -> None:
        self.declare("moss")
        self.store.pause(Pause(scope="fleet", owner="a", reason="", since=NOW), NOW)
        self.store.pause(Pause(scope="fleet", owner="b", reason="", since=NOW, until=NOW + MINUTE), NOW)
        assert self.next_at() == NOW + MINUTE
        assert self.next_at(NOW + 2 * MINUTE) == NOW + MINUTE
        self.store.expire(NOW + 2 * MINUTE)
        assert self.next_at(NOW + 2 * MINUTE) == BEAT

    def test_a_run_asks_for_somebody_when_its_lease_ends(self) -> None:
        self.declare(idle("moss"), idle("wren"))
        self.start(operator("moss"))
        self.set_clock(NOW + SECOND)
        order = self.start(operator("wren", NOW + SECOND), NOW + SECOND)
        assert self.next_at(NOW + SECOND) == NOW + LEASE
        assert self.next_at(NOW + 2 * LEASE) == NOW + LEASE
        self.end(order, DONE, NOW + 2 * LEASE)

    def test_what_a_node_has_just_renewed_does_not_ask_for_anybody(self) -> None:
        self.declare(idle("moss"))
        run = self.start(operator("moss")).run
        now = NOW + 2 * LEASE
        self.set_clock(now)
        self.store.join("one", "attic", "", now, LEASE)
        assert self.store.renew("one", [(run.id, run.epoch)], now, LEASE).next_at == now + LEASE

    def test_a_run_that_somebody_wants_ended_asks_its_own_node_at_once(self) -> None:
        self.declare(idle("moss"))
        self.decide(operator("moss"))
        run = self.hold().run.id
        self.store.join("two", "cellar", "", NOW, LEASE)
        self.store.stop([run], "rana", NOW)
        assert self.next_at() == NOW
        assert self.store.renew("two", [], NOW, LEASE).next_at == NOW + LONG

    def test_the_last_event_is_told_and_moves_with_each_change(self) -> None:
        self.store.join("one", "attic", "", NOW, LEASE)
        told = []
        for act in (
            lambda: self.declare(idle("moss")),
            lambda: self.decide(operator("moss")),
            lambda: self.claim(),
            lambda: None,
        ):
            act()
            told.append(self.store.renew("one", [], NOW, LEASE).last_event)
            assert told[-1] == self.store.events()[-1].id
        assert told == sorted(told)
        assert len(set(told)) == 3
