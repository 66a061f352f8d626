"""Which files and lists are looked at: those that the fleet file names now; many of them, and those of replicas."""

import pytest

from tests.engine.outside import Box, at_work, moss, shown
from tests.engine.stage import MINUTE, heading, lived
from tests.engine.test_quiet import rows_changed, turns_of
from wakeful.core.items import State
from wakeful.core.wakes import FLEET, Pause
from wakeful.testing.runner import Plan, done

# ---- edits of the fleet file


@lived
async def test_an_inbox_is_looked_into_from_the_edit_on_that_declares_it(stage):
    Box(stage).make().put("note")
    await at_work(stage, heading("moss", interval="none"))
    await stage.until(600)
    assert stage.seen == []
    stage.declare(moss(), grace="0s")
    await stage.until(602)
    assert shown(stage) == [["note"]]


@pytest.mark.parametrize("running", [True, False], ids=["at work", "while nobody is at work"])
@pytest.mark.parametrize("left", ["the inbox", "the agent"])
@lived
async def test_what_is_no_longer_declared_is_closed_and_rings_nobody(stage, running, left):
    box = Box(stage).make()
    box.put("note")
    await at_work(stage, moss(), heading("wren", interval="7d"))
    await stage.until(600)
    if not running:
        await stage.down()
    rest = [heading("moss", interval="none")] if left == "the inbox" else []
    stage.declare(*rest, heading("wren", interval="7d"), grace="0s")
    if not running:
        await stage.up()
    await stage.until(700)
    box.put("other")
    await stage.hours(2)
    assert [item.state for item in stage.store.items(agent="moss")] == [State.closed]
    assert [name for name in stage.seen if name.agent == "moss"] == stage.seen[:1]
    assert stage.store.mirrored_sources() == stage.store.sources() == []


@lived
async def test_an_outage_of_what_is_no_longer_declared_is_forgotten(stage):
    await at_work(stage)
    await stage.until(100)
    assert [row.outage is not None for row in stage.store.sources()] == [True]
    stage.declare(heading("moss", interval="none"), grace="0s")
    await stage.until(200)
    assert stage.store.sources() == []


@lived
async def test_what_an_agent_has_that_is_switched_off_stays_as_it_is(stage):
    box = Box(stage).make()
    box.put("note")
    await at_work(stage)
    await stage.until(600)
    stage.declare(moss(enabled="no"), grace="0s")
    await stage.until(1200)
    box.put("other")
    await stage.hours(1)
    assert [item.state for item in stage.store.items(agent="moss")] == [State.open]
    stage.declare(moss(), grace="0s")
    await stage.hours(1)
    assert shown(stage) == [["note"], ["other"]]


@lived
async def test_another_folder_in_the_place_of_the_inbox_closes_what_was_in_the_first(stage):
    Box(stage).make().put("note")
    Box(stage, "other").make().put("letter")
    await at_work(stage)
    await stage.until(600)
    stage.declare(moss(inbox="other"), grace="0s")
    await stage.hours(1)
    states = {item.external_id: item.state for item in stage.store.items(agent="moss")}
    assert states == {"note": State.closed, "letter": State.open}
    Box(stage).put("unheard of")
    await stage.hours(1)
    assert shown(stage) == [["note"], ["letter"]]


@lived
async def test_an_edit_of_something_else_leaves_a_source_alone(stage, scans):
    Box(stage).make().put("note")
    await at_work(stage)
    await stage.until(610)
    del scans[:]
    stage.declare(moss(role="gardener"), grace="0s")
    await stage.until(611)
    assert stage.store.agent("moss").roles == ("gardener",)
    assert scans == []


@lived
async def test_with_a_file_that_is_broken_at_the_start_what_was_declared_last_is_looked_at(stage):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(100)
    await stage.down()
    stage.write("fleet.org", "* moss\n:PROPERTIES:\n:INTERVALL: 10m\n:END:\n")
    await stage.up()
    box.put("note")
    await stage.until(200)
    assert shown(stage) == [["note"]]


# ---- many, and others


@lived
async def test_of_two_hundred_inboxes_one_file_costs_one_scan(stage, scans):
    boxes = [Box(stage, f"inbox/agent-{number}").make() for number in range(200)]
    await at_work(stage, *(heading(f"agent-{number}", inbox=f"inbox/agent-{number}") for number in range(200)))
    await stage.until(10)
    del scans[:]
    boxes[77].put("note")
    await stage.until(11)
    assert scans == [boxes[77].folder]
    assert [seen.agent for seen in stage.seen] == ["agent-77"]


@lived
async def test_replicas_share_the_inbox_of_their_address(stage):
    box = Box(stage).make()
    await at_work(stage, moss(replicas="3"))
    await stage.until(100)
    box.put("note")
    await stage.until(130)
    box.put("note", "other words")
    await stage.hours(3)
    assert shown(stage) == [["note"]]
    box.put("note", "words")
    box.put("other")
    await stage.hours(3)
    assert sorted(name for names in shown(stage)[1:] for name in names) == ["note", "other"]
    assert {item.agent for item in stage.store.items()} == {"moss"}


@lived
async def test_the_outage_of_an_inbox_of_replicas_is_told_of_their_address(stage):
    await at_work(stage, moss(replicas="3"))
    await stage.until(100)
    assert [(row.source, row.agent) for row in stage.store.sources()] == [("inbox", "moss")]


@lived
async def test_a_paused_fleet_sees_what_comes_and_runs_it_when_it_is_resumed(stage):
    box = Box(stage).make()
    await at_work(stage)
    pause = Pause(scope=FLEET, owner="ada", reason="away", since=stage.now)
    await stage.access.write(lambda store: store.pause(pause, stage.now))
    await stage.until(100)
    box.put("note")
    await stage.until(200)
    assert [item.external_id for item in stage.store.items(agent="moss")] == ["note"]
    assert stage.seen == []
    await stage.access.write(lambda store: store.resume(FLEET, "ada", stage.now))
    await stage.hours(1)
    assert shown(stage) == [["note"]]


@lived
async def test_a_draining_engine_still_looks_before_it_tells_the_end_of_a_run(stage):
    box = Box(stage).make()
    stage.script = lambda order: Plan(duration=2 * MINUTE, ending=done())
    await at_work(stage)
    await stage.until(100)
    box.put("note", "to do")
    await stage.until(110)
    (box.folder / "note").write_text("done")
    await stage.down(drain=True)
    assert stage.outcomes() == ["done"]
    await stage.up()
    await stage.hours(1)
    assert shown(stage) == [["note"]]


@lived
async def test_an_engine_that_left_watches_nothing_and_leaves_nobody_behind(stage):
    Box(stage).make()
    engine = await at_work(stage)
    await stage.until(100)
    await stage.down()
    assert engine._watch._told.keys() == {stage.folder, stage.data}
    assert stage.tasks() == set()


@lived
async def test_what_lies_there_unchanged_costs_the_store_a_glance_a_minute_of_which_nobody_hears(stage, keeper, scans):
    for number in range(20):
        Box(stage, f"inbox/agent-{number}").make().put("note")
    agents = [heading(f"agent-{number}", inbox=f"inbox/agent-{number}") for number in range(20)]
    engine = await at_work(stage, *agents)
    await stage.hours(1)
    assert len(stage.seen) == 20
    writes, turns, changes = stage.access.writes, engine.loop.turns, rows_changed(stage, keeper)
    del scans[:]
    await stage.hours(1)
    assert len(scans) == 20 * 60
    assert stage.access.writes - writes <= 20 * 60
    assert engine.loop.turns - turns <= turns_of(1, 0)
    assert rows_changed(stage, keeper) == changes
