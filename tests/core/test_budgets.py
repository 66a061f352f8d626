"""Money is reserved before a run and settled after it; an unknown cost is never zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.agents import Limits
from wakeful.core.budgets import MEMORY, Bill, quantile, remember, reserve, settle_spend
from wakeful.core.standing import Spend


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
    ("a tenth of the smaller", (), Limits(usd_per_day=1000, fleet_usd_per_day=500), Spend(usd=50)),
]


@pytest.mark.parametrize(
    ("past", "limits", "expected"), [row[1:] for row in RESERVATIONS], ids=[row[0] for row in RESERVATIONS]
)
def test_a_run_reserves(past, limits, expected):
    assert reserve(past, limits) == expected


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
