"""What rings goes on until a run was shown it, however many there are and whatever is done to those beside it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from wakeful.core.agents import Limits
from wakeful.core.cadence import Cadence
from wakeful.core.errors import Conflict
from wakeful.core.items import Kind, MessageType, NewItem, Observation, Origin, Priority, Ring, State
from wakeful.core.wakes import Cause
from wakeful.testing.contracts.store_case import (
    DONE,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    peer,
    reported,
)

FREE = replace(Limits(), cooldown=timedelta())
MANY = 250


class LastingContract(StoreCase):
    def timerless(self, limits: Limits = FREE) -> None:
        self.declare(*(an_agent(name, cadence=Cadence(), limits=limits) for name in ("moss", "wren", "hale")))

    def lived(self, until: datetime, step: timedelta, since: datetime = NOW) -> list[tuple[datetime, Cause, list[int]]]:
        """Every run from now on, each done within a second."""
        found, now = [], since
        while now <= until:
            for order in self.serve(now):
                found.append((now, order.run.cause, [item.id for item in order.items]))
                self.end(order, DONE, now + SECOND)
            now += step
        return found

    # -- more than one run can be shown

    def test_what_one_run_has_no_room_for_is_shown_to_the_next_ones(self) -> None:
        self.timerless()
        files = [Observation(external_id=f"file-{number}", fingerprint="1") for number in range(MANY)]
        self.store.observe("inbox", "moss", files, NOW)
        runs = self.lived(NOW + MINUTE, SECOND)
        assert [len(shown) for _, _, shown in runs] == [100, 100, 50]
        assert len({item for _, _, shown in runs for item in shown}) == MANY
        # Two seconds apart at least: a full inbox is not a hot loop.
        assert all(later[0] - sooner[0] >= 2 * SECOND for sooner, later in pairwise(runs))

    def test_what_came_in_numbers_during_a_run_is_shown_to_the_next_ones(self) -> None:
        self.timerless()
        busy = self.start(operator("moss", NOW), NOW)
        for number in range(MANY):
            self.ring("moss", "wren" if number % 2 else "hale", NOW + SECOND)
        self.end(busy, DONE, NOW + 2 * SECOND)
        runs = self.lived(NOW + MINUTE, SECOND, NOW + 2 * SECOND)
        assert sum(len(shown) for _, _, shown in runs) == MANY

    def test_what_was_refused_stays_quiet_when_another_run_ends(self) -> None:
        self.declare(an_agent("moss"), an_agent("wren"))
        busy = self.start(operator("moss", NOW), NOW)
        self.store.set("moss", {"wakes_per_day": 0}, "rana", NOW)
        assert self.ring("moss", "wren", NOW + SECOND).verdict.guard == "wakes_per_day"
        self.end(busy, DONE, NOW + 2 * SECOND)
        assert self.lived(NOW + 10 * MINUTE, SECOND * 10, NOW + 2 * SECOND) == []

    # -- what is put off

    def put_off(self, ring: Ring, **more: Any) -> int:
        order = self.start(operator("moss", NOW), NOW)
        item = self.message("moss", now=NOW, ring=ring, **more)
        self.store.snooze([item], NOW + HOUR, "rana", NOW + SECOND)
        self.end(order, DONE, NOW + 2 * SECOND)
        return item

    @pytest.mark.parametrize("ring", [Ring.peer, Ring.operator, Ring.silent])
    def test_what_was_put_off_rings_as_news_whoever_sent_it(self, ring: Ring) -> None:
        self.timerless(replace(FREE, wakes_per_day=0))
        origin = Origin.operator if ring is Ring.operator else Origin.agent
        item = self.put_off(ring, origin=origin, sender="wren")
        (run,) = self.lived(NOW + 2 * HOUR, MINUTE, NOW + 3 * SECOND)
        assert run[1:] == (Cause.news, [item]) and run[0] >= NOW + HOUR

    def test_to_put_off_an_operators_message_again_and_again_is_no_way_past_the_limits(self) -> None:
        dear = replace(FREE, usd_per_day=1_000_000, minutes_per_day=1, minutes_declared=True, burst=3)
        self.timerless(dear)
        item = self.message("moss", now=NOW, ring=Ring.operator, origin=Origin.operator, sender="operator")
        runs, now = 0, NOW
        while now < NOW + 10 * MINUTE:
            for order in self.serve(now):
                runs += 1
                self.store.snooze([item], now + 2 * SECOND, "moss", now + SECOND)
                self.end(order, replace(reported(usd=500_000), elapsed=2 * MINUTE), now + SECOND)
            now += SECOND
        assert runs <= 2

    def test_a_refusal_of_what_waited_does_not_bring_back_what_was_put_off(self) -> None:
        first, second = self.two_that_wait()
        self.store.snooze([first], NOW + 6 * HOUR, "rana", NOW + 3 * SECOND)
        self.refused_at_the_end()
        runs = self.lived(NOW + 24 * HOUR, 5 * MINUTE, NOW + 5 * SECOND)
        assert [shown for _, _, shown in runs] == [[second], [first]]
        assert runs[1][0] >= NOW + 6 * HOUR

    def test_nothing_turns_at_the_sweep_while_something_is_put_off(self) -> None:
        first, second = self.two_that_wait()
        self.store.snooze([first], NOW + 6 * HOUR, "rana", NOW + 3 * SECOND)
        self.refused_at_the_end()
        self.store.mark_read([second], "rana", NOW + MINUTE)
        known = len(self.store.wakes(agent="moss", limit=1000))
        for _ in range(20):
            assert self.serve(NOW + 31 * MINUTE) == []
        assert len(self.store.wakes(agent="moss", limit=1000)) == known

    # -- what was asked for together

    def two_that_wait(self) -> tuple[int, int]:
        """moss is busy; two wakes for it wait as one."""
        self.timerless()
        self.busy = self.start(operator("moss", NOW), NOW)
        first = self.call("moss", "wren", NOW + SECOND)
        self.decide(peer("moss", "wren", NOW + SECOND, item=first), NOW + SECOND)
        second = self.call("moss", "hale", NOW + 2 * SECOND)
        decision = self.decide(peer("moss", "hale", NOW + 2 * SECOND, item=second), NOW + 2 * SECOND)
        assert decision.joined is not None
        return first, second

    def refused_at_the_end(self) -> None:
        self.store.set("moss", {"wakes_per_day": 0}, "rana", NOW + 3 * SECOND)
        self.end(self.busy, DONE, NOW + 4 * SECOND)

    def test_what_joined_a_wake_is_swept_when_that_is_refused_though_its_first_was_read(self) -> None:
        first, second = self.two_that_wait()
        self.store.mark_read([first], "rana", NOW + 3 * SECOND)
        self.refused_at_the_end()
        runs = self.lived(NOW + 2 * HOUR, MINUTE, NOW + 5 * SECOND)
        assert [shown for _, _, shown in runs] == [[second]]
        item = self.store.item(second)
        assert item is not None and item.state is State.closed

    # -- keys

    @pytest.mark.parametrize("more", [{"priority": Priority.urgent}, {"type": MessageType.help_request}])
    def test_a_key_is_of_one_message_with_one_priority_and_type(self, more: dict[str, Any]) -> None:
        self.timerless()
        item = NewItem(kind=Kind.message, agent="moss", body="look", dedupe="k")
        self.store.record([item], NOW)
        with pytest.raises(Conflict):
            self.store.record([replace(item, **more)], NOW)
