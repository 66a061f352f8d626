"""Slots, queues and hands: who runs when not everybody can, and what an operator's tick adds."""

from collections import Counter
from datetime import timedelta

import pytest

from tests.engine.stage import MINUTE, SECOND, heading, lived
from tests.source_tree import calls, parse, python_files
from wakeful.core.wakes import VerdictKind
from wakeful.testing.runner import Plan, done, failed

CREW = ("wren", "moss", "finch", "robin", "heron")


@lived
async def test_with_one_slot_all_who_are_due_run_in_the_order_in_which_they_asked(stage):
    agents = [heading(name, interval="1h") for name in CREW]
    stage.declare(*agents, sessions="1", stagger="1s")
    await stage.up()
    await stage.minutes(10)
    # Due at 60, 61, 62 and so on; each begins in the instant in which the one before it ends.
    assert [(seen.agent, seen.at) for seen in stage.seen] == [(name, 60 + 60 * n) for n, name in enumerate(CREW)]


@lived
async def test_nobody_starves_where_more_is_due_than_there_are_slots(stage):
    stage.declare(*(heading(name, interval="1m") for name in CREW), sessions="2", stagger="1s")
    await stage.up()
    await stage.minutes(25)
    counts = Counter(seen.agent for seen in stage.seen)
    # Five agents, two slots, runs and intervals of a minute: everybody has the same share.
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(stage.seen) == pytest.approx(2 * 24, abs=3)


@lived
async def test_never_more_run_at_once_than_there_are_slots(stage):
    stage.declare(*(heading(name, interval="1m") for name in CREW), stagger="0s")
    most = 0

    def script(order):
        nonlocal most
        most = max(most, 1 + len(stage.carrier.runner.alive()))
        return Plan(duration=timedelta(seconds=20 + 7 * order.run.id % 60), ending=done())

    stage.script = script
    await stage.up()
    await stage.minutes(15)
    assert len(stage.seen) > 30
    assert most == 2


@pytest.mark.parametrize(
    ("plan", "ends_at"),
    [
        (Plan(duration=5 * MINUTE, ending=failed()), 360),
        (Plan(duration=timedelta(days=1), ending=done()), 960),
        (Plan(duration=2 * MINUTE, ending=done()), 180),
    ],
    ids=["crashed", "past its wall clock", "done"],
)
@lived
async def test_a_slot_goes_to_the_head_of_the_queue_however_the_run_ended(stage, plan, ends_at):
    stage.declare(*(heading(name, interval="1h") for name in CREW[:3]), sessions="1", stagger="1s")
    stage.script = lambda order: plan if order.run.agent == "wren" else Plan(duration=MINUTE, ending=done())
    await stage.up()
    await stage.until(ends_at + 120)
    assert [(seen.agent, seen.at) for seen in stage.seen] == [
        ("wren", 60), ("moss", ends_at), ("finch", ends_at + 60),
    ]  # fmt: skip


@lived
async def test_a_lost_guardian_gives_its_slot_back(stage):
    stage.declare(*(heading(name, interval="1h") for name in CREW[:2]), sessions="1", stagger="1s")
    await stage.up()
    await stage.until(80)
    stage.carrier.lose(stage.seen[0].run)
    await stage.until(81)
    assert [(seen.agent, seen.at) for seen in stage.seen] == [("wren", 60), ("moss", 80)]
    assert stage.outcomes("wren") == ["killed"]


@lived
async def test_a_tick_runs_the_beat_at_once_on_the_same_path(stage):
    stage.canonical()
    await stage.up()
    await stage.until(300)
    decision = await stage.tick("wren")
    await stage.until(301)
    assert decision.verdict.kind is VerdictKind.admit
    timed, asked = stage.seen
    assert (asked.at, asked.cause, asked.subject) == (300, "operator", timed.subject)
    assert stage.walk() == ["wake_add 0", "wake_add 1"]


@lived
async def test_a_tick_never_adds_a_second_cadence(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.until(300)
    await stage.tick("wren")
    await stage.until(3 * 3600)
    # One cadence, counted from the end of whatever ran last.
    assert stage.beats()[:2] == [60, 300]
    assert stage.beats()[2:] == [960 + 660 * n for n in range(len(stage.seen) - 2)]


@lived
async def test_ten_ticks_during_a_run_become_one(stage):
    stage.declare(heading("wren", interval="1h"))
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    await stage.until(100)
    decisions = [await stage.tick("wren") for _ in range(10)]
    assert decisions[0].verdict.guard == "busy"
    assert [decision.joined for decision in decisions[1:]] == [decisions[0].wake] * 9
    await stage.until(660 + 3500)
    assert stage.beats() == [60, 660]


@lived
async def test_a_tick_that_waits_for_a_slot_is_begun_when_one_is_free(stage):
    stage.declare(*(heading(name, interval="1h") for name in CREW[:3]), stagger="1s")
    stage.all_end(done(), duration=5 * MINUTE)
    await stage.up()
    await stage.until(70)
    assert stage.waits_for("finch") == ["slots"]
    decision = await stage.tick("finch")
    assert decision.verdict.guard == "slots"
    await stage.until(3000)
    # The tick has the beat: the timer's own wake finds that it has been run, and is moot.
    assert stage.beats("finch") == [360]


@lived
async def test_what_somebody_else_decided_is_begun_at_once(stage):
    """Control decides in its own call; a commit is a nudge, and nobody waits for the next look."""
    stage.declare(heading("wren", interval="1h"))
    await stage.up()
    await stage.until(1234.5)
    await stage.tick("wren")
    await stage.until(1235)
    assert stage.beats()[-1] == 1234.5


@lived
async def test_what_nobody_claimed_in_time_is_decided_again(stage):
    stage.declare(heading("wren", interval="1h"))
    await stage.up()
    await stage.until(300)
    await stage.crash()
    await stage.tick("wren")
    await stage.until(330)
    (left,) = stage.store.runs(open=True)
    assert left.state == "admitted"
    await stage.up()
    await stage.until(332)
    assert stage.beats() == [60, 330]
    assert stage.seen[-1].run != left.id
    assert stage.store.run(left.id).state == "void"


@lived
async def test_a_first_in_first_out_queue_survives_a_restart(stage):
    stage.declare(*(heading(name, interval="1h") for name in CREW), sessions="1", stagger="1s", grace="1s")
    stage.all_end(done(), duration=5 * MINUTE)
    await stage.up()
    await stage.until(60)
    await stage.crash()
    await stage.up()
    await stage.minutes(24)
    assert [seen.agent for seen in stage.seen] == list(CREW)


def test_the_engine_asks_the_door_in_one_place():
    engine = parse(python_files("src/wakeful/engine"))
    assert len(engine) > 8
    asked = [(module, line) for module, tree in engine.items() for line in calls(tree, "decide")]
    assert [module for module, _ in asked] == ["wakeful.engine.loop"]
    opinions = [module for module, tree in engine.items() if calls(tree, "admit")]
    assert opinions == []


@lived
async def test_every_run_has_an_admitted_wake_and_one_decision(stage):
    stage.declare(*(heading(name, interval="5m") for name in CREW), sessions="2")
    await stage.up()
    await stage.minutes(20)
    await stage.tick("wren")
    await stage.crash()
    await stage.up()
    await stage.minutes(20)
    events = stage.store.events(limit=10_000)
    admitted = [event.run for event in events if event.kind.value == "decided" and event.run is not None]
    assert sorted(admitted) == sorted(run.id for run in stage.store.runs(limit=1000))
    assert sorted({seen.run for seen in stage.seen}) == sorted(seen.run for seen in stage.seen)
    assert {seen.run for seen in stage.seen} <= set(admitted)


@lived
async def test_runs_of_a_second_are_conducted_as_well_as_long_ones(stage):
    stage.declare(*(heading(name, interval="5s") for name in CREW[:3]), sessions="3", burst="1000/10m")
    stage.all_end(done(), duration=SECOND / 10)
    await stage.up()
    await stage.minutes(3)
    assert len(stage.outcomes()) == len(stage.seen)
    assert len(stage.seen) == pytest.approx(3 * 120 / 5.1, abs=3)
