"""Each guard as a table: whom it looks at, what it says, with which numbers and until when.

A situation is built so that exactly one guard can object; the table then says what each cause gets to hear.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from wakeful.core.agents import Limits
from wakeful.core.facts import Facts
from wakeful.core.guards import GUARDS, MORNING, RELEASE, Guard
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, Pause, Subject, Verdict, VerdictKind, Wake
from wakeful.core.windows import Window, parse_window, spread

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)  # a Monday
MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
DEFER, REFUSE = VerdictKind.defer, VerdictKind.refuse
SUBJECTS = {
    Cause.timer: Subject.beat,
    Cause.operator: Subject.inbox,
    Cause.task: Subject.task,
    Cause.peer: Subject.inbox,
    Cause.news: Subject.inbox,
}
DOCUMENTED = (
    "moot",
    "paused",
    "quiet_hours",
    "wakes_per_run",
    "cooldown",
    "wakes_per_day",
    "wakes_per_pair",
    "chain",
    "minutes_per_day",
    "spend",
    "burst",
    "state_gate",
    "busy",
    "slots",
)
BY_NAME: dict[str, Guard] = {guard.name: guard for guard in GUARDS}


def a_wake(cause: Cause, **changes) -> Wake:
    asked = Wake(agent="moss", cause=cause, subject=SUBJECTS[cause], requested_at=NOW, sender="wren")
    return replace(asked, **changes)


def facts(**changes) -> Facts:
    return replace(Facts(now=NOW), **changes)


def ask(guard: str, wake: Wake, known: Facts, limits: Limits | None = None) -> Verdict | None:
    return BY_NAME[guard].objection(wake, known, limits or Limits())


PAUSE = Pause(scope="fleet", owner="operator", reason="lunch", since=NOW)
NOON = parse_window("11:00-13:00")
SITUATIONS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {  # facts, limits, wake
    "moot": ({"moot": "the message was shown in run 4"}, {}, {}),
    "paused": ({"pause": PAUSE}, {}, {}),
    "quiet_hours": ({}, {"quiet_hours": (NOON,)}, {}),
    "wakes_per_run": ({"wakes_by_run": 3}, {}, {"by_run": 7}),
    "cooldown": ({"last_peer_wake_at": NOW - timedelta(seconds=299)}, {}, {}),
    "wakes_per_day": ({"wakes_today": 12}, {}, {}),
    "wakes_per_pair": ({"pair_wakes_today": 5}, {}, {}),
    "chain": ({}, {}, {"depth": 9}),
    "minutes_per_day": ({"seconds_today": 7200.0}, {}, {}),
    "spend": ({"spent": Spend(usd=4_500_000), "reserve": Spend(usd=550_000)}, {"usd_per_day": 5_000_000}, {}),
    "burst": ({"burst_starts": 20}, {}, {}),
    "state_gate": ({"gate_opens_at": NOW + timedelta(minutes=4), "gate_state": "rem"}, {}, {}),
    "busy": ({"open_run": 9}, {}, {}),
    "slots": ({"slots_taken": 2}, {"workers": 2}, {}),
}
# timer, operator, task, peer, news; None is no objection
SAID = {
    "moot": (REFUSE, REFUSE, REFUSE, REFUSE, REFUSE),
    "paused": (DEFER, REFUSE, DEFER, DEFER, DEFER),
    "quiet_hours": (DEFER, None, DEFER, REFUSE, DEFER),
    "wakes_per_run": (None, None, None, REFUSE, None),
    "cooldown": (None, None, None, REFUSE, None),
    "wakes_per_day": (None, None, None, REFUSE, None),
    "wakes_per_pair": (None, None, None, REFUSE, None),
    "chain": (None, None, None, REFUSE, None),
    "minutes_per_day": (None, None, None, REFUSE, DEFER),
    "spend": (DEFER, None, DEFER, DEFER, DEFER),
    "burst": (DEFER, None, None, DEFER, DEFER),
    "state_gate": (DEFER, None, None, None, None),
    "busy": (DEFER, DEFER, DEFER, DEFER, DEFER),
    "slots": (DEFER, DEFER, DEFER, DEFER, DEFER),
}
TABLE = [(guard, cause, said) for guard, row in SAID.items() for cause, said in zip(Cause, row, strict=True)]


def test_the_order_of_the_guards_is_the_documented_one():
    assert tuple(guard.name for guard in GUARDS) == DOCUMENTED


def documented() -> dict[str, str]:
    """The sections of the document on the guards, by their headings, in order."""
    document = Path(__file__).parents[2] / "docs" / "concepts" / "guards.md"
    sections = re.split(r"^### (\w+)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def test_the_document_has_one_heading_for_each_guard_in_their_order():
    assert tuple(documented()) == DOCUMENTED


@pytest.mark.parametrize("guard", DOCUMENTED)
def test_the_document_quotes_the_words_that_the_guard_says(guard):
    known, limits, wake = SITUATIONS[guard]
    said = [ask(guard, a_wake(cause, **wake), facts(**known), Limits(**limits)) for cause in Cause]
    quoted = re.findall(r"^> (.+)$", documented()[guard], re.MULTILINE)
    assert quoted == [next(verdict.reason for verdict in said if verdict)]


def test_the_table_says_something_about_every_guard():
    assert set(SITUATIONS) == set(SAID) == set(DOCUMENTED)


@pytest.mark.parametrize("cause", Cause)
def test_no_guard_objects_when_nothing_is_the_matter(cause):
    assert [guard.name for guard in GUARDS if guard.objection(a_wake(cause), facts(), Limits())] == []


@pytest.mark.parametrize(("guard", "cause", "said"), TABLE, ids=[f"{g}-{c}" for g, c, _ in TABLE])
def test_each_cause_hears_what_the_table_says(guard, cause, said):
    known, limits, wake = SITUATIONS[guard]
    verdict = ask(guard, a_wake(cause, **wake), facts(**known), Limits(**limits))
    assert (verdict and verdict.kind) == said
    if verdict is not None:
        assert verdict.guard == guard
        assert verdict.reason


@pytest.mark.parametrize(("guard", "cause", "said"), TABLE, ids=[f"{g}-{c}" for g, c, _ in TABLE])
def test_a_situation_of_one_guard_concerns_no_other(guard, cause, said):
    known, limits, wake = SITUATIONS[guard]
    asked = (a_wake(cause, **wake), facts(**known), Limits(**limits))
    assert [other.name for other in GUARDS if other.objection(*asked)] == ([guard] if said else [])


# ---- moot and paused


def test_moot_says_which_reason_fell_away():
    verdict = ask("moot", a_wake(Cause.peer), facts(moot="the message was shown in run 4"))
    assert verdict and "the message was shown in run 4" in verdict.reason


@pytest.mark.parametrize("scope", ["fleet", "agent:moss", "source:inbox"])
@pytest.mark.parametrize("until", [None, NOW + timedelta(minutes=30)])
def test_a_pause_is_told_with_its_scope_its_owner_and_its_end(scope, until):
    pause = Pause(scope=scope, owner="rana", reason="a bad deploy", since=NOW, until=until)
    for cause in Cause:
        verdict = ask("paused", a_wake(cause), facts(pause=pause))
        share = timedelta() if cause is Cause.operator else spread("moss", RELEASE)
        assert verdict and verdict.until == (until and until + share)
        assert verdict.numbers == {"scope": scope}
        assert "rana" in verdict.reason and "a bad deploy" in verdict.reason


# ---- quiet hours

WINDOWS = [
    ("11:00-13:00", "UTC", NOW, datetime(2026, 3, 2, 13, tzinfo=UTC)),
    ("12:00-13:00", "UTC", NOW, datetime(2026, 3, 2, 13, tzinfo=UTC)),
    ("11:00-12:00", "UTC", NOW, None),
    ("23:00-07:00", "UTC", datetime(2026, 3, 2, 23, 30, tzinfo=UTC), datetime(2026, 3, 3, 7, tzinfo=UTC)),
    ("23:00-07:00", "UTC", datetime(2026, 3, 2, 6, 59, tzinfo=UTC), datetime(2026, 3, 2, 7, tzinfo=UTC)),
    ("23:00-07:00", "UTC", NOW, None),
    ("13:00-14:00", "Europe/Berlin", NOW, datetime(2026, 3, 2, 13, tzinfo=UTC)),
    ("Tue 11:00-13:00", "UTC", NOW, None),
]


@pytest.mark.parametrize(("written", "zone", "now", "until"), WINDOWS)
@pytest.mark.parametrize("cause", [Cause.timer, Cause.task, Cause.news, Cause.peer])
def test_quiet_hours_last_until_their_window_ends_in_the_zone_of_the_agent(written, zone, now, until, cause):
    limits = Limits(quiet_hours=(parse_window(written),))
    verdict = ask("quiet_hours", a_wake(cause), Facts(now=now, timezone=zone), limits)
    assert (verdict and verdict.until) == until


@pytest.mark.parametrize("cause", Cause)
def test_a_one_off_passes_quiet_hours(cause):
    limits = Limits(quiet_hours=(NOON,))
    assert ask("quiet_hours", a_wake(cause, slot="2026-03-02T12:00:00Z"), facts(), limits) is None


def test_a_blackout_between_two_instants_is_a_quiet_hour_too():
    blackout = Window(start=NOW - timedelta(hours=1), end=NOW + timedelta(days=2))
    verdict = ask("quiet_hours", a_wake(Cause.timer), facts(), Limits(quiet_hours=(blackout,)))
    assert verdict and verdict.until == blackout.end


# ---- the limits on peers: one below passes, at the limit the wake is refused, and the numbers are told


@pytest.mark.parametrize(
    ("guard", "fact", "limit", "default"),
    [
        ("wakes_per_run", "wakes_by_run", "wakes_per_run", 3),
        ("wakes_per_day", "wakes_today", "wakes_per_day", 12),
        ("wakes_per_pair", "pair_wakes_today", "wakes_per_pair", 5),
    ],
)
def test_a_count_is_refused_at_its_limit_and_not_before(guard, fact, limit, default):
    wake = a_wake(Cause.peer, by_run=7)
    assert ask(guard, wake, facts(**{fact: default - 1})) is None
    for used in (default, default + 1):
        verdict = ask(guard, wake, facts(**{fact: used}))
        assert verdict and verdict.kind is REFUSE
        assert verdict.numbers == {"used": used, "limit": default}
    assert ask(guard, wake, facts(**{fact: default}), Limits(**{limit: default + 1})) is None
    assert ask(guard, wake, facts(), Limits(**{limit: 0}))


def test_a_wake_that_no_run_asked_for_has_no_count_per_run():
    assert ask("wakes_per_run", a_wake(Cause.peer, by_run=None), facts(wakes_by_run=99)) is None


@pytest.mark.parametrize("guard", ["wakes_per_day", "wakes_per_pair", "minutes_per_day"])
def test_a_peer_refused_for_the_day_is_told_the_next_midnight_of_the_agent(guard):
    known, limits, wake = SITUATIONS[guard]
    verdict = ask(guard, a_wake(Cause.peer, **wake), facts(**known), Limits(**limits))
    assert verdict and verdict.until == MIDNIGHT
    in_tokyo = facts(**known, timezone="Asia/Tokyo")
    verdict = ask(guard, a_wake(Cause.peer, **wake), in_tokyo, Limits(**limits))
    assert verdict and verdict.until == datetime(2026, 3, 3, tzinfo=ZoneInfo("Asia/Tokyo"))


def test_the_pair_is_named_in_the_refusal():
    verdict = ask("wakes_per_pair", a_wake(Cause.peer), facts(pair_wakes_today=5))
    assert verdict and "wren" in verdict.reason and "moss" in verdict.reason


@pytest.mark.parametrize(
    ("since", "wait"),
    [(0, 300), (1, 299), (299, 1), (300, None), (3000, None), (-1, None), (-7200, None)],
    ids=["at once", "1 s", "299 s", "300 s", "long ago", "set back by 1 s", "set back by hours"],
)
def test_cooldown_waits_out_300_seconds_and_never_longer(since, wait):
    verdict = ask("cooldown", a_wake(Cause.peer), facts(last_peer_wake_at=NOW - timedelta(seconds=since)))
    assert (verdict and verdict.until) == (wait and NOW + timedelta(seconds=wait))
    if verdict:
        assert verdict.numbers == {"seconds": since, "limit": 300}


def test_an_agent_never_woken_has_no_cooldown():
    assert ask("cooldown", a_wake(Cause.peer), facts(last_peer_wake_at=None)) is None
    zero = Limits(cooldown=timedelta())
    assert ask("cooldown", a_wake(Cause.peer), facts(last_peer_wake_at=NOW), zero) is None


def test_a_chain_may_be_eight_deep_and_not_nine():
    assert ask("chain", a_wake(Cause.peer, depth=8), facts()) is None
    verdict = ask("chain", a_wake(Cause.peer, depth=9), facts())
    assert verdict and verdict.numbers == {"depth": 9, "limit": 8}


# ---- minutes


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("declared", [False, True])
def test_minutes_bind_peers_and_news_always_and_timers_and_tasks_where_declared(cause, declared):
    limits = Limits(minutes_per_day=60, minutes_declared=declared)
    bound = cause in (Cause.peer, Cause.news) or (declared and cause in (Cause.timer, Cause.task))
    assert bool(ask("minutes_per_day", a_wake(cause), facts(seconds_today=3600.0), limits)) is bound
    assert ask("minutes_per_day", a_wake(cause), facts(seconds_today=3599.9), limits) is None


def test_minutes_are_told_with_their_limit():
    verdict = ask("minutes_per_day", a_wake(Cause.news), facts(seconds_today=7290.0))
    assert verdict and verdict.numbers == {"minutes": 121.5, "limit": 120}


@pytest.mark.parametrize("guard", ["minutes_per_day", "spend"])
def test_what_is_deferred_to_the_next_day_is_released_within_ten_minutes_of_it(guard):
    known, limits, _ = SITUATIONS[guard]
    released = set()
    for number in range(50):
        wake = a_wake(Cause.news, agent=f"moss-{number}")
        verdict = ask(guard, wake, facts(**known), Limits(**limits))
        assert verdict and verdict.kind is DEFER and verdict.until
        assert MIDNIGHT <= verdict.until < MIDNIGHT + MORNING
        assert verdict == ask(guard, wake, facts(**known), Limits(**limits))
        released.add(verdict.until)
    assert len(released) > 40


# ---- spend

AGENT_USD = {"usd_per_day": 100}
AGENT_TOKENS = {"tokens_per_day": 100}
FLEET_USD = {"fleet_usd_per_day": 100}
FLEET_TOKENS = {"fleet_tokens_per_day": 100}
SPEND = [
    (AGENT_USD, {"spent": Spend(usd=90), "reserve": Spend(usd=10)}, None),
    (AGENT_USD, {"spent": Spend(usd=90), "reserve": Spend(usd=11)}, "usd"),
    (AGENT_USD, {"spent": Spend(usd=101)}, "usd"),
    (AGENT_USD, {"spent": Spend(tokens=9999), "fleet_spent": Spend(usd=9999)}, None),
    (AGENT_TOKENS, {"spent": Spend(tokens=90), "reserve": Spend(tokens=11)}, "tokens"),
    (AGENT_TOKENS, {"spent": Spend(usd=9999)}, None),
    (FLEET_USD, {"fleet_spent": Spend(usd=95), "reserve": Spend(usd=10)}, "fleet_usd"),
    (FLEET_USD, {"spent": Spend(usd=9999)}, None),
    (FLEET_TOKENS, {"fleet_spent": Spend(tokens=95), "reserve": Spend(tokens=10)}, "fleet_tokens"),
    ({}, {"spent": Spend(usd=10**9, tokens=10**9), "reserve": Spend(usd=10**9)}, None),
    (AGENT_USD, {"spent": Spend(usd=10**9), "reserve": None}, None),
]


@pytest.mark.parametrize(("limits", "known", "unit"), SPEND)
def test_a_run_starts_only_when_its_reservation_fits_below_every_budget(limits, known, unit):
    verdict = ask("spend", a_wake(Cause.timer), facts(**known), Limits(**limits))
    assert (verdict and verdict.numbers["unit"]) == unit
    if verdict:
        assert verdict.numbers["limit"] == 100
        assert verdict.numbers["spent"] + verdict.numbers["reserve"] > 100  # type: ignore[operator]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"usd_per_day": 1_000_000}, "$0.90 spent or reserved today and $0.25 needed, the limit is $1.00"),
        (
            {"fleet_tokens_per_day": 99},
            "80 tokens spent or reserved today and 20 tokens needed, the limit is 99 tokens for the fleet",
        ),
    ],
)
def test_money_is_told_in_dollars_and_a_budget_of_the_fleet_as_such(limits, words):
    spent, reserve = Spend(usd=900_000, tokens=80), Spend(usd=250_000, tokens=20)
    known = facts(spent=spent, fleet_spent=spent, reserve=reserve)
    verdict = ask("spend", a_wake(Cause.timer), known, Limits(**limits))
    assert verdict and verdict.reason == words


@pytest.mark.parametrize(
    ("limits", "day"),
    [
        ({"usd_per_day": 100}, datetime(2026, 3, 3, tzinfo=UTC)),
        ({"fleet_usd_per_day": 100}, datetime(2026, 3, 2, 5, tzinfo=UTC)),
    ],
    ids=["the agent's day", "the fleet's day"],
)
def test_a_budget_is_waited_for_in_the_day_of_whoever_has_it(limits, day):
    spent = Spend(usd=100)
    early = Facts(now=datetime(2026, 3, 2, 0, 3, tzinfo=UTC), spent=spent, fleet_spent=spent, reserve=Spend(usd=1))
    bounds = Limits(**limits, fleet_timezone="America/New_York")
    verdict = ask("spend", a_wake(Cause.timer), early, bounds)
    assert verdict and verdict.until and day <= verdict.until < day + MORNING


# ---- burst, gate, busy, slots


def test_the_twentieth_start_passes_and_the_next_trips_a_pause_of_thirty_minutes():
    assert ask("burst", a_wake(Cause.timer), facts(burst_starts=19)) is None
    verdict = ask("burst", a_wake(Cause.timer), facts(burst_starts=20))
    until = NOW + timedelta(minutes=30)
    assert verdict and verdict.until == until
    assert verdict.numbers == {"starts": 20, "limit": 20}
    assert verdict.trip and (verdict.trip.scope, verdict.trip.owner) == ("agent:moss", "burst")
    assert (verdict.trip.since, verdict.trip.until) == (NOW, until)
    assert verdict.trip.reason == "20 starts in 10 minutes"


def test_a_gate_is_told_with_its_state_and_the_instant_it_opens():
    opens = NOW + timedelta(minutes=4)
    verdict = ask("state_gate", a_wake(Cause.timer), facts(gate_opens_at=opens, gate_state="rem"))
    assert verdict and (verdict.until, verdict.numbers) == (opens, {"state": "rem"})


def test_a_tick_of_the_operator_passes_the_gate():
    tick = a_wake(Cause.operator, subject=Subject.beat)
    assert ask("state_gate", tick, facts(gate_opens_at=NOW + timedelta(hours=1), gate_state="rem")) is None


def test_busy_names_the_run_that_is_under_way():
    verdict = ask("busy", a_wake(Cause.peer), facts(open_run=9))
    assert verdict and (verdict.numbers, verdict.until) == ({"run": 9}, None)


@pytest.mark.parametrize(("cause", "pool", "limit"), [(Cause.timer, "sessions", 2), (Cause.task, "workers", 3)])
def test_beats_and_inboxes_share_the_sessions_and_tasks_the_workers(cause, pool, limit):
    assert ask("slots", a_wake(cause), facts(slots_taken=limit - 1)) is None
    verdict = ask("slots", a_wake(cause), facts(slots_taken=limit))
    assert verdict and verdict.numbers == {"pool": pool, "taken": limit, "limit": limit}
    raised = Limits(sessions=limit + 1, workers=limit + 1)
    assert ask("slots", a_wake(cause), facts(slots_taken=limit), raised) is None
