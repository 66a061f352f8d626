"""Holding a fleet: pauses and the PAUSE file."""

import pytest

from tests.engine.stage import HOUR, MINUTE, heading, lived
from wakeful.core.wakes import FLEET, Pause, VerdictKind, agent_scope

CREW = tuple(f"agent-{n:02d}" for n in range(12))


def crew(stage, **keys):
    stage.declare(*(heading(name, interval="10m") for name in CREW), **{"sessions": "12", "stagger": "1s", **keys})


async def pause(stage, scope=FLEET, *, owner="ada", until=None):
    row = Pause(scope=scope, owner=owner, reason="maintenance", since=stage.now, until=until)
    await stage.access.write(lambda store: store.pause(row, stage.now))


async def resume(stage, scope=FLEET, **more):
    return await stage.access.write(lambda store: store.resume(scope, "ada", stage.now, **more))


# ---- pauses


@lived
async def test_while_the_fleet_is_paused_nothing_begins_and_what_is_under_way_ends_by_itself(stage):
    crew(stage)
    await stage.up()
    await stage.until(65.5)
    await pause(stage)
    begun = len(stage.seen)
    assert begun == 6
    await stage.until(2 * 3600)
    assert len(stage.seen) == begun
    assert stage.outcomes() == ["done"] * begun
    # An operator is told so at once.
    decision = await stage.tick(CREW[0])
    assert (decision.verdict.kind, decision.verdict.guard) == (VerdictKind.refuse, "paused")


@lived
async def test_when_a_pause_ends_what_is_overdue_is_let_go_one_after_the_other_and_soon(stage):
    crew(stage)
    await stage.up()
    await pause(stage)
    await stage.until(3600)
    await resume(stage)
    await stage.until(3665)
    begun = [at - 3600 for at in stage.beats()]
    assert len(begun) == len(CREW)
    assert len({round(at, 1) for at in begun}) > len(CREW) // 2
    assert max(begun) < len(CREW)
    # One beat each was missed, however long the pause was.
    assert sorted(seen.agent for seen in stage.seen) == sorted(CREW)


@lived
async def test_a_pause_of_one_agent_holds_that_agent(stage):
    stage.declare(heading("wren", interval="10m"), heading("moss", interval="10m"))
    await stage.up()
    await pause(stage, agent_scope("wren"))
    await stage.hours(1)
    assert stage.beats("wren") == []
    assert len(stage.beats("moss")) == 6
    await resume(stage, agent_scope("wren"))
    await stage.minutes(2)
    assert len(stage.beats("wren")) == 1


@lived
async def test_a_pause_with_an_end_ends_by_itself(stage):
    crew(stage)
    await stage.up()
    await pause(stage, until=stage.now + HOUR)
    await stage.until(3599)
    assert stage.seen == []
    await stage.until(3661)
    assert len(stage.seen) == len(CREW)
    assert stage.store.pauses() == []
    assert "time" in {event.fields.get("by") for event in stage.store.events(limit=1000)}


@lived
async def test_a_pause_outlives_the_engine_and_ends_on_time_under_another(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.until(300)
    await pause(stage, until=stage.now + HOUR)
    await stage.crash()
    await stage.until(900)
    await stage.up()
    await stage.until(3899)
    assert stage.beats() == [60]
    await stage.until(3961)
    assert len(stage.beats()) == 2


@lived
async def test_a_pause_that_ended_while_nobody_was_there_holds_nobody(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.until(300)
    await pause(stage, until=stage.now + 10 * MINUTE)
    await stage.crash()
    await stage.until(7200)
    await stage.up()
    await stage.until(7200 + 121)
    assert len(stage.beats()) == 2


@lived
async def test_of_two_pauses_both_have_to_go(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await pause(stage)
    await pause(stage, agent_scope("wren"), owner="bo")
    await stage.until(700)
    await resume(stage)
    await stage.until(1400)
    assert stage.seen == []
    await resume(stage, agent_scope("wren"))
    await stage.until(1500)
    assert len(stage.seen) == 1


# ---- the PAUSE file


@pytest.mark.parametrize("place", [".", ".wakeful"])
@pytest.mark.parametrize("hint", ["nudged", "noticed"])
@lived
async def test_a_pause_file_holds_the_fleet_until_it_is_removed(stage, place, hint):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    await stage.until(300)
    file = stage.folder / place / "PAUSE"
    file.write_text("the disk is being changed\n")
    if hint == "nudged":
        engine.nudge()
    await stage.until(310)
    (row,) = stage.store.pauses()
    assert (row.scope, row.owner) == (FLEET, "file")
    assert "the disk is being changed" in row.reason
    await stage.until(3600)
    assert stage.beats() == [60]
    file.unlink()
    if hint == "nudged":
        engine.nudge()
    await stage.until(3670)
    assert stage.store.pauses() == []
    assert len(stage.beats()) == 2


@lived
async def test_a_pause_file_that_came_or_went_while_nobody_was_there_is_obeyed(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.until(300)
    await stage.crash()
    (stage.folder / "PAUSE").touch()
    await stage.up()
    await stage.until(3600)
    assert stage.beats() == [60]
    await stage.crash()
    (stage.folder / "PAUSE").unlink()
    await stage.up()
    await stage.until(3600 + 125)
    assert stage.store.pauses() == []
    assert len(stage.beats()) == 2


@lived
async def test_a_pause_file_that_comes_between_the_decision_and_the_start_is_in_time(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.until(300)
    file = stage.engine.pause_file

    async def looked_too_early():
        del file.obey

    # The run is admitted by somebody else, and the turn that begins it has looked before the file was there.
    file.obey = looked_too_early
    (stage.folder / "PAUSE").touch()
    decision = await stage.tick("wren")
    assert decision.verdict.kind is VerdictKind.admit
    await stage.until(2000)
    assert stage.beats() == [60]
    assert stage.store.run(decision.run).state == "void"


@lived
async def test_only_removing_the_file_lifts_its_pause(stage):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    (stage.folder / "PAUSE").touch()
    engine.nudge()
    await stage.until(50)
    await resume(stage)
    await stage.until(2000)
    assert stage.seen == []
    assert [row.owner for row in stage.store.pauses()] == ["file"]
    # Nor does anybody run in circles meanwhile.
    assert engine.loop.turns < 2000
    assert stage.access.writes < 20


@lived
async def test_a_pause_file_does_not_lift_what_somebody_else_paused(stage):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    await pause(stage)
    (stage.folder / "PAUSE").touch()
    engine.nudge()
    await stage.until(300)
    (stage.folder / "PAUSE").unlink()
    engine.nudge()
    await stage.until(1000)
    assert [row.owner for row in stage.store.pauses()] == ["ada"]
    assert stage.seen == []


@lived
async def test_the_reason_in_a_pause_file_may_come_after_the_file(stage):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    file = stage.folder / "PAUSE"
    file.touch()
    engine.nudge()
    await stage.until(5)
    file.write_text("the disk is being changed\n")
    engine.nudge()
    await stage.until(10)
    (row,) = stage.store.pauses()
    assert "the disk is being changed" in row.reason
