"""Holding a fleet: pauses, the PAUSE file, the end of a run on purpose, and the engine's own leave."""

import asyncio

import pytest

from tests.engine.stage import HOUR, MINUTE, heading, lived
from wakeful.core.wakes import FLEET, Pause, VerdictKind, agent_scope
from wakeful.testing.loop import passes
from wakeful.testing.runner import done

CREW = tuple(f"agent-{n:02d}" for n in range(12))


def crew(stage, **keys):
    stage.declare(*(heading(name, interval="10m") for name in CREW), **{"sessions": "12", "stagger": "1s", **keys})


async def pause(stage, scope=FLEET, *, owner="ada", until=None):
    row = Pause(scope=scope, owner=owner, reason="maintenance", since=stage.now, until=until)
    await stage.access.write(lambda store: store.pause(row, stage.now))


async def resume(stage, scope=FLEET, **more):
    return await stage.access.write(lambda store: store.resume(scope, "ada", stage.now, **more))


async def stop(stage, *runs, by="ada", at_once=False):
    return await stage.access.write(lambda store: store.stop(runs, by, stage.now, at_once=at_once))


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
async def test_when_a_pause_ends_what_is_overdue_is_let_go_over_a_minute(stage):
    crew(stage)
    await stage.up()
    await pause(stage)
    await stage.until(3600)
    await resume(stage)
    await stage.until(3665)
    begun = [at - 3600 for at in stage.beats()]
    assert len(begun) == len(CREW)
    assert len({round(at) for at in begun}) > len(CREW) // 2
    assert max(begun) - min(begun) > 20
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
    # No hint is given, and the run is admitted by somebody else: it is the last look before a start that sees it.
    stage.engine.pause_file.obey = _nothing
    (stage.folder / "PAUSE").touch()
    decision = await stage.tick("wren")
    assert decision.verdict.kind is VerdictKind.admit
    del stage.engine.pause_file.obey
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


async def _nothing():
    return


# ---- ending runs on purpose


@lived
async def test_a_run_that_somebody_wants_ended_is_ended_in_that_persons_name(stage):
    stage.canonical()
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    await stage.until(100)
    run = stage.seen[0].run
    assert await stop(stage, run, by="ada") == [run]
    await stage.until(101)
    assert stage.carrier.ends == [(run, "ada", False)]
    row = stage.store.run(run)
    assert (row.outcome.value, row.reason) == ("killed", "ended by ada")
    # It counts against nobody, and the place is held.
    assert (stage.place(), stage.standing().failure_streak) == (("wake_add", 0), 0)
    await stage.until(800)
    assert stage.walk() == ["wake_add 0"] * 2


@lived
async def test_who_wants_it_at_once_is_passed_on_too_and_nothing_is_said_twice(stage):
    stage.declare(heading("wren", interval="1h"))
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    # A run that takes its time to end.
    stage.carrier.kill = lambda run, by: None
    await stage.until(100)
    run = stage.seen[0].run
    await stop(stage, run)
    await stage.until(110)
    await stop(stage, run, at_once=True)
    for _ in range(5):
        stage.engine.nudge()
        await stage.until(stage.elapsed + 10)
    assert stage.carrier.ends == [(run, "ada", False), (run, "ada", True)]


@lived
async def test_a_run_that_somebody_wants_ended_while_it_starts_never_executes(stage):
    stage.canonical(interval="1h")
    stage.before = lambda order: passes(50)
    await stage.up()
    await stage.until(62)
    (row,) = stage.store.runs(open=True)
    await stop(stage, row.id)
    await stage.until(63)
    assert stage.seen == []
    ended = stage.store.run(row.id)
    assert (ended.outcome.value, ended.reason) == ("killed", "ended by ada")
    assert (stage.place(), stage.standing().failure_streak) == (("wake_add", 0), 0)
    stage.before = None
    await stage.until(3720)
    assert len(stage.seen) == 1


@lived
async def test_an_end_that_was_asked_for_just_before_we_held_the_run_is_passed_on_at_once(stage):
    stage.declare(heading("wren", interval="1h"))
    stage.all_end(done(), duration=10 * MINUTE)
    stage.after = lambda order: passes(5)
    await stage.up()
    await stage.until(62)
    await stop(stage, stage.seen[0].run)
    await stage.until(66)
    assert stage.carrier.ends == [(stage.seen[0].run, "ada", False)]
    assert stage.outcomes() == ["killed"]


@lived
async def test_an_end_that_was_asked_for_while_nobody_was_there_is_passed_on_by_the_next(stage):
    stage.declare(heading("wren", interval="1h"))
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    await stage.until(100)
    await stage.crash()
    await stop(stage, stage.seen[0].run)
    await stage.until(200)
    await stage.up()
    await stage.until(202)
    assert stage.carrier.ends == [(stage.seen[0].run, "ada", False)]
    assert stage.outcomes() == ["killed"]


@lived
async def test_an_end_that_could_not_be_passed_on_is_passed_on_again(stage):
    stage.declare(heading("wren", interval="1h"))
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    await stage.until(100)
    kill, fails = stage.carrier.kill, [OSError("no"), OSError("still no")]

    def sometimes(run, by):
        if fails:
            raise fails.pop()
        kill(run, by)

    stage.carrier.kill = sometimes
    await stop(stage, stage.seen[0].run)
    await stage.until(140)
    assert stage.outcomes() == ["killed"]
    assert stage.engine.health()["ready"]


# ---- the engine's own leave


@lived
async def test_who_leaves_lets_runs_go_on_and_the_next_one_finishes_them(stage):
    stage.declare(*(heading(name, interval="1h") for name in CREW[:10]), sessions="10", stagger="1s")
    stage.all_end(done("all ten"), duration=5 * MINUTE)
    await stage.up()
    await stage.until(100)
    before = stage.elapsed
    await stage.down()
    assert stage.elapsed == before
    assert len(stage.carrier.runner.alive()) == 10
    await stage.until(130)
    await stage.up()
    await stage.until(400)
    assert len(stage.seen) == 10
    assert stage.outcomes() == ["done"] * 10
    assert {run.summary for run in stage.store.runs()} == {"all ten"}


@lived
async def test_a_drain_waits_for_what_is_under_way_and_begins_nothing_new(stage):
    stage.declare(*(heading(name, interval="10m") for name in CREW[:4]), sessions="1", stagger="1s")
    stage.all_end(done(), duration=5 * MINUTE)
    await stage.up()
    await stage.until(100)
    assert stage.waits_for(CREW[1]) == ["slots"]
    await stage.down(drain=True)
    assert stage.elapsed == 360
    assert stage.outcomes() == ["done"]
    assert len(stage.seen) == 1
    # Whoever waited still waits, and is next.
    await stage.up()
    await stage.until(500)
    assert [seen.agent for seen in stage.seen] == list(CREW[:2])


@lived
async def test_during_a_drain_ends_are_passed_on(stage):
    stage.declare(heading("wren", interval="10m"))
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    await stage.until(100)
    access, run = stage.access, stage.seen[0].run

    async def hurry():
        await passes(30)
        await access.write(lambda store: store.stop([run], "ada", stage.now))

    hurried = asyncio.create_task(hurry())
    await stage.down(drain=True)
    await hurried
    assert stage.elapsed == 130
    assert stage.outcomes() == ["killed"]


@lived
async def test_a_drain_that_meets_a_decision_under_way_waits_for_that_run_too(stage):
    """The store answers late: what it admitted while we turned to leave is begun and waited for."""
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    stage.access.after = lambda number: passes(0.5)
    await stage.until(60.2)
    await stage.down(drain=True)
    assert stage.carrier.runner.alive() == []
    assert [(run.state, run.outcome.value) for run in stage.store.runs()] == [("ended", "done")]


@lived
async def test_who_leaves_while_the_store_answers_late_leaves_no_claim_without_a_run(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    stage.access.after = lambda number: passes(0.5)
    await stage.until(60.2)
    await stage.down()
    assert len(stage.carrier.runner.alive()) == 1
    await stage.up()
    await stage.until(130)
    assert (stage.beats(), stage.outcomes()) == ([60.5], ["done"])


@lived
async def test_who_leaves_while_the_store_does_not_answer_leaves_all_the_same(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    stage.access.after = lambda number: passes(3600)
    await stage.until(60.5)
    await stage.down()
    assert stage.elapsed < 70
    assert stage.seen == []
    await stage.up()
    await stage.until(200)
    assert len(stage.seen) == 1


@lived
async def test_a_start_that_takes_too_long_for_who_leaves_is_vetoed_and_made_by_the_next(stage):
    stage.declare(heading("wren", interval="10m"))
    stage.before = lambda order: passes(60)
    await stage.up()
    await stage.until(61)
    await stage.down()
    assert stage.elapsed < 70
    assert stage.seen == []
    stage.before = None
    await stage.up()
    await stage.until(300)
    assert (len(stage.seen), stage.outcomes()) == (1, ["done"])


@lived
async def test_who_leaves_in_mid_start_settles_it_first(stage):
    stage.declare(heading("wren", interval="10m"))
    stage.before = lambda order: passes(3)
    await stage.up()
    await stage.until(61)
    await stage.down()
    assert stage.elapsed == 63
    assert len(stage.carrier.runner.alive()) == 1
    await stage.up()
    await stage.until(200)
    assert (len(stage.seen), stage.outcomes()) == (1, ["done"])


@lived
async def test_an_engine_that_left_is_not_ready_and_says_so(stage):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    assert (engine.health()["ready"], engine.health()["why_not"]) == (True, "")
    leaving = asyncio.create_task(engine.stayed())
    await stage.until(30)
    assert not leaving.done()
    await stage.down()
    await leaving
    assert not engine.health()["ready"]
    assert engine.health()["why_not"] == "starting or stopping"
