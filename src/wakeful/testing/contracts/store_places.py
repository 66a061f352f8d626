"""Whose turn it is: by the place in the queue, whatever a task has waited for; and how deep a task stands."""

from __future__ import annotations

from datetime import datetime

from wakeful.core.agents import Limits, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.items import Kind, NewItem, Priority, State
from wakeful.core.wakes import Pause, agent_scope
from wakeful.testing.contracts.store_case import (
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    work,
)

# Without a timer: what runs is a task.
MOSS = an_agent("moss", cadence=Cadence())


class PlacesContract(StoreCase):
    def begun(self, turns: int, now: datetime = NOW) -> list[int]:
        """What is begun, and done, one after the other."""
        found: list[int] = []
        for n in range(turns):
            for order in self.serve(now + n * SECOND):
                found += [task.id for task in order.tasks]
                self.end(order, DONE, now + n * SECOND)
        return found

    # -- what has waited

    def test_what_waited_out_a_pause_goes_after_a_better_one_that_came_meanwhile(self) -> None:
        self.declare(MOSS)
        self.store.pause(Pause(scope=agent_scope("moss"), owner="rana", reason="a look", since=NOW), NOW)
        low = self.task("moss", priority=Priority.low)
        assert self.serve(NOW) == []
        assert [wake.task for wake in self.waiting()] == [low]
        urgent = self.task("moss", NOW + SECOND, priority=Priority.urgent)
        self.store.resume(agent_scope("moss"), "rana", NOW + MINUTE)
        # Not all who were held are let go at one instant.
        assert self.begun(5, NOW + HOUR) == [urgent, low]

    def test_what_waited_for_a_slot_goes_after_a_better_one_that_came_meanwhile(self) -> None:
        self.declare(MOSS, an_agent("wren", cadence=Cadence()), workers=1)
        first = self.task("wren")
        (busy,) = self.serve(NOW)
        assert [task.id for task in busy.tasks] == [first]
        low = self.task("moss", priority=Priority.low)
        decision = self.decide(work(low, "moss"))
        assert (decision.verdict.guard, decision.run) == ("slots", None)
        urgent = self.task("moss", NOW + SECOND, priority=Priority.urgent)
        self.end(busy, DONE, NOW + MINUTE)
        assert self.begun(5, NOW + MINUTE) == [urgent, low]

    def test_a_better_one_that_cannot_begin_holds_nobody_up(self) -> None:
        self.declare(MOSS, an_agent("wren", cadence=Cadence()))
        self.store.pause(Pause(scope=agent_scope("moss"), owner="rana", reason="a look", since=NOW), NOW)
        low = self.task("moss", priority=Priority.low)
        self.serve(NOW)
        self.task("wren", key="k")
        (order,) = self.serve(NOW)
        behind = self.task("moss", NOW, key="k", priority=Priority.urgent)
        self.store.resume(agent_scope("moss"), "rana", NOW)
        assert self.begun(3, NOW + HOUR) == [low]
        self.end(order, DONE, NOW + HOUR)
        assert self.begun(3, NOW + HOUR) == [behind]

    # -- what has fallen due

    def test_what_has_fallen_due_stands_by_its_place_however_much_there_is(self) -> None:
        self.declare(MOSS)
        at = NOW + MINUTE
        low = NewItem(kind=Kind.task, agent="moss", priority=Priority.low, not_before=at)
        self.store.record([low] * 1100, NOW)
        urgent = self.task("moss", priority=Priority.urgent, not_before=at + SECOND)
        (order,) = self.serve(at + MINUTE)
        assert [task.id for task in order.tasks] == [urgent]

    def test_what_has_just_fallen_due_is_found_by_its_place(self) -> None:
        self.declare(MOSS)
        for _ in range(40):
            self.task("moss", priority=Priority.low, not_before=NOW + MINUTE)
        urgent = self.task("moss", priority=Priority.urgent, not_before=NOW + MINUTE + SECOND)
        assert [wake.task for wake in self.due(NOW + 2 * MINUTE)] == [urgent]

    def test_what_has_failed_goes_on_at_its_place_when_its_backoff_is_over(self) -> None:
        self.declare(MOSS)
        urgent = self.task("moss", priority=Priority.urgent)
        (order,) = self.serve(NOW)
        self.end(order, FAILED, NOW)
        low = [self.task("moss", NOW + SECOND, priority=Priority.low) for _ in range(3)]
        assert self.begun(5, NOW + HOUR) == [urgent, *low]

    def test_what_waited_for_another_stands_in_line_from_when_that_is_done(self) -> None:
        self.declare(MOSS)
        first = self.task("moss")
        last = self.task("moss", depends_on=(first,), priority=Priority.low)
        (order,) = self.serve(NOW)
        other = self.task("moss", NOW + MINUTE, priority=Priority.low)
        self.end(order, DONE, NOW + HOUR)
        assert self.begun(3, NOW + HOUR) == [other, last]

    # -- of one key

    def test_what_comes_after_one_that_is_known_and_done_is_not_held_up_by_it(self) -> None:
        self.declare(MOSS)
        batch = [NewItem(kind=Kind.task, agent="moss", dedupe=f"d{n}", key="k") for n in range(3)]
        (known,) = self.store.record(batch[:1], NOW)
        assert self.begun(1) == [known.id]
        made = self.store.record(batch, NOW)
        assert [answer.duplicate for answer in made] == [True, False, False]
        assert self.begun(3, NOW + SECOND) == [made[1].id, made[2].id]

    def test_one_that_is_taken_up_again_goes_before_the_younger_of_its_key(self) -> None:
        self.declare(MOSS)
        tasks = [self.task("moss", key="k") for _ in range(4)]
        self.store.change_task(tasks[1], "cancel", "rana", NOW)
        self.store.change_task(tasks[0], "fail", "rana", NOW)
        assert [wake.task for wake in self.due()] == [tasks[2]]
        self.store.change_task(tasks[0], "retry", "rana", NOW)
        assert self.begun(4) == [tasks[0], tasks[2], tasks[3]]

    # -- how deep

    def test_what_shares_a_shift_is_as_deep_so_that_no_chain_is_longer_or_shorter_for_it(self) -> None:
        limits = Limits(chain=1)
        self.declare(an_agent("moss", cadence=Cadence(), runner=Runner.handler, limits=limits))
        self.task("moss")
        (order,) = self.serve(NOW)
        deep = self.task("moss", by_run=order.run.id)
        self.end(order)
        fresh = self.task("moss", priority=Priority.urgent)
        (order,) = self.serve(NOW + SECOND)
        assert [task.id for task in order.tasks] == [fresh]
        child = self.task("moss", by_run=order.run.id)
        assert self.item(child).state is State.pending
        self.end(order, DONE, NOW + SECOND)
        (order,) = self.serve(NOW + 2 * SECOND)
        assert order.wake is not None
        assert ({task.id for task in order.tasks}, order.wake.depth) == ({deep, child}, 1)
        blocked = self.item(self.task("moss", by_run=order.run.id))
        assert (blocked.state, blocked.error) == (
            State.blocked,
            "chain: this task is 2 away from its root, the limit is 1",
        )
