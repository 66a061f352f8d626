"""Holes in the documents' days: edits in mid-run, one-offs, offsets, and a run that hangs."""

from dataclasses import replace

from tests.claims.desk import DONE, HOUR, MINUTE, SECOND, Desk, agent
from wakeful.core.agents import Fleet
from wakeful.core.cadence import Cadence
from wakeful.core.wakes import Cause


def beats_in_an_hour(desk: Desk) -> int:
    count = 0
    for _ in range(60):
        desk.later(MINUTE)
        count += len(desk.finish_all())
    return count


def test_an_edit_during_a_run_leaves_one_timer(desk):
    wren = agent("wren", every=10 * MINUTE)
    desk.declare(wren)
    desk.until(desk.standing("wren").due_at)
    (order,) = desk.begin()
    for minutes in (5, 20, 10):
        desk.later(SECOND)
        desk.declare(replace(wren, cadence=Cadence(interval=minutes * MINUTE)))
    desk.end(order)
    assert beats_in_an_hour(desk) == 6


def test_a_one_off_fires_once_also_when_nobody_was_there_at_its_time(desk):
    at = desk.now + HOUR
    wren = agent("wren", every=24 * HOUR, one_offs=(at,))
    desk.declare(wren)
    desk.later(2 * MINUTE)
    desk.finish_all()
    desk.restart()
    desk.until(at + 3 * HOUR)
    desk.store.declare(Fleet(agents=(wren,)), desk.now, boot=True)
    desk.later(2 * MINUTE)
    (order,) = desk.finish_all()
    assert order.wake.one_off
    desk.declare(wren)
    desk.restart()
    desk.declare(wren)
    assert beats_in_an_hour(desk) == 0


def test_a_declared_offset_is_kept_through_restarts(desk):
    wren = replace(agent("wren"), cadence=Cadence(interval=30 * MINUTE, offset=4 * MINUTE))
    desk.declare(wren)
    due = desk.standing("wren").due_at
    assert due == desk.now + MINUTE + 4 * MINUTE
    for _ in range(3):
        desk.restart()
        desk.later(MINUTE)
        desk.store.declare(Fleet(agents=(wren,)), desk.now, boot=True)
    assert desk.standing("wren").due_at == due


def test_a_wedged_run_holds_one_slot_and_never_the_others(desk):
    names = [f"agent{n}" for n in range(5)]
    desk.declare(agent("wedged"), *(agent(name, every=None) for name in names))
    desk.ask(Cause.operator, "wedged")
    (wedged,) = desk.claim()
    for name in names:
        desk.ask(Cause.operator, name)
    ran = []
    while orders := desk.begin():
        assert len(orders) == 1
        ran.append(orders[0].run.agent)
        desk.end(orders[0], DONE)
        desk.later(SECOND)
    assert ran == names
    assert [row.id for row in desk.store.runs(open=True)] == [wedged.run.id]
