"""What the engine costs while nothing happens, and that it never runs hot.

A turn is a progress of the loop. Its bounds: one for each ten seconds (the longest wait), two for each resync of five
minutes, and a handful around each run (its due instant, its claim, its end, and the commits that tell of them).
"""

from tests.engine.stage import MINUTE, SECOND, heading, lived
from wakeful.core.wakes import FLEET, Pause
from wakeful.testing.runner import done, failed

# Turns around one run, as counted from its due instant to the settled end.
AROUND_A_RUN = 6


def rows_changed(stage, keeper):
    """By this engine's connection; a server counts for all of its guests together."""
    return stage.store.session.connection.total_changes() if keeper == "sqlite" else None


def turns_of(hours, runs):
    return hours * 360 + hours * 12 * 2 + runs * AROUND_A_RUN + 20


@lived
async def test_a_day_of_ten_minute_beats_takes_few_turns(stage):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    await stage.hours(24)
    assert len(stage.seen) == 131
    assert engine.loop.turns <= turns_of(24, 131)
    # Four writes a run at most: decided and claimed, ended, and room for one more of each.
    assert stage.access.writes <= 4 * 131 + 30


@lived
async def test_an_idle_engine_writes_nothing_and_reads_little(stage, keeper):
    stage.declare(*(heading(f"agent-{n}", interval="7d") for n in range(50)), grace="4h")
    engine = await stage.up()
    await stage.minutes(1)
    writes, reads = stage.access.writes, stage.access.reads
    changes = rows_changed(stage, keeper)
    await stage.hours(3)
    assert stage.access.writes == writes
    # Every five minutes: what is due, and what there is to tell.
    assert stage.access.reads - reads <= 3 * 12 * 4
    assert engine.loop.turns <= turns_of(3, 0)
    assert rows_changed(stage, keeper) == changes


@lived
async def test_a_fleet_that_is_held_back_is_as_quiet_as_an_idle_one(stage):
    stage.declare(*(heading(f"agent-{n}", interval="1m") for n in range(20)))
    engine = await stage.up()
    pause = Pause(scope=FLEET, owner="ada", reason="away", since=stage.now)
    await stage.access.write(lambda store: store.pause(pause, stage.now))
    await stage.minutes(15)
    writes, turns = stage.access.writes, engine.loop.turns
    await stage.hours(2)
    assert stage.access.writes == writes
    assert engine.loop.turns - turns <= turns_of(2, 0)


@lived
async def test_those_who_wait_for_a_slot_cost_nothing_while_they_wait(stage):
    stage.declare(*(heading(f"agent-{n}", interval="1m") for n in range(20)), sessions="1", stagger="1s")
    stage.all_end(done(), duration=14 * MINUTE)
    engine = await stage.up()
    await stage.minutes(2)
    writes, turns = stage.access.writes, engine.loop.turns
    await stage.minutes(12)
    assert len(stage.seen) == 1
    assert stage.access.writes == writes
    assert engine.loop.turns - turns <= 12 * 6 + 20


@lived
async def test_an_agent_that_cannot_be_started_is_a_failure_and_no_hot_loop(stage):
    stage.declare(heading("wren", interval="10m"), heading("moss", interval="10m"))

    async def broken(order):
        if order.run.agent == "wren":
            raise RuntimeError("no such thing")

    stage.before = broken
    engine = await stage.up()
    await stage.hours(2)
    # Five times, ten minutes apart, then quarantine with the reason; the other agent never noticed.
    runs = stage.store.runs(agent="wren")
    assert [run.outcome.value for run in runs] == ["failed"] * 5
    assert {run.reason for run in runs} == {"it could not be started: no such thing"}
    assert [pause.owner for pause in stage.store.pauses()] == ["quarantine"]
    assert len(stage.beats("moss")) == 11
    assert engine.loop.turns <= turns_of(2, 16)


@lived
async def test_an_agent_that_fails_at_once_for_ever_does_not_run_hot(stage):
    stage.declare(heading("wren", interval="continuous", breather="5s", max_failures="1000000"))
    stage.all_end(failed(), duration=SECOND / 1000)
    engine = await stage.up()
    await stage.hours(1)
    # At most twenty starts in ten minutes: then the burst guard holds it for half an hour.
    assert len(stage.seen) <= 40
    assert engine.loop.turns <= turns_of(1, 40)
