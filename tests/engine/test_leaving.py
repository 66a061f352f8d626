"""Ends that somebody wants: of a run, and of the engine itself, which lets go of its runs or waits for them."""

import asyncio

from tests.engine.stage import MINUTE, heading, lived
from wakeful.testing.loop import passes
from wakeful.testing.runner import done

CREW = tuple(f"agent-{n:02d}" for n in range(10))


async def stop(stage, *runs, by="ada", at_once=False):
    return await stage.access.write(lambda store: store.stop(runs, by, stage.now, at_once=at_once))


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
    stage.declare(*(heading(name, interval="1h") for name in CREW), sessions="10", stagger="1s")
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
