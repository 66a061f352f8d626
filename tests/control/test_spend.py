"""Money from the door to the bill: ten agents at once, a dear run, a quota that is used up; and what is said of it."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from tests.control.desk import HOUR, MINUTE, an_agent
from wakeful.core.agents import Limits
from wakeful.core.cadence import Cadence
from wakeful.core.runs import Ending, ErrorClass, Result
from wakeful.core.standing import Spend
from wakeful.core.wakes import VerdictKind

DOLLAR = 1_000_000
MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
TEN = [f"agent-{number}" for number in range(10)]


def cost(usd):
    return Ending(exit_code=0, result=Result(outcome="done", usage=Spend(usd=usd)))


def spent(desk, scope="fleet"):
    return desk.store.total(scope, f"{desk.now:%Y-%m-%d}", "usd")


def admitted(desk):
    return [decision for decision in desk.due() if decision.verdict.kind is VerdictKind.admit]


@pytest.mark.parametrize("seed", range(2))
def test_ten_agents_at_once_stay_within_the_day_but_for_what_runs_cost_beyond_their_reservations(desk, seed):
    dice, limit = random.Random(seed), 5 * DOLLAR
    quick = Cadence(interval=5 * MINUTE)
    fleet = Limits(fleet_usd_per_day=limit, burst=1_000)
    desk.declare(*(an_agent(name, cadence=quick, limits=fleet) for name in TEN), sessions=10)
    beyond, runs, together = 0, 0, 0
    under_way = []
    while desk.now < MIDNIGHT:
        desk.later(5 * MINUTE)
        desk.due()
        under_way += desk.claim()
        together = max(together, len(under_way))
        for order in [order for order in under_way if dice.random() < 0.5]:
            used = dice.randrange(DOLLAR // 2)
            beyond += max(used - order.run.reserved.usd, 0)
            runs += 1
            desk.end(order, cost(used))
            under_way.remove(order)
        reserved = sum(order.run.reserved.usd for order in under_way)
        if desk.now < MIDNIGHT:
            assert reserved <= spent(desk) <= limit + beyond
    assert together > 1 and runs > 10
    waiting = desk.store.wakes(state="waiting", limit=100)
    assert {row.guard for row in waiting} == {"spend"}
    assert all("the limit is $5.00 for the fleet" in row.reason for row in waiting)
    # What waits is let go in the morning, and not all at once.
    assert all(row.retry_at is not None and MIDNIGHT <= row.retry_at < MIDNIGHT + 10 * MINUTE for row in waiting)
    desk.later(10 * MINUTE)
    assert admitted(desk)


def test_a_run_dearer_than_a_whole_day_holds_the_agent_for_that_day_and_not_for_ever(desk):
    desk.declare(an_agent("wren", limits=Limits(usd_per_day=DOLLAR)))
    days = []
    while desk.now < MIDNIGHT + timedelta(days=2):
        desk.later(10 * MINUTE)
        desk.due()
        for order in desk.claim():
            days.append(f"{desk.now:%d}")
            desk.end(order, cost(3 * DOLLAR))
    assert days == ["02", "03", "04"]


def test_an_agent_out_of_money_says_until_when_and_goes_on_once_its_limit_is_raised(desk):
    desk.declare(an_agent("wren", limits=Limits(usd_per_day=DOLLAR)))
    desk.later(HOUR)
    desk.due()
    desk.end(desk.claim()[0], cost(DOLLAR))
    desk.later(HOUR)
    assert admitted(desk) == []
    told = desk.ask("why", agent="wren")
    assert (told["verdict"], told["guard"]) == ("defer", "spend")
    assert "$1.00 spent or reserved today and $1.00 needed, the limit is $1.00" in told["reason"]
    assert told["next_eligible"].startswith("2026-03-03T00:0")
    desk.ask("set", agent="wren", settings={"budget_usd": "$3"})
    assert len(admitted(desk)) == 1


def test_a_quota_holds_each_agent_until_it_returns_and_they_do_not_come_back_together(desk):
    desk.declare(*(an_agent(name) for name in TEN), sessions=10)
    desk.later(HOUR)
    desk.due()
    returns = desk.now + 5 * HOUR
    refused = Result(error="429", error_class=ErrorClass.quota, retry_at=returns)
    for order in desk.claim():
        desk.end(order, Ending(exit_code=1, result=refused))
    assert {(pause.owner, pause.until) for pause in desk.store.pauses()} == {("quota", returns)}
    while desk.now < returns - 10 * MINUTE:
        desk.later(10 * MINUTE)
        assert admitted(desk) == []
    assert desk.ask("agent", agent="agent-3")["paused"]
    desk.now = returns - timedelta(seconds=1)
    assert admitted(desk) == []
    starts = []
    while desk.now < returns + 2 * MINUTE:
        desk.later(timedelta(seconds=1))
        starts += [desk.now for _ in admitted(desk)]
        desk.claim()
    assert len(starts) == 10 and len(set(starts)) > 5
    assert returns <= min(starts) and max(starts) <= returns + MINUTE + timedelta(seconds=1)
    assert all(desk.store.standing(name).failure_streak == 0 for name in TEN)


@pytest.mark.parametrize("meanwhile", ["another wake", "a change of its limits"])
def test_what_an_operator_asked_for_is_held_by_a_quota_too_whatever_is_asked_meanwhile(desk, meanwhile):
    desk.declare(an_agent("wren", every=24 * HOUR))
    first = desk.ask("wake", agent="wren", body="look")
    (order,) = desk.claim()
    returns = desk.now + HOUR
    refused = Result(error="429", error_class=ErrorClass.quota, retry_at=returns)
    desk.end(order, Ending(exit_code=1, result=refused))
    assert desk.ask("tick", agent="wren")["verdict"] == "refuse", "who asks for something else hears a no"
    if meanwhile == "another wake":
        desk.ask("wake", agent="wren", body="look again")
    else:
        desk.ask("set", agent="wren", settings={"cooldown": "1m"})
    assert admitted(desk) == []
    desk.now = returns + MINUTE
    (decision,) = admitted(desk)
    assert decision.wake == first["wake_id"]
    desk.end(desk.claim()[0])
    assert desk.ask("inbox", agent="wren")["items"] == []
