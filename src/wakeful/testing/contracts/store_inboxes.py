"""Items as they are found: by what they are and whose, in conversations, and those that nobody consumes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from wakeful.core.agents import Limits
from wakeful.core.items import Item, Kind, MessageType, NewItem, Observation, Priority, Ring
from wakeful.core.runs import Ending
from wakeful.core.standing import Spend
from wakeful.core.wakes import Pause
from wakeful.store.protocol import Order
from wakeful.testing.contracts.store_case import (
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    peer,
    reported,
    tick,
)

TOP = (1 << 63) - 1


def ids(items: list[Item]) -> list[int]:
    return [item.id for item in items]


class InboxesContract(StoreCase):
    # -- what is kept of a message

    def test_a_message_keeps_what_its_sender_says_of_it_and_which_run_sent_it(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("wren"))
        words = '{ "sprint": 12, "of": "\\u0000é" }'
        both = [NewItem(kind=kind, agent="moss", metadata=words, by_run=order.run.id) for kind in Kind]
        kept = [self.item(made.id) for made in self.store.record(both, NOW)]
        kept.append(self.item(self.store.record(both[:1], NOW)[0].id))
        assert {(item.metadata, item.by_run, item.reply_to) for item in kept} == {(words, order.run.id, None)}
        assert self.item(self.message("moss")).metadata == "{}"

    def test_a_run_is_shown_the_whole_of_a_message(self) -> None:
        self.declare("moss")
        first = self.message("moss", metadata='{"a": 1}')
        second = self.message("moss", reply_to=first)
        order = self.start(tick("moss"))
        assert [(item.id, item.metadata, item.thread, item.reply_to) for item in order.items] == [
            (first, '{"a": 1}', first, None),
            (second, "{}", first, first),
        ]

    def test_a_conversation_is_named_by_its_first_message(self) -> None:
        self.declare("moss", "wren")
        first, other = self.message("moss"), self.message("moss")
        answer = self.message("wren", reply_to=first)
        many = [NewItem(kind=Kind.message, agent="moss", reply_to=to) for to in (answer, other, first, None)]
        again, aside, late, alone = (made.id for made in self.store.record(many, NOW))
        assert [self.item(id).thread for id in (first, answer, again, late)] == [first] * 4
        assert [self.item(id).thread for id in (other, aside, alone)] == [other, other, alone]
        assert ids(self.store.items(thread=first)) == [first, answer, again, late]
        assert ids(self.store.items(thread=first, agent="moss", before=TOP)) == [late, again, first]
        assert ids(self.store.items(thread=first, after=first, limit=2)) == [answer, again]
        assert ids(self.store.items(thread=alone)) == [alone]
        assert self.store.items(thread=answer) == []

    def test_tasks_and_mirrored_items_are_conversations_of_their_own(self) -> None:
        self.declare("moss")
        task = self.task("moss")
        self.store.observe("folder", "moss", [Observation(external_id="a", fingerprint="1")], NOW)
        assert [item.thread for item in self.store.items()] == ids(self.store.items())
        assert self.item(task).thread == task

    def test_a_message_to_what_is_not_known_begins_a_conversation(self) -> None:
        self.declare("moss")
        message = self.message("moss", reply_to=999)
        assert (self.item(message).reply_to, self.item(message).thread) == (999, message)

    # -- pages

    def some_items(self) -> dict[str, int]:
        self.declare("moss", "wren", an_agent("hale"))
        made = {
            "plain": self.message("moss", sender="wren"),
            "task": self.task("moss", priority=Priority.urgent),
            "high": self.message("moss", sender="hale", priority=Priority.high, type=MessageType.unblock),
            "other": self.message("wren", sender="hale"),
            "low": self.message("moss", sender="hale", priority=Priority.low),
            "urgent": self.message("moss", sender="wren", priority=Priority.urgent, type=MessageType.unblock),
        }
        self.store.mark_read([made["high"]], "rana", NOW)
        return made

    def named(self, made: dict[str, int], **asked: Any) -> list[str]:
        names = {id: name for name, id in made.items()}
        return [names[item.id] for item in self.store.items(**asked)]

    def test_items_are_found_by_what_they_are(self) -> None:
        made = self.some_items()
        assert self.named(made) == ["plain", "task", "high", "other", "low", "urgent"]
        assert self.named(made, agent="moss", kind="message") == ["plain", "high", "low", "urgent"]
        assert self.named(made, agent="moss", state="open") == ["plain", "low", "urgent"]
        assert self.named(made, agent="moss", state="closed") == ["high"]
        assert self.named(made, agent="moss", state="pending") == ["task"]
        assert self.named(made, state="open") == ["plain", "other", "low", "urgent"]
        assert self.named(made, state="closed") == ["high"]
        assert self.named(made, kind="task") == ["task"]
        assert self.named(made, sender="hale") == ["high", "other", "low"]
        assert self.named(made, agent="moss", kind="message", sender="hale") == ["high", "low"]
        assert self.named(made, agent="moss", state="open", sender="wren") == ["plain", "urgent"]
        assert self.named(made, state="open", sender="hale") == ["other", "low"]
        assert self.named(made, type="unblock") == ["high", "urgent"]
        assert self.named(made, agent="moss", kind="message", type="unblock", state="open") == ["urgent"]

    def test_a_priority_is_the_least_that_is_wanted(self) -> None:
        made = self.some_items()
        assert self.named(made, priority="low") == self.named(made)
        assert self.named(made, priority="high") == ["task", "high", "urgent"]
        assert self.named(made, agent="moss", kind="message", priority="normal") == ["plain", "high", "urgent"]
        assert self.named(made, agent="moss", state="open", priority="high") == ["urgent"]
        assert self.named(made, state="open", priority="critical") == ["urgent"]

    def test_items_are_paged_from_either_end_and_a_page_counts_what_is_found(self) -> None:
        made = self.some_items()
        for asked in ({}, {"agent": "moss", "kind": "message"}, {"agent": "moss", "state": "open"}, {"state": "open"}):
            every = self.named(made, **asked)
            assert self.named(made, **asked, before=TOP) == every[::-1]
            assert self.named(made, **asked, limit=2) == every[:2]
            assert self.named(made, **asked, before=TOP, limit=2) == every[:-3:-1]
            assert self.named(made, **asked, after=made[every[0]]) == every[1:]
            assert self.named(made, **asked, before=made[every[-1]]) == every[-2::-1]
            assert self.named(made, **asked, after=made[every[0]], before=made[every[-1]]) == every[-2:0:-1]
        assert self.named(made, agent="moss", kind="message", sender="hale", before=TOP, limit=1) == ["low"]

    # -- stuck

    def spread_out(self, now: datetime = NOW, agent: str = "moss", **things: str) -> None:
        observed = [Observation(external_id=name, fingerprint=mark) for name, mark in things.items()]
        self.store.observe("folder", agent, observed, now)

    def one_run(self, now: datetime, ending: Ending = DONE) -> Order:
        (order,) = self.serve(now)
        self.end(order, ending, now + SECOND)
        return order

    def stuck(self, **asked: Any) -> list[tuple[str | None, int, datetime, int]]:
        rows = self.store.stuck(**asked)
        return [(row.item.external_id, row.runs, row.first_shown_at, row.last_run) for row in rows]

    def test_what_runs_were_shown_and_nobody_consumed_is_stuck(self) -> None:
        self.declare("moss")
        self.spread_out(a="1", b="1")
        assert self.stuck() == []
        first = self.one_run(NOW).run.id
        assert self.stuck() == [("a", 1, NOW, first), ("b", 1, NOW, first)]
        self.spread_out(NOW + MINUTE, a="1", b="2", c="1")
        second = self.one_run(NOW + MINUTE).run.id
        later = NOW + MINUTE
        # What was seen and has changed since was dealt with: b is counted as it is now.
        assert self.stuck() == [("a", 1, NOW, first), ("b", 1, later, second), ("c", 1, later, second)]
        self.reopen()
        assert self.stuck(limit=1) == [("a", 1, NOW, first)]
        self.spread_out(NOW + 2 * MINUTE, b="2")
        assert self.stuck() == [("b", 1, later, second)]

    def test_what_a_run_has_edited_and_left_is_stuck_since_that_run(self) -> None:
        self.declare("moss")
        self.spread_out(a="1")
        (order,) = self.serve(NOW)
        self.spread_out(NOW + SECOND, a="2")
        self.end(order, DONE, NOW + 2 * SECOND)
        assert self.stuck() == [("a", 1, NOW, order.run.id)]

    def test_the_stuck_items_of_one_agent_are_its_own(self) -> None:
        self.declare("moss", "wren")
        self.spread_out(a="1")
        self.spread_out(agent="wren", b="1")
        for order in self.serve(NOW):
            self.end(order)
        assert [name for name, *_ in self.stuck(agent="wren")] == ["b"]
        assert len(self.stuck()) == 2

    def test_what_has_changed_is_held_or_was_put_off_is_not_stuck(self) -> None:
        self.declare("moss")
        self.spread_out(a="1", b="1")
        first = self.one_run(NOW).run.id
        self.spread_out(NOW + MINUTE, a="2", b="1")
        assert [name for name, *_ in self.stuck()] == ["b"]
        (order,) = self.serve(NOW + MINUTE)
        assert [name for name, *_ in self.stuck()] == ["b"]
        self.end(order, DONE, NOW + MINUTE)
        assert self.stuck() == [("b", 1, NOW, first), ("a", 1, NOW + MINUTE, order.run.id)]
        item = next(item.id for item in self.store.items(agent="moss") if item.external_id == "a")
        self.store.snooze([item], NOW + HOUR, "rana", NOW + 2 * MINUTE)
        assert [name for name, *_ in self.stuck()] == ["b"]

    def test_a_message_that_runs_fail_on_is_stuck_once_no_other_is_about_to_see_it(self) -> None:
        self.declare("moss")
        message = self.message("moss", ring=Ring.news)
        now, failed = NOW, 0
        while failed < 4:
            for order in self.serve(now):
                assert self.stuck() == []
                self.end(order, FAILED, now)
                failed += 1
                assert len(self.stuck()) == (failed == 4)
            now += 15 * SECOND
        (row,) = self.store.stuck()
        assert (row.item.id, row.runs, row.first_shown_at) == (message, 4, NOW)
        self.end(self.start(tick("moss", now), now), DONE, now)
        assert self.store.stuck() == []

    def test_a_message_that_waits_for_its_sweep_is_stuck(self) -> None:
        self.declare(an_agent("moss", cadence=an_agent("moss").cadence.__class__()))
        message = self.message("moss")
        order = self.start(operator("moss"))
        self.end(order, Ending(exit_code=1, by="operator"))
        assert [row.item.id for row in self.store.stuck()] == [message]

    def test_a_run_that_an_open_item_was_last_shown_to_is_not_forgotten(self) -> None:
        self.declare("moss")
        self.spread_out(a="1")
        self.one_run(NOW)
        self.spread_out(NOW + MINUTE, a="2")
        last = self.one_run(NOW + MINUTE).run.id
        for minute in range(2, 5):
            self.end(self.start(operator("moss", NOW + minute * MINUTE), NOW + minute * MINUTE), DONE)
        late = NOW + 1000 * HOUR
        assert self.store.forget(late, late, late).runs == 3
        assert self.stuck() == [("a", 1, NOW + MINUTE, last)]

    # -- lineage

    def test_a_lineage_is_every_wake_that_came_of_one_itself_first(self) -> None:
        self.declare("moss", "wren", "hale", sessions=9)
        root = self.start(operator("moss"))
        stray = self.start(tick("hale"))
        first = self.ring("wren", "moss", by_run=root.run.id)
        (second,) = self.claim()
        joined = self.ring("moss", "wren", by_run=second.run.id)
        again = self.ring("moss", "wren", by_run=second.run.id)
        self.store.pause(Pause(scope="agent:hale", owner="rana", reason="", since=NOW), NOW)
        self.end(root, reported(usd=7))
        refused = self.decide(peer("wren", "moss", NOW, by_run=root.run.id, item=self.message("wren")))
        wakes = [root.run.wake, first.wake, joined.wake, again.wake, refused.wake]
        rows = self.store.lineage(root.run.wake)
        assert [row.wake.id for row in rows] == wakes
        assert [row.state for row in rows] == ["admitted", "admitted", "waiting", "joined", "refused"]
        assert [row.wake.root for row in rows] == [None, *[root.run.wake] * 4]
        assert [row.run for row in rows][:2] == [root.run.id, second.run.id]
        assert self.row(rows[0].run).spend == Spend(usd=7)
        assert [row.wake.id for row in self.store.lineage(root.run.wake, limit=2)] == wakes[:2]
        assert [row.wake.id for row in self.store.lineage(stray.run.wake)] == [stray.run.wake]
        assert self.store.lineage(999) == []

    def test_a_wake_is_listed_with_every_run_that_it_was_tried_with(self) -> None:
        self.declare("moss")
        self.message("moss", ring=Ring.news)
        first = self.one_run(NOW, FAILED).run
        second = self.one_run(NOW + MINUTE, FAILED).run
        (row,) = self.store.lineage(first.wake)
        assert (row.run, row.runs) == (second.id, (first.id, second.id))

    def test_a_run_whose_use_nobody_told_is_listed_as_estimated(self) -> None:
        self.declare(*(an_agent(name, limits=Limits(usd_per_day=1000)) for name in ("moss", "wren")))
        silent, told = self.start(operator("moss")), self.start(operator("wren"))
        self.end(silent)
        self.end(told, reported(usd=3))
        rows = [self.row(order.run.id) for order in (silent, told)]
        assert [(row.estimated, row.spend.usd) for row in rows] == [(True, 100), (False, 3)]
