"""Why, at a past instant: histories told by events alone, in which one guard is the first to hold an agent back."""

from datetime import datetime

import pytest

from tests.core.story import DAWN, HOUR, MIDNIGHT, MINUTE, NOON, Story, agent, peer, wake
from wakeful.core.admission import admit
from wakeful.core.codec import encode
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.events import EventKind
from wakeful.core.facts import Facts
from wakeful.core.guards import GUARDS, MORNING, RELEASE
from wakeful.core.hindsight import Hindsight, recompute
from wakeful.core.lifecycle import Lifecycle, Position, State
from wakeful.core.standing import Spend
from wakeful.core.wakes import ADMIT, Cause, Verdict, defer, refuse
from wakeful.core.windows import parse_window, spread


def said(known: Hindsight) -> Verdict:
    return admit(known.wake, known.facts, known.limits)


def held(known: Hindsight, guard: str, until: datetime | None, **numbers: float | str) -> None:
    """That guard is the first to object, with these numbers and this next eligible time."""
    verdict = said(known)
    assert (verdict.guard, verdict.until, verdict.numbers) == (guard, until, numbers), verdict


# ---- each guard, the first to hold an agent back


def test_moot_a_beat_is_not_due_yet_and_the_standing_says_when_it_is():
    story = Story(agent())
    story.lived(wake(), NOON - HOUR, due_at=encode(NOON + MINUTE))
    held(story.at(wake()), "moot", None)
    assert story.at(wake()).standing.due_at == NOON + MINUTE
    assert said(story.at(wake(), NOON + MINUTE)) == ADMIT
    assert said(story.at(wake(slot="2026-03-02T12:00:00Z"))) == ADMIT, "a one-off is not the cadence's"


def test_paused_from_the_widest_scope_until_it_runs_out_or_is_lifted():
    story = Story(agent())
    story.pause("agent:moss", NOON - HOUR, owner="quota")
    story.pause("fleet", NOON - MINUTE, until=NOON + HOUR)
    held(story.at(wake()), "paused", NOON + HOUR + spread("moss", RELEASE), scope="fleet")
    held(story.at(wake(), NOON + HOUR), "paused", None, scope="agent:moss")
    story.tell(EventKind.resumed, NOON + 2 * HOUR, None, scope="agent:moss", owner="quota", by="time")
    assert said(story.at(wake(), NOON + 2 * HOUR)) == ADMIT


def test_quiet_hours_that_an_operator_had_set_live():
    quiet = (parse_window("11:30-13:00"),)
    story = Story(agent())
    story.set(agent(limits={"quiet_hours": quiet}), NOON - HOUR, quiet_hours=quiet)
    assert said(story.at(wake(), NOON - HOUR)) == ADMIT
    held(story.at(wake()), "quiet_hours", NOON + HOUR)


def test_wakes_per_run_counts_what_a_run_had_admitted_and_what_waits():
    story = Story(agent(), agent("wren"))
    asking = story.decide(wake(name="wren"), NOON - HOUR)
    for name in ("finch", "reed"):
        story.declare(agent(name))
        story.decide(peer(name, by_run=asking), NOON - 20 * MINUTE)
    story.decide(peer("lark", by_run=asking), NOON - 9 * MINUTE, refuse("cooldown", "woken just now"))
    assert said(story.at(peer(by_run=asking), NOON - 8 * MINUTE)).guard == "slots"
    story.decide(peer("heron", by_run=asking), NOON - 5 * MINUTE, defer("slots", "all taken"))
    held(story.at(peer(by_run=asking)), "wakes_per_run", None, used=3, limit=3)


def test_wakes_per_run_is_what_whoever_asks_was_held_to_then():
    story = Story(agent(limits={"wakes_per_run": 9}), agent("wren", limits={"wakes_per_run": 1}), agent("finch"))
    asking = story.lived(wake(name="wren"), NOON - HOUR)
    story.decide(peer("finch", by_run=asking), NOON - 20 * MINUTE)
    held(story.at(peer(by_run=asking), NOON - 9 * MINUTE), "wakes_per_run", None, used=1, limit=1)
    story.set(agent("wren", limits={"wakes_per_run": 2}), NOON - 8 * MINUTE, wakes_per_run=2)
    assert said(story.at(peer(by_run=asking), NOON - 7 * MINUTE)) == ADMIT
    story.tell(EventKind.removed, NOON - MINUTE, "wren")
    assert story.at(peer(by_run=asking)).facts.wakes_allowed is None


def test_cooldown_since_the_last_admitted_peer_wake_whoever_asked():
    story = Story(agent())
    story.lived(peer(sender="lark"), NOON - 2 * MINUTE)
    held(story.at(peer()), "cooldown", NOON + 3 * MINUTE, seconds=120.0, limit=300.0)
    assert said(story.at(peer(), NOON + 3 * MINUTE)) == ADMIT


def test_wakes_per_day_until_midnight_where_the_agent_lives():
    story = Story(agent(timezone="Europe/Berlin"))
    for number in range(12):
        story.lived(peer(sender=f"agent-{number}"), DAWN + number * 10 * MINUTE)
    held(story.at(peer()), "wakes_per_day", MIDNIGHT - HOUR, used=12, limit=12)
    assert said(story.at(peer(), MIDNIGHT - HOUR)) == ADMIT


def test_wakes_per_pair_in_both_directions_and_under_a_shared_address():
    story = Story(agent(), agent("wren-1", address="wren"), agent("wren-2", address="wren"))
    for number in range(2):
        story.lived(peer(sender="wren-1"), DAWN + number * 10 * MINUTE)
    for number in range(2, 5):
        run = story.decide(peer("wren", sender="moss"), DAWN + number * 10 * MINUTE, answers="wren-2")
        story.end(run, "wren-2", DAWN + number * 10 * MINUTE + MINUTE, subject="inbox")
    held(story.at(peer(sender="wren")), "wakes_per_pair", MIDNIGHT, used=5, limit=5)
    assert said(story.at(peer(sender="lark"))) == ADMIT


def test_chain_from_the_wake_itself():
    held(Story(agent()).at(peer(depth=9)), "chain", None, depth=9, limit=8)


def test_minutes_per_day_of_every_kind_of_run():
    story = Story(agent())
    story.lived(wake(), DAWN, ms=90 * 60_000)
    story.lived(wake(Cause.task, task=3), DAWN + HOUR, ms=30 * 60_000)
    held(story.at(peer()), "minutes_per_day", MIDNIGHT, minutes=120.0, limit=120.0)
    assert said(story.at(wake())) == ADMIT, "the timer's minutes are not limited unless declared"


def test_spend_settled_and_reserved_with_the_reserve_drawn_from_what_runs_cost():
    story = Story(agent(limits={"usd_per_day": 1_000_000}))
    story.lived(wake(), DAWN, spend=Spend(usd=400_000))
    run = story.decide(wake(), DAWN + HOUR, facts=Facts(now=DAWN, reserve=Spend(usd=400_000)))
    morning = MIDNIGHT + spread("moss", MORNING)
    numbers = {"unit": "usd", "spent": 800_000, "reserve": 400_000, "limit": 1_000_000}
    held(story.at(wake()), "spend", morning, **numbers)
    story.end(run, "moss", NOON + MINUTE, spend=Spend(usd=100_000))
    assert said(story.at(wake(), NOON + MINUTE)) == ADMIT


def test_burst_of_starts_that_were_not_void():
    story = Story(agent(limits={"burst": 3}))
    for number in range(3):
        story.lived(wake(), NOON - (9 - 2 * number) * MINUTE)
    story.lived(wake(Cause.operator), NOON - 3 * MINUTE)
    void = story.decide(wake(), NOON - 2 * MINUTE)
    story.tell(EventKind.voided, NOON - MINUTE, "moss", wake=story.wakes, run=void, charged=False)
    held(story.at(wake()), "burst", NOON + 30 * MINUTE, starts=3, limit=3)
    assert said(story.at(wake(), NOON + MINUTE)) == ADMIT, "the first of them is ten minutes ago"


def test_state_gate_counted_from_the_last_beat_that_was_done():
    states = (State("beat", next="audit"), State("audit", next="audit", min_interval=2 * HOUR))
    story = Story(agent(lifecycle=Lifecycle("beat", states)))
    story.lived(wake(), NOON - 3 * HOUR, stands=["audit", 0])
    assert said(story.at(wake(), NOON - HOUR)) == ADMIT
    story.lived(wake(), NOON - HOUR, position=["audit", 0], stands=["audit", 0])
    story.lived(wake(), NOON - MINUTE, position=["audit", 0], stands=["audit", 0], outcome="failed")
    held(story.at(wake()), "state_gate", NOON + HOUR + MINUTE, state="audit")
    assert story.at(wake()).standing.position == Position("audit")


def test_busy_with_its_open_run():
    story = Story(agent())
    run = story.decide(wake(Cause.operator), NOON - MINUTE)
    held(story.at(wake()), "busy", None, run=run)


def test_slots_taken_by_others_and_by_whoever_waits_longer():
    story = Story(agent(), agent("wren"), agent("lark"))
    run = story.decide(wake(name="wren"), NOON - MINUTE)
    story.decide(wake(Cause.task, "lark", task=3), NOON - MINUTE)
    assert said(story.at(wake(), NOON - MINUTE)) == ADMIT, "a worker is not a session"
    story.decide(wake(Cause.news, "lark", NOON - HOUR), NOON, defer("slots", "all taken"))
    held(story.at(wake()), "slots", None, pool="sessions", taken=2, limit=2)
    assert said(story.at(wake(at=NOON - 2 * HOUR))) == ADMIT, "who has waited longest is served first"
    story.tell(EventKind.voided, NOON + MINUTE, "wren", wake=1, run=run, charged=False)
    assert said(story.at(wake(), NOON + MINUTE)) == ADMIT


def test_every_guard_is_the_first_in_one_of_the_tests_above():
    for guard in GUARDS:
        assert any(name.startswith(f"test_{guard.name}_") for name in globals()), guard.name


# ---- recorded verdicts


def test_a_recorded_verdict_is_what_the_guards_say_to_the_facts_in_its_own_event():
    story = Story(agent())
    facts = Facts(now=NOON, wakes_today=12, pause=None)
    story.decide(peer(), NOON, refuse("wakes_per_day", "as it was told"), facts=facts)
    assert recompute(story.events[-1], agent()) == admit(peer(), facts, agent().limits)
    assert recompute(story.events[-1], agent(limits={"wakes_per_day": 13})) == ADMIT


def test_depth_and_slot_come_from_the_event_and_the_name_from_whoever_answered():
    story = Story(agent("wren-1", address="wren"))
    story.decide(peer("wren", depth=9), NOON, refuse("chain", "too deep"), answers="wren-1")
    assert recompute(story.events[-1], agent("wren-1", address="wren")).numbers == {"depth": 9, "limit": 8}
    story.decide(peer("wren"), NOON, answers="wren-1", facts=Facts(now=NOON, open_run=4))
    assert recompute(story.events[-1], agent("wren-1", address="wren")).reason == "wren-1 is in run 4"
    quiet = agent(limits={"quiet_hours": (parse_window("11:00-13:00"),)})
    for slot, kind in (("", "defer"), ("2026-03-02T12:00:00.000000Z", "admit")):
        story.decide(wake(slot=slot), NOON)
        assert recompute(story.events[-1], quiet).kind == kind


def test_a_tripped_pause_is_an_event_of_its_own_and_no_part_of_a_recomputed_verdict():
    story = Story(agent())
    story.decide(wake(), NOON, defer("burst", "20 starts"), facts=Facts(now=NOON, burst_starts=20))
    again = recompute(story.events[-1], agent())
    assert (again.guard, again.trip) == ("burst", None)


def test_the_word_of_a_check_command_and_an_answer_that_nobody_gave_stay_as_they_were_told():
    story = Story(agent())
    told = defer("check", "nothing to do", until=NOON + HOUR)
    story.decide(wake(), NOON, told)
    assert recompute(story.events[-1], agent()) == told
    nobody = refuse("moot", "the reason no longer stands: no agent answers to lark")
    story.decide(wake(name="lark"), NOON, nobody, facts=None)
    assert recompute(story.events[-1], agent()) == nobody


def test_a_request_that_joined_another_has_no_verdict_to_recompute():
    story = Story(agent())
    story.tell(EventKind.decided, NOON, "moss", wake=2, cause="news", joined=1)
    with pytest.raises(Mistake, match=r"event 2 carries no verdict of its own .*the wake that it joined"):
        recompute(story.events[-1], agent())


# ---- what is not told


def test_nothing_is_assumed_of_a_beat_whose_events_are_all_there():
    story = Story(agent())
    story.lived(wake(), NOON - HOUR)
    assert story.at(wake()).assumptions == ()


def test_what_lay_in_an_inbox_and_whether_a_task_was_ready_is_taken_in_favour_of_the_wake():
    story = Story(agent())
    [inbox] = story.at(peer()).assumptions
    assert inbox == "the events do not tell what lay in the inbox of moss: what rang is taken to have been unshown"
    [task] = story.at(wake(Cause.task, task=3)).assumptions
    assert task == "the events do not tell what task 3 waited for: it is taken to have been ready"
    [any_task] = story.at(wake(Cause.task)).assumptions
    assert any_task == "the events do not tell what a task waited for: it is taken to have been ready"
    assert story.at(wake(Cause.operator)).assumptions == (), "an operator who simply asks needs nothing in the inbox"


def test_a_beat_whose_due_instant_is_not_told_is_taken_to_have_been_due():
    story = Story(agent())
    del story.events[0].fields["due_at"]
    known = story.at(wake())
    assert known.assumptions == ("the events do not tell when moss was due: its beat is taken to have been due",)
    assert said(known) == ADMIT
    story.lived(wake(), NOON - HOUR)
    assert story.at(wake()).assumptions == ()


@pytest.mark.parametrize(("zone", "said"), [("UTC", False), ("Asia/Tokyo", True)])
def test_a_pair_whose_other_half_was_in_that_day_already_may_have_been_counted_before(zone, said):
    story = Story(agent(), agent("wren", timezone=zone))
    for hours in (20, 2):
        story.lived(wake(name="wren"), NOON - hours * HOUR)
    del story.events[2]
    known = story.at(peer()).assumptions
    assert any("on that day before 2026-03-01T16:01:00.000000Z is not counted" in each for each in known) is said


def test_where_old_events_are_gone_each_assumption_is_said():
    states = (State("beat", next="audit", min_interval=HOUR), State("audit", next="beat"))
    story = Story(agent(lifecycle=Lifecycle("beat", states), limits={"usd_per_day": 1_000_000}), agent("wren"))
    for hours in (20, 2):
        story.lived(wake(name="wren"), NOON - hours * HOUR)
    del story.events[2]
    since = "2026-03-01T16:01:00.000000Z"
    known = story.at(peer(by_run=9)).assumptions
    assert known[1:] == (
        f"the events before {since} are gone: no run of then is taken to be open, no untold pause to stand",
        f"nobody who asked before {since} is taken to wait for a slot still",
        f"what run 9 asked for before {since} is not counted",
        "whose run 9 was is not told: it is taken to have as many wakes as one of moss",
        "no end of a run of moss is told: it is taken to stand at the start of its lifecycle",
        "no beat in beat that ended done is told: its gate is taken to have been open",
        f"the reserve is drawn from the 0 runs whose cost is told since {since}",
    )
    del story.events[-2]
    later = story.at(wake(), NOON - 2 * HOUR + 2 * MINUTE).assumptions
    assert later[0] == "the events do not tell when moss was due: its beat is taken to have been due"
    assert later[3:5] == (
        "what was woken, run and spent on that day before 2026-03-02T10:01:00.000000Z is not counted",
        "starts and peer wakes before 2026-03-02T10:01:00.000000Z are not counted by burst and cooldown",
    )


def test_an_agent_of_whom_no_event_tells_is_unknown_and_the_oldest_event_is_named():
    story = Story(agent(), agent("wren"))
    with pytest.raises(Unknown, match=r"the events until 2026-03-02T12:00:00.000000Z tell of no agent .* to lark$"):
        story.at(wake(name="lark"))
    del story.events[0]
    with pytest.raises(Unknown, match=r"to moss; those before 2026-03-02T00:00:00.000000Z are gone"):
        story.at(wake())
