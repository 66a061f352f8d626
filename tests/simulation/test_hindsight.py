"""Why, at every recorded instant: the guards asked again, with the facts of the event and with those of a replay.

One thing is not derived, and only for wakes about an inbox or a task: `moot` looks at items there, and items are not
told by events. A removed or disabled agent, and a beat that is not due, are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import compress

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Fleet
from wakeful.core.cadence import Cadence
from wakeful.core.codec import decode
from wakeful.core.events import Event, EventKind
from wakeful.core.facts import Facts
from wakeful.core.guards import GUARDS
from wakeful.core.hindsight import Hindsight, Replay, facts_at, recompute
from wakeful.core.past import asked
from wakeful.core.settlement import skip_beat
from wakeful.core.wakes import Cause, Subject, Verdict, VerdictKind, Wake
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.checkers import History
from wakeful.testing.simulate import open_store
from wakeful.testing.world import World

SEEDS, DAYS = (1, 2, 3, 5, 7, 8, 9, 12, 17, 19), 1.0
FEWEST = 500
FROM_ITEMS = ("what rang has been dealt with since", "task ")
MET = {guard.name for guard in GUARDS} | {None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One recorded decision, and what a replay of everything before it says."""

    event: Event
    facts: Facts
    verdict: Verdict
    agent: Agent
    known: Hindsight

    def same_moot(self) -> Facts:
        """The replayed facts, with what only the items could tell."""
        told = self.facts.moot or ""
        return replace(self.known.facts, moot=told) if told.startswith(FROM_ITEMS) else self.known.facts


@pytest.fixture(scope="module")
def worlds(tmp_path_factory) -> Iterator[list[World]]:
    lived = []
    for seed in SEEDS:
        lived.append(World(seed, tmp_path_factory.mktemp("world") / "wakeful.db", open_store, days=DAYS))
        lived[-1].run()
    yield lived
    for world in lived:
        world.store.close()


@pytest.fixture(scope="module")
def histories(worlds) -> list[list[Event]]:
    return [History(world.store, world.witness).events for world in worlds]


@pytest.fixture(scope="module")
def instants(histories) -> list[Instant]:
    found: list[Instant] = []
    for events in histories:
        replay = Replay()
        for event in events:
            if event.kind is EventKind.decided and "facts" in event.fields:
                found.append(look(replay, event))
            replay.feed(event)
    return found


def look(replay: Replay, event: Event) -> Instant:
    return Instant(
        event=event,
        facts=decode(Facts, event.fields["facts"]),
        verdict=decode(Verdict, event.fields["verdict"]),
        agent=replay.agent(event.agent),
        known=replay.facts(asked(event), event.at, agent=event.agent),
    )


def test_every_recorded_verdict_is_what_the_guards_say_to_the_facts_of_its_own_event(instants):
    assert len(instants) >= FEWEST
    assert {instant.verdict.guard for instant in instants} == MET
    for instant in instants:
        assert recompute(instant.event, instant.agent) == instant.verdict, instant.event


@pytest.mark.parametrize("name", [field.name for field in fields(Facts)])
def test_the_events_before_a_decision_give_its_fact(name, instants):
    told = {str(getattr(instant.facts, name)) for instant in instants}
    assert len(told) > 1, "no world has what this fact tells: live more seeds"
    for instant in instants:
        assert getattr(instant.same_moot(), name) == getattr(instant.facts, name), instant.event


def test_what_items_alone_can_tell_is_never_said_of_a_beat_and_is_always_said_to_be_assumed(instants):
    for instant in instants:
        if instant.known.facts.moot != instant.facts.moot:
            assert instant.known.wake.subject is not Subject.beat
            assert any("the events do not tell what" in said for said in instant.known.assumptions)


def test_the_verdict_on_replayed_facts_is_the_recorded_one(instants):
    for instant in instants:
        verdict = admit(instant.known.wake, instant.same_moot(), instant.known.limits)
        assert replace(verdict, trip=None) == instant.verdict, instant.event
        assert instant.known.version == instant.event.fields["version"]


def test_nothing_is_assumed_of_a_beat_while_no_event_is_gone(instants):
    assert not [said for at in instants if at.known.wake.subject is Subject.beat for said in at.known.assumptions]


# ---- against the store of now


def replayed(events: list[Event]) -> Replay:
    replay = Replay()
    for event in events:
        replay.feed(event)
    return replay


def test_agents_and_standings_at_the_end_are_those_of_the_store(worlds, histories):
    for world, events in zip(worlds, histories, strict=True):
        lives = replayed(events).past.lives
        for agent in world.store.agents(removed=True):
            known = lives[agent.name]
            assert (known.agent, known.standing) == (agent, world.store.standing(agent.name))


def test_the_store_asked_why_now_gathers_the_same_facts_for_the_same_agent(worlds, histories):
    asked_about = 0
    for world, events in zip(worlds, histories, strict=True):
        replay, now = replayed(events), world.clock.wall
        names = {agent.name for agent in world.known.agents} | {agent.address for agent in world.known.agents}
        for name in sorted(names):
            for cause, subject in ((Cause.timer, Subject.beat), (Cause.operator, Subject.beat), (Cause.peer, "inbox")):
                sender = world.known.agents[0].name if cause is Cause.peer else None
                wake = Wake(agent=name, cause=cause, subject=Subject(subject), requested_at=now, sender=sender)
                why, known = world.store.why(wake, now), replay.facts(wake, now)
                moot = why.facts.moot if cause is Cause.peer else known.facts.moot
                assert (replace(known.facts, moot=moot), known.limits) == (why.facts, why.limits), (world.seed, wake)
                asked_about += 1
    assert asked_about > 100


def test_a_beat_that_a_check_skipped_stands_where_the_store_says(tmp_path):
    now = datetime(2026, 3, 2, 12, tzinfo=UTC)
    moss = Agent(name="moss", address="moss", cadence=Cadence(interval=timedelta(minutes=1)), check="./anything-new")
    store = open_sqlite(tmp_path / "wakeful.db")
    try:
        store.declare(Fleet(agents=(moss,), grace=timedelta()), now, boot=True)
        for _ in range(3):
            [wake] = store.due(now).wakes
            decision = store.skip(wake, "nothing new", admit, skip_beat, now)
            assert (decision.verdict.kind, decision.verdict.guard) == (VerdictKind.defer, "check")
            event = store.events()[-1]
            assert recompute(event, moss) == decision.verdict
            known = facts_at(store.events(), wake, now)
            assert known.standing == store.standing("moss")
            assert known.standing.due_at == decision.verdict.until
            now = decision.verdict.until
        assert known.standing.idle_streak == 3
    finally:
        store.close()


# ---- where events are gone


# What is said where a fact may differ. How long ago a peer wake was matters only within the cooldown.
GONE, ON_THAT_DAY, NOT_DONE = "are gone", "on that day before", ("start of its lifecycle", "its gate is taken")
EXPLAINED = {
    "moot": ("the events do not tell when",),
    "pause": (GONE,),
    "open_run": (GONE,),
    "slots_taken": (GONE,),
    "wakes_by_run": ("asked for before",),
    "wakes_allowed": ("whose run",),
    "wakes_today": (ON_THAT_DAY,),
    "pair_wakes_today": (ON_THAT_DAY,),
    "seconds_today": (ON_THAT_DAY,),
    "spent": (ON_THAT_DAY,),
    "fleet_spent": (ON_THAT_DAY,),
    "reserve": ("the reserve is drawn", *NOT_DONE),
    "burst_starts": ("starts and peer wakes",),
    "last_peer_wake_at": ("starts and peer wakes",),
    "gate_opens_at": NOT_DONE,
    "gate_state": NOT_DONE,
}


def test_where_events_are_gone_a_fact_that_differs_has_its_assumption_said(worlds, histories):
    """Nothing that is left tells that a clock was a day ahead before it: such worlds are left out here."""
    differed = set()
    steady = [world.faults.counts["clock set by a day"] == 0 for world in worlds]
    assert sum(steady) >= 6
    for events in compress(histories, steady):
        replay, cut = Replay(), len(events) // 2
        for number, event in enumerate(events):
            if number < cut and event.kind not in (EventKind.declared, EventKind.set, EventKind.removed):
                continue
            if number > cut and event.kind is EventKind.decided and "facts" in event.fields:
                instant = look(replay, event)
                said = "; ".join(instant.known.assumptions)
                for name in different(instant):
                    assert any(part in said for part in EXPLAINED[name]), (name, said, event)
                    differed.add(name)
            replay.feed(event)
    assert differed >= {"pause", "wakes_today", "spent", "seconds_today", "reserve", "slots_taken", "moot"}


def different(instant: Instant) -> list[str]:
    known, told = instant.same_moot(), instant.facts
    names = [field.name for field in fields(Facts) if getattr(known, field.name) != getattr(told, field.name)]
    since = told.now - (told.last_peer_wake_at or told.now)
    if "last_peer_wake_at" in names and not timedelta() < since < instant.known.limits.cooldown:
        names.remove("last_peer_wake_at")
    return names
