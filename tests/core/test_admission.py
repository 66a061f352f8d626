"""The one door: the first objection is the answer, and `explain` hides none of the others."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.admission import admit, explain
from wakeful.core.agents import Limits
from wakeful.core.facts import Facts
from wakeful.core.guards import ABOUT_SENDER, GUARDS
from wakeful.core.standing import Spend
from wakeful.core.wakes import ADMIT, Cause, Pause, Subject, VerdictKind, Wake, order
from wakeful.core.windows import Window

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
LIMITS = Limits(quiet_hours=(Window(start_minute=660, end_minute=780),), usd_per_day=100)
PEER = Wake(agent="moss", cause=Cause.peer, subject=Subject.inbox, requested_at=NOW, sender="wren", by_run=7, depth=9)
# A peer's wake to which every guard that looks at peers objects at once.
WORST = Facts(
    now=NOW,
    moot="shown",
    pause=Pause(scope="fleet", owner="operator", reason="lunch", since=NOW),
    wakes_by_run=3,
    last_peer_wake_at=NOW,
    wakes_today=12,
    pair_wakes_today=5,
    seconds_today=7200,
    spent=Spend(usd=101),
    burst_starts=20,
    open_run=9,
    slots_taken=3,
)
Situation = tuple[Wake, Facts, Limits]
Cure = Callable[[Wake, Facts, Limits], Situation]


def with_facts(**changes) -> Cure:
    return lambda wake, facts, limits: (wake, replace(facts, **changes), limits)


# How each objection of that wake is taken away, and nothing else.
CURES: dict[str, Cure] = {
    "moot": with_facts(moot=None),
    "paused": with_facts(pause=None),
    "quiet_hours": lambda wake, facts, limits: (wake, facts, replace(limits, quiet_hours=())),
    "wakes_per_run": with_facts(wakes_by_run=0),
    "cooldown": with_facts(last_peer_wake_at=None),
    "wakes_per_day": with_facts(wakes_today=0),
    "wakes_per_pair": with_facts(pair_wakes_today=0),
    "chain": lambda wake, facts, limits: (replace(wake, depth=1), facts, limits),
    "minutes_per_day": with_facts(seconds_today=0.0),
    "spend": with_facts(spent=Spend()),
    "burst": with_facts(burst_starts=0),
    "busy": with_facts(open_run=None),
    "slots": with_facts(slots_taken=0),
}


def test_a_wake_without_objection_is_admitted():
    plain = Wake(agent="moss", cause=Cause.timer, subject=Subject.beat, requested_at=NOW)
    assert admit(plain, Facts(now=NOW), Limits()) == ADMIT


def test_the_first_objection_wins_all_the_way_down_the_table():
    situation: Situation = (PEER, WORST, LIMITS)
    for name, cure in CURES.items():
        assert admit(*situation).guard == name
        situation = cure(*situation)
    assert admit(*situation) == ADMIT


@pytest.mark.parametrize(("early", "late"), list(combinations(CURES, 2)))
def test_of_any_two_objections_the_earlier_one_is_told(early, late):
    situation: Situation = (PEER, WORST, LIMITS)
    for name, cure in CURES.items():
        if name not in (early, late):
            situation = cure(*situation)
    assert [opinion.guard for opinion in explain(*situation) if opinion.verdict] == [early, late]
    assert admit(*situation).guard == early


def test_explain_lists_all_fourteen_guards_also_behind_the_first_objection():
    opinions = explain(PEER, WORST, LIMITS)
    assert [opinion.guard for opinion in opinions] == [guard.name for guard in GUARDS]
    assert len(opinions) == 14
    silent = [opinion.guard for opinion in opinions if opinion.verdict is None]
    assert silent == ["state_gate"]


# ---- who is heard first


def waiting(agent: str | None, cause: Cause, second: int, **more) -> Wake:
    at = NOW + timedelta(seconds=second)
    return Wake(agent=agent, cause=cause, subject=Subject.inbox, requested_at=at, id=second, **more)


def test_one_agents_waiting_wakes_are_heard_operator_peer_timer_task_news():
    causes = [Cause.news, Cause.task, Cause.timer, Cause.peer, Cause.operator]
    asked = [waiting("moss", cause, second) for second, cause in enumerate(causes, 1)]
    assert [wake.cause for wake in order(asked)] == causes[::-1]


def test_of_one_agents_equal_wakes_the_oldest_is_heard_first():
    asked = [waiting("moss", Cause.task, second, task=second) for second in (3, 1, 2)]
    assert [wake.id for wake in order(asked)] == [1, 2, 3]


def test_between_agents_the_first_come_is_the_first_served_whatever_its_cause():
    asked = [waiting("wren", Cause.operator, 2), waiting("moss", Cause.news, 1), waiting(None, Cause.task, 3)]
    assert [wake.id for wake in order(asked)] == [1, 2, 3]


def test_an_agents_operator_wake_takes_the_place_of_its_oldest_and_no_one_elses():
    asked = [waiting("moss", Cause.news, 1), waiting("wren", Cause.timer, 2), waiting("moss", Cause.operator, 3)]
    assert [wake.id for wake in order(asked)] == [3, 2, 1]


# ---- properties

few = settings(max_examples=40)

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
instants = st.integers(0, 3_000_000_000).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
spends = st.builds(Spend, usd=st.integers(0, 300), tokens=st.integers(0, 300))
budgets = st.none() | st.integers(0, 300)
windows = st.builds(
    Window,
    start_minute=st.integers(0, 1439),
    end_minute=st.integers(0, 1440),
    days=st.sets(st.integers(0, 6)).map(lambda days: tuple(sorted(days))),
)
wakes = st.builds(
    Wake,
    agent=st.sampled_from(["moss", "wren"]),
    cause=st.sampled_from(Cause),
    subject=st.sampled_from(Subject),
    requested_at=instants,
    sender=st.none() | st.just("wren"),
    by_run=st.none() | st.integers(1, 9),
    depth=st.integers(0, 12),
    slot=st.sampled_from(["", "2026-03-02T12:00:00Z"]),
)
pauses = st.builds(
    Pause,
    scope=st.sampled_from(["fleet", "agent:moss", "source:board"]),
    owner=st.just("operator"),
    reason=st.just(""),
    since=instants,
    until=st.none() | instants,
)
limits = st.builds(
    Limits,
    quiet_hours=st.lists(windows, max_size=2).map(tuple),
    wakes_per_run=st.integers(0, 4),
    cooldown=st.timedeltas(timedelta(), timedelta(hours=1)),
    wakes_per_day=st.integers(0, 13),
    wakes_per_pair=st.integers(0, 6),
    minutes_per_day=st.integers(0, 200).map(float),
    minutes_declared=st.booleans(),
    usd_per_day=budgets,
    tokens_per_day=budgets,
    fleet_usd_per_day=budgets,
    fleet_tokens_per_day=budgets,
    burst=st.integers(1, 21),
    sessions=st.integers(0, 3),
    workers=st.integers(0, 3),
)


@st.composite
def situations(draw: st.DrawFn) -> Facts:
    now = draw(instants)
    return Facts(
        now=now,
        timezone=draw(st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"])),
        moot=draw(st.sampled_from([None, None, None, "shown"])),
        pause=draw(st.none() | pauses),
        wakes_by_run=draw(st.integers(0, 4)),
        last_peer_wake_at=draw(st.none() | st.timedeltas(timedelta(-1), timedelta(1)).map(lambda d: now + d)),
        wakes_today=draw(st.integers(0, 13)),
        pair_wakes_today=draw(st.integers(0, 6)),
        seconds_today=draw(st.floats(0, 12_000)),
        spent=draw(spends),
        fleet_spent=draw(spends),
        reserve=draw(spends),
        burst_starts=draw(st.integers(0, 21)),
        gate_opens_at=draw(st.none() | st.timedeltas(timedelta(seconds=1), timedelta(9)).map(lambda d: now + d)),
        gate_state="rem",
        open_run=draw(st.none() | st.integers(1, 9)),
        slots_taken=draw(st.integers(0, 3)),
    )


@few
@given(wakes, situations(), limits)
def test_the_same_wake_facts_and_limits_always_get_the_same_verdict(wake, facts, bounds):
    copies = replace(wake), replace(facts), replace(bounds)
    assert admit(wake, facts, bounds) == admit(*copies)
    assert explain(wake, facts, bounds) == explain(*copies)


@few
@given(wakes, situations(), limits)
def test_the_verdict_is_the_first_opinion_or_admission_when_there_is_none(wake, facts, bounds):
    opinions = [opinion.verdict for opinion in explain(wake, facts, bounds) if opinion.verdict]
    assert admit(wake, facts, bounds) == (opinions[0] if opinions else ADMIT)


@few
@given(wakes, situations(), limits)
def test_every_objection_names_its_guard_and_gives_a_reason(wake, facts, bounds):
    for opinion in explain(wake, facts, bounds):
        if opinion.verdict:
            assert opinion.verdict.guard == opinion.guard
            assert opinion.verdict.reason
            assert opinion.verdict.kind is not VerdictKind.admit


@few
@given(wakes, situations(), limits)
def test_only_a_deferral_carries_a_trip_and_only_burst_trips(wake, facts, bounds):
    for opinion in explain(wake, facts, bounds):
        if opinion.verdict and opinion.verdict.trip:
            assert (opinion.verdict.kind, opinion.guard) == (VerdictKind.defer, "burst")


@few
@given(wakes, situations(), limits)
def test_every_deferral_says_until_when_or_waits_for_something_that_will_change(wake, facts, bounds):
    for opinion in explain(wake, facts, bounds):
        if opinion.verdict and opinion.verdict.kind is VerdictKind.defer:
            assert opinion.verdict.until is not None or opinion.guard in ("paused", "busy", "slots")


@few
@given(wakes, situations(), limits)
def test_no_guard_but_a_pause_sends_anyone_back_into_the_past(wake, facts, bounds):
    for opinion in explain(wake, facts, bounds):
        if opinion.verdict and opinion.verdict.until and opinion.guard != "paused":
            assert opinion.verdict.until > facts.now


@few
@given(situations(), limits)
def test_an_operator_is_stopped_only_by_what_no_limit_can_express(facts, bounds):
    wake = Wake(agent="moss", cause=Cause.operator, subject=Subject.inbox, requested_at=facts.now)
    assert admit(wake, facts, bounds).guard in (None, "moot", "paused", "busy", "slots")


@pytest.mark.parametrize(("allowed", "guard"), [(0, "wakes_per_run"), (3, "wakes_per_run"), (4, None), (None, None)])
def test_the_wakes_of_a_run_are_bounded_by_the_agent_whose_run_it_is_and_not_by_whom_it_wakes(allowed, guard):
    wake, facts = replace(PEER, depth=1), Facts(now=NOW, wakes_by_run=3, wakes_allowed=allowed)
    verdict = admit(wake, facts, Limits(wakes_per_run=4))
    assert (verdict.guard, verdict.numbers) == (guard, {"used": 3, "limit": allowed} if guard else {})


def test_the_guards_about_the_sender_are_guards():
    assert {guard.name for guard in GUARDS} > ABOUT_SENDER
