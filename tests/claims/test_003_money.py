"""Money: ten agents at once under one budget of the day, what an exhausted one says, and quotas that are used up.

The same with real processes is `soak/test_money.py`.
"""

import random
from dataclasses import replace
from datetime import datetime

import pytest

from tests.claims.desk import HOUR, MINUTE, SECOND, Desk, agent, why_not
from wakeful.core.agents import Limits
from wakeful.core.runs import Ending, ErrorClass, Result
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, Subject
from wakeful.store.protocol import Order

DOLLAR = 1_000_000
TEN = tuple(f"agent{number}" for number in range(10))


def costing(usd: int | None, code: int = 0) -> Ending:
    """None is an agent that says nothing of what it used."""
    usage = None if usd is None else Spend(usd=usd)
    return Ending(exit_code=code, result=Result(outcome="done" if code == 0 else "failed", usage=usage))


# How each of them ends, and what it says it cost, in cents: from, to. Some cost far more than anybody expects.
HABITS = {
    "agent0": (0, 1, 3),
    "agent1": (0, 1, 30),
    "agent2": (0, 5, 5),
    "agent3": (0, 20, 60),
    "agent4": (0, 0, 0),
    "agent5": (0, None, None),
    "agent6": (1, None, None),
    "agent7": (1, 2, 40),
    "agent8": ("lost", None, None),
    "agent9": ("killed", None, None),
}


class Purse:
    """A day of ten agents under one budget; what was admitted, with what was reserved for it."""

    def __init__(self, desk: Desk, seed: int, limit: int) -> None:
        self.desk, self.limit, self.dice = desk, limit, random.Random(seed)
        limits = Limits(fleet_usd_per_day=limit, burst=999)
        agents = [agent(name, every=self.dice.choice((5, 15, 30)) * MINUTE, limits=limits) for name in TEN]
        desk.declare(*(replace(one, max_failures=999) for one in agents), sessions=10, grace=0 * SECOND)
        self.day = desk.now.date().isoformat()
        self.open: list[Order] = []
        self.reserved: dict[int, int] = {}
        self.billed: dict[int, int] = {}
        self.deferred = 0

    def ending(self, order: Order) -> Ending:
        how, low, high = HABITS[order.run.agent]
        if how == "lost":
            return Ending(lost=True)
        if how == "killed":
            return Ending(timed_out=True)
        return costing(None if low is None else self.dice.randint(low, high) * DOLLAR // 100, how)

    def step(self) -> None:
        self.desk.later(self.dice.randint(1, 600) * SECOND)
        if self.dice.random() < 0.2:
            # Admitted, and nobody was there to begin it.
            self.desk.tick()
            self.desk.later(6 * SECOND)
        if self.dice.random() < 0.1:
            self.desk.restart()
        decided = self.desk.tick()
        self.deferred += sum(why_not(decision) == ("defer", "spend") for decision in decided)
        assert self.spent() <= self.limit + self.beyond(), "an admission is within the limit"
        for order in self.desk.claim():
            self.open.append(order)
            self.reserved[order.run.id] = order.run.reserved.usd
        self.dice.shuffle(self.open)
        for _ in range(self.dice.randrange(len(self.open) + 1)):
            self.end(self.open.pop())

    def end(self, order: Order) -> None:
        ending = self.ending(order)
        self.desk.end(order, ending)
        billed = self.billed[order.run.id] = self.desk.store.run(order.run.id).spend.usd
        said = ending.result.usage if ending.result else None
        # Unknown cost is never nothing: it is what was reserved.
        assert billed == (order.run.reserved.usd if said is None else said.usd)
        self.agrees()

    def spent(self) -> int:
        return self.desk.store.total("fleet", self.day, "usd")

    def beyond(self) -> int:
        """What admitted runs cost beyond their reservations."""
        return sum(max(0, cost - self.reserved[run]) for run, cost in self.billed.items())

    def agrees(self) -> None:
        """The day's total is what has ended and what is reserved, and stays within the limit and what went beyond."""
        under_way = sum(self.reserved[order.run.id] for order in self.open)
        assert self.spent() == sum(self.billed.values()) + under_way
        assert self.spent() <= self.limit + self.beyond()


@pytest.mark.parametrize("seed", range(5))
def test_ten_agents_at_once_stay_within_one_budget_and_what_runs_cost_beyond_their_reservations(desk, seed):
    purse = Purse(desk, seed, limit=5 * DOLLAR)
    evening = desk.now.replace(hour=22)
    while desk.now < evening and not (purse.deferred > 40 and not purse.open):
        purse.step()
    while purse.open:
        purse.end(purse.open.pop())
    assert purse.deferred and purse.beyond() > 0
    assert purse.spent() > purse.limit * 0.8, "the budget is there to be used"
    # Whoever still waits for money cannot be paid for with what is left.
    desk.tick()
    for row in desk.store.wakes(state="waiting", limit=1_000):
        facts = desk.store.why(row.wake, desk.now).facts
        assert row.guard != "spend" or facts.fleet_spent.usd + facts.reserve.usd > purse.limit


def broke(desk: Desk, *names: str) -> datetime:
    """Somebody's one run has cost all that there is; the next midnight."""
    limits = Limits(fleet_usd_per_day=DOLLAR)
    beating = [agent(name, every=30 * MINUTE, limits=limits) for name in names]
    desk.declare(agent("spender", every=None, limits=limits), *beating, sessions=20, grace=0 * SECOND)
    desk.ask(Cause.operator, "spender")
    (order,) = desk.claim()
    desk.end(order, costing(DOLLAR))
    return desk.now.replace(hour=0, minute=0, second=0) + 24 * HOUR


def test_a_budget_that_is_used_up_says_so_with_its_numbers_and_until_when(desk):
    midnight = broke(desk, "wren", "moss")
    desk.task("sweep", to="moss")
    desk.later(30 * MINUTE)
    told = [*desk.tick(), desk.wake("moss", "wren")]
    assert {(decision.verdict.kind.value, decision.verdict.guard) for decision in told} == {("defer", "spend")}
    assert {(row.wake.cause.value, row.guard) for row in desk.store.wakes(agent="moss", state="waiting")} == {
        (cause, "spend") for cause in ("timer", "task", "peer")
    }
    for verdict in (decision.verdict for decision in told):
        assert (
            "$1.00 spent or reserved today" in verdict.reason and "the limit is $1.00 for the fleet" in verdict.reason
        )
        numbers = verdict.numbers
        assert (numbers["unit"], numbers["spent"], numbers["limit"]) == ("fleet_usd", DOLLAR, DOLLAR)
        assert numbers["reserve"] > 0
        assert midnight <= verdict.until < midnight + 10 * MINUTE
    # A person may all the same.
    assert why_not(desk.ask(Cause.operator, "wren")) == ("admit", None)


@pytest.mark.parametrize("ends", [False, True], ids=["runs go on", "runs end at once"])
def test_what_waited_for_the_new_day_begins_within_its_first_ten_minutes_and_not_all_at_once(desk, ends):
    """Nor does the money that a run gives back at its end let all the others go."""
    midnight = broke(desk, *TEN)
    desk.later(30 * MINUTE)
    desk.tick()
    waits = [row.retry_at for row in desk.store.wakes(state="waiting", limit=1_000)]
    assert len(waits) == len(set(waits)) == len(TEN)
    assert min(waits) >= midnight and max(waits) < midnight + 10 * MINUTE
    desk.until(midnight - SECOND)
    assert desk.begin() == []
    starts = {}
    while desk.now < midnight + 10 * MINUTE:
        desk.later(SECOND)
        for order in desk.begin():
            starts[order.run.agent] = desk.now - midnight
            if ends:
                desk.end(order, costing(DOLLAR // 100))
    assert starts.keys() == set(TEN)
    for minute in range(10):
        together = [name for name, wait in starts.items() if minute * MINUTE <= wait < (minute + 2) * MINUTE]
        assert len(together) <= len(TEN) / 2, "spread over the morning"


@pytest.mark.parametrize("whose", ["usd_per_day", "fleet_usd_per_day"])
def test_a_run_that_cost_more_than_the_whole_budget_holds_its_agent_for_that_day_and_not_for_ever(desk, whose):
    limits = replace(Limits(), **{whose: DOLLAR})
    desk.declare(agent("wren", every=30 * MINUTE, limits=limits), grace=0 * SECOND)
    desk.later(HOUR)
    for _ in range(3):
        (order,) = desk.begin()
        desk.end(order, costing(DOLLAR * 12 // 10))
        desk.later(HOUR)
        assert [why_not(decision) for decision in desk.tick()] == [("defer", "spend")]
        desk.later(24 * HOUR)


def quota(desk: Desk, until: datetime | None) -> Ending:
    result = Result(outcome="failed", error="usage limit reached", error_class=ErrorClass.quota, retry_at=until)
    return Ending(exit_code=1, result=result)


@pytest.mark.parametrize("subject", [Subject.beat, Subject.inbox, Subject.task])
def test_a_quota_that_is_used_up_is_waited_out_and_is_no_failure(desk, subject):
    desk.declare(agent("wren", every=30 * MINUTE, limits=Limits(burst=999)), grace=0 * SECOND)
    task = desk.task("sweep", to="wren") if subject is Subject.task else None
    if subject is Subject.inbox:
        desk.wake("wren")
    # More often than any number of tries or failures in a row.
    for _ in range(7):
        order = begun_for(desk, subject)
        returns = desk.now + HOUR
        desk.end(order, quota(desk, returns))
        (pause,) = desk.store.pauses()
        assert (pause.owner, pause.until) == ("quota", returns)
        assert desk.standing("wren").failure_streak == 0
        while desk.now < returns - MINUTE:
            desk.later(MINUTE)
            assert desk.begin() == [], "held until the quota returns"
        desk.until(returns)
    if task is not None:
        assert (desk.store.item(task).attempts, desk.store.item(task).state) == (0, "pending")
    desk.end(begun_for(desk, subject))
    assert desk.store.pauses() == []


def begun_for(desk: Desk, subject: Subject) -> Order:
    """Its next run, which comes within the hour; what else begins is done."""
    for _ in range(60):
        for order in desk.begin():
            if order.run.subject is subject:
                return order
            desk.end(order)
        desk.later(MINUTE)
    raise AssertionError(f"no run of its {subject} for an hour")


def test_a_quota_without_an_instant_is_tried_again_after_half_an_hour(desk):
    desk.declare(agent("wren", every=5 * MINUTE), grace=0 * SECOND)
    desk.later(5 * MINUTE)
    (order,) = desk.begin()
    desk.end(order, quota(desk, None))
    desk.later(30 * MINUTE - SECOND)
    assert desk.begin() == []
    # Whoever waited for the end of a hold is let go within a minute of it.
    begun = []
    for _ in range(60):
        desk.later(SECOND)
        begun += desk.begin()
    assert [order.run.subject for order in begun] == [Subject.beat]
