"""Listings: from either end of the past, by kind and by instant, and the fleet as it stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Limits, Runner
from wakeful.core.events import Event, EventKind
from wakeful.core.facts import Facts
from wakeful.core.items import Observation
from wakeful.core.wakes import Pause, Verdict, Wake
from wakeful.store.protocol import AgentRow
from wakeful.testing.contracts.store_case import (
    BY_US,
    DONE,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    tick,
    timer,
    work,
)

TOP = (1 << 63) - 1


def a_pause(scope: str, owner: str = "rana", until: datetime | None = None) -> Pause:
    return Pause(scope=scope, owner=owner, reason="", since=NOW, until=until)


def replicas() -> list[Agent]:
    return [replace(an_agent(f"moss-{n}"), address="moss") for n in (1, 2)]


class ListingContract(StoreCase):
    # -- from either end

    def some_runs(self) -> list[int]:
        """Six runs of two agents in turn; the last one of each is under way."""
        self.declare("moss", "wren")
        orders = []
        for n in range(6):
            at = NOW + n * MINUTE
            orders.append(self.start(operator("moss" if n % 2 else "wren", at), at))
            if n < 4:
                self.end(orders[-1], DONE, at)
        return [order.run.id for order in orders]

    def test_runs_are_paged_from_the_newest_back(self) -> None:
        runs = self.some_runs()
        assert [run.id for run in self.store.runs(before=TOP)] == runs[::-1]
        assert [run.id for run in self.store.runs(before=TOP, limit=2)] == [runs[5], runs[4]]
        assert [run.id for run in self.store.runs(before=runs[4], limit=2)] == [runs[3], runs[2]]
        assert [run.id for run in self.store.runs(before=runs[4], after=runs[1])] == [runs[3], runs[2]]
        assert [run.id for run in self.store.runs(before=runs[0])] == []

    def test_runs_of_an_agent_open_or_ended_are_paged_from_both_ends(self) -> None:
        runs = self.some_runs()
        moss, wren = runs[1::2], runs[0::2]
        assert [run.id for run in self.store.runs(agent="moss", before=TOP)] == moss[::-1]
        assert [run.id for run in self.store.runs(agent="moss", before=moss[2], limit=1)] == [moss[1]]
        assert [run.id for run in self.store.runs(agent="wren", after=wren[0])] == wren[1:]
        assert [run.id for run in self.store.runs(agent="wren", open=False, before=TOP)] == [wren[1], wren[0]]
        assert [run.id for run in self.store.runs(agent="wren", open=False, after=wren[0])] == [wren[1]]
        assert [run.id for run in self.store.runs(open=True, before=TOP)] == [runs[5], runs[4]]
        assert [run.id for run in self.store.runs(open=True, before=TOP, limit=1)] == [runs[5]]
        assert [run.id for run in self.store.runs(open=True, before=runs[5])] == [runs[4]]
        assert [run.id for run in self.store.runs(open=False, before=TOP, limit=1)] == [runs[3]]
        assert self.store.runs(before=TOP)[0] == self.row(runs[5])

    def test_wakes_are_paged_from_the_newest_back(self) -> None:
        self.some_runs()
        waiting = [self.decide(operator(name, NOW + HOUR), NOW + HOUR).wake for name in ("moss", "wren")]
        everyone = [row.wake.id for row in self.store.wakes()]
        assert everyone[-2:] == waiting
        assert [row.wake.id for row in self.store.wakes(before=TOP)] == everyone[::-1]
        assert [row.wake.id for row in self.store.wakes(before=everyone[3], limit=2)] == [everyone[2], everyone[1]]
        assert [row.wake.id for row in self.store.wakes(state="waiting", before=TOP)] == waiting[::-1]
        assert [row.wake.id for row in self.store.wakes(state="waiting", before=TOP, limit=1)] == waiting[1:]
        assert [row.wake.id for row in self.store.wakes(state="waiting", after=waiting[0])] == waiting[1:]
        assert [row.wake.id for row in self.store.wakes(state="admitted", before=TOP)] == everyone[5::-1]
        moss = [row.wake.id for row in self.store.wakes(agent="moss")]
        assert moss == [*everyone[1:6:2], waiting[0]]
        assert [row.wake.id for row in self.store.wakes(agent="moss", before=TOP)] == moss[::-1]
        assert [row.wake.id for row in self.store.wakes(agent="moss", state="admitted", before=moss[2])] == moss[1::-1]

    def test_one_wake_is_read_with_its_verdict_and_its_run(self) -> None:
        self.declare("moss")
        admitted = self.decide(operator("moss"))
        deferred = self.decide(operator("moss"))
        row = self.store.wake(admitted.wake)
        assert row is not None
        assert (row.state, row.run, row.wake.agent) == ("admitted", admitted.run, "moss")
        row = self.store.wake(deferred.wake)
        assert row is not None
        assert (row.state, row.guard, row.run) == ("waiting", "busy", None)
        assert row == self.store.wakes(state="waiting")[0]
        assert self.store.wake(99) is None

    # -- events

    def test_events_are_paged_from_the_newest_back(self) -> None:
        self.some_runs()
        events = self.store.events()
        moss = [event for event in events if event.agent == "moss"]
        assert self.store.events(before=TOP) == events[::-1]
        assert self.store.events(before=TOP, limit=1) == events[-1:]
        assert self.store.events(before=events[3].id) == events[2::-1]
        assert self.store.events(before=events[3].id, after=events[0].id) == events[2:0:-1]
        assert self.store.events(agent="moss", before=TOP, limit=2) == moss[:-3:-1]

    def test_events_are_filtered_by_kind_from_both_ends(self) -> None:
        self.some_runs()
        self.store.pause(a_pause("agent:moss"), NOW)
        self.store.set("wren", {"burst": 7}, "rana", NOW)
        self.store.resume("agent:moss", "rana", NOW)
        everything = self.store.events()
        acts = (EventKind.paused, EventKind.resumed, EventKind.set, EventKind.declared)
        for kinds in (acts, acts[:1], (EventKind.started, EventKind.paused), (EventKind.ended,)):
            found = [event for event in everything if event.kind in kinds]
            moss = [event for event in found if event.agent == "moss"]
            assert found
            assert self.store.events(kinds=kinds) == found
            assert self.store.events(kinds=kinds, limit=1) == found[:1]
            assert self.store.events(kinds=kinds, before=TOP) == found[::-1]
            assert self.store.events(kinds=kinds, before=found[-1].id) == found[-2::-1]
            assert self.store.events(kinds=kinds, after=found[0].id) == found[1:]
            assert self.store.events(kinds=kinds, agent="moss") == moss
            assert self.store.events(kinds=kinds, agent="moss", before=TOP) == moss[::-1]
        assert self.store.events(kinds=(EventKind.gone,)) == []

    def tell(self, *seconds: int) -> list[Event]:
        """One event at each of these instants, in this order."""
        for number, second in enumerate(seconds):
            self.store.pause(a_pause("fleet", f"owner {number}"), NOW + second * SECOND)
        return self.store.events()

    def until(self, second: float) -> int:
        return self.store.events_until(NOW + timedelta(seconds=second))

    def test_the_last_event_until_an_instant_is_found(self) -> None:
        assert self.until(0) == 0
        ids = [event.id for event in self.tell(1, 2, 2, 5, 9)]
        for second, place in ((1, 0), (1.5, 0), (2, 2), (4.9, 2), (5, 3), (8, 3), (9, 4), (99, 4)):
            assert self.until(second) == ids[place], second
        assert self.until(0.9) == 0

    def test_after_a_clock_was_set_back_it_is_the_last_one_written_that_counts(self) -> None:
        events = self.tell(10, 20, 30, 12, 22, 5, 6, 40, 39, 41)
        for second in range(45):
            before = [event.id for event in events if event.at <= NOW + second * SECOND]
            assert self.until(second) == max(before, default=0), second

    def test_after_the_clock_was_set_back_behind_the_start_of_a_process_it_is_found_too(self) -> None:
        self.tell(50, 60)
        self.reopen()
        events = self.tell(10, 20)
        assert [self.until(second) for second in (9, 10, 20, 49)] == [0, events[2].id, events[3].id, events[3].id]
        assert self.until(50) == events[3].id

    # -- the fleet as it stands

    def rows(self) -> dict[str, AgentRow]:
        return {row.agent.name: row for row in self.store.overview()}

    def test_nothing_is_listed_of_an_empty_store(self) -> None:
        assert self.store.overview() == []
        assert self.store.overview(agent="moss") == []

    def test_the_live_agents_are_listed_by_name_with_what_stands_in_their_rows(self) -> None:
        self.declare("wren", an_agent("desk", enabled=False), "moss", "gone")
        self.declare("wren", an_agent("desk", enabled=False), "moss", now=NOW + SECOND)
        order = self.start(operator("moss", NOW + MINUTE), NOW + MINUTE)
        rows = self.store.overview()
        assert [row.agent.name for row in rows] == ["desk", "moss", "wren"]
        for row in rows:
            assert row.agent == self.store.agent(row.agent.name)
            assert row.standing == self.standing(row.agent.name)
            assert (row.overrides, row.pauses, row.waiting, row.unread, row.open_tasks) == ((), (), None, 0, 0)
        assert [row.run and row.run.id for row in rows] == [None, order.run.id, None]
        assert rows[1].run == self.row(order.run.id)

    def test_a_listing_is_paged_and_can_be_of_one(self) -> None:
        self.declare(*(f"a{n}" for n in range(5)))
        everyone = self.store.overview()
        assert self.store.overview(limit=2) == everyone[:2]
        assert self.store.overview(after="a1", limit=2) == everyone[2:4]
        assert self.store.overview(after="a4") == []
        assert self.store.overview(agent="a3") == [everyone[3]]
        assert self.store.overview(agent="a") == []
        assert [row.agent.name for row in self.store.overview(after="a1", limit=2, brief=True)] == ["a2", "a3"]

    def test_live_settings_are_named_and_hold(self) -> None:
        self.declare("moss", "wren")
        assert self.rows()["moss"].agent.limits.burst == 20
        self.store.set("moss", {"burst": 7, "max_failures": 2}, "rana", NOW)
        row = self.rows()["moss"]
        assert (set(row.overrides), row.agent.limits.burst) == ({"burst", "max_failures"}, 7)
        assert [self.rows()[name].version for name in ("moss", "wren")] == [2, 1]
        self.store.set("moss", {"burst": None}, "rana", NOW)
        assert (self.rows()["moss"].overrides, self.rows()["wren"].overrides) == (("max_failures",), ())

    def test_a_declaration_that_changes_is_listed_as_it_is_now(self) -> None:
        self.declare("moss", "wren")
        assert self.rows()["moss"].agent.max_failures == 5
        self.declare(an_agent("moss", max_failures=9), "wren", now=NOW + SECOND)
        assert self.rows()["moss"].agent.max_failures == 9

    def test_an_agent_is_listed_with_the_pauses_that_hold_it_the_strongest_first(self) -> None:
        self.declare(*replicas(), "wren")
        for pause in (
            a_pause("agent:moss-1", "b", NOW + HOUR),
            a_pause("agent:moss-1", "a", NOW + MINUTE),
            a_pause("agent:moss-1", "c"),
            a_pause("agent:moss"),
            a_pause("source:inbox"),
        ):
            self.store.pause(pause, NOW)
        rows = self.rows()
        held = [(pause.scope, pause.owner) for pause in rows["moss-1"].pauses]
        assert held == [*(("agent:moss-1", owner) for owner in "cba"), ("agent:moss", "rana")]
        assert [pause.scope for pause in rows["moss-2"].pauses] == ["agent:moss"]
        assert rows["wren"].pauses == ()
        self.store.pause(a_pause("fleet"), NOW)
        assert [row.pauses[0].scope for row in self.store.overview()] == ["fleet"] * 3
        assert [pause.scope for pause in self.store.overview(agent="wren")[0].pauses] == ["fleet"]

    def test_an_agent_is_listed_with_the_oldest_of_its_waiting_wakes(self) -> None:
        self.declare("moss", "wren")
        self.start(operator("moss"))
        first = self.decide(tick("moss", NOW + MINUTE), NOW + MINUTE).wake
        self.decide(operator("moss", NOW + 2 * MINUTE), NOW + 2 * MINUTE)
        row = self.rows()["moss"]
        assert row.waiting == self.store.wake(first)
        assert row.waiting is not None and row.waiting.guard == "busy"
        assert self.rows()["wren"].waiting is None

    def test_what_waits_for_an_address_is_listed_with_whoever_may_take_it(self) -> None:
        self.declare(*replicas(), "wren")
        self.store.pause(a_pause("fleet"), NOW)
        (wake,) = self.store.ask([operator("moss")], NOW)
        rows = self.rows()
        assert [rows[name].waiting for name in ("moss-1", "moss-2")] == [self.store.wake(wake)] * 2
        assert rows["wren"].waiting is None

    def test_a_one_off_whose_time_has_not_come_is_not_what_an_agent_waits_for(self) -> None:
        at = NOW + 2 * HOUR
        self.declare(an_agent("moss", one_offs=(at,)))
        assert self.rows()["moss"].waiting is None
        self.store.pause(a_pause("agent:moss"), NOW)
        (one_off,) = (wake for wake in self.due(at) if wake.one_off)
        self.decide(one_off, at)
        waiting = self.rows()["moss"].waiting
        assert waiting is not None and (waiting.wake.id, waiting.guard) == (one_off.id, "paused")

    def test_unread_is_what_the_next_run_would_be_shown(self) -> None:
        self.declare("fern", *replicas())
        self.store.observe("folder", "fern", [Observation(external_id="a.md", fingerprint="1")], NOW)
        self.message("fern")
        self.message("moss-1")
        self.message("moss")
        assert {name: row.unread for name, row in self.rows().items()} == {"fern": 2, "moss-1": 2, "moss-2": 1}
        self.end(self.start(operator("fern")), BY_US)
        assert self.rows()["fern"].unread == 2
        self.end(self.start(operator("fern", NOW + MINUTE), NOW + MINUTE), DONE, NOW + MINUTE)
        assert self.rows()["fern"].unread == 0
        self.store.observe("folder", "fern", [Observation(external_id="a.md", fingerprint="2")], NOW + HOUR)
        assert self.store.overview(agent="fern")[0].unread == 1

    def test_an_item_is_known_by_the_newest_run_that_was_shown_it(self) -> None:
        self.declare("fern")
        first, never = self.message("fern"), self.message("fern", not_before=NOW + HOUR)
        runs = []
        for n, ending in enumerate((BY_US, DONE)):
            order = self.start(operator("fern", NOW + n * MINUTE), NOW + n * MINUTE)
            self.end(order, ending, NOW + n * MINUTE)
            runs.append(order.run.id)
        assert self.store.shown_in([first, never, 999]) == {first: runs[1]}
        assert self.store.shown_in([]) == {}

    def test_open_tasks_are_those_that_are_not_over(self) -> None:
        self.declare(an_agent("moss", runner=Runner.handler), "wren")
        tasks = [self.task("moss") for _ in range(4)]
        self.task(role="editor")
        self.store.change_task(tasks[3], "cancel", "rana", NOW)
        assert {name: row.open_tasks for name, row in self.rows().items()} == {"moss": 3, "wren": 0}
        shift = self.start(work(tasks[0], "moss"))
        assert self.rows()["moss"].open_tasks == 3
        self.end(shift, DONE)
        assert self.rows()["moss"].open_tasks == 0

    def test_a_listing_shows_only_what_is_committed(self) -> None:
        self.declare("moss")
        before, seen = self.store.overview(), []

        def looking(wake: Wake, facts: Facts, limits: Limits) -> Verdict:
            seen.append(self.store.overview())
            return admit(wake, facts, limits)

        self.store.decide([timer("moss", NOW + HOUR)], looking, NOW + HOUR)
        assert seen == [before]
        assert self.rows()["moss"].run is not None
