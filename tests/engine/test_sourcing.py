"""One source and the engine: what is told of it and when, and what a look at the end of a run may cost."""

import asyncio
import logging
from typing import Any

import pytest

from tests.engine.stage import MINUTE, heading, lived
from wakeful.core.errors import Busy
from wakeful.core.items import Kind, NewItem, Observation, Priority, Ring
from wakeful.engine.conduct import Conducted
from wakeful.sources.protocol import Batch, Declared
from wakeful.testing.loop import passes
from wakeful.testing.runner import Plan, done, no_work

NAME = "snapshot+exec:x"


class Scripted:
    """A source that says what it is told to say."""

    name, agent = NAME, "moss"

    def __init__(self, print="1"):
        self.print = print
        self.taken = 0
        self.said: asyncio.Queue[Any] = asyncio.Queue()
        self.acknowledged = []
        self.looks = []
        # What a look takes, in seconds, how long it cannot be broken off, and what goes wrong with it.
        self.takes = 0.0
        self.lingers = 0.0
        self.breaks = None
        self.stopped = False

    def seen(self, why=""):
        self.taken += 1
        observed = None if why else (Observation(external_id="t1", fingerprint=self.print),)
        return Batch(source=NAME, agent="moss", observed=observed, why=why, taken=self.taken)

    def say(self, **more):
        self.said.put_nowait(self.seen(**more))

    async def batches(self):
        while True:
            yield await self.said.get()

    async def acknowledge(self, batch):
        self.acknowledged.append(batch.taken)

    async def look(self):
        batch = self.seen()
        self.looks.append(asyncio.get_running_loop().time())
        try:
            await passes(self.takes)
        except asyncio.CancelledError:
            await passes(self.lingers)
            raise
        if self.breaks is not None:
            raise self.breaks
        return batch

    async def stop(self):
        self.stopped = True


@pytest.fixture
def source(stage):
    source = Scripted()
    stage.sources = lambda agents, hints: [Declared(source=NAME, agent="moss", make=lambda: source)]
    stage.declare(heading("moss", interval="7d"), heading("wren", interval="7d"), grace="5d")
    return source


def ends(stage):
    return [event.at.timestamp() - stage.clock._wall.timestamp() for event in stage.store.events(kinds=("ended",))]


async def under_way(stage, source):
    """A run that was shown the one thing of the list, from 100 on for a minute."""
    await stage.up()
    await stage.until(100)
    source.say()
    await stage.until(101)
    assert stage.beats() == [100]


# ---- a look at the end of a run


@lived
async def test_the_end_of_a_run_waits_for_a_look_at_what_it_was_shown(stage, source):
    await under_way(stage, source)
    source.takes = 1.5
    source.print = "2"
    await stage.until(300)
    assert source.looks == [pytest.approx(160, abs=0.01)]
    assert ends(stage) == [pytest.approx(161.5, abs=0.01)]
    assert [item.shown for item in stage.store.items(agent="moss")] == ["2"]
    assert source.acknowledged == [1, 2]


@lived
async def test_a_look_that_takes_long_holds_an_end_up_for_two_seconds_and_no_longer(stage, source):
    await under_way(stage, source)
    source.takes, source.lingers = 10, 5
    await stage.until(300)
    assert ends(stage) == [pytest.approx(162, abs=0.01)]


@lived
async def test_while_a_look_hangs_there_is_no_other_and_no_further_end_waits_for_it(stage, source):
    await under_way(stage, source)
    source.takes = 1000
    for number in range(3):
        await stage.until(200 + number * 100)
        source.print = str(number + 2)
        source.say()
    await stage.until(600)
    assert ends(stage) == [pytest.approx(at, abs=0.01) for at in (162, 260, 360, 460)]
    assert len(source.looks) == 1
    source.takes = 0
    await stage.until(1200)
    source.print = "9"
    source.say()
    await stage.until(1300)
    assert len(source.looks) == 2


@lived
async def test_two_ends_at_once_each_have_a_look_that_began_after_them(stage, source):
    await under_way(stage, source)
    source.takes = 0.5
    conducted = next(iter(stage.engine.conductor.open))
    await asyncio.gather(*(stage.engine.sourcing.look(conducted) for _ in range(3)))
    began = source.looks[0]
    assert source.looks == [pytest.approx(began + 0.5 * number, abs=0.01) for number in range(3)]


@pytest.mark.parametrize("breaks", [OSError("no way in"), RuntimeError("a mistake of ours")])
@lived
async def test_a_look_that_fails_costs_no_result(stage, source, breaks, caplog):
    await under_way(stage, source)
    source.breaks = breaks
    await stage.until(300)
    assert ends(stage) == [pytest.approx(160, abs=0.01)]
    assert "what run 1 was shown could not be looked at" in caplog.text


@lived
async def test_a_run_that_was_shown_nothing_of_a_source_is_not_held_up_by_it(stage, source):
    source.takes = 1
    await stage.up()
    source.say()
    await stage.until(200)
    del source.looks[:]
    message = NewItem(kind=Kind.message, agent="moss", priority=Priority.high, ring=Ring.peer)
    await stage.access.write(lambda store: store.record([message], stage.now))
    await stage.tick("wren")
    await stage.until(500)
    assert len(stage.seen) == 3
    reads = stage.access.reads
    assert source.looks == []
    assert ends(stage)[1:] == [pytest.approx(260, abs=0.01)] * 2
    assert reads == stage.access.reads


@lived
async def test_a_store_that_is_away_at_the_end_of_a_run_loses_neither_the_end_nor_what_was_seen(stage, source):
    await under_way(stage, source)
    source.print = "2"

    async def away(number):
        if stage.elapsed < 200:
            raise Busy("the database is away")

    stage.access.before = away
    await stage.until(400)
    assert stage.outcomes() == ["done"]
    assert [item.shown for item in stage.store.items(agent="moss")] == ["2"]
    assert len(stage.seen) == 1


@lived
async def test_the_end_of_a_run_is_told_although_its_source_is_taken_away_meanwhile(stage, source):
    await under_way(stage, source)
    source.takes = 1.5
    await stage.until(160.5)
    stage.sources = lambda agents, hints: []
    stage.engine.sourcing._of = lambda agents: []
    stage.declare(heading("moss", interval="6d"), heading("wren", interval="7d"), grace="5d")
    await stage.until(300)
    assert source.stopped
    assert stage.outcomes() == ["done"]
    assert stage.store.mirrored_sources() == []


@lived
async def test_sources_that_hang_hold_up_the_end_of_the_engine_together_and_not_one_after_the_other(stage, source):
    class Hanging(Scripted):
        async def stop(self):
            await passes(2)

    def many(agents, hints):
        return [Declared(source=f"x{number}", agent="moss", make=Hanging) for number in range(50)]

    stage.sources = many
    await stage.up()
    await stage.until(100)
    await stage.down()
    assert stage.elapsed < 103


# ---- order


@lived
async def test_what_was_seen_sooner_does_not_undo_what_was_seen_later(stage, source):
    stage.all_end(no_work())
    await stage.up()
    sooner = source.seen()
    source.print = "2"
    later = source.seen()
    source.said.put_nowait(later)
    source.said.put_nowait(sooner)
    await stage.until(30)
    assert [item.fingerprint for item in stage.store.items(agent="moss")] == ["2"]
    assert source.acknowledged == [2, 1]
    await stage.until(1000)
    assert len(stage.seen) == 1


@lived
async def test_a_look_that_began_later_is_not_undone_by_what_the_store_was_slow_to_take(stage, source):
    """The batch waits for the store when the run ends; the look at its end reaches the store first or second."""
    await under_way(stage, source)
    source.print = "2"

    async def slow(number):
        if stage.elapsed < 161:
            raise Busy("the database is away")

    stage.access.before = slow
    await stage.until(158)
    source.say()
    source.print = "3"
    await stage.until(1000)
    assert [(item.fingerprint, item.shown) for item in stage.store.items(agent="moss")] == [("3", "3")]
    assert len(stage.seen) == 1


@lived
async def test_what_the_store_refuses_for_another_reason_is_offered_again(stage, source, caplog):
    await stage.up()
    broken = True

    async def refuses(number):
        if broken:
            raise OSError("no space left on device")

    stage.access.before = refuses
    source.say()
    await stage.until(5)
    assert "snapshot+exec:x of moss failed and begins again in" in caplog.text
    assert source.acknowledged == []
    broken = False
    source.say()
    await stage.until(100)
    # And once more at the end of its run.
    assert source.acknowledged == [2, 3]


# ---- outages


@lived
async def test_an_outage_that_says_the_time_in_its_reason_is_told_once(stage, source, caplog):
    await stage.up()
    with caplog.at_level(logging.INFO, "wakeful.engine"):
        for second in range(180):
            source.say(why=f"failed at {second}")
            await stage.until(1 + second)
            assert [row.outage for row in stage.store.sources()] == [f"failed at {second}"]
        source.say()
        await stage.until(200)
    told = [(event.kind.value, event.fields["why"]) for event in stage.store.events(kinds=("outage", "restored"))]
    assert told == [("outage", "failed at 0"), ("restored", "failed at 179")]
    assert len(source.acknowledged) == 181
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith(NAME)]
    assert lines == [f"{NAME} of moss cannot be read: failed at 0", f"{NAME} of moss can be read again"]


@lived
async def test_a_reason_that_becomes_another_is_seen_at_once_and_is_an_event_a_minute_at_most(stage, source, caplog):
    await stage.up()
    for second in range(1, 121):
        await stage.until(second)
        why = ("not allowed", "no answer")[second // 2 % 2]
        source.say(why=why)
        await stage.until(second + 0.1)
        assert [row.outage for row in stage.store.sources()] == [why]
    told = [event.fields["why"] for event in stage.store.events(kinds=("outage",))]
    assert told == ["not allowed", "no answer"]
    assert caplog.text.count("cannot be read") == 2


@lived
async def test_what_was_told_before_is_told_again_and_heals_what_the_store_has_lost(stage, source):
    await under_way(stage, source)
    await stage.until(200)
    await stage.access.write(lambda store: store.abandon([(NAME, "moss")], stage.now))
    source.say()
    await stage.until(300)
    assert [item.state.value for item in stage.store.items(agent="moss")] == ["closed", "open"]
    assert len(stage.seen) == 2


@lived
async def test_an_outage_at_the_end_of_a_run_leaves_what_was_shown_as_it_is(stage, source):
    await under_way(stage, source)
    source.seen = lambda why="away", seen=source.seen: seen(why)
    await stage.until(300)
    assert stage.outcomes() == ["done"]
    assert [item.shown for item in stage.store.items(agent="moss")] == ["1"]
    assert [row.outage for row in stage.store.sources()] == ["away"]


@lived
async def test_what_ends_while_the_engine_leaves_is_still_looked_at(stage, source):
    """Between the end of the services and the last word to the runs a start may take its time, and a run end."""
    stage.script = lambda order: Plan(duration=MINUTE, ending=done())
    await under_way(stage, source)
    source.print = "2"
    await stage.until(159)

    async def slow(order):
        await passes(3)

    stage.before = slow
    await stage.tick("wren")
    await stage.until(159.5)
    await stage.down()
    assert stage.outcomes("moss") == ["done"]
    assert [item.shown for item in stage.store.items(agent="moss")] == ["2"]
    assert source.stopped


# ---- a source that another node tends


class Unread(Scripted):
    """It cannot be read, and a look may take long."""

    def seen(self, why="does not answer"):
        return super().seen(why)


@lived
async def test_a_source_of_another_node_that_hangs_is_looked_at_once_however_many_runs_end(company):
    made = []

    def make():
        made.append(Unread())
        made[-1].takes = 13
        return made[-1]

    one, two = company.nodes
    for node in (one, two):
        node.sources = lambda agents, hints: [Declared(source=NAME, agent="moss", make=make)]
    company.declare(heading("moss", interval="7d"), grace="5d")
    await company.up()
    tended = list(made)
    assert len(tended) == 1
    conducted = Conducted(run=1, epoch=1, agent="moss", shown={(NAME, "moss"): {"t1"}})
    took = []
    for number in range(4):
        await two.until(100 + number * 20)
        for _ in range(3):
            before = two.elapsed
            await two.engine.sourcing.look(conducted)
            took.append(two.elapsed - before)
    # The first of each three waits for its look.
    assert took == [pytest.approx(each, abs=0.01) for each in (2, 0, 0) * 4]
    (other,) = made[1:]
    assert (len(other.looks), other.stopped) == (4, False)
    await one.down()
    await two.down()
    assert other.stopped
