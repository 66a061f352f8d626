"""A store that fails for a while, a folder that cannot be read, a loop that stands still: nothing is lost."""

import asyncio
from itertools import pairwise

import pytest

from tests.engine.stage import HOUR, MINUTE, heading, lived
from wakeful.core.errors import Busy
from wakeful.core.items import Kind, NewItem
from wakeful.engine.services import FIRST_REST, LONGEST_REST, Lasting, Services
from wakeful.testing.carrier import VirtualHeld
from wakeful.testing.loop import passes
from wakeful.testing.runner import Plan, done, failed


async def full(number):
    raise OSError("no space left on device")


async def sampled(stage, until, step=5):
    """The engine's health at every step on the way."""
    seen = []
    while stage.elapsed < until:
        await stage.until(stage.elapsed + step)
        seen.append(stage.engine.health())
    return seen


# ---- the store


@lived
async def test_a_result_waits_for_a_store_that_fails_for_a_while(stage):
    stage.canonical()
    stage.all_end(done("three pages"))
    await stage.up()
    await stage.until(100)
    stage.access.before = full
    # The run ends at 120; the store takes nothing until 400.
    health = await sampled(stage, 400)
    assert stage.outcomes() == []
    assert all(told["ready"] for told in health)
    assert max(told["heartbeat_age"] for told in health) <= 10
    stage.access.before = None
    await stage.until(410)
    (run,) = stage.store.runs()
    assert (run.outcome.value, run.summary) == ("done", "three pages")
    await stage.until(1100)
    assert stage.walk() == ["wake_add 0", "wake_add 1"]


@lived
async def test_what_is_due_while_the_store_takes_nothing_begins_when_it_does(stage):
    stage.declare(heading("wren", interval="10m"), heading("moss", interval="10m"))
    engine = await stage.up()
    stage.access.before = full
    turns = engine.loop.turns
    health = await sampled(stage, 300)
    assert stage.seen == []
    assert all(told["ready"] for told in health)
    # Tried again with a growing rest, not in a hot loop.
    assert engine.loop.turns - turns < 200
    stage.access.before = None
    await stage.until(320)
    assert sorted(seen.agent for seen in stage.seen) == ["moss", "wren"]
    assert engine.health()["heartbeat_age"] < 10


@lived
async def test_a_store_whose_every_third_write_fails_loses_nothing_and_repeats_nothing(stage):
    stage.canonical(interval="1m")

    async def sometimes(number):
        if number % 3 == 0:
            await full(number)

    await stage.up()
    stage.access.before = sometimes
    await stage.hours(1)
    stage.access.before = None
    await stage.minutes(3)
    ended = [event.run for event in stage.store.events(limit=10_000) if event.kind.value == "ended"]
    assert len(ended) == len(set(ended))
    alive = [guardian.order.run.id for guardian in stage.carrier.runner.alive()]
    assert sorted([*ended, *alive]) == sorted(seen.run for seen in stage.seen)
    assert len(stage.seen) > 20


@lived
async def test_a_write_whose_answer_was_lost_is_not_settled_twice(stage):
    """The commit came through and the answer did not: the second word is an older one, and is refused."""
    stage.canonical()
    await stage.up()
    await stage.until(100)
    stage.access.after = full
    await stage.until(140)
    stage.access.after = None
    await stage.until(600)
    assert stage.outcomes() == ["done"]
    assert stage.place() == ("wake_add", 1)
    assert stage.engine.health()["holding"] == []


@lived
async def test_a_claim_whose_answer_was_lost_is_found_and_carried_out(stage):
    """The loop never heard of the order: nobody follows that run, and nobody else may take its place."""
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.until(59)
    stage.access.after = full
    await stage.until(61)
    stage.access.after = None
    assert [run.state for run in stage.store.runs(open=True)] == ["running"]
    assert stage.seen == []
    await stage.until(60 + 90)
    assert len(stage.seen) == 1
    assert stage.outcomes() == ["done"]


@lived
async def test_reads_that_fail_for_a_while_stop_nobody_for_good(stage):
    stage.declare(heading("wren", interval="1m"))
    engine = await stage.up()
    await stage.until(100)

    def sick(verb):
        raise OSError("input/output error")

    read, stage.access.read = stage.access.read, sick
    await stage.until(200)
    # A loop that can read nothing makes no progress, and says so.
    assert not engine.health()["ready"]
    assert "has not moved" in engine.health()["why_not"]
    stage.access.read = read
    await stage.until(220)
    assert engine.health()["ready"]
    await stage.until(400)
    assert len(stage.seen) >= 3


@lived
async def test_a_loop_whose_store_is_away_says_so(stage):
    stage.declare(heading("wren", interval="1m"))
    engine = await stage.up()
    await stage.until(50)

    async def away(number):
        raise Busy("the store is away")

    stage.access.before = away
    await stage.until(62)
    assert (engine.health()["ready"], engine.health()["why_not"]) == (False, "the store is away")
    stage.access.before = None
    await stage.until(65)
    assert (engine.health()["ready"], engine.health()["why_not"]) == (True, "")


# ---- runs


@pytest.mark.parametrize("verb", ["wait", "adopt"])
@lived
async def test_a_run_that_was_lost_sight_of_is_found_again(stage, monkeypatch, verb):
    stage.canonical()
    fails = [OSError("too many open files")] * 3
    if verb == "wait":
        plain = VirtualHeld.wait

        async def wait(self):
            if fails:
                raise fails.pop()
            return await plain(self)

        monkeypatch.setattr(VirtualHeld, "wait", wait)
        await stage.up()
    else:
        adopt = stage.carrier.adopt

        async def sometimes(run):
            if fails:
                raise fails.pop()
            return await adopt(run)

        await stage.up()
        await stage.until(80)
        await stage.crash()
        stage.carrier.adopt = sometimes
        await stage.up()
    await stage.until(200)
    assert fails == []
    assert stage.outcomes() == ["done"]
    assert len(stage.seen) == 1
    await stage.until(800)
    assert stage.walk() == ["wake_add 0", "wake_add 1"]


@lived
async def test_a_start_that_failed_after_the_run_had_executed_is_followed(stage):
    stage.canonical()

    async def broken(order):
        raise RuntimeError("the answer got lost")

    stage.after = broken
    await stage.up()
    await stage.until(70)
    stage.after = None
    await stage.until(130)
    assert (len(stage.seen), stage.outcomes()) == (1, ["done"])


@lived
async def test_an_agent_that_keeps_crashing_takes_nobody_with_it(stage):
    names = ("wren", "moss", "finch")
    stage.declare(*(heading(name, interval="5m") for name in names), sessions="3")

    def script(order):
        if order.run.agent == "wren":
            raise RuntimeError("the guardian itself fails")
        return Plan(duration=MINUTE, ending=failed() if order.run.agent == "moss" else done())

    stage.script = script
    engine = await stage.up()
    await stage.hours(1)
    assert stage.outcomes("wren") == stage.outcomes("moss") == ["failed"] * 5
    assert stage.outcomes("finch") == ["done"] * 10
    assert engine.health()["ready"]


# ---- a loop that stands still


@lived
async def test_an_engine_whose_loop_stands_still_says_that_it_is_not_ready(stage):
    stage.declare(heading("wren", interval="1m"))
    engine = await stage.up()
    await stage.until(30)
    assert engine.health()["ready"]

    async def never(number):
        await asyncio.Event().wait()

    stage.access.before = never
    # The loop is caught in its first decision, at 60.
    await stage.until(80)
    assert engine.health()["ready"]
    await stage.until(95)
    health = engine.health()
    assert not health["ready"]
    assert health["why_not"] == "the loop has not moved for 35 s"
    assert health["heartbeat_age"] == pytest.approx(35, abs=0.1)


@lived
async def test_the_heartbeat_moves_while_nothing_happens(stage):
    stage.declare(heading("wren", interval="7d"), grace="5d")
    await stage.up()
    health = await sampled(stage, 1800, step=7)
    assert max(told["heartbeat_age"] for told in health) <= 10
    assert health[-1]["turns"] > health[0]["turns"]


# ---- services


class Recorded:
    def __init__(self, name, log, error=None):
        self.name = name
        self._log = log
        self._error = error

    async def start(self):
        if self._error:
            raise self._error
        self._log.append(f"+{self.name}")

    async def stop(self):
        self._log.append(f"-{self.name}")


@lived
async def test_services_stop_in_the_reverse_of_the_order_in_which_they_started():
    log: list[str] = []
    services = Services([Recorded("a", log), Recorded("b", log), Recorded("c", log)])
    await services.start()
    await services.stop()
    await services.stop()
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]


@lived
async def test_a_service_that_cannot_start_stops_those_before_it():
    log: list[str] = []
    services = Services([Recorded("a", log), Recorded("b", log, OSError("no")), Recorded("c", log)])
    with pytest.raises(OSError, match="no"):
        await services.start()
    assert log == ["+a", "-a"]


@lived
async def test_a_service_that_does_not_stop_well_keeps_nobody_from_stopping():
    log: list[str] = []

    class Bad(Recorded):
        async def stop(self):
            raise OSError("no")

    services = Services([Recorded("a", log), Bad("b", log)])
    await services.start()
    await services.stop()
    assert log == ["+a", "+b", "-a"]


@lived
async def test_a_service_that_fails_begins_again_after_a_rest_that_grows_and_starts_anew_after_a_good_stretch():
    begun = []

    async def work():
        begun.append(asyncio.get_running_loop().time())
        await passes(3600 if len(begun) == 10 else 0)
        raise OSError("no")

    service = Lasting("work", work)
    await service.start()
    await passes(3600 + 120)
    await service.stop()
    rests = [round(later - sooner, 3) for sooner, later in pairwise(begun)]
    assert rests[:6] == [0.5, 1, 2, 4, 8, 10]
    assert rests[9:12] == [3600 + FIRST_REST, 1, 2]
    assert max(rests[10:]) == LONGEST_REST
    assert service.failures == len(begun)


@lived
async def test_one_more_service_comes_last_and_goes_first(stage):
    stage.declare(heading("wren", interval="10m"))
    log: list[str] = []
    engine = stage.make()
    engine.add(Recorded("http", log))
    engine.add(Recorded("more", log))
    await engine.start()
    await stage.down()
    assert log == ["+http", "+more", "-more", "-http"]


# ---- the past


@lived
async def test_what_is_old_enough_is_forgotten_and_nothing_else(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.minutes(30)
    old = {run.id for run in stage.store.runs()}
    for run in old:
        (stage.data / "runs" / str(run)).mkdir(parents=True)
    place = stage.place()
    await stage.hours(1.2)
    assert stage.carrier.discarded == []
    stage.clock.set_wall(8 * 24 * HOUR)
    await stage.hours(1.2)
    # After a week the output goes, and after a month the rows.
    assert set(stage.carrier.discarded) >= old
    assert old <= {run.id for run in stage.store.runs()}
    stage.clock.set_wall(32 * 24 * HOUR)
    await stage.hours(1.2)
    left = {run.id for run in stage.store.runs()}
    assert not old & left
    assert left
    assert stage.place() == place
    assert stage.store.agent("wren") is not None
    assert len(stage.seen) > 10


@lived
async def test_messages_and_tasks_from_the_first_moment_on_are_looked_after(stage):
    """Schedules, what rings and the queue: whatever was there before the engine is found by it."""
    tasks = "* moss\n:PROPERTIES:\n:TASKS: write\n:INTERVAL: none\n:END:\n"
    stage.declare(heading("wren", schedule="*/10 * * * *"), tasks)
    await stage.up()
    await stage.crash()
    new = NewItem(kind=Kind.task, role="write", subject="a task")
    stage.store.record([new], stage.now)
    await stage.tick("wren")
    await stage.until(10)
    await stage.up()
    await stage.until(20)
    assert {(seen.agent, seen.cause) for seen in stage.seen} == {("moss", "task"), ("wren", "operator")}
    await stage.until(610)
    assert stage.seen[-1].cause == "timer"
    assert stage.seen[-1].at == 600
