"""Floods: many agents that wake a few, again and again, in no order; the limits hold, and every message is kept.

The same with real processes and an engine that is killed is `soak/test_floods.py`.
"""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.claims.desk import DONE, HOUR, SECOND, Desk, agent, why_not
from tests.claims.test_003 import FREE, answer, crew, session
from wakeful.core.agents import Limits
from wakeful.core.runs import Ending
from wakeful.core.wakes import Cause
from wakeful.store.protocol import Order, WakeRow

SENDERS = tuple(f"sender{number}" for number in range(12))
TARGETS = ("finn", "yang", "yuki")
WAKES = 200


class Flood:
    """Each sender is in one long run of its own, and asks from there."""

    def __init__(self, desk: Desk, limits: Limits, seed: int) -> None:
        self.desk = desk
        self.dice = random.Random(seed)
        desk.declare(*(agent(name, limits=limits) for name in (*SENDERS, *TARGETS)), sessions=99)
        self.runs = {name: session(desk, name).run.id for name in SENDERS}
        self.asked = 0
        self.under_way: list[Order] = []

    def wake(self, sender: str, target: str) -> tuple[str, str | None]:
        self.asked += 1
        self.desk.later(SECOND / 10)
        return why_not(self.desk.wake(target, sender, by_run=self.runs[sender]))

    def engine(self) -> None:
        """Begins what may begin; some of what is under way ends. Now and then it comes too late for what was admitted:
        that is void, and decided again."""
        if self.dice.random() < 0.1:
            self.desk.later(6 * SECOND)
        self.under_way += [order for order in self.desk.begin() if order.run.agent in TARGETS]
        self.dice.shuffle(self.under_way)
        for _ in range(self.dice.randrange(len(self.under_way) + 1)):
            self.desk.end(self.under_way.pop())

    def drain(self) -> None:
        while True:
            self.under_way += [order for order in self.desk.begin() if order.run.agent in TARGETS]
            if not self.under_way:
                return
            self.desk.end(self.under_way.pop())

    def rows(self) -> list[WakeRow]:
        return [row for row in self.desk.store.wakes(limit=10_000) if row.wake.cause == "peer"]

    def admitted(self) -> list[tuple[str, str]]:
        """Who woke whom, once for each wake that became a run."""
        runs = {row.wake for row in self.desk.store.runs(limit=10_000) if row.state == "ended"}
        return [(row.wake.sender, row.wake.agent) for row in self.rows() if row.wake.id in runs]

    def refusals(self) -> Counter[str]:
        """By guard, each with its reason and numbers in the row and in the event."""
        events = {event.wake: event for event in self.desk.store.events(kinds=("decided",), limit=100_000)}
        found = [row for row in self.rows() if row.state == "refused"]
        for row in found:
            told = events[row.wake.id].fields["verdict"]
            assert row.reason and told["reason"] == row.reason
            assert told["guard"] == row.guard and ("limit" in told["numbers"] or row.guard == "moot")
        # Moot is what waited for a run that showed its message.
        return Counter(row.guard for row in found if row.guard != "moot")

    def messages(self) -> list[int]:
        return [item.id for name in TARGETS for item in self.desk.store.items(agent=name, limit=10_000)]

    def counts(self) -> list[Any]:
        store, day = self.desk.store, self.desk.now.date().isoformat()
        pairs = [f"pair:{'|'.join(sorted((sender, target)))}" for sender in SENDERS for target in TARGETS]
        scopes = [*(f"agent:{name}" for name in TARGETS), *pairs]
        totals = [store.total(scope, day, "wakes") for scope in scopes]
        return [totals, Counter((row.state, row.guard) for row in self.rows()), self.messages()]

    def shown(self) -> Counter[int]:
        """What the beats of a day show, of what no run has shown yet; and what was shown before."""
        for _ in range(24):
            self.desk.later(HOUR)
            for order in self.desk.begin():
                self.desk.end(order)
        runs = self.desk.store.runs(limit=10_000)
        return Counter(item for row in runs if row.agent in TARGETS for item in row.shown)


def test_a_flood_of_wakes_stays_within_every_limit_and_loses_no_message(desk):
    flood = Flood(desk, replace(FREE, wakes_per_run=6), seed=7)
    # One sender alone uses up its pair, then its run.
    told = []
    for _ in range(6):
        told.append(flood.wake("sender0", "finn"))
        flood.drain()
    assert told == [*[("admit", None)] * 5, ("refuse", "wakes_per_pair")]
    assert flood.wake("sender0", "yang") == ("admit", None)
    assert flood.wake("sender0", "yuki") == ("refuse", "wakes_per_run")
    while flood.asked < WAKES:
        flood.wake(flood.dice.choice(SENDERS), flood.dice.choice(TARGETS))
        if flood.dice.random() < 0.5:
            flood.engine()
        if flood.asked in (WAKES // 3, WAKES // 2):
            desk.restart()
    flood.drain()

    assert Counter(target for _, target in flood.admitted()) == dict.fromkeys(TARGETS, 12)
    assert max(Counter(map(frozenset, flood.admitted())).values()) == 5
    assert flood.refusals().keys() == {"wakes_per_run", "wakes_per_day", "wakes_per_pair"}
    before = flood.counts()
    assert before[0][: len(TARGETS)] == [12, 12, 12], "what is told of the day is what its rows add up to"
    desk.restart()
    assert flood.counts() == before
    assert len(flood.messages()) == WAKES
    assert flood.shown() == dict.fromkeys(flood.messages(), 1)
    assert desk.store.items(state="open") == []


def test_a_flood_within_the_cooldown_starts_one_run_of_each_target(desk):
    flood = Flood(desk, replace(Limits(), wakes_per_run=99), seed=7)
    while flood.asked < WAKES:
        flood.wake(flood.dice.choice(SENDERS), flood.dice.choice(TARGETS))
        if flood.dice.random() < 0.5:
            flood.engine()
        if flood.asked == WAKES // 2:
            desk.restart()
    flood.drain()
    assert sorted(target for _, target in flood.admitted()) == sorted(TARGETS)
    assert flood.refusals().keys() == {"cooldown"}
    assert flood.shown() == dict.fromkeys(flood.messages(), 1)


@pytest.mark.parametrize("turns", ["AAAAAA", "BBBBBB", "ABABAB", "AABBBA"])
def test_the_sixth_wake_between_two_agents_is_refused_whichever_of_them_asks(desk, turns):
    crew(desk, "chieko", "yukihiro", limits=FREE)
    both = {"A": ("chieko", "yukihiro"), "B": ("yukihiro", "chieko")}
    told = []
    for turn in turns:
        sender, target = both[turn]
        told.append(why_not(desk.wake(target, sender)))
        if told[-1] == ("admit", None):
            answer(desk)
    assert told == [*[("admit", None)] * 5, ("refuse", "wakes_per_pair")]
    # Somebody else may.
    assert why_not(desk.wake("chieko", "finn")) == ("admit", None)


@pytest.mark.parametrize("ending", [DONE, Ending(exit_code=1)], ids=["done", "failed"])
def test_the_thirteenth_wake_of_an_agent_is_refused_however_its_runs_end(desk, ending):
    """A run that fails is tried again for the same wake; that is no wake more."""
    crew(desk, "yuki", limits=replace(FREE, burst=999))
    told = []
    for number in range(13):
        told.append(why_not(desk.wake("yuki", f"sender{number}")))
        for _ in range(4):
            for order in desk.begin():
                desk.end(order, ending)
            desk.later(3 * 60 * SECOND)
    assert told == [*[("admit", None)] * 12, ("refuse", "wakes_per_day")]
    wakes = {row.wake for row in desk.store.runs(limit=1_000) if row.cause is Cause.peer}
    assert len(wakes) == 12
