"""What arrives: messages and tasks are recorded before anything is done about them, once for each key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wakeful.core.cadence import Cadence
from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.core.items import Kind, MessageType, NewItem, Origin, Priority, Ring, State
from wakeful.core.wakes import Cause, Subject
from wakeful.testing.contracts.store_case import DONE, HOUR, MINUTE, NOW, SECOND, StoreCase, an_agent, timer

HELLO = NewItem(kind=Kind.message, agent="moss", sender="wren", origin=Origin.agent, body="hello", dedupe="k1")


class RecordingContract(StoreCase):
    def test_a_recorded_item_is_there_after_being_reopened(self) -> None:
        self.declare("moss")
        new = NewItem(
            kind=Kind.message,
            agent="moss",
            sender="wren",
            origin=Origin.agent,
            subject="the draft",
            body="ü\n\x00 and 🐦",
            type=MessageType.review_request,
            priority=Priority.urgent,
            ring=Ring.peer,
        )
        (recorded,) = self.store.record([new], NOW)
        assert not recorded.duplicate
        self.reopen()
        found = self.item(recorded.id)
        for name in ("kind", "agent", "sender", "origin", "subject", "body", "type", "priority", "ring"):
            assert getattr(found, name) == getattr(new, name)
        assert (found.state, found.shown, found.created_at, found.closed_at) == (State.open, None, NOW, None)

    def test_a_task_is_recorded_pending_with_all_it_was_given(self) -> None:
        self.declare("moss")
        task = self.task("moss", key="book", max_retries=2, not_before=NOW + HOUR, priority=Priority.high)
        self.reopen()
        found = self.item(task)
        assert (found.kind, found.state, found.attempts) == (Kind.task, State.pending, 0)
        assert (found.key, found.max_retries, found.not_before) == ("book", 2, NOW + HOUR)
        assert found.priority is Priority.high

    def test_ids_rise_in_the_order_of_the_batch(self) -> None:
        self.declare("moss")
        recorded = self.store.record([replace(HELLO, dedupe=None, body=str(n)) for n in range(9)], NOW)
        ids = [answer.id for answer in recorded]
        assert ids == sorted(set(ids))
        assert [self.item(id).body for id in ids] == [str(n) for n in range(9)]

    def test_an_empty_batch_is_nothing(self) -> None:
        assert self.store.record([], NOW) == []

    # -- idempotency

    def test_where_the_key_alone_says_which_one_it_is_the_first_stands_whatever_comes_after(self) -> None:
        self.declare("moss", "wren")
        (first,) = self.store.record([replace(HELLO, once=True)], NOW)
        other = replace(HELLO, once=True, agent="wren", body="something else", subject="new", metadata='{"a": 1}')
        assert [(each.id, each.duplicate) for each in self.store.record([other], NOW)] == [(first.id, True)]
        new = replace(other, dedupe="k2")
        batch = self.store.record([other, new, replace(new, body="and another")], NOW)
        assert [each.duplicate for each in batch] == [True, False, True]
        assert (batch[0].id, batch[2].id) == (first.id, batch[1].id)
        assert (self.item(first.id).agent, self.item(first.id).body) == ("moss", "hello")
        assert self.item(batch[1].id).body == "something else"

    def test_the_same_key_is_the_same_item(self) -> None:
        self.declare("moss")
        (first,) = self.store.record([HELLO], NOW)
        (second,) = self.store.record([HELLO], NOW + HOUR)
        assert (second.id, second.duplicate) == (first.id, True)
        self.reopen()
        (third,) = self.store.record([HELLO], NOW + HOUR)
        assert (third.id, third.duplicate) == (first.id, True)
        assert len(self.store.items()) == 1

    def test_the_same_key_twice_in_one_batch_is_one_item(self) -> None:
        self.declare("moss")
        first, second = self.store.record([HELLO, HELLO], NOW)
        assert (first.id, first.duplicate, second.duplicate) == (second.id, False, True)

    def test_of_many_keys_those_that_are_taken_are_found_with_their_items(self) -> None:
        self.declare("moss")
        first, second = self.store.record([HELLO, replace(HELLO, dedupe="k 2")], NOW)
        assert HELLO.dedupe is not None
        assert self.store.keyed_items([HELLO.dedupe, "nobody's", "k 2"]) == {HELLO.dedupe: first.id, "k 2": second.id}
        assert self.store.keyed_items([]) == {}

    def test_a_key_stays_taken_when_its_item_is_closed(self) -> None:
        self.declare("moss")
        (first,) = self.store.record([HELLO], NOW)
        self.end(self.start(timer("moss", NOW + HOUR), NOW + HOUR), DONE, NOW + HOUR)
        assert self.item(first.id).state is State.closed
        (second,) = self.store.record([HELLO], NOW + 2 * HOUR)
        assert (second.id, second.duplicate) == (first.id, True)

    @pytest.mark.parametrize(
        "change",
        [{"body": "goodbye"}, {"subject": "other"}, {"agent": "wren"}, {"kind": Kind.task}, {"metadata": '{"a": 1}'}],
    )
    def test_the_same_key_with_another_body_is_a_conflict_and_nothing_of_the_batch_is_kept(
        self, change: dict[str, object]
    ) -> None:
        self.declare("moss", "wren")
        self.store.record([HELLO], NOW)
        before = (self.store.items(), self.store.events())
        other = replace(HELLO, **change)  # type: ignore[arg-type]
        with pytest.raises(Conflict):
            self.store.record([replace(HELLO, dedupe="k2"), other, replace(HELLO, dedupe="k3")], NOW)
        assert (self.store.items(), self.store.events()) == before
        (again,) = self.store.record([replace(HELLO, dedupe="k2")], NOW)
        assert not again.duplicate

    def test_items_without_a_key_are_never_the_same(self) -> None:
        self.declare("moss")
        bare = replace(HELLO, dedupe=None)
        assert not any(answer.duplicate for answer in self.store.record([bare, bare], NOW))
        assert len(self.store.items()) == 2

    # -- what cannot be recorded

    def test_an_item_for_an_unknown_agent_is_refused_with_its_batch(self) -> None:
        self.declare("moss")
        with pytest.raises(Unknown):
            self.store.record([HELLO, replace(HELLO, agent="nobody", dedupe="k2")], NOW)
        assert self.store.items() == []

    def test_a_message_needs_an_agent(self) -> None:
        with pytest.raises(Mistake):
            self.store.record([NewItem(kind=Kind.message, role="editor")], NOW)

    def test_a_dependency_must_exist(self) -> None:
        self.declare("moss")
        with pytest.raises(Unknown):
            self.task("moss", depends_on=(99,))
        assert self.store.items() == []

    def test_a_removed_agent_still_gets_its_mail(self) -> None:
        self.declare("moss", "wren")
        self.declare("wren")
        item = self.message("moss")
        self.declare("moss", "wren", now=NOW + MINUTE)
        (order, *_) = [o for o in self.serve(NOW + MINUTE + HOUR) if o.agent.name == "moss"]
        assert [shown.id for shown in order.items] == [item]

    # -- what rings

    @pytest.mark.parametrize(
        ("ring", "cause"), [(Ring.peer, Cause.peer), (Ring.news, Cause.news), (Ring.operator, Cause.operator)]
    )
    def test_an_item_that_rings_asks_for_an_inbox_run_of_its_cause(self, ring: Ring, cause: Cause) -> None:
        self.declare("moss")
        item = self.message("moss", ring=ring, sender="wren", source="hooks")
        (wake,) = self.due()
        assert (wake.agent, wake.cause, wake.subject, wake.item) == ("moss", cause, Subject.inbox, item)
        assert (wake.sender, wake.source, wake.requested_at) == ("wren", "hooks", NOW)

    def test_a_silent_message_costs_nothing_and_is_shown_at_the_next_beat(self) -> None:
        self.declare("moss")
        item = self.message("moss")
        assert self.due(NOW + HOUR - SECOND) == []
        (order,) = self.serve(NOW + HOUR)
        assert [shown.id for shown in order.items] == [item]

    def test_an_item_that_was_asked_for_is_not_asked_for_again(self) -> None:
        self.declare("moss", sessions=0)
        self.message("moss", ring=Ring.news)
        (wake,) = self.due()
        assert self.decide(wake).verdict.guard == "slots"
        assert self.due() == []

    def test_an_item_for_later_neither_rings_nor_is_shown_before_its_time(self) -> None:
        self.declare("moss")
        item = self.message("moss", ring=Ring.news, not_before=NOW + 2 * HOUR)
        assert self.due() == []
        (order,) = self.serve(NOW + HOUR)
        assert order.items == ()
        self.end(order, DONE, NOW + HOUR)
        (order,) = self.serve(NOW + 2 * HOUR)
        assert [shown.id for shown in order.items] == [item]

    def test_an_agent_without_a_timer_is_swept_for_silent_messages_after_half_an_hour(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence()))
        item = self.message("moss")
        assert self.due(NOW + 29 * MINUTE) == []
        assert self.store.due(NOW).next_at == NOW + 30 * MINUTE
        (order,) = self.serve(NOW + 30 * MINUTE)
        assert (order.run.subject, [shown.id for shown in order.items]) == (Subject.inbox, [item])
