"""Document 003 told to a real store: the two ways to reach an agent, and the five layers."""

from dataclasses import replace

import pytest

from tests.claims.desk import DONE, HOUR, MINUTE, SECOND, agent, why_not
from wakeful.core.agents import Limits
from wakeful.core.items import Origin, Priority, Ring, State, ring_of
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, Subject
from wakeful.core.windows import parse_window

FREE = Limits(cooldown=0 * SECOND)


def crew(desk, *names, limits=None, **fleet):
    desk.declare(*(agent(name, limits=limits) for name in names), **fleet)


def answer(desk, ending=DONE):
    """The admitted run begins, is shown its inbox, and ends."""
    (order,) = desk.claim()
    desk.later(SECOND)
    desk.end(order, ending)
    return order


def session(desk, name):
    """A run of the agent itself, from inside which it may wake others."""
    desk.ask(Cause.operator, name)
    (order,) = [order for order in desk.claim() if order.run.agent == name]
    return order


def waiting(desk, name):
    return [item.id for item in desk.store.items(agent=name, state="open")]


# ---- two ways


def test_a_normal_message_waits_for_the_next_beat_and_asks_for_no_run(desk):
    crew(desk, "finn")
    for priority in ("low", "normal"):
        desk.message("finn", priority=priority)
    desk.later(SECOND)
    assert desk.begin() == []
    assert desk.store.wakes(agent="finn") == []
    desk.until(desk.standing("finn").due_at)
    (order,) = desk.begin()
    assert (order.run.cause, len(order.items)) == (Cause.timer, 2)
    desk.end(order)
    assert waiting(desk, "finn") == []


def test_high_and_urgent_messages_ask_for_a_wake_by_themselves(desk):
    assert [ring_of(Origin.agent, priority) for priority in Priority] == [
        *[Ring.silent] * 2,
        *[Ring.peer] * 2,
    ]
    crew(desk, "finn", "yang")
    for name, priority in (("finn", "high"), ("yang", "urgent")):
        desk.message(name, priority=priority)
        (order,) = desk.begin()
        assert (order.run.agent, order.run.cause) == (name, Cause.peer)


@pytest.mark.parametrize(("enabled", "priority"), [(True, "normal"), (True, "low"), (False, "urgent"), (False, "high")])
def test_no_agent_is_woken_that_is_disabled_or_for_less_than_a_high_priority(desk, enabled, priority):
    desk.declare(agent("finn", enabled=enabled))
    message = desk.message("finn", priority=priority)
    told = [why_not(decision) for decision in desk.tick()]
    assert told == ([] if enabled else [("refuse", "moot")])
    assert desk.claim() == []
    # The message is there when the agent is.
    desk.declare(agent("finn"))
    desk.until(desk.standing("finn").due_at)
    (order,) = desk.begin()
    assert [item.id for item in order.items] == [message]


def test_the_message_is_recorded_before_its_wake_is_decided(desk):
    crew(desk, "finn")
    desk.store.set("finn", {"wakes_per_day": 0}, "operator", desk.now)
    decision = desk.wake("finn")
    assert decision.verdict.kind == "refuse"
    assert len(waiting(desk, "finn")) == 1


def test_a_wake_recorded_before_a_restart_is_decided_after_it(desk):
    crew(desk, "finn")
    desk.message("finn", priority="urgent")
    desk.restart()
    (order,) = desk.begin()
    assert (order.run.agent, len(order.items)) == ("finn", 1)


def test_a_message_closes_with_the_run_that_was_shown_it_and_not_before(desk):
    crew(desk, "finn")
    message = desk.message("finn", priority="urgent")
    (order,) = desk.begin()
    assert desk.store.item(message).state is State.open
    desk.end(order)
    assert desk.store.item(message).state is State.closed
    desk.later(10 * HOUR)
    (order,) = desk.begin()
    assert order.items == ()


def test_each_message_has_its_own_state(desk):
    """A message that comes while a run is under way is not closed by it, nor is an older one hidden."""
    crew(desk, "finn")
    older = desk.message("finn", priority="urgent")
    (order,) = desk.begin()
    newer = desk.message("finn")
    desk.end(order)
    assert [desk.store.item(id).state for id in (older, newer)] == [State.closed, State.open]


# ---- five layers


def test_layer_1_the_fourth_wake_of_one_run_is_refused(desk):
    crew(desk, "stas", "finn", "yang", "yuki", "chieko", sessions=9)
    order = session(desk, "stas")
    told = [why_not(desk.wake(to, by_run=order.run.id)) for to in ("finn", "yang", "yuki", "chieko")]
    assert told == [*[("admit", None)] * 3, ("refuse", "wakes_per_run")]
    for other in desk.claim():
        desk.end(other)
    desk.end(order)
    # The limit belongs to the run: the next one has three of its own.
    again = session(desk, "stas")
    assert why_not(desk.wake("chieko", by_run=again.run.id)) == ("admit", None)


def test_how_many_a_run_may_wake_is_said_by_its_own_agent_and_by_nobody_it_wakes(desk):
    own = {"stas": Limits(wakes_per_run=1), "finn": Limits(wakes_per_run=0)}
    desk.declare(*(agent(name, limits=own.get(name)) for name in ("stas", "finn", "yang", "yuki")), sessions=9)
    stas = session(desk, "stas")
    assert [why_not(desk.wake(to, "stas", by_run=stas.run.id)) for to in ("finn", "yang")] == [
        ("admit", None),
        ("refuse", "wakes_per_run"),
    ]
    yuki = session(desk, "yuki")
    assert why_not(desk.wake("yang", "yuki", by_run=yuki.run.id)) == ("admit", None)


def test_layer_2_a_target_woken_two_minutes_ago_is_left_alone_whoever_asks(desk):
    crew(desk, "finn")
    assert why_not(desk.wake("finn", "yuki")) == ("admit", None)
    answer(desk)
    start = desk.now - SECOND
    desk.until(start + 2 * MINUTE)
    for sender in ("yuki", "chieko", "stas"):
        decision = desk.wake("finn", sender)
        assert why_not(decision) == ("refuse", "cooldown")
        assert decision.verdict.numbers == {"seconds": 120.0, "limit": 300.0}
        assert decision.verdict.until == start + 5 * MINUTE
    desk.until(start + 5 * MINUTE)
    assert why_not(desk.wake("finn", "chieko")) == ("admit", None)


def wake_often(desk, to, times, apart=6 * MINUTE):
    told = []
    for n in range(times):
        told.append(why_not(desk.wake(to, f"sender{n}")))
        if told[-1] == ("admit", None):
            answer(desk)
        desk.later(apart)
    return told


def test_layer_3_the_thirteenth_wake_of_a_day_is_suppressed(desk):
    crew(desk, "yuki")
    assert wake_often(desk, "yuki", 14) == [*[("admit", None)] * 12, *[("refuse", "wakes_per_day")] * 2]
    assert len(waiting(desk, "yuki")) == 2


def test_a_suppressed_wake_is_not_counted(desk):
    crew(desk, "yuki")
    # Every second request meets the cooldown; only the twelve admitted ones are counted.
    told = wake_often(desk, "yuki", 23, apart=3 * MINUTE)
    assert told.count(("admit", None)) == 12
    assert told.count(("refuse", "cooldown")) == 11


def test_the_budget_is_fresh_on_the_next_day(desk):
    crew(desk, "yuki")
    wake_often(desk, "yuki", 12)
    decision = desk.wake("yuki")
    assert why_not(decision) == ("refuse", "wakes_per_day")
    midnight = desk.now.replace(hour=0, minute=0, second=0) + 24 * HOUR
    assert decision.verdict.until == midnight
    desk.until(midnight - SECOND)
    assert why_not(desk.wake("yuki")) == ("refuse", "wakes_per_day")
    desk.until(midnight)
    assert why_not(desk.wake("yuki")) == ("admit", None)


def test_layer_4_the_sixth_wake_of_a_pair_is_blocked_though_the_day_has_room(desk):
    crew(desk, "finn", limits=FREE)
    told = []
    for _ in range(6):
        told.append(why_not(desk.wake("finn", "yuki")))
        if told[-1] == ("admit", None):
            answer(desk)
    assert told == [*[("admit", None)] * 5, ("refuse", "wakes_per_pair")]
    assert why_not(desk.wake("finn", "chieko")) == ("admit", None)


def test_layer_5_a_busy_agent_is_woken_when_its_run_ends(desk):
    crew(desk, "finn")
    order = session(desk, "finn")
    decision = desk.wake("finn", "yuki")
    assert why_not(decision) == ("defer", "busy")
    desk.later(MINUTE)
    assert desk.begin() == []
    desk.end(order)
    desk.later(2 * SECOND)
    (order,) = desk.begin()
    assert (order.run.wake, len(order.items)) == (decision.wake, 1)


def test_no_limit_is_forgotten_in_a_restart(desk):
    crew(desk, "finn", limits=Limits(wakes_per_day=2))
    desk.wake("finn")
    answer(desk)
    desk.restart()
    assert why_not(desk.wake("finn")) == ("refuse", "cooldown")
    desk.later(5 * MINUTE)
    desk.wake("finn")
    answer(desk)
    desk.restart()
    desk.later(5 * MINUTE)
    assert why_not(desk.wake("finn")) == ("refuse", "wakes_per_day")


def test_of_two_wakes_at_the_same_instant_one_is_admitted(desk):
    crew(desk, "finn")
    told = [why_not(desk.wake("finn", sender)) for sender in ("yuki", "chieko")]
    assert told == [("admit", None), ("refuse", "cooldown")]


def test_a_chain_of_wakes_ends_at_depth_eight(desk):
    """A ring of three passes every pair limit; it dies out by itself."""
    ring = ("finn", "yang", "yuki")
    crew(desk, *ring, limits=replace(FREE, wakes_per_pair=99, wakes_per_day=99))
    here, told = session(desk, ring[0]), []
    for n in range(9):
        told.append(why_not(desk.wake(ring[(n + 1) % 3], ring[n % 3], by_run=here.run.id)))
        desk.end(here)
        if n < 8:
            (here,) = desk.claim()
    assert told == [*[("admit", None)] * 8, ("refuse", "chain")]


def test_every_wake_carries_what_its_whole_chain_has_cost_so_far(desk):
    """Each asks while it is under way; what it costs itself is known to those that follow."""
    chain = ("finn", "yang", "yuki", "chieko")
    crew(desk, *chain, limits=FREE, sessions=9)
    here = session(desk, "finn")
    for number, name in enumerate(chain[1:], start=1):
        desk.wake(name, here.run.agent, by_run=here.run.id)
        (woken,) = desk.claim()
        spent = Result(outcome="done", usage=Spend(usd=10**number))
        desk.end(here, Ending(exit_code=0, result=spent))
        here = woken
    rows = [row.wake for name in chain[1:] for row in desk.store.wakes(agent=name)]
    assert [(wake.depth, wake.lineage_usd) for wake in rows] == [(1, 0), (2, 10), (3, 110)]
    assert len({wake.root for wake in rows}) == 1


def test_no_wake_starts_once_the_days_minutes_are_used(desk):
    crew(desk, "finn")
    for _ in range(8):
        order = session(desk, "finn")
        desk.later(15 * MINUTE)
        desk.end(order)
    desk.later(HOUR)
    decision = desk.wake("finn")
    assert why_not(decision) == ("refuse", "minutes_per_day")
    assert decision.verdict.numbers == {"minutes": 120.0, "limit": 120.0}


# ---- with scheduled beats


def test_a_beat_fires_on_its_timer_whatever_was_woken_that_day(desk):
    crew(desk, "finn")
    wake_often(desk, "finn", 13)
    assert why_not(desk.wake("finn")) == ("refuse", "wakes_per_day")
    desk.until(max(desk.now, desk.standing("finn").due_at))
    (order,) = desk.begin()
    assert (order.run.cause, order.run.subject) == (Cause.timer, Subject.beat)


def test_a_wake_waits_when_the_sessions_are_full(desk):
    crew(desk, "finn", "yang", "yuki")
    running = [session(desk, name) for name in ("yang", "yuki")]
    assert why_not(desk.wake("finn")) == ("defer", "slots")
    desk.later(MINUTE)
    assert desk.begin() == []
    desk.end(running[0])
    desk.later(SECOND)
    (order,) = desk.begin()
    assert order.run.agent == "finn"


def test_a_beat_and_an_inbox_run_are_both_shown_the_inbox(desk):
    crew(desk, "finn")
    for start in (lambda: desk.wake("finn"), lambda: desk.ask(Cause.operator, "finn")):
        message = desk.message("finn")
        start()
        order = answer(desk)
        assert message in [item.id for item in order.items]
        desk.later(6 * MINUTE)


def test_a_wake_in_quiet_hours_is_suppressed_and_a_beat_waits_for_their_end(desk):
    crew(desk, "finn", limits=Limits(quiet_hours=(parse_window("11:00-13:00"),)))
    one = desk.now + HOUR
    decision = desk.wake("finn")
    assert (why_not(decision), decision.verdict.until) == (("refuse", "quiet_hours"), one)
    desk.until(desk.standing("finn").due_at)
    (decision,) = desk.tick()
    assert (why_not(decision), decision.verdict.until) == (("defer", "quiet_hours"), one)
    desk.until(one)
    (order,) = desk.begin()
    assert (order.run.cause, len(order.items)) == (Cause.timer, 1)


@pytest.mark.parametrize("every", [30 * MINUTE, None], ids=["a timer", "no timer, but a sweep"])
def test_if_every_wake_is_suppressed_the_next_beat_still_shows_the_message(desk, every):
    desk.declare(agent("finn", every=every, limits=Limits(wakes_per_day=0)))
    desk.later(2 * MINUTE)
    desk.finish_all()
    sent = [desk.wake("finn", f"sender{n}") for n in range(4)]
    assert {why_not(decision) for decision in sent} == {("refuse", "wakes_per_day")}
    for _ in range(29):
        desk.later(MINUTE)
        assert desk.begin() == [], "a refused message is silent until the next beat"
    desk.later(MINUTE)
    (order,) = desk.begin()
    assert len(order.items) == 4
    desk.end(order)
    assert waiting(desk, "finn") == []
