"""Somebody sets the clock: it is noticed within ten seconds, and nobody waits longer for it than the interval."""

from datetime import timedelta

import pytest

from tests.engine.stage import HOUR, MINUTE, SECOND, heading, lived
from wakeful.engine.clock import Jumps, SystemClock
from wakeful.testing.runner import done


@lived
async def test_a_clock_set_forward_is_noticed_within_ten_seconds_and_costs_one_catch_up(stage, caplog):
    stage.declare(heading("wren", interval="1h"))
    await stage.up()
    # The loop last looked at this second, and looks again in ten.
    await stage.until(605)
    stage.clock.set_wall(5 * HOUR)
    await stage.until(615)
    assert "the clock was set by 18000 s" in caplog.text
    await stage.until(7200)
    # Overdue by hours on the new calendar: once, after the grace of a start; then an hour after that.
    first, second, third = stage.beats()
    assert (first, third - second) == (60, 3660)
    assert 605 < second <= 605 + 10 + 60


@pytest.mark.parametrize("back", [10 * MINUTE, 5 * HOUR, timedelta(days=400)], ids=["minutes", "hours", "a year"])
@lived
async def test_a_clock_set_back_lengthens_no_wait_beyond_the_interval(stage, caplog, back):
    stage.declare(heading("wren", interval="1h"))
    await stage.up()
    await stage.until(605)
    stage.clock.set_wall(-back)
    await stage.until(615)
    assert "the clock was set by -" in caplog.text
    await stage.until(3 * 3600)
    waits = stage.waits()
    # One wait may have begun before the clock was set: up to ten minutes of it, then a whole hour.
    assert waits[0] <= 600 + 3600 + 10
    assert waits[1:] == [3660] * len(waits[1:])
    assert len(stage.beats()) >= 3


@lived
async def test_of_a_clock_set_back_a_fast_agent_notices_little(stage):
    stage.declare(heading("wren", interval="1m"))
    stage.all_end(done(), duration=SECOND)
    await stage.up()
    await stage.until(600)
    stage.clock.set_wall(-20 * HOUR)
    await stage.until(3600)
    waits = stage.waits()
    # What was left of a minute, until it was noticed, and a minute again.
    assert max(waits) <= 60 + 10 + 60
    assert waits[-1] == 61


@lived
async def test_a_clock_set_to_and_fro_neither_loses_nor_multiplies_beats(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    for n in range(24):
        await stage.minutes(7)
        stage.clock.set_wall(((-1) ** n) * timedelta(minutes=13 * (n % 5)))
    waits = stage.waits()
    assert min(waits) >= 60
    assert max(waits) <= 660 + 10 + 600
    assert len(stage.outcomes()) >= len(stage.seen) - 1


@lived
async def test_a_wait_for_a_gate_is_not_lengthened_by_a_clock_set_back(stage):
    rest = heading("rest", next="write", min_interval="30m")
    stage.write("lifecycle.org", "#+START: rest\n" + rest + heading("write", next="rest"))
    stage.declare(heading("wren", lifecycle="lifecycle.org", interval="1m"))
    await stage.up()
    await stage.until(600)
    assert stage.waits_for("wren") == ["state_gate"]
    stage.clock.set_wall(-10 * HOUR)
    await stage.until(600 + 10 + 60 + 1)
    # A gate whose stamp lies in the future is open: the day goes on after an interval.
    assert stage.walk()[:3] == ["rest 0", "write 0", "rest 0"]


@lived
async def test_a_clock_set_while_a_run_is_under_way_changes_nothing_about_its_wall_clock(stage):
    stage.declare(heading("wren", interval="10m", timeout="5m"))
    stage.all_end(done(), duration=HOUR)
    await stage.up()
    await stage.until(100)
    stage.clock.set_wall(3 * HOUR)
    await stage.until(370)
    run = stage.store.runs()[0]
    assert run.outcome.value == "killed"
    assert stage.carrier.runner.guardians[run.id].ended.total_seconds() == pytest.approx(360, abs=0.01)


@lived
async def test_a_clock_set_while_the_store_takes_nothing_is_seen_to_afterwards(stage):
    stage.declare(heading("wren", interval="1h"))
    await stage.up()
    await stage.until(600)

    async def full(number):
        raise OSError("no space left on device")

    stage.access.before = full
    stage.clock.set_wall(-5 * HOUR)
    await stage.until(700)
    stage.access.before = None
    await stage.until(720 + 3600)
    assert len(stage.seen) == 2


@lived
async def test_a_slow_drift_is_no_jump(stage, caplog):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    for _ in range(60):
        await stage.until(stage.elapsed + 60)
        stage.clock.set_wall(timedelta(milliseconds=20))
    assert "the clock was set" not in caplog.text


def test_the_machines_own_clocks_agree_with_each_other():
    clock = SystemClock()
    assert clock.now().tzinfo is not None
    before = clock.elapsed()
    assert not Jumps(clock).since_last()
    assert clock.elapsed() >= before
