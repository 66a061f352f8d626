"""What is read to be drawn or searched: some agents, sums of days, lanes of time, and the past by what it says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.core.wakes import FLEET, Pause
from wakeful.store import searching
from wakeful.store.protocol import Sought, TaskFilter, Totals
from wakeful.testing.contracts.store_case import (
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    TODAY,
    StoreCase,
    an_agent,
    operator,
    tick,
    timer,
    work,
)

DAY = timedelta(days=1)


class DrawingContract(StoreCase):
    # -- some agents

    def test_agents_that_are_named_are_told_as_in_the_list_of_all(self) -> None:
        self.declare(
            "moss", "wren", "hale", *(replace(an_agent(f"fern-{n}"), address="fern") for n in (1, 2)), sessions=1
        )
        self.message("fern")
        self.message("wren")
        self.task("moss")
        self.task("fern")
        self.start(tick("wren"))
        self.decide(timer("fern-2", slot="2026-03-02T09:00:00Z"))
        self.store.pause(Pause(scope="agent:fern", owner="rana", reason="", since=NOW), NOW)
        whole = {row.agent.name: row for row in self.store.overview(now=NOW)}
        for names in (["wren"], ["fern"], ["hale", "nobody", "moss"], ["fern-2", "wren"], ["nobody"], []):
            found = self.store.overview(names=names, now=NOW)
            wanted = [name for name in sorted(whole) if name in names or whole[name].agent.address in names]
            assert [row.agent.name for row in found] == wanted
            assert found == [whole[name] for name in wanted]
        assert [row.unread for row in self.store.overview(names=["fern"])] == [1, 1]
        assert whole["wren"].run is not None and whole["fern-2"].waiting is not None

    def test_agents_that_are_named_come_in_pages_and_without_those_that_were_removed(self) -> None:
        self.declare("moss", "wren", "hale")
        names = ["wren", "moss", "hale"]
        assert [row.agent.name for row in self.store.overview(names=names, limit=2)] == ["hale", "moss"]
        assert [row.agent.name for row in self.store.overview(names=names, after="moss")] == ["wren"]
        self.declare("moss", "wren")
        assert [row.agent.name for row in self.store.overview(names=names)] == ["moss", "wren"]

    def test_beats_that_were_asked_for_are_found_among_all_that_waits(self) -> None:
        self.declare("moss", replace(an_agent("wren"), one_offs=(NOW + HOUR,)), sessions=0)
        self.decide(operator("moss"))
        self.decide(timer("moss", slot="2026-03-02T09:00:00Z"))
        assert self.store.one_offs() == [("wren", NOW + HOUR)] == self.store.one_offs("wren")
        assert self.store.one_offs("moss") == []

    # -- sums

    def test_what_was_counted_is_told_by_scope_and_day(self) -> None:
        self.declare("moss", "wren")
        spent = Ending(exit_code=0, elapsed=90 * SECOND, result=Result(outcome="done", usage=Spend(usd=7, tokens=9)))
        self.end(self.start(tick("moss")), spent)
        self.end(self.start(tick("moss", NOW + DAY), NOW + DAY), spent, NOW + DAY)
        tomorrow = (NOW + DAY).date().isoformat()
        told = {"wakes": 0, "ms": 90_000, "usd": 7, "tokens": 9}
        moss = [Totals(scope="agent:moss", day=day, **told) for day in (TODAY, tomorrow)]
        scopes = ["agent:moss", "agent:wren", "agent:moss"]
        assert sorted(self.store.totals(scopes, TODAY, tomorrow), key=lambda each: each.day) == moss
        assert self.store.totals(scopes, TODAY, TODAY) == moss[:1]
        assert self.store.totals([], TODAY, tomorrow) == []
        assert {each.scope for each in self.store.totals([FLEET, "agent:moss"], TODAY, TODAY)} == {FLEET, "agent:moss"}

    def test_all_tasks_are_counted_right_whatever_became_of_them(self) -> None:
        self.declare("moss", "wren", workers=3)
        assert self.store.count_tasks(TaskFilter()) == {}
        one, two, three, four, five, _ = (self.task("moss") for _ in range(6))
        self.task("moss", depends_on=(four,))
        self.message("moss")
        self.store.mark_read([self.message("wren")], "rana", NOW)
        for task, change in ((two, "cancel"), (three, "complete"), (four, "fail"), (five, "complete")):
            self.store.change_task(task, change, "rana", NOW)
        order = self.start(work(one, "moss"))
        states = ("pending", "in_progress", "failed", "blocked", "completed", "cancelled", "dead_letter")
        slowly = {state: n for state in states for n in self.store.count_tasks(TaskFilter(states=(state,))).values()}
        assert self.store.count_tasks(TaskFilter()) == slowly
        assert slowly == {
            "pending": 1,
            "in_progress": 1,
            "blocked": 1,
            "completed": 2,
            "cancelled": 1,
            "dead_letter": 1,
        }
        self.end(order)
        assert self.store.count_tasks(TaskFilter())["completed"] == 3

    # -- lanes

    def some_hours(self) -> list[int]:
        """A run at the first minute of each hour, half an hour long; the last one is under way."""
        self.declare("moss", "wren")
        runs = []
        for hour in range(6):
            at = NOW + hour * HOUR
            order = self.start(replace(tick("moss", at), sender="operator"), at)
            runs.append(order.run.id)
            if hour < 5:
                self.end(order, FAILED if hour == 2 else DONE, at + 30 * MINUTE)
        return runs

    def test_a_lane_has_the_runs_of_its_span_and_the_one_that_lasted_into_it(self) -> None:
        runs = self.some_hours()
        for since, until, found in (
            (NOW, NOW + 9 * HOUR, runs),
            (NOW + 2 * HOUR, NOW + 3 * HOUR, runs[2:4]),
            (NOW + 70 * MINUTE, NOW + 80 * MINUTE, [runs[1]]),
            (NOW + 100 * MINUTE, NOW + 110 * MINUTE, []),
            (NOW - 9 * HOUR, NOW - HOUR, []),
            (NOW + 50 * HOUR, NOW + 60 * HOUR, [runs[5]]),
        ):
            span = self.store.span(since, until)
            wren, moss = self.store.lanes(["wren", "moss"], span)
            assert [run.id for run in moss.runs] == found
            assert (wren.agent, wren.runs, wren.wakes, moss.more) == ("wren", (), (), 0)
        span = self.store.span(NOW + 2 * HOUR, NOW + 3 * HOUR)
        ((failed, done),) = (lane.runs for lane in self.store.lanes(["moss"], span))
        assert (failed.start, failed.end) == (write_time(NOW + 2 * HOUR), write_time(NOW + 2.5 * HOUR))
        assert (failed.outcome, failed.id) == ("failed", runs[2])
        assert (done.outcome, done.cause, done.subject, done.sender) == ("done", "operator", "beat", "operator")

    def test_a_lane_has_the_verdicts_of_its_span_with_what_they_said(self) -> None:
        self.declare("moss", replace(an_agent("wren"), limits=Limits(wakes_per_day=0)))
        order = self.start(tick("moss"))
        refused = self.ring("wren", "moss", NOW + MINUTE, by_run=order.run.id)
        waits = self.decide(operator("moss", NOW + 2 * MINUTE), NOW + 2 * MINUTE)
        joins = self.decide(operator("moss", NOW + 3 * MINUTE), NOW + 3 * MINUTE)
        moss, wren = self.store.lanes(["moss", "wren"], self.store.span(NOW, NOW + HOUR))
        (said,) = wren.wakes
        assert (said.wake, said.at) == (refused.wake, write_time(NOW + MINUTE))
        assert (said.verdict, said.guard) == ("refuse", "wakes_per_day")
        assert (said.cause, said.sender, said.by_run, said.run) == ("peer", "moss", order.run.id, None)
        assert "the limit is 0" in said.reason and said.until is not None
        told = [(each.wake, each.verdict, each.guard, each.run) for each in moss.wakes]
        first, second, third = order.run.wake, waits.wake, joins.wake
        assert told == [
            (first, "admit", None, order.run.id),
            (second, "defer", "busy", None),
            (third, "defer", None, None),
        ]
        assert moss.wakes[2].reason == f"joined wake {second}, which waits already"
        later = self.store.span(NOW + 2 * MINUTE, NOW + 2 * MINUTE + SECOND)
        assert [[each.wake for each in lane.wakes] for lane in self.store.lanes(["moss", "wren"], later)] == [
            [second],
            [],
        ]

    def test_a_lane_that_has_too_much_tells_the_newest_and_how_much_it_leaves_out(self) -> None:
        runs = self.some_hours()
        (lane,) = self.store.lanes(["moss"], self.store.span(NOW, NOW + 9 * HOUR), limit=2)
        assert [run.id for run in lane.runs] == runs[4:]
        assert [wake.run for wake in lane.wakes] == runs[4:]
        assert lane.more == 4 + 4

    def test_pauses_are_told_by_agent_in_their_order(self) -> None:
        self.declare("moss", "wren")
        for n, scope in enumerate(("agent:moss", "fleet", "agent:wren")):
            at = NOW + n * MINUTE
            self.store.pause(Pause(scope=scope, owner="rana", reason=scope, since=at), at)
        self.store.resume("agent:moss", "rana", NOW + HOUR)
        told = [(event.kind.value, event.agent) for event in self.store.pauses_told([None, "moss"])]
        assert told == [("paused", "moss"), ("paused", None), ("resumed", "moss")]

    # -- searches

    def test_runs_are_found_by_how_they_ended_and_what_began_them(self) -> None:
        runs = self.some_hours()
        at = NOW + 7 * HOUR
        other = self.start(tick("wren", at), at).run.id
        found = self.store.find_runs(outcome="failed")
        assert ([run.id for run in found.rows], found.next) == ([runs[2]], None)
        assert [run.id for run in self.store.find_runs(cause="operator").rows] == [other, *runs[::-1]]
        assert [run.id for run in self.store.find_runs(cause="operator", open=True).rows] == [other, runs[5]]
        assert [run.id for run in self.store.find_runs(cause="operator", agent="wren").rows] == [other]
        assert self.store.find_runs(cause="news").rows == ()
        page = self.store.find_runs(outcome="done", agent="moss", limit=2)
        assert ([run.id for run in page.rows], page.next) == ([runs[4], runs[3]], runs[3])
        rest = self.store.find_runs(outcome="done", agent="moss", before=page.next, limit=2)
        assert [run.id for run in rest.rows] == [runs[1], runs[0]]
        assert page.rows[0] == self.row(runs[4])

    def test_verdicts_are_found_by_what_they_say(self) -> None:
        self.declare("moss", "hale", replace(an_agent("wren"), limits=Limits(wakes_per_day=0)))
        self.store.pause(Pause(scope="agent:hale", owner="rana", reason="Gänse \U0001f426", since=NOW), NOW)
        first = self.start(tick("moss"))
        refused = self.ring("wren", "moss", by_run=first.run.id)
        paused = self.decide(tick("hale"))
        waits = self.decide(operator("moss"))
        joins = self.decide(operator("moss"))

        def found(**sought: str) -> list[int | None]:
            return [event.wake for event in self.store.find_decided(Sought(**sought)).rows]

        # What joined another says nothing of its own, and is always among what may be meant.
        assert found(verdict="refuse") == [joins.wake, paused.wake, refused.wake]
        assert found(verdict="admit") == [joins.wake, first.run.wake]
        assert found(guard="busy") == [joins.wake, waits.wake]
        assert found(cause="peer") == [refused.wake]
        assert found(text="THE LIMIT IS 0") == [joins.wake, refused.wake]
        assert found(text="\U0001f426") == [joins.wake, paused.wake]
        assert found(text="moss") == [joins.wake, waits.wake, refused.wake, first.run.wake]
        assert found(text="hale", verdict="refuse", cause="operator") == [joins.wake, paused.wake]
        rows = self.store.find_decided(Sought(cause="operator"), agent="moss").rows
        assert [event.wake for event in rows] == [joins.wake, waits.wake, first.run.wake]
        page = self.store.find_decided(Sought(cause="operator"), limit=1)
        assert page.next == page.rows[0].id
        rest = self.store.find_decided(Sought(cause="operator"), before=page.next, after=page.next - 2)
        assert [event.wake for event in rest.rows] == [waits.wake]

    def test_what_no_text_can_hold_is_in_nobodys_way(self) -> None:
        self.declare("moss", "wren")
        self.store.pause(Pause(scope="agent:moss", owner="rana", reason="a zero \x00 within", since=NOW), NOW)
        paused, begun = self.decide(tick("moss")), self.decide(tick("wren"))
        assert paused.wake in [event.wake for event in self.store.find_decided(Sought(text="zero")).rows]
        assert begun.wake in [event.wake for event in self.store.find_decided(Sought(text="wren")).rows]
        (lane,) = self.store.lanes(["moss"], self.store.span(NOW, NOW + HOUR))
        assert "a zero" in lane.wakes[0].reason

    def test_a_search_looks_at_a_part_of_the_past_and_says_where_it_goes_on(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = self.some_hours()
        monkeypatch.setattr(searching, "WITHIN", 2)
        found = self.store.find_runs(outcome="failed")
        assert (found.rows, found.next) == ((), runs[4])
        found = self.store.find_runs(outcome="failed", before=found.next)
        assert ([run.id for run in found.rows], found.next) == ([runs[2]], runs[2])
        end = self.store.find_runs(outcome="failed", before=runs[1], agent="moss")
        assert (end.rows, end.next) == ((), None)
        nothing = self.store.find_decided(Sought(guard="busy"))
        assert nothing.rows == () and nothing.next is not None
        assert self.store.find_decided(Sought(guard="busy"), agent="wren").next is None

    # -- what a run was about

    def test_some_items_are_read_at_once_and_those_that_are_gone_left_out(self) -> None:
        self.declare("moss")
        one, two = self.message("moss", "first"), self.task("moss")
        assert [item.id for item in self.store.some_items([two, 99, one])] == [two, one]
        assert self.store.some_items([]) == []

    def test_steps_are_told_with_their_instant_and_what_they_belong_to(self) -> None:
        self.declare("moss", "wren")
        beat = self.start(tick("moss"))
        self.store.save_step(beat.run.id, beat.run.epoch, "fetch", None, NOW + SECOND)
        self.store.save_step(beat.run.id, beat.run.epoch, "sum", "3", NOW + MINUTE)
        told = [(step.task, step.name, step.result, step.at) for step in self.store.steps_told(beat.run.id)]
        assert told == [(None, "fetch", None, NOW + SECOND), (None, "sum", "3", NOW + MINUTE)]
        task = self.task("wren")
        shift = self.start(work(task, "wren"))
        self.store.save_step(shift.run.id, shift.run.epoch, "ask", "{}", NOW, task=task)
        assert [(step.task, step.name) for step in self.store.steps_told(shift.run.id)] == [(task, "ask")]
        assert self.store.steps_told(99) == []

    def test_of_many_steps_the_newest_are_told_and_of_a_long_result_its_beginning(self) -> None:
        self.declare("moss")
        beat = self.start(tick("moss"))
        for number in range(4):
            self.store.save_step(beat.run.id, beat.run.epoch, f"step {number}", '"äöü"', NOW + number * SECOND)
        told = self.store.steps_told(beat.run.id, limit=2, longest=3)
        assert [(step.name, step.result) for step in told] == [("step 2", '"äö'), ("step 3", '"äö')]
