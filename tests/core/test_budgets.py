"""Money is reserved before a run and settled after it; an unknown cost is never zero."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.agents import Agent, Limits
from wakeful.core.budgets import MEMORY, Bill, over_limit, quantile, remember, reserve, settle_spend
from wakeful.core.facts import Facts
from wakeful.core.guards import spend
from wakeful.core.lifecycle import SINGLE, begin
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result, Run
from wakeful.core.settlement import Settlement, settle
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Subject, Wake

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((7,), 7),
        ((1, 2), 2),
        ((5, 1, 3), 5),
        (tuple(range(1, 10)), 9),
        (tuple(range(1, 11)), 9),
        (tuple(range(1, 12)), 10),
        (tuple(range(1, 21)), 18),
        ((1,) * 19 + (1000,), 1),
        ((1,) * 8 + (1000, 1000), 1000),
    ],
)
def test_the_reservation_is_the_ninetieth_percent_of_the_past(values, expected):
    assert quantile(values) == expected


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40))
def test_the_reservation_is_the_smallest_cost_that_nine_of_ten_runs_did_not_exceed(values: list[int]) -> None:
    found = quantile(tuple(values))

    def enough(candidate: int) -> bool:
        return sum(value <= candidate for value in values) * 10 >= 9 * len(values)

    assert found in values
    assert enough(found)
    assert not any(enough(value) for value in values if value < found)


PAST = tuple(Spend(usd=10 * n, tokens=n) for n in range(1, 11))
RESERVATIONS = [
    ("nothing is limited", PAST, Limits(), Spend()),
    ("nothing is limited, though declared", (), Limits(reserve_usd=7, reserve_tokens=7), Spend()),
    ("the past of the limited unit only", PAST, Limits(usd_per_day=1000), Spend(usd=90)),
    ("both units", PAST, Limits(usd_per_day=1000, tokens_per_day=100), Spend(usd=90, tokens=9)),
    ("a fleet's budget counts too", PAST, Limits(fleet_tokens_per_day=100), Spend(tokens=9)),
    ("the past before what is declared", PAST, Limits(usd_per_day=1000, reserve_usd=7), Spend(usd=90)),
    ("declared before a tenth", (), Limits(usd_per_day=1000, reserve_usd=7), Spend(usd=7)),
    ("a tenth of the budget", (), Limits(usd_per_day=1000), Spend(usd=100)),
    ("a tenth, rounded up", (), Limits(tokens_per_day=101), Spend(tokens=11)),
    ("at least something where there is a budget", (Spend(),), Limits(usd_per_day=9), Spend(usd=1)),
    ("at least something of an empty budget", (), Limits(tokens_per_day=0), Spend(tokens=1)),
    ("at least something, though nothing is declared", (), Limits(usd_per_day=9, reserve_usd=0), Spend(usd=1)),
    ("never more than the whole budget", PAST, Limits(usd_per_day=50), Spend(usd=50)),
    ("never more than the fleet's", PAST, Limits(usd_per_day=1000, fleet_usd_per_day=40), Spend(usd=40)),
    ("never more than the budget, though declared", (), Limits(usd_per_day=50, reserve_usd=70), Spend(usd=50)),
    ("a tenth of the smaller", (), Limits(usd_per_day=1000, fleet_usd_per_day=500), Spend(usd=50)),
]


@pytest.mark.parametrize(
    ("past", "limits", "expected"), [row[1:] for row in RESERVATIONS], ids=[row[0] for row in RESERVATIONS]
)
def test_a_run_reserves(past, limits, expected):
    assert reserve(past, limits) == expected


@given(st.lists(st.integers(0, 10**9), max_size=40), st.integers(1, 10**9), st.none() | st.integers(1, 10**9))
def test_an_agent_that_has_spent_nothing_today_can_always_afford_its_next_run(past, own, fleet):
    limits = Limits(usd_per_day=own, fleet_usd_per_day=fleet)
    facts = Facts(now=NOON, reserve=reserve(tuple(Spend(usd=usd) for usd in past), limits))
    wake = Wake(agent="moss", cause=Cause.timer, subject=Subject.beat, requested_at=NOON)
    assert spend(wake, facts, limits) is None


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (Spend(usd=500_000, tokens=9), None),
        (Spend(usd=500_001), "it used $0.50, a run may use $0.50"),
        (Spend(usd=2_000_000), "it used $2.00, a run may use $0.50"),
        (Spend(tokens=10), "it used 10 tokens, a run may use 9 tokens"),
    ],
)
def test_a_run_that_used_more_than_a_run_may_is_told_so(used, said):
    assert over_limit(used, Limits(usd_per_run=500_000, tokens_per_run=9)) == said
    assert over_limit(used, Limits(usd_per_day=1)) is None


def settled(ending: Ending, limits: Limits, subject: Subject = Subject.beat, failures: int = 0) -> Settlement:
    agent = Agent(name="moss", address="moss", limits=limits)
    run = Run(id=1, agent="moss", wake=1, cause=Cause.timer, subject=subject, version=1, position=begin(SINGLE))
    standing = Standing(agent="moss", position=begin(SINGLE), failure_streak=failures)
    return settle(replace(run, reserved=Spend(usd=400_000)), ending, standing, agent, NOON, began_with=SINGLE)


@pytest.mark.parametrize(("exit_code", "said"), [(0, "it used $0.61"), (3, "exit code 3; it used $0.61")])
@pytest.mark.parametrize("subject", Subject)
def test_a_run_that_used_more_than_a_run_may_ends_as_it_ended(subject, exit_code, said):
    ending = Ending(exit_code=exit_code, result=Result(usage=Spend(usd=610_000)))
    free, bounded = settled(ending, Limits(), subject), settled(ending, Limits(usd_per_run=500_000), subject)
    assert bounded.reason.startswith(said) and "used" not in free.reason
    assert (bounded.outcome, bounded.bill) == (free.outcome, free.bill)
    assert bounded.bill.spend.usd == 610_000


def test_what_a_run_was_ended_at_its_limit_with_is_settled_and_told_once():
    # It went on to use more while it was being ended.
    used = Result(usage=Spend(usd=700_000, tokens=80))
    ending = Ending(signal=15, over_limit="it used $0.61, a run may use $0.50", result=used)
    after = settled(ending, Limits(usd_per_day=9_000_000, usd_per_run=500_000))
    assert after.reason == "ended at its limit: it used $0.61, a run may use $0.50"
    assert after.bill == Bill(spend=Spend(usd=700_000, tokens=80), estimated=False)
    assert after.standing.costs == (after.bill.spend,)


@pytest.mark.parametrize("written", ErrorClass)
@pytest.mark.parametrize("subject", Subject)
def test_a_run_that_was_ended_at_its_limit_counts_whatever_it_wrote_before(subject, written):
    bare = Ending(signal=15, over_limit="it used $0.61, a run may use $0.50")
    wrote = replace(bare, result=Result(error="402 from the model", error_class=written))
    after = settled(wrote, Limits(), subject, failures=4)
    assert after == settled(bare, Limits(), subject, failures=4)
    assert (after.outcome, after.answered) == (Outcome.killed, False)
    assert (after.pause is not None) is (subject is Subject.beat)


def test_a_run_that_does_not_say_what_it_used_is_charged_its_reservation_and_flagged():
    reserved = Spend(usd=90, tokens=9)
    assert settle_spend(reserved, None) == Bill(spend=reserved, estimated=True)


def test_a_run_that_tells_only_one_unit_settles_the_other_at_its_reservation():
    told = settle_spend(Spend(usd=90, tokens=50), Spend(tokens=7))
    assert told == Bill(spend=Spend(usd=90, tokens=7), estimated=True)
    assert settle_spend(Spend(tokens=50), Spend(usd=7)) == Bill(spend=Spend(usd=7, tokens=50), estimated=True)


def test_a_run_that_used_nothing_at_all_costs_nothing():
    assert settle_spend(Spend(usd=90, tokens=50), Spend()) == Bill(spend=Spend(), estimated=False)


def test_a_run_that_says_what_it_used_is_charged_that_also_when_it_is_more_or_nothing():
    for used in (Spend(usd=5), Spend(usd=5000, tokens=1), Spend()):
        assert settle_spend(Spend(usd=90), used) == Bill(spend=used, estimated=False)


def test_an_estimate_is_not_remembered():
    assert remember(PAST, Bill(spend=Spend(usd=90), estimated=True)) == PAST


def test_only_the_last_runs_are_remembered_oldest_first():
    costs: tuple[Spend, ...] = ()
    for usd in range(MEMORY + 5):
        costs = remember(costs, Bill(spend=Spend(usd=usd), estimated=False))
    assert [cost.usd for cost in costs] == list(range(5, MEMORY + 5))


def test_spends_add_and_subtract_by_unit():
    assert Spend(usd=3, tokens=4) + Spend(usd=10) == Spend(usd=13, tokens=4)
    assert Spend(usd=3, tokens=4) - Spend(usd=1, tokens=4) == Spend(usd=2)
