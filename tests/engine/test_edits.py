"""The files are edited while the fleet is at work: nobody restarts anything."""

import pytest

from tests.engine.stage import DAY, MINUTE, heading, lived
from wakeful.engine.watching import Watch
from wakeful.testing.runner import Plan, done

# The audit goes straight to the plan, and the rest comes last.
BENT = (
    DAY.replace(":NEXT: wake_add", ":NEXT: last").replace(":NEXT: wake_plan", ":NEXT: wake_add")
    .replace(":NEXT: rem", ":NEXT: wake_plan").replace(":NEXT: last", ":NEXT: rem")
)  # fmt: skip
BROKEN = "#+RUN: true\n* wren\n:PROPERTIES:\n:INTERVALL: 10m\n:END:\n"


@pytest.fixture(params=["the kernel tells", "nobody tells"])
def told(request, monkeypatch):
    """Where the kernel gives no hints, the files are looked at every other second."""
    if request.param == "nobody tells":

        async def deaf(self):
            return

        monkeypatch.setattr(Watch, "start", deaf)


# ---- the day


@lived
async def test_a_hot_edit_is_picked_up_by_the_next_beat_and_keeps_the_place(stage, told):
    stage.canonical()
    await stage.up()
    await stage.until(1000)
    assert stage.place() == ("wake_add", 2)
    stage.write("lifecycle.org", BENT.replace(":REPEAT: 3", ":REPEAT: 4"))
    await stage.until(4000)
    assert stage.walk() == [
        "wake_add 0", "wake_add 1", "wake_add 2", "wake_add 3", "wake_audit 0", "wake_plan 0",
    ]  # fmt: skip
    # The cadence knows nothing of the edit.
    assert stage.beats() == [60 + 660 * n for n in range(6)]


@lived
async def test_a_run_is_credited_to_the_day_that_it_began_with(stage):
    stage.canonical()
    await stage.up()
    # The audit is under way when its edge is bent.
    await stage.until(60 + 3 * 660 + 30)
    assert stage.walk()[-1] == "wake_audit 0"
    stage.write("lifecycle.org", BENT)
    await stage.until(60 + 3 * 660 + 50)
    assert stage.store.agent("wren").lifecycle.state("wake_audit").next == "wake_plan"
    await stage.until(60 + 9 * 660 + 10)
    assert stage.walk()[3:6] == ["wake_audit 0", "rem 0", "wake_add 0"]
    # The next audit began with the edit.
    assert stage.walk()[8:] == ["wake_audit 0", "wake_plan 0"]


@lived
async def test_more_repeats_in_mid_run_count_from_the_next_run_on(stage):
    stage.canonical()
    await stage.up()
    await stage.until(60 + 2 * 660 + 30)
    assert stage.walk()[-1] == "wake_add 2"
    stage.write("lifecycle.org", DAY.replace(":REPEAT: 3", ":REPEAT: 9"))
    await stage.until(60 + 3 * 660 + 10)
    assert stage.walk()[-1] == "wake_audit 0"


@pytest.mark.parametrize("moment", [900, 750], ids=["between beats", "in mid-run"])
@lived
async def test_who_stood_in_a_state_that_is_removed_begins_again_without_credit(stage, moment):
    stage.canonical()
    await stage.up()
    await stage.until(moment)
    stage.write("lifecycle.org", DAY.replace("wake_add", "wake_read"))
    await stage.until(1400)
    assert stage.walk() == ["wake_add 0", "wake_add 1", "wake_read 0"]
    assert stage.beats()[-1] == 1380


@lived
async def test_a_broken_day_keeps_the_last_good_one_and_is_shown_until_it_is_mended(stage, told):
    stage.canonical()
    engine = await stage.up()
    await stage.until(100)
    assert engine.health()["diagnostics"] == []
    stage.write("lifecycle.org", DAY.replace(":NEXT: rem", ":NEXT: nowhere"))
    await stage.until(110)
    (line,) = engine.health()["diagnostics"]
    assert "lifecycle.org:11:8: NEXT names no state" in line
    assert "nowhere" in line
    await stage.until(60 + 660 * 4 + 10)
    assert stage.walk()[-1] == "rem 0"
    stage.write("lifecycle.org", DAY)
    await stage.until(60 + 660 * 4 + 20)
    assert engine.health()["diagnostics"] == []


# ---- the fleet


@lived
async def test_an_agent_is_added_without_a_restart(stage, told):
    wren = heading("wren", interval="10m")
    stage.declare(wren)
    await stage.up()
    await stage.until(1000)
    stage.declare(wren, heading("moss", interval="10m"))
    await stage.until(1200)
    # Found at once; then the grace and the stagger of the second of two.
    (first,) = stage.beats("moss")
    assert 1000 + 60 + 30 <= first <= 1000 + 60 + 30 + 3
    assert stage.beats("wren") == [60, 720]


@lived
async def test_an_agent_that_is_changed_keeps_its_place_and_takes_a_sooner_beat(stage, told):
    stage.canonical(interval="1h")
    await stage.up()
    await stage.until(500)
    stage.canonical(interval="10m")
    await stage.until(2000)
    assert stage.walk() == ["wake_add 0", "wake_add 1", "wake_add 2"]
    _, second, third = stage.beats()
    assert 500 + 600 <= second <= 500 + 603
    assert third == pytest.approx(second + 660)


@lived
async def test_an_agent_that_is_disabled_ends_its_run_and_begins_no_other(stage):
    wren, moss = heading("wren", interval="10m"), heading("moss", interval="10m")
    stage.declare(wren, moss)
    await stage.up()
    await stage.until(80)
    stage.declare(heading("wren", interval="10m", enabled="no"), moss)
    await stage.until(3600)
    assert stage.beats("wren") == [60]
    assert stage.outcomes("wren") == ["done"]
    assert len(stage.beats("moss")) == 6
    stage.declare(wren, moss)
    await stage.until(3700)
    assert len(stage.beats("wren")) == 2


@lived
async def test_an_agent_that_is_removed_ends_its_run_and_comes_back_to_its_place(stage):
    moss = heading("moss", interval="10m")
    stage.canonical()
    wren = heading("wren", lifecycle="lifecycle.org", interval="10m")
    stage.declare(wren, moss)
    await stage.up()
    await stage.until(80)
    stage.declare(moss)
    await stage.until(1800)
    assert stage.walk("wren") == ["wake_add 0"]
    assert [agent.name for agent in stage.store.agents()] == ["moss"]
    stage.declare(wren, moss)
    await stage.until(2000)
    assert stage.walk("wren") == ["wake_add 0", "wake_add 1"]


@lived
async def test_whoever_waits_when_its_agent_is_removed_waits_no_longer(stage):
    agents = [heading(name, interval="1h") for name in ("wren", "moss")]
    stage.declare(*agents, sessions="1", stagger="1s")
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    await stage.until(100)
    assert stage.waits_for("moss") == ["slots"]
    stage.declare(agents[0], sessions="1", stagger="1s")
    await stage.until(2000)
    assert stage.beats("moss") == []
    assert stage.waits_for("moss") == []


@lived
async def test_a_broken_fleet_keeps_the_last_good_one_and_says_where_it_is_broken(stage, told):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    await stage.until(100)
    stage.write("fleet.org", BROKEN)
    await stage.until(800)
    assert stage.beats() == [60, 720]
    (line,) = engine.health()["diagnostics"]
    assert "fleet.org:4:" in line
    assert "INTERVAL" in line
    stage.declare(heading("wren", interval="20m"))
    await stage.until(900)
    assert engine.health()["diagnostics"] == []
    assert stage.store.agent("wren").cadence.interval == 20 * MINUTE


@lived
async def test_a_fleet_file_that_is_gone_for_a_while_stops_nobody(stage):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    await stage.until(100)
    (stage.folder / "fleet.org").unlink()
    await stage.until(800)
    assert stage.beats() == [60, 720]
    assert "cannot be read" in engine.health()["diagnostics"][0]
    stage.declare(heading("wren", interval="10m"))
    await stage.until(810)
    assert engine.health()["diagnostics"] == []


@lived
async def test_slots_grow_and_shrink_with_the_file(stage):
    agents = [heading(name, interval="1h") for name in ("wren", "moss", "finch")]
    stage.declare(*agents, sessions="1", stagger="1s")
    stage.all_end(done(), duration=10 * MINUTE)
    await stage.up()
    await stage.until(100)
    assert len(stage.seen) == 1
    stage.declare(*agents, sessions="3", stagger="1s")
    await stage.until(110)
    assert len(stage.seen) == 3


@lived
async def test_a_reload_says_what_changed_and_what_is_wrong(stage):
    stage.declare(heading("wren", interval="10m"))
    engine = await stage.up()
    stage.declare(heading("wren", interval="20m"), heading("moss", interval="20m"))
    assert await engine.reload() == {"changed": ["wren", "moss"], "diagnostics": []}
    assert await engine.reload() == {"changed": [], "diagnostics": []}
    stage.write("fleet.org", BROKEN)
    answer = await engine.reload()
    assert answer["changed"] == []
    assert "fleet.org:4:" in answer["diagnostics"][0]


@lived
async def test_an_edit_that_the_store_did_not_take_is_taken_when_it_can(stage):
    stage.declare(heading("wren", interval="1h"))
    await stage.up()
    await stage.until(300)

    async def full(number):
        raise OSError("no space left on device")

    stage.access.before = full
    stage.declare(heading("wren", interval="10m"))
    await stage.until(400)
    assert stage.store.agent("wren").cadence.interval == 60 * MINUTE
    stage.access.before = None
    await stage.until(430)
    assert stage.store.agent("wren").cadence.interval == 10 * MINUTE
    await stage.until(430 + 601)
    assert len(stage.seen) == 2


@lived
async def test_edits_come_one_after_another_and_the_last_one_holds(stage):
    stage.declare(heading("wren", interval="1h"))
    engine = await stage.up()
    for n in range(1, 30):
        stage.declare(heading("wren", interval=f"{n}m"))
        await stage.until(stage.elapsed + 0.02)
    await engine.reload()
    await stage.until(stage.elapsed + 1)
    assert stage.store.agent("wren").cadence.interval == 29 * MINUTE


@lived
async def test_a_settings_of_the_wall_clock_holds_for_the_next_run_and_not_for_the_one_under_way(stage):
    stage.declare(heading("wren", interval="10m", timeout="5m"))
    stage.script = lambda order: Plan(duration=60 * MINUTE, ending=done())
    await stage.up()
    await stage.until(100)
    stage.declare(heading("wren", interval="10m", timeout="1m"))
    await stage.until(60 + 300 + 600 + 61)
    runs = stage.store.runs()
    assert [round((run.ended_at - run.started_at).total_seconds()) for run in runs] == [300, 60]
