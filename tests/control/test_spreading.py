"""Beats of many agents do not fall due together, whatever brought them about; what somebody wrote is not moved."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.control.desk import HOUR, MINUTE, NOON, SECOND, an_agent
from wakeful.core.agents import Agent, Fleet, Limits
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.wakes import VerdictKind

MANY = 100
GRACE, STAGGER = MINUTE, 30 * SECOND


def names(first, count):
    return [f"agent-{number:03}" for number in range(first, first + count)]


def declare(desk, *agents: Agent) -> None:
    desk.store.declare(Fleet(agents=agents, grace=GRACE, stagger=STAGGER, sessions=MANY), desk.now)


def dues(desk, wanted):
    found = [desk.store.standing(name).due_at for name in wanted]
    assert None not in found
    return found


def most_in(found, span):
    """How many fall into the fullest span, counted from any of them."""
    return max(sum(start <= other < start + span for other in found) for start in found)


def started(desk, until, step=SECOND):
    """When each run began, every run ending at once."""
    starts = []
    while desk.now < until:
        desk.later(step)
        starts += [desk.now for decision in desk.due() if decision.verdict.kind is VerdictKind.admit]
        for order in desk.claim():
            desk.end(order)
    return starts


def test_agents_that_an_edit_adds_to_a_fleet_at_work_are_spread_as_those_of_the_first_start(desk):
    first = [an_agent(name) for name in names(0, 10)]
    declare(desk, *first)
    before = dues(desk, names(0, 10))
    desk.later(10 * MINUTE)
    declare(desk, *first, *(an_agent(name) for name in names(10, MANY)))
    added = dues(desk, names(10, MANY))
    assert dues(desk, names(0, 10)) == before
    assert most_in(added, STAGGER) <= 1
    assert min(added) > NOON + 10 * MINUTE + GRACE and max(added) - min(added) < HOUR


def test_agents_that_are_enabled_together_are_spread_too(desk):
    declare(desk, *(an_agent(name, enabled=False) for name in names(0, MANY)))
    desk.later(HOUR)
    declare(desk, *(an_agent(name) for name in names(0, MANY)))
    assert most_in(dues(desk, names(0, MANY)), STAGGER) <= 1


def test_beats_that_an_edit_of_the_interval_brings_forward_do_not_meet(desk):
    declare(desk, *(an_agent(name, every=24 * HOUR) for name in names(0, MANY)))
    started(desk, NOON + HOUR, MINUTE)
    declare(desk, *(an_agent(name, every=HOUR) for name in names(0, MANY)))
    found = dues(desk, names(0, MANY))
    assert most_in(found, STAGGER) <= 1
    assert min(found) >= desk.now + HOUR and max(found) < desk.now + 2 * HOUR


def test_an_edit_of_the_offset_takes_agents_apart(desk):
    def with_offsets(*minutes):
        for name, offset in zip(names(0, 3), minutes, strict=True):
            yield an_agent(name, cadence=Cadence(interval=HOUR, offset=offset * MINUTE))

    declare(desk, *with_offsets(5, 5, 5))
    assert len(set(dues(desk, names(0, 3)))) == 1
    desk.later(MINUTE)
    declare(desk, *with_offsets(5, 15, 25))
    assert dues(desk, names(0, 3)) == [NOON + GRACE + wait * MINUTE for wait in (5, 16, 26)]


def test_a_short_interval_is_shared_out_among_all(desk):
    ten = 10 * MINUTE
    declare(desk, *(an_agent(name, every=ten) for name in names(0, MANY)))
    found = dues(desk, names(0, MANY))
    assert (most_in(found, ten / MANY), max(found) - min(found)) == (1, ten - ten / MANY)


def test_what_a_pause_held_back_is_let_go_over_a_minute_and_stays_apart_afterwards(desk):
    declare(desk, *(an_agent(name) for name in names(0, MANY)))
    desk.ask("pause", reason="deploy")
    assert started(desk, NOON + 3 * HOUR, MINUTE) == []
    desk.ask("resume")
    released = desk.now
    starts = started(desk, released + 2 * MINUTE)
    assert len(starts) == MANY and max(starts) <= released + MINUTE + SECOND
    assert max(Counter(starts).values()) <= 8
    # The next beats are counted from the ends of these.
    assert most_in(dues(desk, names(0, MANY)), SECOND) <= 8


def test_what_waited_for_midnight_is_let_go_over_ten_minutes(desk):
    limits = Limits(tokens_per_day=1_000, reserve_tokens=1_000)
    declare(desk, *(an_agent(name, every=20 * MINUTE, limits=limits) for name in names(0, MANY)))
    midnight = datetime(2026, 3, 3, tzinfo=UTC)
    # One run each uses up the day; the rest of it is waited out.
    assert len(started(desk, midnight, MINUTE)) == MANY
    waiting = [row.retry_at for row in desk.store.wakes(state="waiting", limit=1_000)]
    assert len(waiting) == MANY
    assert midnight <= min(waiting) and max(waiting) < midnight + 10 * MINUTE
    assert most_in(waiting, MINUTE) <= 25


def test_a_schedule_is_what_somebody_wrote_and_is_not_moved(desk):
    hourly = Cadence(schedule=parse_schedule("0 * * * *"))
    declare(desk, *(replace(an_agent(name), cadence=hourly) for name in names(0, MANY)))
    assert set(dues(desk, names(0, MANY))) == {NOON + HOUR}


def test_an_offset_is_counted_from_the_start_and_not_spread(desk):
    five = Cadence(interval=HOUR, offset=5 * MINUTE)
    declare(desk, *(replace(an_agent(name), cadence=five) for name in names(0, 3)), an_agent("wren"))
    assert set(dues(desk, names(0, 3))) == {NOON + GRACE + timedelta(minutes=5)}
    assert dues(desk, ["wren"]) == [NOON + GRACE + 3 * STAGGER]
