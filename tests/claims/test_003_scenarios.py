"""Document 003: the guardrails as a table, the tuning guidelines and the three scenarios."""

from dataclasses import replace
from typing import Any

import pytest

from tests.claims.desk import DONE, HOUR, MINUTE, NOON, SECOND, agent, why_not
from tests.claims.test_001 import DAY
from tests.claims.test_003 import FREE, answer, crew, session, waiting
from wakeful.core.admission import admit, explain
from wakeful.core.agents import Limits
from wakeful.core.facts import Facts
from wakeful.core.lifecycle import Position
from wakeful.core.wakes import FLEET, Cause, Pause, Subject, Wake
from wakeful.core.windows import parse_window

WAKE = Wake(agent="finn", cause=Cause.peer, subject=Subject.inbox, requested_at=NOON, sender="yuki", by_run=7, depth=9)
QUIET = Limits(quiet_hours=(parse_window("11:00-13:00"),))
WORST = Facts(
    now=NOON,
    wakes_by_run=3,
    last_peer_wake_at=NOON - 2 * MINUTE,
    wakes_today=12,
    pair_wakes_today=5,
    seconds_today=7_200,
    open_run=1,
    slots_taken=2,
)
# What has to be mended, one after the other, before a wake may pass; in the order in which it is told.
LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("wakes_per_run", "refuse", {"wakes_by_run": 2}),
    ("cooldown", "refuse", {"last_peer_wake_at": NOON - 5 * MINUTE}),
    ("wakes_per_day", "refuse", {"wakes_today": 11}),
    ("wakes_per_pair", "refuse", {"pair_wakes_today": 4}),
    ("chain", "refuse", {}),
    ("minutes_per_day", "refuse", {"seconds_today": 7_199.0}),
    ("busy", "defer", {"open_run": None}),
    ("slots", "defer", {"slots_taken": 1}),
]


def test_the_five_layers_in_order():
    facts, wake = WORST, WAKE
    for guard, kind, mended in LAYERS:
        verdict = admit(wake, facts, Limits())
        assert (verdict.guard, verdict.kind) == (guard, kind)
        facts = replace(facts, **mended)
        if guard == "chain":
            wake = replace(wake, depth=8)
    assert admit(wake, facts, Limits()).kind == "admit"


@pytest.mark.parametrize("held_by", ["paused", "quiet_hours", *(guard for guard, _, _ in LAYERS)])
def test_each_guard_can_be_the_one_that_holds_a_wake(held_by):
    facts, wake, limits = Facts(now=NOON), replace(WAKE, depth=0), Limits()
    bad = {guard: {key: getattr(WORST, key) for key in mended} for guard, _, mended in LAYERS}
    if held_by == "paused":
        facts = replace(facts, pause=Pause(scope=FLEET, owner="operator", reason="stop", since=NOON))
    elif held_by == "quiet_hours":
        limits = QUIET
    elif held_by == "chain":
        wake = WAKE
    else:
        facts = replace(facts, **bad[held_by])
    objections = [opinion.guard for opinion in explain(wake, facts, limits) if opinion.verdict]
    assert objections == [held_by]
    assert admit(wake, facts, limits).guard == held_by


def test_the_documented_defaults_are_the_defaults():
    limits = Limits()
    assert (limits.sessions, limits.cooldown.total_seconds()) == (2, 300)
    assert (limits.minutes_per_day, limits.wakes_per_day, limits.wakes_per_pair) == (120, 12, 5)
    assert limits.wakes_per_run == 3


@pytest.mark.parametrize(
    ("guard", "limits"),
    [
        ("cooldown", Limits()),
        ("wakes_per_day", replace(FREE, wakes_per_day=1)),
        ("wakes_per_pair", replace(FREE, wakes_per_pair=1)),
        ("wakes_per_run", replace(FREE, wakes_per_run=1)),
        ("quiet_hours", QUIET),
        ("chain", replace(FREE, chain=0)),
        ("minutes_per_day", replace(FREE, minutes_per_day=0)),
    ],
)
def test_no_layer_drops_the_message(desk, guard, limits):
    crew(desk, "finn", "stas", limits=limits)
    by_run = session(desk, "stas").run.id
    if guard not in ("quiet_hours", "chain", "minutes_per_day"):
        assert why_not(desk.wake("finn", "stas", by_run=by_run)) == ("admit", None)
        answer(desk)
    assert why_not(desk.wake("finn", "stas", by_run=by_run)) == ("refuse", guard)
    assert len(waiting(desk, "finn")) == 1
    desk.until(max(desk.standing("finn").due_at, desk.now + 2 * HOUR))
    shown = [len(order.items) for order in desk.begin() if order.run.agent == "finn"]
    assert shown == [1]


def test_every_suppressed_wake_leaves_its_guard_and_numbers_in_the_events(desk):
    crew(desk, "finn")
    desk.wake("finn")
    answer(desk)
    refused = desk.wake("finn", "yuki")
    (event,) = [event for event in desk.store.events(agent="finn") if event.wake == refused.wake]
    assert event.kind == "decided"
    told = event.fields["verdict"]
    assert (told["kind"], told["guard"], told["numbers"]["limit"]) == ("refuse", "cooldown", 300)
    (row,) = [row for row in desk.store.wakes(agent="finn") if row.wake.id == refused.wake]
    assert (row.state, row.guard) == ("refused", "cooldown")
    assert "cooldown is 300 s" in row.reason


# ---- changing limits


def test_a_limit_changed_at_runtime_holds_for_the_next_wake(desk):
    crew(desk, "finn")
    desk.wake("finn")
    answer(desk)
    desk.later(MINUTE)
    assert why_not(desk.wake("finn", "yuki")) == ("refuse", "cooldown")
    desk.store.set("finn", {"cooldown": MINUTE}, "operator", desk.now)
    assert why_not(desk.wake("finn", "chieko")) == ("admit", None)
    desk.restart()
    assert desk.store.agent("finn").limits.cooldown == MINUTE


@pytest.mark.parametrize(
    ("settings", "apart", "one_sender", "asked", "admitted", "guard"),
    [
        ({"wakes_per_day": 4, "cooldown": 600 * SECOND}, 10 * MINUTE, False, 6, 4, "wakes_per_day"),
        ({"wakes_per_day": 4, "cooldown": 600 * SECOND}, 6 * MINUTE, False, 6, 3, "cooldown"),
        ({"wakes_per_day": 20, "cooldown": 60 * SECOND}, MINUTE, False, 22, 20, "wakes_per_day"),
        ({"wakes_per_day": 20, "cooldown": 60 * SECOND}, 59 * SECOND, False, 6, 3, "cooldown"),
        ({"wakes_per_pair": 2}, 6 * MINUTE, True, 6, 2, "wakes_per_pair"),
    ],
    ids=["cost-sensitive", "cost-sensitive, hurried", "fast iteration", "fast iteration, hurried", "one target"],
)
def test_the_tuning_table(desk, settings, apart, one_sender, asked, admitted, guard):
    crew(desk, "finn")
    desk.store.set("finn", settings, "operator", desk.now)
    told = []
    for n in range(asked):
        start = desk.now
        told.append(why_not(desk.wake("finn", "stas" if one_sender else f"sender{n}")))
        if told[-1] == ("admit", None):
            answer(desk)
        desk.until(start + apart)
    assert told.count(("admit", None)) == admitted
    assert {guard for _, guard in told} - {None} == {guard}


# ---- scenarios


def test_scenario_one_a_blocker_wakes_an_idle_agent_at_once(desk):
    desk.declare(agent("yukihiro"), agent("finn", lifecycle=DAY))
    order = session(desk, "yukihiro")
    decision = desk.wake("finn", "yukihiro", by_run=order.run.id)
    assert (why_not(decision), decision.run is not None) == (("admit", None), True)
    (woken,) = desk.claim()
    assert (woken.run.agent, woken.run.subject) == ("finn", Subject.inbox)
    assert [(item.sender, item.priority) for item in woken.items] == [("yukihiro", "urgent")]
    assert woken.wake.reason == "blocker"
    desk.end(woken)
    assert desk.standing("finn").position == Position("wake_add", 0)


def test_scenario_two_the_ping_pong_stops_at_wake_six_and_keeps_the_message(desk):
    crew(desk, "chieko", "yukihiro")
    desk.later(2 * MINUTE)
    desk.finish_all()
    turns = [("chieko", "yukihiro"), ("yukihiro", "chieko")] * 2 + [("chieko", "yukihiro")] * 2
    here = session(desk, "chieko")
    for number, (sender, target) in enumerate(turns, start=1):
        if here.run.agent != sender:
            here = session(desk, sender)
        decision = desk.wake(target, sender, by_run=here.run.id)
        desk.later(SECOND)
        desk.end(here)
        if number == 6:
            break
        assert why_not(decision) == ("admit", None), f"wake {number}"
        (here,) = desk.claim()
        assert [item.sender for item in here.items] == [sender]
        desk.later(3 * MINUTE)
        if turns[number][0] != target:
            desk.end(here)
            desk.later(3 * MINUTE)
    assert why_not(decision) == ("refuse", "wakes_per_pair")
    assert decision.verdict.numbers == {"used": 5, "limit": 5}
    (kept,) = waiting(desk, "yukihiro")
    due = desk.standing("yukihiro").due_at
    assert due - desk.now <= 30 * MINUTE
    desk.until(due)
    (order,) = [order for order in desk.begin() if order.run.agent == "yukihiro"]
    assert (order.run.cause, [item.id for item in order.items]) == (Cause.timer, [kept])


def test_scenario_three_each_target_has_its_own_budget(desk):
    crew(desk, "stas", "yukihiro", "finn", "yang", limits=replace(FREE, wakes_per_day=1), sessions=9)
    order = session(desk, "stas")
    targets = ("yukihiro", "finn", "yang")
    told = [why_not(desk.wake(to, "stas", by_run=order.run.id)) for to in targets]
    assert told == [("admit", None)] * 3
    for woken in desk.claim():
        desk.end(woken, DONE)
    assert [why_not(desk.wake(to, "chieko")) for to in targets] == [("refuse", "wakes_per_day")] * 3
