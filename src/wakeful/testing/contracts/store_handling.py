"""What is done to an inbox by hand: what was read is closed, what was put off is out of sight and rings at its time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from wakeful.core.codec import encode
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.events import Event, EventKind
from wakeful.core.items import Observation, Ring, State
from wakeful.core.runs import Ending
from wakeful.core.wakes import Cause
from wakeful.store.protocol import Order
from wakeful.testing.contracts.store_case import (
    BY_US,
    DEFER,
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NO_WORK,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    peer,
    tick,
)

UNTIL = NOW + 10 * MINUTE


def shown(order: Order) -> list[int]:
    return [item.id for item in order.items]


class HandlingContract(StoreCase):
    def told_of(self, kind: EventKind) -> list[Event]:
        return self.store.events(kinds=(kind.value,))

    def mirror(self, fingerprint: str = "1", now: datetime = NOW) -> int:
        self.store.observe("folder", "moss", [Observation(external_id="a", fingerprint=fingerprint)], now)
        return next(item.id for item in self.store.items(agent="moss") if item.external_id == "a")

    def snooze(self, *items: int, until: datetime = UNTIL, now: datetime = NOW) -> list[int]:
        return self.store.snooze(items, until, "rana", now)

    def read(self, *messages: int, now: datetime = NOW) -> list[int]:
        return self.store.mark_read(messages, "rana", now)

    def runs_until(self, last: datetime, start: datetime = NOW) -> list[tuple[datetime, Order]]:
        """Every run that begins from now on, each done within a second; looked for twice a minute."""
        begun, now = [], start
        while now <= last:
            for order in self.serve(now):
                begun.append((now, order))
                self.end(order, DONE, now + SECOND)
            now += 30 * SECOND
        return begun

    # -- read

    def test_what_was_read_is_closed_and_shown_to_nobody(self) -> None:
        self.declare("moss")
        one, other = self.message("moss"), self.message("moss")
        assert self.read(other, one, now=NOW + SECOND) == [other, one]
        self.reopen()
        assert {(self.item(id).state, self.item(id).closed_at) for id in (one, other)} == {(State.closed, NOW + SECOND)}
        assert self.item(one).shown is None
        assert shown(self.start(tick("moss", NOW + MINUTE), NOW + MINUTE)) == []
        events = self.told_of(EventKind.marked_read)
        assert [(event.item, event.agent, event.fields) for event in events] == [
            (other, "moss", {"by": "rana"}),
            (one, "moss", {"by": "rana"}),
        ]

    def test_what_was_read_or_answered_before_is_left_alone(self) -> None:
        self.declare("moss")
        answered, message = self.message("moss"), self.message("moss")
        self.read(message)
        self.end(self.start(operator("moss")))
        before = (self.store.items(), self.store.events())
        assert self.read(message, answered, message, now=NOW + MINUTE) == []
        assert (self.store.items(), self.store.events()) == before

    @pytest.mark.parametrize("ending", [DONE, NO_WORK, FAILED, BY_US])
    def test_what_was_read_while_a_run_was_shown_it_stays_as_it_was_read(self, ending: Ending) -> None:
        self.declare("moss")
        one, other = self.message("moss", ring=Ring.news), self.message("moss")
        (order,) = self.serve(NOW)
        assert shown(order) == [one, other]
        assert self.read(one, now=NOW + SECOND) == [one]
        read = self.item(one)
        self.end(order, ending, NOW + MINUTE)
        assert self.item(one) == read
        assert self.item(other).shown == "1"

    def test_a_wake_that_waits_for_what_was_read_is_moot(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        decision = self.ring("moss", "wren", NOW + SECOND)
        assert decision.verdict.kind is DEFER
        (message,) = [item.id for item in self.store.items(agent="moss")]
        self.read(message, now=NOW + SECOND)
        self.end(order, DONE, NOW + MINUTE)
        assert self.serve(NOW + 2 * MINUTE) == []
        row = self.store.wake(decision.wake)
        assert row is not None and (row.state, row.guard) == ("refused", "moot")

    def test_a_run_that_nobody_has_claimed_does_not_begin_for_what_was_read(self) -> None:
        self.declare("moss", "wren")
        decision = self.ring("moss", "wren")
        (message,) = [item.id for item in self.store.items(agent="moss")]
        self.read(message)
        assert self.claim(NOW + SECOND) == []
        assert self.row(decision.run).state == "void"
        assert self.runs_until(NOW + 30 * MINUTE, NOW + MINUTE) == []

    def test_a_failed_run_is_not_tried_again_for_what_was_read_meanwhile(self) -> None:
        self.declare("moss", "wren")
        message = self.call("moss", "wren")
        (order,) = self.serve(NOW)
        self.read(message, now=NOW + SECOND)
        self.end(order, FAILED, NOW + MINUTE)
        assert self.runs_until(NOW + 30 * MINUTE, NOW + MINUTE) == []

    # -- what cannot be done

    @pytest.mark.parametrize("verb", ["read", "snooze"])
    def test_what_is_not_there_is_unknown_and_a_task_is_no_message(self, verb: str) -> None:
        self.declare("moss")
        message, task = self.message("moss"), self.task("moss")
        act = self.read if verb == "read" else self.snooze
        before = (self.store.items(), self.store.events())
        with pytest.raises(Unknown):
            act(message, 999)
        with pytest.raises(Mistake):
            act(message, task)
        assert act() == []
        assert (self.store.items(), self.store.events()) == before

    def test_a_mirrored_item_is_closed_by_its_source_alone(self) -> None:
        self.declare("moss")
        message, mirrored = self.message("moss"), self.mirror()
        with pytest.raises(Mistake, match="folder"):
            self.read(message, mirrored)
        assert {self.item(id).state for id in (message, mirrored)} == {State.open}

    @pytest.mark.parametrize("until", [NOW, NOW - SECOND])
    def test_nothing_is_put_off_to_the_past(self, until: datetime) -> None:
        self.declare("moss")
        message = self.message("moss")
        with pytest.raises(Mistake):
            self.snooze(message, until=until)
        assert self.item(message).not_before is None

    # -- put off

    @pytest.mark.parametrize("ring", [Ring.silent, Ring.news])
    def test_what_was_put_off_is_shown_to_nobody_until_then_and_then_rings_once(self, ring: Ring) -> None:
        self.declare("moss")
        message = self.message("moss", ring=ring)
        assert self.snooze(message) == [message]
        self.reopen()
        assert (self.item(message).ring, self.item(message).not_before) == (Ring.news, UNTIL)
        assert self.store.due(NOW).next_at == UNTIL
        beat = self.start(tick("moss", UNTIL - SECOND), UNTIL - SECOND)
        assert shown(beat) == []
        self.end(beat, DONE, UNTIL - SECOND)
        ((at, order),) = self.runs_until(NOW + 50 * MINUTE)
        assert (at, order.run.cause, shown(order)) == (UNTIL, Cause.news, [message])
        assert self.item(message).state is State.closed
        (event,) = self.told_of(EventKind.snoozed)
        assert (event.item, event.agent) == (message, "moss")
        assert event.fields == {"by": "rana", "until": encode(UNTIL)}

    @pytest.mark.parametrize("ending", [DONE, NO_WORK, FAILED, BY_US])
    def test_what_a_run_puts_off_is_not_settled_by_its_end(self, ending: Ending) -> None:
        self.declare("moss")
        message = self.message("moss", ring=Ring.news)
        (order,) = self.serve(NOW)
        self.snooze(message, now=NOW + SECOND)
        self.end(order, ending, NOW + MINUTE)
        kept = self.item(message)
        assert (kept.state, kept.shown, kept.unanswered, kept.not_before) == (State.open, None, 0, UNTIL)
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(UNTIL, [message])]

    def test_what_runs_failed_on_begins_anew_when_it_was_put_off(self) -> None:
        self.declare("moss")
        message = self.message("moss", ring=Ring.news)
        (order,) = self.serve(NOW)
        self.end(order, FAILED, NOW + SECOND)
        assert self.item(message).unanswered == 1
        self.snooze(message, now=NOW + 2 * SECOND)
        assert self.item(message).unanswered == 0
        assert [at for at, _ in self.runs_until(NOW + 50 * MINUTE)] == [UNTIL]

    def test_a_wake_that_waits_for_what_was_put_off_is_moot_and_another_comes_at_its_time(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        decision = self.ring("moss", "wren", NOW + SECOND)
        (message,) = [item.id for item in self.store.items(agent="moss")]
        self.snooze(message, now=NOW + SECOND)
        self.end(order, DONE, NOW + MINUTE)
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(UNTIL, [message])]
        row = self.store.wake(decision.wake)
        assert row is not None and (row.state, row.guard) == ("refused", "moot")

    def test_a_run_that_nobody_has_claimed_does_not_begin_for_what_was_put_off(self) -> None:
        self.declare("moss", "wren")
        self.ring("moss", "wren")
        (message,) = [item.id for item in self.store.items(agent="moss")]
        self.snooze(message)
        assert self.claim(NOW + SECOND) == []
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(UNTIL, [message])]

    def test_what_was_put_off_may_be_put_off_again_and_back(self) -> None:
        self.declare("moss")
        message = self.message("moss")
        for until in (UNTIL, UNTIL + HOUR, NOW + 5 * MINUTE):
            self.snooze(message, until=until)
        assert [at for at, _ in self.runs_until(NOW + 50 * MINUTE)] == [NOW + 5 * MINUTE]

    def test_what_is_closed_is_not_put_off(self) -> None:
        self.declare("moss")
        message = self.message("moss")
        self.read(message)
        before = (self.store.items(), self.store.events())
        assert self.snooze(message) == []
        assert (self.store.items(), self.store.events()) == before

    def test_another_run_may_hold_what_an_older_one_has_put_off(self) -> None:
        self.declare(*(replace(an_agent(f"moss-{n}"), address="moss") for n in (1, 2)), "wren")
        message = self.call("moss", "wren")
        (first,) = self.serve(NOW)
        self.snooze(message, now=NOW + SECOND)
        (second,) = self.serve(UNTIL)
        assert (shown(first), shown(second)) == ([message], [message])
        self.end(first, DONE, UNTIL + SECOND)
        assert (self.item(message).state, self.item(message).shown) == (State.open, None)
        assert self.serve(UNTIL + MINUTE) == []
        self.end(second, DONE, UNTIL + MINUTE)
        assert self.item(message).state is State.closed

    def test_what_is_put_off_is_unread_again_when_its_time_has_come(self) -> None:
        self.declare("moss")
        message = self.message("moss")
        self.message("moss")
        self.snooze(message)
        counts = [self.store.overview(now=now)[0].unread for now in (NOW, UNTIL - SECOND, UNTIL, None)]
        assert counts == [1, 1, 2, 2]

    # -- mirrored

    def test_a_mirrored_item_that_is_as_it_was_stays_put_off(self) -> None:
        self.declare("moss")
        item = self.mirror()
        self.snooze(item)
        for minute in range(1, 10):
            self.mirror(now=NOW + minute * MINUTE)
            assert self.serve(NOW + minute * MINUTE) == []
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(UNTIL, [item])]
        assert (self.item(item).state, self.item(item).shown) == (State.open, "1")

    def test_a_mirrored_item_that_was_seen_rings_anew_after_it_was_put_off(self) -> None:
        self.declare("moss")
        item = self.mirror()
        (order,) = self.serve(NOW)
        self.end(order, DONE, NOW + SECOND)
        self.snooze(item, now=NOW + MINUTE)
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(UNTIL, [item])]

    def test_a_mirrored_item_that_changes_before_its_time_rings_as_changed(self) -> None:
        self.declare("moss")
        item = self.mirror()
        (order,) = self.serve(NOW)
        self.snooze(item, now=NOW + SECOND)
        self.end(order, DONE, NOW + SECOND)
        self.mirror("2", NOW + MINUTE)
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(NOW + MINUTE, [item])]

    def test_what_a_run_does_to_what_it_has_put_off_is_no_news_to_it(self) -> None:
        self.declare("moss")
        item = self.mirror()
        (order,) = self.serve(NOW)
        self.snooze(item, now=NOW + SECOND)
        self.mirror("2", NOW + 2 * SECOND)
        self.end(order, DONE, NOW + 3 * SECOND)
        assert self.item(item).fingerprint == "2"
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(UNTIL, [item])]

    def test_a_mirrored_item_that_is_gone_is_not_waited_for(self) -> None:
        self.declare("moss")
        item = self.mirror()
        self.snooze(item)
        self.store.observe("folder", "moss", [], NOW + MINUTE)
        assert self.item(item).state is State.closed
        assert self.runs_until(NOW + 50 * MINUTE) == []

    def test_a_call_of_an_agent_about_a_message_that_was_put_off_finds_nothing_to_do(self) -> None:
        self.declare("moss", "wren")
        message = self.message("moss")
        self.snooze(message)
        decision = self.decide(peer("moss", "wren", NOW + SECOND, item=message), NOW + SECOND)
        assert decision.verdict.guard == "moot"
        assert [(at, shown(order)) for at, order in self.runs_until(NOW + 50 * MINUTE)] == [(UNTIL, [message])]
