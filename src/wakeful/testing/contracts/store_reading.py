"""Reading: what is listed, in which order, and that a reader sees what is committed and never waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wakeful.core.admission import admit, explain
from wakeful.core.agents import Limits
from wakeful.core.errors import Unknown
from wakeful.core.events import EventKind
from wakeful.core.facts import Facts
from wakeful.core.items import Kind, NewItem, Ring
from wakeful.core.wakes import Pause, Verdict, Wake
from wakeful.store.protocol import Store
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DONE,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    peer,
    timer,
)


class ReadingContract(StoreCase):
    def test_an_empty_store_has_nothing_and_nothing_is_due(self) -> None:
        assert (self.store.agents(), self.store.items(), self.store.runs()) == ([], [], [])
        assert (self.store.wakes(), self.store.events(), self.store.pauses()) == ([], [], [])
        assert (self.store.due(NOW).wakes, self.store.due(NOW).next_at) == ((), None)
        assert (self.store.agent("moss"), self.store.standing("moss")) == (None, None)
        assert (self.store.item(1), self.store.run(1), self.store.attempts(1)) == (None, None, [])
        assert self.store.total("fleet", "2026-03-02", "usd") == 0
        assert (self.claim(), self.store.expire(NOW), self.serve(NOW)) == ([], [], [])

    def test_agents_are_listed_by_name(self) -> None:
        self.declare("wren", "desk", "moss")
        assert [agent.name for agent in self.store.agents()] == ["desk", "moss", "wren"]

    def test_items_are_filtered_and_paged_in_order(self) -> None:
        self.declare("moss", "wren")
        ids = [self.message("moss", str(n)) for n in range(5)]
        task = self.task("moss")
        other = self.message("wren")
        assert [item.id for item in self.store.items()] == [*ids, task, other]
        assert [item.id for item in self.store.items(agent="wren")] == [other]
        assert [item.id for item in self.store.items(kind="task")] == [task]
        assert [item.id for item in self.store.items(agent="moss", kind="message", limit=2)] == ids[:2]
        assert [item.id for item in self.store.items(after=ids[2], limit=2)] == ids[3:]
        self.store.change_task(task, "cancel", "rana", NOW)
        assert [item.id for item in self.store.items(state="cancelled")] == [task]
        assert task not in [item.id for item in self.store.items(state="open")]

    def test_runs_are_filtered_and_paged_in_order(self) -> None:
        self.declare("moss", "wren")
        first = self.start(operator("moss"))
        second = self.start(operator("wren"))
        self.end(first)
        runs = [first.run.id, second.run.id]
        assert [run.id for run in self.store.runs()] == runs
        assert [run.id for run in self.store.runs(open=True)] == runs[1:]
        assert [run.id for run in self.store.runs(open=False)] == runs[:1]
        assert [run.id for run in self.store.runs(agent="moss")] == runs[:1]
        assert [run.id for run in self.store.runs(agent="moss", open=True)] == []
        assert [run.id for run in self.store.runs(after=runs[0], limit=1)] == runs[1:]

    def test_wakes_are_filtered_and_paged_in_order(self) -> None:
        self.declare(an_agent("moss", limits=Limits(wakes_per_day=0)), "wren")
        admitted = self.decide(operator("moss")).wake
        waiting = self.decide(operator("moss")).wake
        joined = self.decide(operator("moss")).wake
        refused = self.decide(peer("moss", "wren", item=self.call("moss", "wren"))).wake
        other = self.decide(operator("wren")).wake
        everyone = [admitted, waiting, joined, refused, other]
        assert [row.wake.id for row in self.store.wakes()] == everyone
        for state, ids in {
            "admitted": [admitted, other],
            "waiting": [waiting],
            "joined": [joined],
            "refused": [refused],
        }.items():
            assert [row.wake.id for row in self.store.wakes(state=state)] == ids
        assert [row.wake.id for row in self.store.wakes(agent="moss", after=waiting, limit=1)] == [joined]

    def test_events_are_numbered_upwards_and_read_on_from_a_cursor(self) -> None:
        self.declare("moss", "wren")
        self.end(self.start(operator("moss")))
        events = self.store.events()
        assert [event.id for event in events] == sorted({event.id for event in events})
        kinds = [event.kind for event in events if event.agent == "moss"]
        assert kinds == [EventKind.declared, EventKind.decided, EventKind.started, EventKind.ended]
        assert self.store.events(agent="moss") == [event for event in events if event.agent == "moss"]
        assert self.store.events(after=events[1].id, limit=2) == events[2:4]

    def test_a_verb_that_is_refused_leaves_no_event(self) -> None:
        self.declare("moss")
        before = self.store.events()
        with pytest.raises(Unknown):
            self.decide(operator("nobody"))
        with pytest.raises(Unknown):
            self.message("nobody")
        assert self.store.events() == before

    def test_a_reader_sees_what_is_committed_and_does_not_wait_for_the_writer(self) -> None:
        self.declare("moss")
        seen: list[object] = []

        def looking(wake: Wake, facts: Facts, limits: Limits) -> Verdict:
            seen.append((self.store.wakes(), self.store.runs(), self.store.due(NOW).wakes))
            return admit(wake, facts, limits)

        self.store.decide([operator("moss")], looking, NOW)
        assert seen == [([], [], ())]
        assert len(self.store.runs()) == 1

    # -- due

    def test_due_only_reads(self) -> None:
        self.declare("moss", "wren")
        self.call("moss", "wren")
        self.task("wren")
        first = self.store.due(NOW)
        assert self.store.due(NOW) == first
        assert (self.store.wakes(), len(self.store.events())) == ([], 2)

    def test_due_offers_no_more_than_it_was_asked_for(self) -> None:
        names = [f"a{n}" for n in range(9)]
        self.declare(*names)
        assert len(self.store.due(NOW + HOUR, limit=4).wakes) == 4
        assert len(self.store.due(NOW + HOUR).wakes) == 9

    def test_due_offers_the_longest_overdue_first(self) -> None:
        names = ["desk", "moss", "wren"]
        self.declare(*names, stagger=MINUTE)
        wakes = self.due(NOW + 2 * HOUR)
        assert [wake.agent for wake in wakes] == names
        assert [wake.requested_at for wake in wakes] == [NOW + HOUR + n * MINUTE for n in range(3)]

    def test_due_names_the_next_instant_at_which_anything_can_happen(self) -> None:
        self.declare("moss")
        instants = {
            "a beat": NOW + HOUR,
            "a pause's end": NOW + 50 * MINUTE,
            "a task for later": NOW + 40 * MINUTE,
            "a message for later": NOW + 30 * MINUTE,
        }
        assert self.store.due(NOW).next_at == instants["a beat"]
        pause = Pause(scope="fleet", owner="operator", reason="", since=NOW, until=instants["a pause's end"])
        self.store.pause(pause, NOW)
        assert self.store.due(NOW).next_at == instants["a pause's end"]
        self.task("moss", not_before=instants["a task for later"])
        assert self.store.due(NOW).next_at == instants["a task for later"]
        self.message("moss", ring=Ring.news, not_before=instants["a message for later"])
        assert self.store.due(NOW).next_at == instants["a message for later"]

    # -- why

    def test_why_says_what_a_wake_of_now_would_be_decided_on(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        self.call("moss", "wren")
        asked = self.store.why(peer("moss", "wren"), NOW)
        assert (asked.facts.open_run, asked.facts.slots_taken) == (order.run.id, 1)
        opinions = {opinion.guard: opinion.verdict for opinion in explain(asked.wake, asked.facts, asked.limits)}
        assert len(opinions) == 14
        assert [name for name, verdict in opinions.items() if verdict] == ["busy"]
        assert len(self.store.wakes()) == 1

    def test_why_and_decide_agree(self) -> None:
        self.declare(an_agent("moss", limits=Limits(usd_per_day=1000, wakes_per_pair=1)), "wren", sessions=1)
        wakes = [operator("moss"), peer("moss", "wren"), timer("moss", NOW + HOUR), operator("wren")]
        for n in range(6):
            now = NOW + HOUR + n * SECOND
            self.call("moss", "wren", now)
            for wake in wakes:
                fresh = replace(wake, requested_at=now)
                asked = self.store.why(fresh, now)
                foretold = admit(asked.wake, asked.facts, asked.limits)
                decided = self.decide(fresh, now)
                if decided.joined is None:
                    assert decided.verdict == foretold
            for order in self.claim(now):
                self.end(order, DONE, now)

    def test_why_of_an_unknown_agent_is_unknown(self) -> None:
        with pytest.raises(Unknown):
            self.store.why(operator("nobody"), NOW)

    def test_a_store_may_be_closed_twice(self) -> None:
        folder = self.folder / "other"
        folder.mkdir()
        store: Store = self.make_store(folder)
        store.record([], NOW)
        store.close()
        store.close()

    def test_what_was_accepted_by_one_store_is_another_folders_nothing(self) -> None:
        self.declare("moss")
        folder = self.folder / "other"
        folder.mkdir()
        other = self.make_store(folder)
        assert other.agents() == []
        with pytest.raises(Unknown):
            other.record([NewItem(kind=Kind.message, agent="moss")], NOW)
        other.close()
        assert self.decide(operator("moss")).verdict.kind is ADMIT
