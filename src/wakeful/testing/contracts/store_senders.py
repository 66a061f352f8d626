"""What is only about who asks: how many wakes its runs have, and that others are not held to account for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from wakeful.core.admission import admit
from wakeful.core.agents import Limits
from wakeful.store.protocol import Decision, Order
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DONE,
    NOW,
    SECOND,
    TODAY,
    StoreCase,
    an_agent,
    operator,
    peer,
)

QUICK = Limits(cooldown=timedelta())


class SendersContract(StoreCase):
    def call_on(self, agent: str, sender: str, by_run: int | None = None) -> Decision:
        """One agent wakes another; if it may, the run is claimed and ends well."""
        decision = self.ring(agent, sender, by_run=by_run)
        for order in self.claim():
            self.end(order)
        return decision

    # -- the wakes of a run

    def test_how_many_wakes_a_run_has_is_for_the_agent_to_say_whose_run_it_is(self) -> None:
        strict = an_agent("strict", limits=replace(QUICK, wakes_per_run=1))
        self.declare(strict, *(an_agent(name, limits=QUICK) for name in ("wren", "a", "b", "c", "d")), sessions=9)
        order = self.start(operator("strict"))
        said = [self.call_on(name, "strict", by_run=order.run.id).verdict for name in ("a", "b")]
        assert [verdict.guard for verdict in said] == [None, "wakes_per_run"]
        assert said[-1].numbers == {"used": 1, "limit": 1}
        other = self.start(operator("wren"))
        said = [self.call_on(name, "wren", by_run=other.run.id).verdict for name in ("a", "b")]
        self.end(order)
        # One that few wakes are allowed to is itself woken by whoever has any left.
        said.append(self.call_on("strict", "wren", by_run=other.run.id).verdict)
        assert [verdict.guard for verdict in said] == [None, None, None]
        self.store.set("wren", {"wakes_per_run": 4}, "rana", NOW)
        said = [self.call_on(name, "wren", by_run=other.run.id).verdict for name in ("c", "d")]
        assert [(verdict.guard, verdict.numbers or {}) for verdict in said] == [
            (None, {}),
            ("wakes_per_run", {"used": 4, "limit": 4}),
        ]

    def test_a_run_of_an_agent_that_is_gone_has_the_wakes_that_the_woken_one_lets_a_run_have(self) -> None:
        others = [an_agent(name, limits=replace(QUICK, wakes_per_run=2)) for name in ("a", "b", "c")]
        self.declare(an_agent("wren", limits=Limits(wakes_per_run=1)), *others, sessions=9)
        order = self.start(operator("wren"))
        self.declare(*others, sessions=9)
        said = [self.call_on(name, "wren", by_run=order.run.id).verdict.guard for name in ("a", "b", "c")]
        assert said == [None, None, "wakes_per_run"]

    def test_wakes_decided_together_are_each_held_to_the_limit_of_whose_run_asks(self) -> None:
        names = ["wren", "hale", *"abcd"]
        limits = {"wren": replace(QUICK, wakes_per_run=0)}
        self.declare(*(an_agent(name, limits=limits.get(name, QUICK)) for name in names), sessions=9)
        runs = {name: self.start(operator(name)).run.id for name in ("wren", "hale")}
        asked = [peer(to, by, item=self.call(to, by), by_run=runs[by]) for to, by in (("a", "wren"), ("b", "hale"))]
        decided = self.store.decide(asked, admit, NOW)
        assert [decision.verdict.guard for decision in decided] == ["wakes_per_run", None]

    # -- pairs

    def test_the_pairs_of_a_day_are_told_of_either_side(self) -> None:
        self.declare(*(an_agent(name, limits=QUICK) for name in ("moss", "mos", "wren", "os")))
        for agent, sender in (("moss", "wren"), ("wren", "moss"), ("os", "wren"), ("mos", "os"), ("moss", "mos")):
            assert self.call_on(agent, sender).verdict.kind is ADMIT
        assert self.store.pairs("moss", TODAY) == {"mos": 1, "wren": 2}
        assert self.store.pairs("os", TODAY) == {"mos": 1, "wren": 1}
        assert self.store.pairs("moss", "2026-03-03") == self.store.pairs("s", TODAY) == {}

    # -- those who joined it

    def held_up(self, pair: int = 5) -> Order:
        """The run of one whom others want to wake meanwhile."""
        names = ("moss", "wren", "hale", "fern")
        quick = replace(QUICK, wakes_per_pair=pair)
        self.declare(*(an_agent(name, limits=quick) for name in names), sessions=9)
        return self.start(operator("moss"))

    def became(self, *wakes: int) -> list[tuple[str, str | None, int | None]]:
        rows = {row.wake.id: row for row in self.store.wakes()}
        return [(rows[wake].state, rows[wake].guard, rows[wake].joined) for wake in wakes]

    def decide_all(self, now: datetime) -> list[Order]:
        """Whatever is decided until nothing is due any more."""
        orders = []
        while self.due(now):
            orders += self.serve(now)
        return orders

    def test_what_another_asked_for_is_not_given_up_with_the_wake_that_it_joined(self) -> None:
        order = self.held_up(pair=1)
        wakes = [self.ring("moss", sender).wake for sender in ("wren", "wren", "hale", "fern", "hale")]
        assert self.became(*wakes)[1:] == [("joined", "busy", wakes[0])] * 4
        self.ring("wren", "moss", by_run=order.run.id)
        self.end(order, DONE, NOW + SECOND)
        self.claim(NOW + SECOND)
        (run,) = self.decide_all(NOW + SECOND)
        assert run.run.wake == wakes[2]
        assert self.became(*wakes) == [
            ("refused", "wakes_per_pair", None),
            # It had nothing else to say: the same two, on the same day.
            ("joined", "busy", wakes[0]),
            ("admitted", None, None),
            ("joined", "busy", wakes[2]),
            ("joined", "busy", wakes[2]),
        ]
        assert len(run.items) == 5
        assert self.store.total("pair:hale|moss", TODAY, "wakes") == self.wakes_of("moss") == 1

    def test_one_after_the_other_is_decided_on_its_own_until_one_is_admitted(self) -> None:
        order = self.held_up(pair=1)
        wakes = [self.ring("moss", sender).wake for sender in ("wren", "hale", "fern")]
        for name in ("wren", "hale"):
            self.ring(name, "moss", by_run=order.run.id)
        self.end(order, DONE, NOW + SECOND)
        self.claim(NOW + SECOND)
        assert [order.run.wake for order in self.decide_all(NOW + SECOND)] == [wakes[2]]
        refused = [("refused", "wakes_per_pair", None)] * 2
        assert self.became(*wakes) == [*refused, ("admitted", None, None)]

    def test_a_run_that_has_used_its_wakes_up_does_not_stand_before_that_of_another(self) -> None:
        order = self.held_up()
        asking = [self.start(operator(name)).run.id for name in ("wren", "hale")]
        calls = [("wren", asking[0]), ("wren", asking[0]), ("hale", asking[1])]
        wakes = [self.ring("moss", name, by_run=run).wake for name, run in calls]
        self.store.set("wren", {"wakes_per_run": 1}, "rana", NOW)
        self.decide(peer("fern", "wren", item=self.call("fern", "wren"), by_run=asking[0]))
        assert self.became(wakes[0]) == [("waiting", "busy", None)]
        self.store.set("wren", {"wakes_per_run": 0}, "rana", NOW)
        self.end(order, DONE, NOW + SECOND)
        self.decide_all(NOW + SECOND)
        assert self.became(*wakes) == [
            ("refused", "wakes_per_run", None),
            ("joined", "busy", wakes[0]),
            ("admitted", None, None),
        ]

    def test_a_chain_that_is_too_long_does_not_stand_before_a_shorter_one(self) -> None:
        order = self.held_up()
        deep = self.start(operator("wren")).run.id
        first = self.ring("hale", "wren", by_run=deep).run
        self.claim()
        calls = [("hale", first), ("fern", first), ("wren", deep)]
        wakes = [self.ring("moss", name, by_run=run).wake for name, run in calls]
        self.store.set("moss", {"chain": 1}, "rana", NOW)
        self.end(order, DONE, NOW + SECOND)
        self.decide_all(NOW + SECOND)
        assert self.became(*wakes) == [
            ("refused", "chain", None),
            ("joined", "busy", wakes[0]),
            ("admitted", None, None),
        ]

    def test_a_guard_about_the_one_who_is_woken_gives_up_all_of_them(self) -> None:
        order = self.held_up()
        wakes = [self.ring("moss", sender).wake for sender in ("wren", "hale")]
        self.store.set("moss", {"wakes_per_day": 0}, "rana", NOW)
        self.end(order, DONE, NOW + SECOND)
        assert self.decide_all(NOW + SECOND) == []
        assert self.became(*wakes) == [("refused", "wakes_per_day", None), ("joined", "busy", wakes[0])]

    def test_that_one_waits_in_place_of_another_is_told(self) -> None:
        order = self.held_up(pair=1)
        asking = self.start(operator("hale")).run.id
        wakes = [self.ring("moss", name, by_run=run).wake for name, run in (("wren", None), ("hale", asking))]
        self.ring("wren", "moss", by_run=order.run.id)
        self.end(order, DONE, NOW + SECOND)
        self.decide_all(NOW + SECOND)
        told = [event for event in self.store.events(limit=1000) if event.wake in wakes and event.at > NOW][:3]
        assert [(event.wake, event.kind.value) for event in told] == [
            (wakes[0], "decided"),
            (wakes[1], "asked"),
            (wakes[1], "decided"),
        ]
        fields = told[1].fields or {}
        assert (fields["after"], fields["from"], fields["by_run"]) == (wakes[0], "hale", asking)
