"""A redeploy in the middle of everything: what was due stays due, and nobody loses the place."""

import pytest

from tests.engine.stage import SECOND, heading, lived
from wakeful.testing.runner import done, no_work


@pytest.mark.parametrize(
    ("away_from", "back_at", "next_beat"),
    [
        (2520, 2520, 3720),
        (2520, 3000, 3720),
        (3640, 3670, 3730),
        (3660, 3660, 3720),
        (3719, 3719, 3779),
        (200, 20_000, 20_060),
    ],
    ids=[
        "forty minutes in, the remaining twenty",
        "however long it took",
        "almost due, the grace",
        "the grace and the rest are equal",
        "one second before",
        "hours overdue, once and after the grace",
    ],
)
@lived
async def test_after_a_restart_the_next_delay_is_the_rest_of_the_interval_or_the_grace(
    stage, away_from, back_at, next_beat
):
    stage.declare(heading("wren", interval="1h"))
    await stage.up()
    await stage.until(away_from)
    # One run, from second 60 to 120: the hour is counted from its end.
    assert stage.beats() == [60]
    await stage.crash()
    await stage.until(back_at)
    await stage.up()
    await stage.until(next_beat + 3600)
    assert stage.beats() == [60, next_beat]
    await stage.until(next_beat + 3661)
    assert stage.beats() == [60, next_beat, next_beat + 3660]


@lived
async def test_a_restart_loop_does_not_hammer_the_model(stage):
    stage.declare(heading("wren", interval="1m"))
    for _ in range(20):
        await stage.up()
        await stage.until(stage.elapsed + 30)
        await stage.crash()
    assert stage.seen == []
    await stage.up()
    await stage.minutes(2)
    assert stage.beats()[0] == 20 * 30 + 60


@lived
async def test_many_restarts_do_not_put_off_what_is_due(stage):
    stage.declare(heading("wren", interval="1h"))
    for _ in range(16):
        await stage.up()
        await stage.minutes(7)
        await stage.down()
    assert stage.beats() == [60, 3720]


@lived
async def test_a_day_with_a_crash_in_every_pause_is_the_same_day(stage):
    stage.canonical()
    stage.one_after_another(done(), done(), no_work(), done(), done(), no_work(), done())
    for _ in range(12):
        await stage.up()
        await stage.minutes(9)
        await stage.crash()
    # Two adds, the third finds nothing; audit, rest; the plan finds nothing and is over; and so on.
    assert stage.walk()[:6] == ["wake_add 0", "wake_add 1", "wake_add 2", "wake_audit 0", "rem 0", "wake_plan 0"]
    assert stage.walk()[6:8] == ["wake_add 0", "wake_add 1"]
    assert (
        len(stage.store.runs(limit=1000)) == len(stage.seen) == len(stage.outcomes()) + len(stage.store.runs(open=True))
    )


@lived
async def test_the_idle_streak_and_the_gate_survive(stage):
    stage.canonical(interval="continuous")
    stage.one_after_another(*[no_work()] * 2, done(), *[no_work()] * 9, duration=SECOND)
    await stage.up()
    await stage.minutes(10)
    before = stage.standing()
    assert before.idle_streak == 3
    assert before.ran_at("rem") is not None
    await stage.crash()
    await stage.up()
    after = stage.standing()
    assert (after.position, after.idle_streak, after.gates) == (before.position, before.idle_streak, before.gates)
    assert after.due_at >= before.due_at


@lived
async def test_agents_of_a_known_fleet_are_not_staggered_again(stage):
    stage.declare(*(heading(name, interval="10m") for name in ("wren", "moss", "finch")), sessions="3")
    await stage.up()
    await stage.minutes(5)
    first = stage.beats()
    await stage.crash()
    await stage.up()
    await stage.until(900)
    assert stage.beats()[3:6] == [at + 660 for at in first]
