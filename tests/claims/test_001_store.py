"""Document 001 told to a real store: what survives, what is shared, and who gets the slot."""

import pytest

from tests.claims.desk import DONE, FAILED, KILLED, MINUTE, NO_WORK, SECOND, agent, why_not
from tests.claims.test_001 import DAY
from wakeful.core.agents import Fleet
from wakeful.core.forecast import forecast
from wakeful.core.items import State
from wakeful.core.lifecycle import Lifecycle, Position
from wakeful.core.lifecycle import State as DayState
from wakeful.core.wakes import Cause, Subject


def wren(**more):
    return agent("wren", every=10 * MINUTE, lifecycle=DAY, **more)


def next_run(desk, name="wren"):
    """Let time pass until the agent's next beat begins."""
    desk.until(desk.standing(name).due_at)
    (order,) = desk.begin()
    return order


def beats(desk, *endings):
    for ending in endings:
        order = next_run(desk)
        desk.end(order, ending)


@pytest.mark.parametrize("ending", [FAILED, KILLED], ids=["failed", "killed"])
def test_the_schedule_outlives_a_run_that_crashed(desk, ending):
    desk.declare(wren())
    beats(desk, DONE, ending)
    standing = desk.standing("wren")
    assert standing.position == Position("wake_add", 1)
    assert standing.due_at == desk.now + 10 * MINUTE
    assert next_run(desk).run.position == Position("wake_add", 1)


def test_a_beat_begins_in_the_state_where_the_agent_stands(desk):
    desk.declare(wren())
    beats(desk, DONE, DONE, DONE)
    order = next_run(desk)
    assert order.run.position == Position("wake_audit", 0)
    assert order.run.subject is Subject.beat


def test_place_streak_gate_and_due_instant_survive_a_restart(desk):
    desk.declare(wren())
    # add, audit, rest, plan and two adds: the rest leaves its gate behind.
    beats(desk, NO_WORK, NO_WORK, DONE, DONE, DONE, DONE)
    before = desk.standing("wren")
    assert (before.position, before.ran_at("rem") is not None) == (Position("wake_add", 2), True)
    beats(desk, FAILED)
    before = desk.standing("wren")
    desk.restart()
    desk.declare(wren())
    assert desk.standing("wren") == before
    # A redeploy is not a new first boot: with the grace, the stored instant stands.
    desk.later(4 * MINUTE)
    desk.store.declare(Fleet(agents=(wren(),)), desk.now, boot=True)
    assert desk.standing("wren").due_at == before.due_at


def test_a_closed_gate_holds_the_position_until_it_opens(desk):
    desk.declare(agent("wren", every=4 * MINUTE, lifecycle=DAY))
    beats(desk, NO_WORK, NO_WORK, DONE)
    rested = desk.now
    # A whole day by hand, so that rem is back before its ten minutes are over.
    for ending in (DONE, NO_WORK, DONE):
        desk.ask(Cause.operator, "wren")
        (order,) = desk.claim()
        desk.end(order, ending)
    assert desk.standing("wren").position == Position("rem", 0)
    desk.until(desk.standing("wren").due_at)
    (decision,) = desk.tick()
    assert why_not(decision) == ("defer", "state_gate")
    assert decision.verdict.until == rested + 10 * MINUTE
    desk.until(rested + 10 * MINUTE - SECOND)
    assert desk.begin() == []
    assert desk.standing("wren").position == Position("rem", 0)
    desk.later(SECOND)
    (order,) = desk.begin()
    assert order.run.position == Position("rem", 0)


def test_an_agent_has_at_most_one_open_run(desk):
    desk.declare(wren())
    order = next_run(desk)
    desk.message("wren", priority="urgent")
    desk.task(to="wren")
    desk.ask(Cause.operator, "wren")
    desk.later(20 * MINUTE)
    assert desk.begin() == []
    desk.end(order)
    desk.later(2 * SECOND)
    assert len(desk.begin()) == 1


def test_ticks_asked_for_during_a_run_become_one(desk):
    desk.declare(wren())
    order = next_run(desk)
    first = desk.ask(Cause.operator, "wren")
    later = [desk.ask(Cause.operator, "wren") for _ in range(4)]
    assert why_not(first) == ("defer", "busy")
    assert {decision.joined for decision in later} == {first.wake}
    desk.end(order)
    desk.later(2 * SECOND)
    (order,) = desk.begin()
    desk.end(order)
    desk.later(2 * SECOND)
    assert desk.begin() == []


def test_a_manual_tick_runs_the_beat_at_once_and_adds_no_second_timer(desk):
    desk.declare(wren())
    assert why_not(desk.ask(Cause.operator, "wren")) == ("admit", None)
    (order,) = desk.claim()
    assert order.run.subject is Subject.beat
    desk.end(order)
    assert desk.standing("wren").position == Position("wake_add", 1)
    counted = 0
    for _ in range(60):
        desk.later(MINUTE)
        counted += len(desk.finish_all())
    assert counted == 6


def test_the_standing_can_be_read_while_a_run_is_open(desk):
    desk.declare(wren())
    order = next_run(desk)
    (row,) = desk.store.runs(agent="wren", open=True)
    assert (row.id, row.state) == (order.run.id, "running")
    assert desk.standing("wren").position == Position("wake_add", 0)


def test_work_in_the_inbox_ends_the_deep_sleep(desk):
    desk.declare(agent("wren", every=MINUTE, lifecycle=Lifecycle("a", (DayState("a", repeat=9, next="a"),))))
    beats(desk, *[NO_WORK] * 8)
    asleep = desk.standing("wren")
    assert (asleep.idle_streak, asleep.due_at) == (8, desk.now + 30 * MINUTE)
    desk.later(MINUTE)
    desk.show("wren", task="1")
    (order,) = desk.begin()
    desk.end(order, DONE)
    awake = desk.standing("wren")
    assert (awake.idle_streak, awake.due_at) == (0, desk.now + MINUTE)
    assert awake.position == asleep.position


def test_agents_share_no_cadence_state(desk):
    desk.declare(wren(), agent("moss", every=20 * MINUTE, lifecycle=DAY))
    desk.later(2 * MINUTE)
    for order in desk.begin():
        desk.end(order, DONE if order.run.agent == "wren" else FAILED)
    moss = desk.standing("moss")
    assert (moss.position, moss.failure_streak) == (Position("wake_add", 0), 1)
    assert moss.due_at == desk.now + 20 * MINUTE
    beats(desk, NO_WORK)
    assert desk.standing("moss") == moss
    wren_now = desk.standing("wren")
    assert (wren_now.position, wren_now.failure_streak) == (Position("wake_audit", 0), 0)
    assert wren_now.due_at == desk.now + 10 * MINUTE


def test_the_third_session_waits_for_a_slot(desk):
    names = ("wren", "moss", "hale")
    desk.declare(*(agent(name) for name in names))
    decisions = [desk.ask(Cause.operator, name) for name in names]
    assert [why_not(decision) for decision in decisions] == [
        *[("admit", None)] * 2,
        ("defer", "slots"),
    ]
    assert decisions[2].verdict.numbers == {"pool": "sessions", "taken": 2, "limit": 2}


@pytest.mark.parametrize("ending", [DONE, FAILED, KILLED], ids=["done", "failed", "killed"])
def test_a_freed_slot_goes_to_the_head_of_the_queue_whatever_ended_the_run(desk, ending):
    names = ("wren", "moss", "hale", "desk", "finn")
    desk.declare(*(agent(name, every=None) for name in names))
    for name in names:
        desk.ask(Cause.operator, name)
        desk.later(SECOND)
    running, started = desk.claim(), []
    while running:
        started.append(running[0].run.agent)
        desk.end(running.pop(0), ending)
        assert len(desk.store.runs(open=True)) == len(running)
        desk.later(SECOND)
        running += desk.begin()
        assert len(running) <= 2
    assert started == list(names)


def test_two_agents_of_one_role_never_hold_the_same_task(desk):
    desk.declare(*(agent(name, every=None, roles=("writer",)) for name in ("wren", "moss", "hale")))
    for n in range(6):
        desk.task(f"story {n}", to=None, role="writer")
    done = []
    while orders := desk.begin():
        held = [task.id for order in orders for task in order.tasks]
        assert len(held) == len(set(held)) == len(orders)
        for order in orders:
            done += [task.id for task in order.tasks]
            desk.end(order)
        desk.later(SECOND)
    assert sorted(done) == sorted(set(done))
    assert {desk.store.item(id).state for id in done} == {State.completed}
    assert len(done) == 6


@pytest.mark.parametrize(("ending", "outcome"), [(DONE, "done"), (NO_WORK, "no_work")])
def test_the_next_six_ticks_can_be_predicted(desk, ending, outcome):
    desk.declare(wren())
    beats(desk, DONE)
    declared, standing = desk.store.agent("wren"), desk.standing("wren")
    told = forecast(standing, declared, declared.limits, desk.now, 6, outcome=outcome)
    happened = []
    for _ in range(6):
        order = next_run(desk)
        happened.append((desk.now, order.run.position.state, order.run.position.hits))
        desk.end(order, ending)
    assert [(tick.at, tick.state, tick.hits) for tick in told] == happened
    assert happened[0][1:] == ("wake_add", 1)
