"""The events told again: what counts, what was never there, and who answers."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.core.story import DAWN, HOUR, MINUTE, NOON, Story, agent, peer, wake
from wakeful.core.codec import encode
from wakeful.core.events import EventKind
from wakeful.core.facts import Facts
from wakeful.core.hindsight import Replay, facts_at
from wakeful.core.lifecycle import Kind, Lifecycle, Position, State
from wakeful.core.past import asked
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, defer, refuse

RESERVED = Facts(now=NOON, reserve=Spend(usd=300, tokens=20))


# ---- declarations


def test_an_agent_is_as_it_was_declared_then_with_the_live_settings_of_then():
    story = Story(agent())
    story.set(agent(limits={"wakes_per_day": 2}), DAWN + HOUR, wakes_per_day=2)
    story.set(agent(limits={"wakes_per_day": 2, "cooldown": MINUTE}), DAWN + 2 * HOUR, cooldown=MINUTE)
    story.declare(agent(timezone="Europe/Berlin"), DAWN + 3 * HOUR)
    story.set(agent(timezone="Europe/Berlin", limits={"cooldown": MINUTE}), DAWN + 4 * HOUR, wakes_per_day=None)
    story.declare(agent(limits={"wakes_per_day": 9}), DAWN + 5 * HOUR)
    seen = [story.at(wake(), DAWN + hours * HOUR) for hours in range(6)]
    assert [known.limits.wakes_per_day for known in seen] == [12, 2, 2, 2, 12, 9]
    assert [known.limits.cooldown // MINUTE for known in seen] == [5, 5, 1, 1, 1, 1]
    assert [known.version for known in seen] == [1, 2, 3, 4, 5, 6]
    assert [known.facts.timezone for known in seen] == ["UTC"] * 3 + ["Europe/Berlin"] * 2 + ["UTC"]


def test_live_settings_of_policies_outlive_a_declaration_too():
    story = Story(agent())
    story.set(agent(max_failures=2), DAWN + HOUR, max_failures=2, retry_base=timedelta(seconds=4), minutes_per_day=5.0)
    story.declare(agent(), DAWN + 2 * HOUR)
    known = story.at(wake()).agent
    assert (known.max_failures, known.retries.base, known.limits.minutes_declared) == (2, timedelta(seconds=4), True)


def test_who_was_disabled_or_removed_was_not_woken_and_who_came_back_stands_where_it_stood():
    story = Story(agent())
    story.lived(wake(), DAWN, stands=["beat", 2], idle_streak=3)
    story.declare(agent(enabled=False), DAWN + HOUR, due=None)
    story.tell(EventKind.removed, DAWN + 2 * HOUR, "moss")
    story.declare(agent(), DAWN + 3 * HOUR, due=encode(NOON))
    moot = [story.at(wake(), DAWN + hours * HOUR).facts.moot for hours in (0, 1, 2, 3, 12)]
    late = "the beat has been run or moved since"
    assert moot == [None, "moss is disabled", "moss was removed from the fleet", late, None]
    standing = story.at(wake()).standing
    assert (standing.position, standing.idle_streak, standing.due_at) == (Position("beat", 2), 3, NOON)


def test_a_run_that_ends_after_its_agent_was_disabled_leaves_no_due_instant():
    story = Story(agent())
    run = story.decide(wake(), DAWN)
    story.declare(agent(enabled=False), DAWN + HOUR, due=None)
    story.end(run, "moss", DAWN + 2 * HOUR)
    assert story.at(wake()).standing.due_at is None


def test_a_start_moves_what_was_due_behind_its_grace():
    story = Story(agent(), agent("wren", timezone="Europe/Berlin"))
    story.declare(agent("lark"), due=None)
    story.declare(agent("reed"), due=encode(NOON + 5 * HOUR))
    story.tell(EventKind.booted, NOON, grace=60.0)
    dues = [story.at(wake(name=name)).standing.due_at for name in ("moss", "wren", "lark", "reed")]
    assert dues == [NOON + MINUTE, NOON + MINUTE, None, NOON + HOUR]


# ---- the end of a run


def test_the_end_of_a_beat_moves_all_of_the_standing_and_forgets_the_gates_of_states_that_are_gone():
    states = (State("beat", next="audit"), State("audit", next="beat"))
    story = Story(agent(lifecycle=Lifecycle("beat", states)))
    story.lived(wake(), DAWN, position=["beat", 0], stands=["audit", 0], spend=Spend(usd=7))
    story.lived(wake(), DAWN + HOUR, position=["audit", 0], stands=["beat", 0], spend=Spend(usd=9), estimated=True)
    ended = DAWN + HOUR + MINUTE
    due = story.events[0].fields["due_at"]
    standing = story.at(wake()).standing
    assert (standing.gates, standing.costs) == ({"beat": DAWN + MINUTE, "audit": ended}, (Spend(usd=7),))
    assert (standing.last_outcome, standing.last_ended_at, encode(standing.due_at)) == ("done", ended, due)
    story.declare(agent(), DAWN + 2 * HOUR)
    story.lived(wake(), DAWN + 3 * HOUR, outcome="failed", failure_streak=1)
    standing = story.at(wake()).standing
    assert (standing.gates, standing.failure_streak) == ({"beat": DAWN + MINUTE}, 1)


def test_an_inbox_run_stamps_no_gate():
    story = Story(agent())
    story.lived(peer(), DAWN)
    assert not story.at(wake()).standing.gates


def test_minutes_and_money_count_on_the_day_of_the_admission_in_the_zone_of_agent_and_fleet():
    story = Story(agent(timezone="Asia/Kolkata", limits={"usd_per_day": 10_000}))
    admitted = DAWN + 20 * HOUR  # the third of March in Kolkata
    run = story.decide(wake(), admitted, facts=RESERVED)
    story.end(run, "moss", admitted + HOUR, spend=Spend(usd=500, tokens=1), ms=3_600_500, day="2026-03-03")
    seen = [story.at(wake(), admitted + hours * HOUR).facts for hours in (-1, 0, 1, 5, 24)]
    reserved, settled = Spend(usd=300, tokens=20), Spend(usd=500, tokens=1)
    assert [facts.spent for facts in seen] == [Spend(), reserved, settled, settled, Spend()]
    assert [facts.fleet_spent for facts in seen] == [Spend(), reserved, settled, Spend(), Spend()]
    assert [facts.seconds_today for facts in seen] == [0, 0, 3600.5, 3600.5, 0]


def test_a_quiet_beat_needs_no_money():
    states = (State("rest", next="rest", kind=Kind.rem),)
    story = Story(agent(lifecycle=Lifecycle("rest", states), limits={"usd_per_day": 10}))
    assert story.at(wake()).facts.reserve is None
    assert story.at(wake(Cause.operator)).facts.reserve == Spend(usd=1)


def test_the_end_of_a_run_whose_admission_is_gone_is_counted_all_the_same():
    story = Story(agent())
    run = story.decide(wake(), DAWN, facts=RESERVED)
    story.end(run, "moss", DAWN + MINUTE, spend=Spend(usd=50), ms=1000)
    del story.events[1]
    facts = story.at(wake()).facts
    assert (facts.spent.usd, facts.fleet_spent.usd, facts.seconds_today, facts.open_run) == (50, 50, 1.0, None)


def test_what_is_told_of_agents_whose_declaration_is_gone_still_fills_slots():
    story = Story(agent())
    run = story.decide(wake(name="wren"), DAWN)
    assert story.at(wake()).facts.slots_taken == 1
    story.end(run, "wren", DAWN + MINUTE)
    story.tell(EventKind.removed, DAWN + MINUTE, "wren")
    assert story.at(wake()).facts.slots_taken == 0


def test_a_setting_may_be_the_first_that_is_told_of_an_agent():
    story = Story()
    story.set(agent(limits={"wakes_per_day": 2}), DAWN, wakes_per_day=2)
    assert story.at(wake()).limits.wakes_per_day == 2


# ---- void, waiting, joined


def test_a_run_that_is_void_was_never_there():
    story = Story(agent())
    empty = story.at(peer()).facts
    run = story.decide(peer(by_run=9), DAWN, facts=RESERVED)
    assert story.at(peer(), DAWN).facts != empty
    story.tell(EventKind.voided, DAWN + MINUTE, "moss", wake=1, run=run, charged=True)
    assert story.at(peer()).facts == empty
    assert story.at(peer(by_run=9)).facts.wakes_by_run == 1, "its wake waits again"
    story.events[-1].fields["joined"] = 7
    assert story.at(peer(by_run=9)).facts.wakes_by_run == 0, "unless it is part of another"


def test_a_void_of_a_run_that_nobody_told_of_changes_nothing():
    story = Story(agent())
    story.tell(EventKind.voided, DAWN, "moss", wake=1, run=5, charged=True)
    assert story.at(peer()).facts == Facts(now=NOON)


def test_a_wake_that_is_tried_again_does_not_stand_in_its_own_way():
    story = Story(agent())
    story.lived(peer(by_run=9), NOON - MINUTE, outcome="failed")
    other, again = story.at(peer(by_run=9)).facts, story.at(peer(by_run=9, id=1)).facts
    assert (other.wakes_today, other.pair_wakes_today, other.wakes_by_run) == (1, 1, 1)
    assert (again.wakes_today, again.pair_wakes_today, again.wakes_by_run) == (0, 0, 0)
    assert (other.last_peer_wake_at, again.last_peer_wake_at) == (NOON - MINUTE, None)
    story.decide(peer(by_run=9, id=1), NOON, refuse("moot", "shown since"))
    assert story.at(peer(by_run=9)).facts.wakes_by_run == 1, "it was charged once, whatever became of it"


def test_the_last_peer_wake_is_the_last_in_order_although_the_clock_was_set_back():
    story = Story(agent())
    story.lived(peer(), NOON)
    story.lived(peer(), NOON - HOUR)
    assert facts_at(story.events, peer(), NOON).facts.last_peer_wake_at == NOON - HOUR


def test_a_wake_recorded_while_nobody_decided_counts_for_the_run_that_asked():
    story = Story(agent())
    for name, joined in (("wren", {}), ("wren", {"joined": 1}), ("lark", {})):
        number = len(story.events)
        story.tell(EventKind.asked, DAWN, name, wake=number, cause="peer", subject="inbox", by_run=9, **joined)
    assert story.at(peer(by_run=9)).facts.wakes_by_run == 2
    assert story.at(peer(by_run=9, id=3)).facts.wakes_by_run == 1


def test_a_withdrawn_one_off_no_longer_waits_for_a_slot():
    story = Story(agent(), agent("wren"))
    story.decide(wake(name="wren", at=DAWN, slot="2026-03-02T06:00:00.000000Z"), DAWN, defer("slots", "all taken"))
    assert story.at(wake()).facts.slots_taken == 1
    story.tell(EventKind.decided, DAWN + HOUR, "wren", wake=1, cause="timer", subject="beat", withdrawn="x")
    assert story.at(wake()).facts.slots_taken == 0


def test_no_more_are_ahead_than_there_are_slots_and_an_agent_stands_where_its_oldest_wake_does():
    story = Story(agent())
    for minutes, name in enumerate(("wren", "lark", "reed", "moss")):
        story.decide(wake(Cause.news, name, DAWN + minutes * MINUTE), DAWN + HOUR, defer("slots", "all taken"))
    assert story.at(wake()).facts.slots_taken == 2
    assert story.at(wake(at=DAWN + MINUTE)).facts.slots_taken == 1
    story.decide(wake(Cause.operator, at=DAWN - MINUTE), DAWN + HOUR, defer("slots", "all taken"))
    assert story.at(wake()).facts.slots_taken == 0


def test_a_check_that_skips_a_beat_lengthens_the_idle_streak_and_moves_the_beat():
    story = Story(agent())
    story.decide(wake(), NOON - MINUTE, defer("check", "nothing to do", until=NOON + HOUR, idle_streak=3))
    standing = story.at(wake()).standing
    assert (standing.idle_streak, standing.due_at) == (3, NOON + HOUR)
    story.decide(wake(), NOON - MINUTE, refuse("check", "nothing to do", idle_streak=4))
    standing = story.at(wake()).standing
    assert (standing.idle_streak, standing.due_at) == (4, None)


# ---- who answers


def test_an_address_or_a_role_is_answered_by_the_idle_then_by_whoever_has_rested_longest():
    twins = [agent(f"wren-{number}", address="wren", roles=("writer",)) for number in (1, 2)]
    story = Story(*twins)
    names = [wake(Cause.task, "wren", task=3), wake(Cause.task, None, role="writer", task=3)]

    def answers() -> set[str]:
        return {story.at(asked).agent.name for asked in names}

    assert answers() == {"wren-1"}
    story.lived(wake(name="wren-1"), DAWN)
    assert answers() == {"wren-2"}
    story.decide(wake(name="wren-2"), DAWN + HOUR)
    assert answers() == {"wren-1"}
    story.pause("agent:wren-1", DAWN + 2 * HOUR)
    assert answers() == {"wren-2"}
    story.tell(EventKind.removed, DAWN + 3 * HOUR, "wren-2")
    assert answers() == {"wren-1"}


def test_whoever_is_named_answers_unless_it_was_removed_and_others_stand_behind_its_name():
    story = Story(agent(), agent("moss-1", address="moss"))
    assert story.at(wake()).agent.name == "moss"
    story.tell(EventKind.removed, DAWN, "moss")
    assert story.at(wake()).agent.name == "moss-1"
    story.tell(EventKind.removed, DAWN, "moss-1")
    assert story.at(wake()).facts.moot == "moss was removed from the fleet"


def test_a_pause_of_the_address_or_of_the_source_holds_too():
    story = Story(agent("wren-1", address="wren"))
    story.pause("source:board", DAWN)
    news = wake(Cause.news, "wren", source="board")
    assert story.at(news).facts.pause.scope == "source:board"
    assert story.at(wake(Cause.news, "wren", source="files")).facts.pause is None
    story.pause("agent:wren", DAWN, owner="quota")
    story.pause("agent:wren", DAWN, owner="file")
    assert story.at(news).facts.pause.owner == "file"


# ---- many instants in one pass


def test_a_replay_that_is_asked_on_its_way_says_what_a_fresh_one_says():
    story = Story(agent(), agent("wren"))
    for hour in range(6):
        story.lived(peer(sender="wren"), DAWN + hour * HOUR, ms=60_000, spend=Spend(usd=hour))
        story.pause("fleet", DAWN + hour * HOUR + 5 * MINUTE, until=DAWN + hour * HOUR + 9 * MINUTE)
    replay = Replay()
    for number, event in enumerate(story.events, 1):
        replay.feed(event)
        if number >= 2:
            assert replay.facts(peer(), event.at) == facts_at(story.events[:number], peer(), event.at)


@pytest.mark.parametrize("cause", [Cause.timer, Cause.peer, Cause.task])
def test_a_decided_event_gives_its_wake_back(cause):
    story = Story(agent())
    whole = wake(cause, "moss", NOON - HOUR, sender="wren", source="board", by_run=7, depth=2, id=5)
    whole = replace(whole, task=4) if cause is Cause.task else replace(whole, item=4)
    story.decide(whole, NOON)
    assert asked(story.events[-1]) == whole


def test_a_wake_for_an_address_or_a_role_is_given_back_as_it_was_asked_for():
    story = Story(agent("wren-1", address="wren", roles=("writer",)))
    for whole in (peer("wren", id=5), wake(Cause.task, None, role="writer", task=3, id=6)):
        story.decide(whole, NOON, answers="wren-1")
        assert asked(story.events[-1]) == whole
