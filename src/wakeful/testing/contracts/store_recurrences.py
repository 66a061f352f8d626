"""Recurring tasks: each instant once, however many look and however often; missed ones together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.errors import Unknown
from wakeful.core.items import Origin, Priority, State
from wakeful.core.recurrences import Overlap, Recurrence
from wakeful.core.wakes import Pause
from wakeful.store.protocol import TaskFilter
from wakeful.testing.contracts.store_case import DONE, HOUR, MINUTE, NOW, SECOND, StoreCase, an_agent

# Without a timer: what runs is a task.
MOSS = an_agent("moss", cadence=Cadence(), roles=("sweeper",))
HOURLY = Recurrence(name="sweeping", title="sweep the yard", schedule=parse_schedule("0 * * * *"), agent="moss")


class RecurrencesContract(StoreCase):
    def recurring(self, *declared: Recurrence, now: datetime = NOW) -> None:
        self.declare(MOSS, now=now, recurrences=declared)

    def recur(self, now: datetime) -> list[str]:
        """The keys of what was put into the queue."""
        made = self.store.recur(now)
        return [str(self.item(answer.id).dedupe) for answer in made if not answer.duplicate]

    def next(self) -> dict[str, datetime]:
        return {recurrence.name: at for recurrence, at in self.store.recurrences()}

    def finish(self, now: datetime) -> None:
        for order in self.serve(now):
            self.end(order, DONE, now)

    def test_what_is_declared_is_told_with_its_next_instant(self) -> None:
        every = replace(
            HOURLY,
            name="all",
            agent=None,
            role="sweeper",
            description="with the broom",
            payload="[1]",
            priority=Priority.high,
            tags=("yard",),
            key="yard",
            max_retries=2,
            timeout=MINUTE,
            overlap=Overlap.queue,
            timezone="Europe/Berlin",
        )
        self.recurring(HOURLY, every)
        self.reopen()
        assert self.store.recurrences() == [(every, NOW + HOUR), (HOURLY, NOW + HOUR)]
        (made, _) = self.store.recur(NOW + HOUR)
        task = self.item(made.id)
        assert (task.subject, task.body, task.payload) == ("sweep the yard", "with the broom", "[1]")
        assert (task.role, task.agent, task.priority, task.tags, task.key) == (
            "sweeper",
            None,
            Priority.high,
            ("yard",),
            "yard",
        )
        assert (task.max_retries, task.timeout, task.source, task.sender) == (2, MINUTE, "schedule:all", "schedule:all")
        assert (task.origin, task.created_at) == (Origin.operator, NOW + HOUR)

    def test_nothing_is_added_before_its_instant_and_each_instant_once(self) -> None:
        self.recurring(replace(HOURLY, overlap=Overlap.queue))
        assert self.recur(NOW + HOUR - SECOND) == []
        assert self.recur(NOW + HOUR) == ["schedule:sweeping:2026-03-02T13:00:00.000000Z"]
        assert self.recur(NOW + HOUR) == []
        assert self.recur(NOW + HOUR + SECOND) == []
        assert self.recur(NOW + 2 * HOUR + SECOND) == ["schedule:sweeping:2026-03-02T14:00:00.000000Z"]
        assert self.next() == {"sweeping": NOW + 3 * HOUR}

    def test_instants_that_nobody_looked_at_give_one_task_for_the_last(self) -> None:
        self.recurring(replace(HOURLY, overlap=Overlap.queue))
        assert self.recur(NOW + 7 * HOUR + MINUTE) == ["schedule:sweeping:2026-03-02T19:00:00.000000Z"]
        assert self.next() == {"sweeping": NOW + 8 * HOUR}

    def test_with_skip_nothing_is_added_while_the_last_one_is_open(self) -> None:
        self.recurring(HOURLY)
        assert len(self.recur(NOW + HOUR)) == 1
        assert self.recur(NOW + 2 * HOUR) == []
        assert self.next() == {"sweeping": NOW + 3 * HOUR}
        self.finish(NOW + 2 * HOUR)
        # What was passed over is told, and not made up for.
        assert [(told.item, told.fields) for told in self.store.events(kinds=("passed_over",))] == [
            (1, {"source": "schedule:sweeping", "instant": "2026-03-02T14:00:00.000000Z", "overlap": "skip"})
        ]
        assert self.recur(NOW + 2 * HOUR + MINUTE) == []
        assert len(self.recur(NOW + 3 * HOUR)) == 1

    def test_a_task_that_is_open_for_another_schedule_is_in_nobodys_way(self) -> None:
        self.recurring(HOURLY, replace(HOURLY, name="mending"))
        assert len(self.recur(NOW + HOUR)) == 2
        (sweeping,) = self.store.tasks(TaskFilter(source="schedule:sweeping"))
        self.store.change_task(sweeping.id, "complete", "rana", NOW + HOUR)
        assert self.recur(NOW + 2 * HOUR) == ["schedule:sweeping:2026-03-02T14:00:00.000000Z"]

    def test_with_queue_it_stands_in_line(self) -> None:
        self.recurring(replace(HOURLY, overlap=Overlap.queue))
        for hour in range(1, 4):
            assert len(self.recur(NOW + hour * HOUR)) == 1
        assert self.store.count_tasks(TaskFilter(source="schedule:sweeping")) == {"pending": 3}

    def test_a_clock_that_is_set_back_adds_nothing_twice_and_puts_nothing_off(self) -> None:
        self.recurring(replace(HOURLY, overlap=Overlap.queue))
        assert len(self.recur(NOW + 2 * HOUR)) == 1
        self.recurring(replace(HOURLY, overlap=Overlap.queue), now=NOW)
        assert self.next() == {"sweeping": NOW + HOUR}
        assert len(self.recur(NOW + HOUR)) == 1
        assert self.recur(NOW + 2 * HOUR) == []
        assert self.recur(NOW + 3 * HOUR) == ["schedule:sweeping:2026-03-02T15:00:00.000000Z"]

    def test_an_instant_that_comes_again_is_known_whatever_its_task_is_called_now(self) -> None:
        self.recurring(replace(HOURLY, overlap=Overlap.queue), replace(HOURLY, name="mending"))
        assert len(self.recur(NOW + HOUR)) == 2
        self.recurring(replace(HOURLY, title="sweep well", overlap=Overlap.queue), now=NOW)
        (again,) = self.store.recur(NOW + HOUR)
        assert (again.duplicate, self.item(again.id).subject) == (True, "sweep the yard")
        assert self.next() == {"sweeping": NOW + 2 * HOUR}

    def test_what_is_declared_as_it_was_keeps_its_next_instant_also_after_a_start(self) -> None:
        self.recurring(HOURLY)
        later = NOW + 90 * MINUTE
        self.recurring(replace(HOURLY, title="sweep the yard well"), now=later)
        assert self.next() == {"sweeping": NOW + HOUR}
        assert [self.item(made.id).subject for made in self.store.recur(later)] == ["sweep the yard well"]

    def test_a_changed_schedule_gets_an_instant_of_its_own(self) -> None:
        self.recurring(HOURLY)
        self.recurring(replace(HOURLY, schedule=parse_schedule("*/10 * * * *")), now=NOW + MINUTE)
        assert self.next() == {"sweeping": NOW + 10 * MINUTE}
        self.recurring(replace(HOURLY, schedule=parse_schedule("30 12 * * *"), timezone="Asia/Tokyo"), now=NOW)
        assert self.next() == {"sweeping": datetime(2026, 3, 3, 3, 30, tzinfo=UTC)}

    def test_what_is_no_longer_declared_adds_nothing_and_its_tasks_stay(self) -> None:
        self.recurring(HOURLY)
        self.recur(NOW + HOUR)
        self.recurring()
        assert self.store.recurrences() == []
        assert self.recur(NOW + 2 * HOUR) == []
        assert self.store.count_tasks(TaskFilter()) == {"pending": 1}

    def test_whoever_sleeps_is_woken_for_the_next_instant(self) -> None:
        self.store.join("one", "attic", "", NOW, MINUTE)
        self.recurring(HOURLY)
        assert self.store.due(NOW).next_at == NOW + HOUR
        assert self.store.renew("one", [], NOW, MINUTE).next_at == NOW + HOUR
        self.recur(NOW + HOUR)
        self.finish(NOW + HOUR)
        assert self.store.due(NOW + HOUR).next_at == NOW + 2 * HOUR

    def test_an_instant_that_has_passed_is_due_until_somebody_looks(self) -> None:
        self.recurring(HOURLY)
        due = self.store.due(NOW + HOUR + MINUTE)
        assert (due.wakes, due.next_at) == ((), NOW + HOUR)

    def test_the_tasks_of_a_paused_schedule_are_held(self) -> None:
        self.recurring(HOURLY)
        self.store.pause(Pause(scope="source:schedule:sweeping", owner="operator", reason="rain", since=NOW), NOW)
        assert len(self.recur(NOW + HOUR)) == 1
        assert self.serve(NOW + HOUR) == []
        self.store.resume("source:schedule:sweeping", "rana", NOW + 2 * HOUR)
        (order,) = [order for n in range(3) for order in self.serve(NOW + 2 * HOUR + n * MINUTE)]
        assert order.tasks[0].source == "schedule:sweeping"

    def test_the_end_of_summer_time_gives_a_fixed_hour_once(self) -> None:
        begin = datetime(2026, 10, 24, 12, 0, tzinfo=UTC)
        night = replace(HOURLY, schedule=parse_schedule("30 2 * * *"), timezone="Europe/Berlin", overlap=Overlap.queue)
        self.recurring(night, now=begin)
        made: list[str] = []
        for step in range(4 * 36):
            made += self.recur(begin + step * timedelta(minutes=15))
        assert made == ["schedule:sweeping:2026-10-25T00:30:00.000000Z"]

    def test_one_for_an_agent_that_is_not_there_is_refused_with_its_fleet(self) -> None:
        self.recurring(HOURLY)
        with pytest.raises(Unknown, match="nobody"):
            self.declare(MOSS, "wren", recurrences=(replace(HOURLY, name="a"), replace(HOURLY, agent="nobody")))
        assert ([agent.name for agent in self.store.agents()], self.next()) == (["moss"], {"sweeping": NOW + HOUR})

    def test_many_recur_at_once(self) -> None:
        self.recurring(*(replace(HOURLY, name=f"s{n:03}") for n in range(100)))
        assert len(self.recur(NOW + HOUR)) == 100
        assert self.recur(NOW + HOUR) == []
        states: Any = self.store.count_tasks(TaskFilter())
        assert states == {State.pending.value: 100}
