"""The day of an agent, lived by the real engine: document 001's loop, its gates, its idleness and its failures."""

from datetime import timedelta

import pytest

from tests.engine.stage import DAY, HOUR, MINUTE, SECOND, START, heading, lived
from wakeful.core.runs import Ending
from wakeful.testing.runner import Plan, done, failed, no_work

CRASHED = failed("it broke")
HANGS = timedelta(hours=9)


@lived
async def test_the_day_is_add_three_times_audit_rest_plan_and_add_again(stage):
    stage.canonical()
    await stage.up()
    await stage.hours(2)
    day = ["wake_add 0", "wake_add 1", "wake_add 2", "wake_audit 0", "rem 0", "wake_plan 0"]
    assert stage.walk() == (day * 2)[:11]
    # The grace of a start, then each beat ten minutes after the end of the last, which took one.
    assert stage.beats() == [60 + 660 * n for n in range(11)]


@lived
async def test_a_day_without_work_collapses_repeats_skips_no_state_and_backs_off(stage):
    stage.canonical(interval="continuous")
    stage.all_end(no_work(), duration=SECOND)
    await stage.up()
    await stage.hours(4)
    # Each state once. The rest leaves the streak as it is; its gate has long been open again when it comes round.
    loop = ["wake_add 0", "wake_audit 0", "rem 0", "wake_plan 0"]
    assert stage.walk() == (loop * 4)[: len(stage.walk())]
    waits = [wait - 1 for wait in stage.waits()]
    #         add  audit rem  plan add  audit rem   plan  add, and so on at the cap
    assert waits[:10] == [60, 120, 120, 240, 480, 960, 960, 1800, 1800, 1800]


@lived
async def test_an_idle_agent_on_a_breather_sleeps_deeper_up_to_half_an_hour(stage):
    stage.declare(heading("wren", interval="continuous"))
    stage.one_after_another(done(), no_work(), duration=SECOND)
    await stage.up()
    await stage.hours(3)
    waits = [wait - 1 for wait in stage.waits()]
    assert waits[:8] == [45, 60, 120, 240, 480, 960, 1800, 1800]


@lived
async def test_one_done_after_a_long_idleness_is_hot_again(stage):
    stage.declare(heading("wren", interval="continuous"))
    stage.one_after_another(*[no_work()] * 6, done(), duration=SECOND)
    await stage.up()
    await stage.hours(2)
    waits = [wait - 1 for wait in stage.waits()]
    assert waits[5:9] == [1800, 45, 45, 45]
    assert stage.standing().idle_streak == 0


@pytest.mark.parametrize(
    ("plan", "outcome", "took"),
    [
        (Plan(duration=MINUTE, ending=CRASHED), "failed", 60),
        (Plan(duration=MINUTE, ending=Ending(signal=9)), "failed", 60),
        (Plan(duration=HANGS, ending=done()), "killed", 15 * 60),
    ],
    ids=["an error", "a signal", "past the wall clock"],
)
@lived
async def test_a_crash_or_a_timeout_holds_the_place_and_is_tried_again_at_the_next_beat(stage, plan, outcome, took):
    stage.canonical()
    plans = [Plan(duration=MINUTE, ending=done()), plan, plan]
    stage.script = lambda order: plans.pop(0) if plans else Plan(duration=MINUTE, ending=done())
    await stage.up()
    await stage.hours(2)
    assert stage.walk()[:5] == ["wake_add 0", "wake_add 1", "wake_add 1", "wake_add 1", "wake_add 2"]
    assert stage.outcomes()[:4] == ["done", outcome, outcome, "done"]
    second, third, fourth = stage.beats()[1:4]
    assert (third - second, fourth - third) == (took + 600, took + 600)


@lived
async def test_a_gate_that_never_ran_is_open(stage):
    stage.canonical(interval="1m")
    await stage.up()
    await stage.minutes(12)
    rest = stage.walk().index("rem 0")
    assert rest == 4
    assert stage.beats()[rest] - stage.beats()[rest - 1] == 120


@lived
async def test_a_closed_gate_is_tried_again_at_the_moment_it_opens(stage):
    stage.canonical(interval="1m")
    stage.all_end(done(), duration=SECOND)
    await stage.up()
    await stage.minutes(30)
    first, second, *_ = (seen.at for seen in stage.seen if seen.state == "rem")
    # A round of the day takes six beats of 61 s. The gate is stamped when the rest ends, and opens ten minutes later.
    assert second - first == 601
    assert stage.walk().count("wake_audit 0") >= 2
    held = [event for event in stage.store.events(limit=1000) if "state_gate" in str(event.fields)]
    # Once for each time that it was shut: nobody asks again before it opens.
    assert len(held) == len([seen for seen in stage.seen if seen.state == "rem"]) - 1


@lived
async def test_a_manual_tick_passes_a_closed_gate_and_no_timer_does(stage):
    rest = heading("rest", next="write", min_interval="2h")
    stage.write("lifecycle.org", "#+START: rest\n" + rest + heading("write", next="rest"))
    stage.declare(heading("wren", lifecycle="lifecycle.org", interval="10m"))
    await stage.up()
    await stage.minutes(90)
    assert stage.beats() == [60, 720]
    await stage.tick("wren")
    await stage.hours(3)
    # The next beat is an interval after the tick, and the gate counts from the rest that was asked for by hand.
    assert stage.beats()[2:5] == [5400, 6060, 5460 + 7200]


@lived
async def test_five_beats_that_fail_in_a_row_quarantine_the_agent_and_nobody_else(stage):
    stage.declare(heading("moss", interval="10m"), heading("wren", interval="10m"))
    stage.script = lambda order: Plan(duration=MINUTE, ending=CRASHED if order.run.agent == "wren" else done("fine"))
    await stage.up()
    await stage.hours(3)
    assert stage.outcomes("wren") == ["failed"] * 5
    assert len(stage.beats("moss")) > 15
    (pause,) = stage.store.pauses()
    assert (pause.scope, pause.owner) == ("agent:wren", "quarantine")
    assert "5 beats failed in a row; the last: it broke" in pause.reason
    # A person who has looked lets it go on.
    stage.all_end(done())
    await stage.access.write(lambda store: store.resume("agent:wren", "ada", stage.now))
    await stage.minutes(30)
    assert set(stage.outcomes("wren")[5:]) == {"done"}


@lived
async def test_a_failure_between_successes_counts_toward_no_quarantine(stage):
    stage.declare(heading("wren", interval="10m"))
    stage.one_after_another(*[CRASHED] * 4, done(), *[CRASHED] * 4, done())
    await stage.up()
    await stage.hours(2)
    assert stage.store.pauses() == []
    assert stage.outcomes().count("failed") == 8


@lived
async def test_a_schedule_fires_at_its_instants_in_its_zone(stage):
    stage.declare(heading("wren", schedule="30 2,4 * * 1-5"), timezone="Europe/Berlin")
    await stage.up()
    await stage.hours(4)
    # Half past two in Berlin is half past one in UTC, as long as it is winter.
    assert stage.beats() == [1.5 * 3600, 3.5 * 3600]


@lived
async def test_a_schedule_that_was_missed_while_nobody_was_there_is_caught_up_once(stage):
    stage.declare(heading("wren", schedule="0 * * * *"))
    await stage.up()
    await stage.hours(1.5)
    await stage.crash()
    await stage.until(6.4 * 3600)
    await stage.up()
    await stage.hours(1)
    assert stage.beats() == [3600, 6.4 * 3600 + 60, 7 * 3600]


@lived
async def test_when_keeps_a_state_to_its_calendar(stage):
    audit = heading("audit", next="write", when="0 */3 * * *")
    stage.write("lifecycle.org", "#+START: write\n" + heading("write", next="audit") + audit)
    stage.declare(heading("wren", lifecycle="lifecycle.org", interval="20m"))
    await stage.up()
    await stage.hours(7)
    audits = [seen.at for seen in stage.seen if seen.state == "audit"]
    # The first gate is open, for it never ran; the others wait for their hour, to the second.
    assert audits == [60 + 1260, 3 * 3600, 6 * 3600]


@lived
async def test_when_may_be_a_window_of_the_day(stage):
    stage.write("lifecycle.org", "#+START: write\n" + heading("write", next="write", when="01:00-02:00"))
    stage.declare(heading("wren", lifecycle="lifecycle.org", interval="15m"))
    stage.all_end(done(), duration=SECOND)
    await stage.up()
    await stage.hours(3)
    assert stage.beats() == [3600 + 901 * n for n in range(4)]
    (waiting,) = stage.store.wakes(agent="wren", state="waiting")
    assert (waiting.guard, waiting.retry_at) == ("state_gate", START + 25 * HOUR)


@lived
async def test_first_beats_come_after_the_grace_thirty_seconds_apart(stage):
    stage.declare(*(heading(name, interval="10m") for name in ("wren", "moss", "finch", "robin")), sessions="4")
    await stage.up()
    await stage.minutes(5)
    assert [(seen.agent, seen.at) for seen in stage.seen] == [
        ("wren", 60), ("moss", 90), ("finch", 120), ("robin", 150),
    ]  # fmt: skip


@lived
async def test_grace_and_stagger_are_settings_and_a_short_interval_is_shared_out(stage):
    agents = [heading(name, interval="1m") for name in ("wren", "moss", "finch", "robin")]
    stage.declare(*agents, sessions="4", grace="10s", stagger="20s")
    stage.all_end(done(), duration=SECOND)
    await stage.up()
    await stage.until(60)
    # A quarter of the minute is less than the stagger.
    assert stage.beats() == [10, 25, 40, 55]


@lived
async def test_where_an_agent_stands_can_be_read_while_it_runs(stage):
    stage.canonical()
    engine = await stage.up()
    await stage.until(1410)
    (row,) = stage.store.overview()
    assert row.run.started_at.replace(microsecond=0) == START + timedelta(seconds=1380)
    assert row.run.state == "running"
    assert (row.standing.position.state, row.standing.position.hits) == ("wake_add", 2)
    assert row.standing.last_ended_at.replace(microsecond=0) == START + timedelta(seconds=780)
    assert engine.health()["holding"] == [row.run.id]
    assert engine.health()["ready"]
    # When it is over: it does not run, it ran last just now, and it runs next in ten minutes, at the next place.
    await stage.until(1500)
    (row,) = stage.store.overview()
    last, due = row.standing.last_ended_at, row.standing.due_at
    assert row.run is None
    assert last.replace(microsecond=0) == START + timedelta(seconds=1440)
    assert due - last == 10 * MINUTE
    assert row.standing.position.state == "wake_audit"


@lived
async def test_a_quiet_beat_is_marked_so_and_leaves_the_idle_streak_alone(stage):
    stage.canonical(interval="continuous")
    stage.one_after_another(no_work(), no_work(), done(), no_work(), duration=SECOND)
    await stage.up()
    await stage.minutes(8)
    add, audit, rest, plan = stage.beats()[:4]
    # Two idle beats, then the rest after two minutes, then two minutes again: it neither adds nor takes away.
    assert (audit - add, rest - audit, plan - rest) == (61, 121, 121)
    order = stage.carrier.runner.guardians[stage.seen[2].run].order
    assert order.journal is not None
    assert DAY.count(":KIND: rem") == 1
