"""What an agent wants done before its beat: its CHECK asked, its work tree pulled."""

import pytest

from tests.engine.stage import DAY, MINUTE, SECOND, START, heading, lived
from wakeful.core.items import Kind, NewItem, Origin, Priority, Ring
from wakeful.core.wakes import FLEET, Pause, Subject, agent_scope
from wakeful.runners.protocol import Checked
from wakeful.testing.loop import passes
from wakeful.testing.runner import Plan, done, failed

NO = Checked(wake=False, reason="nothing new")


async def slowly(answer, seconds=5.0):
    await passes(seconds)
    return answer


# ---- CHECK


@lived
async def test_a_check_that_says_no_holds_the_place_backs_off_and_begins_no_run(stage):
    stage.canonical(check="look", interval="continuous")
    asked = []
    stage.checks = lambda agent: asked.append(stage.elapsed) or NO
    await stage.up()
    await stage.minutes(40)
    assert stage.seen == []
    assert stage.store.runs() == []
    assert stage.place() == ("wake_add", 0)
    assert [round(at) for at in asked] == [60, 120, 240, 480, 960, 1920]
    assert stage.standing().idle_streak == 6
    assert stage.waits_for("wren") == ["check"]


@lived
async def test_a_check_that_says_yes_at_last_runs_the_beat_and_is_hot_again(stage):
    stage.declare(heading("wren", check="look", interval="continuous"))
    stage.checks = lambda agent: NO if len(stage.asked) <= 4 else Checked(wake=True)
    stage.all_end(done(), duration=SECOND)
    await stage.up()
    await stage.until(960 + 100)
    assert stage.beats() == [960, 1006, 1052]
    assert stage.standing().idle_streak == 0


@lived
async def test_what_the_check_found_reaches_the_run_that_it_woke(stage):
    stage.declare(heading("wren", check="look", interval="10m"), heading("moss", interval="10m"))
    stage.checks = lambda agent: Checked(wake=True, data={"found": len(stage.asked)})
    await stage.up()
    await stage.minutes(25)
    given = [(seen.agent, stage.carrier.given[seen.run]) for seen in stage.seen]
    assert [data for name, data in given if name == "wren"] == [{"found": 1}, {"found": 2}, {"found": 3}]
    assert {data for name, data in given if name == "moss"} == {None}


@lived
async def test_what_the_check_found_is_for_the_beat_alone(stage):
    """The slot goes to another while the CHECK is asked; then the inbox is run, and knows nothing of it."""
    stage.declare(heading("wren", check="look", interval="10m"), heading("moss", interval="none"), sessions="1")
    stage.checks = lambda agent: slowly(Checked(wake=True, data="found"))
    stage.all_end(done(), duration=2 * MINUTE)
    await stage.up()
    await stage.until(62)
    await stage.tick("moss")
    await stage.until(70)
    assert stage.waits_for("wren") == ["slots"]
    await stage.tick("wren", Subject.inbox)
    await stage.until(600)
    told = [(seen.agent, seen.subject, stage.carrier.given[seen.run]) for seen in stage.seen]
    assert ("wren", "inbox", None) in told
    assert [data for name, subject, data in told if name == "wren" and subject == "beat"] == ["found"]


@pytest.mark.parametrize("scope", [FLEET, agent_scope("wren")])
@lived
async def test_nobody_is_asked_on_behalf_of_an_agent_that_is_paused(stage, scope):
    stage.declare(heading("wren", check="look", interval="1m"))
    await stage.up()
    pause = Pause(scope=scope, owner="ada", reason="away", since=stage.now)
    await stage.access.write(lambda store: store.pause(pause, stage.now))
    await stage.hours(1)
    assert stage.asked == []


@lived
async def test_nobody_is_asked_on_behalf_of_an_agent_that_is_busy_gated_or_without_a_slot(stage):
    stage.write("lifecycle.org", DAY.replace(":START: wake_add", ":START: rem"))
    busy = heading("wren", check="look", interval="1m")
    gated = heading("moss", check="look", interval="1m", lifecycle="lifecycle.org")
    stage.declare(busy, gated, heading("robin", interval="1m"), sessions="2", stagger="0s")
    stage.script = lambda order: Plan(
        duration={"robin": 14 * MINUTE, "moss": SECOND, "wren": 10 * MINUTE}[order.run.agent], ending=done()
    )
    await stage.up()
    await stage.until(70)
    # Two have the slots. Whoever came third is not asked while it waits for one, nor are the two while they run.
    running = {guardian.order.run.agent for guardian in stage.carrier.runner.alive()}
    asked = len(stage.asked)
    assert len(running) == 2
    await stage.until(600)
    assert {guardian.order.run.agent for guardian in stage.carrier.runner.alive()} == running
    assert len(stage.asked) == asked


@lived
async def test_a_tick_by_hand_asks_no_check(stage):
    stage.declare(heading("wren", check="look", interval="1h"))
    stage.checks = lambda agent: NO
    await stage.up()
    await stage.until(30)
    await stage.tick("wren")
    await stage.until(40)
    assert (stage.beats(), stage.asked) == ([30], [])


@lived
async def test_a_check_that_fails_wakes_the_agent(stage):
    stage.declare(heading("wren", check="look", interval="1h"))

    def broken(agent):
        raise OSError("no such thing")

    stage.checks = broken
    await stage.up()
    await stage.until(70)
    assert stage.beats() == [60]


@lived
async def test_while_one_check_takes_its_time_others_go_on(stage):
    stage.declare(heading("wren", check="look", interval="10m"), heading("moss", interval="1m"), stagger="0s")
    stage.checks = lambda agent: slowly(Checked(wake=True), 120)
    stage.all_end(done(), duration=SECOND)
    engine = await stage.up()
    await stage.until(185)
    # Looked at four times a second meanwhile, which is no hot loop, and makes nobody later than that.
    assert stage.beats("moss") == pytest.approx([60, 121, 182], abs=0.5)
    assert stage.beats("wren") == [180]
    assert engine.loop.turns < 2 * 4 * 120 + 100


@lived
async def test_a_check_that_takes_its_time_costs_no_write(stage):
    stage.declare(
        heading("wren", check="look", interval="10m"), heading("sweep", task="", schedule="0 * * * *", agent="wren")
    )
    stage.checks = lambda agent: slowly(Checked(wake=True), 120)
    await stage.up()
    await stage.until(65)
    writes = stage.access.writes
    await stage.until(175)
    assert (len(stage.asked), stage.access.writes) == (1, writes)


@lived
async def test_an_engine_that_dies_while_a_check_is_asked_asks_again(stage):
    stage.declare(heading("wren", check="look", interval="10m"))
    stage.checks = lambda agent: slowly(Checked(wake=True, data=len(stage.asked)))
    await stage.up()
    await stage.until(62)
    await stage.crash()
    await stage.up()
    await stage.until(200)
    assert (len(stage.asked), stage.beats()) == (2, [62 + 60 + 5])
    assert list(stage.carrier.given.values()) == [2]


@lived
async def test_an_answer_to_a_beat_that_is_gone_is_not_kept_for_a_later_one(stage):
    wren = heading("wren", check="look", interval="10m")
    stage.declare(wren, heading("moss", interval="1h"))
    stage.checks = lambda agent: slowly(NO) if len(stage.asked) == 1 else Checked(wake=True)
    await stage.up()
    await stage.until(62)
    stage.declare(wren.replace(":END:", ":ENABLED: no\n:END:"), heading("moss", interval="1h"))
    await stage.until(300)
    stage.declare(wren, heading("moss", interval="1h"))
    await stage.until(500)
    assert (len(stage.asked), len(stage.beats("wren"))) == (2, 1)


@lived
async def test_a_beat_asked_for_by_its_instant_is_not_answered_by_the_check_of_the_cadence(stage):
    stage.declare(heading("wren", check="look", interval="10m", at=(START + MINUTE).isoformat()))
    stage.checks = lambda agent: slowly(NO, 2)
    await stage.up()
    await stage.until(400)
    assert [(seen.at, seen.cause) for seen in stage.seen] == [(60, "timer")]


@lived
async def test_work_in_the_inbox_ends_the_deep_sleep_of_checks(stage):
    stage.declare(heading("wren", check="look", interval="continuous"))
    stage.checks = lambda agent: NO
    stage.all_end(done(), duration=SECOND)
    await stage.up()
    await stage.until(3000)
    assert len(stage.asked) == 6
    item = NewItem(
        kind=Kind.message, agent="wren", origin=Origin.operator, priority=Priority.urgent, ring=Ring.operator, body="x"
    )
    await stage.access.write(lambda store: store.record([item], stage.now))
    await stage.until(3060)
    assert [seen.subject for seen in stage.seen] == ["inbox"]
    # An inbox that was worked on is a proof of life: the next question comes after a breather.
    assert len(stage.asked) == 7


# ---- GITOPS


@lived
async def test_a_push_to_the_origin_is_live_within_the_same_tick(stage):
    stage.canonical(gitops="yes", interval="1h")

    def push(agent):
        if len(stage.pulled) == 2:
            stage.write("lifecycle.org", DAY.replace("wake_add", "wake_read"))
        return ""

    stage.pulls = push
    await stage.up()
    await stage.hours(1.5)
    # The state that it stood in is gone with the push: the very same tick begins in the new one.
    assert stage.walk() == ["wake_add 0", "wake_read 0"]
    assert stage.beats() == [60, 3720]


@lived
async def test_a_pull_comes_before_the_check_and_the_check_that_was_pulled_is_asked(stage):
    stage.declare(heading("wren", gitops="yes", check="old", interval="1h"))
    order = []
    stage.pulls = lambda agent: (
        order.append("pull") or stage.declare(heading("wren", gitops="yes", check="new", interval="1h"))
    )
    stage.checks = lambda agent: order.append(f"check {agent.check}") or Checked(wake=True)
    await stage.up()
    await stage.until(70)
    assert order == ["pull", "check new"]
    assert stage.beats() == [60]


@lived
async def test_a_pull_that_is_in_conflict_is_told_at_each_tick_and_costs_no_beat(stage, caplog):
    stage.declare(heading("wren", gitops="yes", interval="10m"))
    stage.pulls = lambda agent: "main and origin/main have diverged"
    await stage.up()
    await stage.minutes(25)
    told = [record for record in caplog.records if "have diverged" in record.getMessage()]
    assert len(told) == len(stage.seen) == 3
    assert all("wren" in record.getMessage() for record in told)
    assert {record.levelname for record in told} == {"WARNING"}


@lived
async def test_an_agent_that_the_pull_removed_does_not_run(stage):
    moss = heading("moss", interval="1h")
    stage.declare(heading("wren", gitops="yes", interval="10m"), moss)
    stage.pulls = lambda agent: stage.declare(moss) or ""
    await stage.up()
    await stage.minutes(30)
    assert [seen.agent for seen in stage.seen] == ["moss"]


@lived
async def test_a_broken_push_keeps_the_last_good_day_and_is_shown(stage):
    stage.canonical(gitops="yes")
    stage.pulls = lambda agent: stage.write("lifecycle.org", "#+START: nowhere\n" + heading("x", next="y")) or ""
    engine = await stage.up()
    await stage.minutes(13)
    assert stage.walk() == ["wake_add 0", "wake_add 1"]
    assert any("lifecycle.org" in line for line in engine.health()["diagnostics"])


@lived
async def test_a_pull_that_raises_or_hangs_holds_up_nobody_else(stage):
    stage.declare(heading("wren", gitops="yes", interval="10m"), heading("moss", gitops="yes", interval="10m"))

    def pulls(agent):
        if agent.name == "moss":
            return slowly("", 60)
        raise OSError("no network")

    stage.pulls = pulls
    await stage.up()
    await stage.minutes(4)
    assert stage.beats("wren") == [60]
    assert stage.beats("moss") == [90 + 60]


@lived
async def test_a_failed_beat_is_prepared_again(stage):
    stage.declare(heading("wren", gitops="yes", check="look", interval="10m"))
    stage.all_end(failed())
    await stage.up()
    await stage.minutes(25)
    assert len(stage.seen) == len(stage.asked) == len(stage.pulled) == 3
