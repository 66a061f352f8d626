"""40 agents that wake three others 2,000 times from runs of their own while the engine is killed six times: nobody is
woken more than 12 times a day, no two wake each other more than 5 times, every message is kept and shown, and a restart
changes nothing. Within a cooldown: one run of each.

SEED=7 in the environment changes when.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from soak.accounts import Told, every_item, every_run, every_wake, fleet, last_verdicts
from soak.standing import Ground, free_port, until
from wakeful.store.protocol import WakeRow
from wakeful.store.store import SqlStore

SEED = int(os.environ.get("SEED", "2026"))
TARGETS = ("finn", "yang", "yuki")
SENDERS = tuple(f"sender-{number}" for number in range(40))
# Seconds.
LONGEST = 180.0


# The first of them use up a pair each, the next the few wakes of a run that they are given; then all begin.
FIRST = [*((name, "wakes_per_pair") for name in TARGETS), *((name, "wakes_per_run") for name in TARGETS)]
HELD = SENDERS[len(TARGETS) : len(FIRST)] + SENDERS[-4:]


def crowd(each: int, *, leaders: bool, **keys: str) -> str:
    what = {name: f"sender {each} {','.join(TARGETS)}" for name in SENDERS}
    for name, (target, guard) in zip(SENDERS, FIRST if leaders else (), strict=False):
        what[name] += f" {target}:{guard}"
    few = dict.fromkeys(HELD if leaders else (), ":MAX-WAKES-PER-RUN: 3")
    return fleet(what | dict.fromkeys(TARGETS, "target"), few, max_wakes_per_run="1000", **keys)


class Counts:
    """What the store has to say of the targets."""

    def __init__(self, store: SqlStore) -> None:
        self.everybody = {row.wake.id: row for row in every_wake(store)}
        self.wakes = [row for row in self.everybody.values() if row.wake.agent in TARGETS and row.wake.cause == "peer"]
        self.messages = [item for name in TARGETS for item in every_item(store, name)]
        self.verdicts = last_verdicts(store)
        runs = [row for row in every_run(store) if row.cause == "peer" and row.state == "ended"]
        # Once for each wake that became a run.
        self.admitted = list({run.wake: run for run in runs}.values())
        days = {run.admitted_at.date().isoformat() for run in runs}
        self.totals = {(name, day): store.total(f"agent:{name}", day, "wakes") for name in TARGETS for day in days}

    def by_agent(self) -> Counter[tuple[str, str]]:
        found = [(run.agent, run.admitted_at.date().isoformat()) for run in self.admitted]
        return Counter((name, day) for name, day in found if name in TARGETS)

    def by_pair(self) -> Counter[Any]:
        """Of everybody, also of those whom a target woke; who woke whom does not matter."""
        pairs = [frozenset((self.everybody[run.wake].wake.sender, run.agent)) for run in self.admitted]
        days = [run.admitted_at.date() for run in self.admitted]
        return Counter(zip(pairs, days, strict=True))

    def by_run(self, senders: Sequence[str]) -> Counter[int]:
        """How many wakes of each run of these agents became runs of others."""
        asked = [self.everybody[run.wake].wake for run in self.admitted]
        return Counter(wake.by_run for wake in asked if wake.sender in senders)

    def refused(self) -> list[WakeRow]:
        return [row for row in self.wakes if row.state == "refused"]

    def unexplained(self) -> list[WakeRow]:
        """Refusals of which guard and reason are not both in the row and in the event."""
        found = []
        for row in self.refused():
            told = self.verdicts.get(row.wake.id, {})
            if not row.guard or not row.reason or (told["guard"], told["reason"]) != (row.guard, row.reason):
                found.append(row)
        return found

    def all(self) -> tuple[object, ...]:
        wakes = [(row.wake.id, row.state, row.guard, row.reason) for row in self.wakes]
        return wakes, [(item.id, item.state) for item in self.messages], self.by_agent(), self.by_pair(), self.totals


def flood(here: Ground, wakes: int, say, *, kills: int, leaders: bool) -> Told:
    """All of them begin at once; the engine is killed at so many random moments of it."""
    told, dice, began = Told(here), random.Random(SEED), time.monotonic()
    moments = sorted([dice.randrange(5, 15), *dice.sample(range(40, wakes - 100), kills - 1)])
    if not leaders:
        (here.folder / "go").touch()
    here.up()
    for moment in [*moments, wakes]:
        while (count := len(told.answers(TARGETS))) < moment:
            assert time.monotonic() - began < LONGEST, f"{count} of {wakes}: {told.lines('wrong')[:3]} {here.log()}"
            if len(told.lines("used-up")) == len(FIRST):
                (here.folder / "go").touch()
            time.sleep(0.02)
        if moment < wakes:
            time.sleep(dice.random() / 10)
            here.kill()
            here.up()
    until(lambda: len(told.lines("end")) == len(SENDERS), "the end of all senders", 60)
    assert told.lines("wrong") == told.lines("gave-up") == []
    say(f"{wakes} wakes by {len(SENDERS)} agents, {kills} kills, {time.monotonic() - began:.0f} s")
    (here.folder / "over").touch()
    # Whatever waited for one of them to end is decided.
    time.sleep(2)
    here.drain()
    return told


def counted(here: Ground) -> Counts:
    with here.store() as store:
        return Counts(store)


def show_all(here: Ground) -> int:
    """Beats of the targets, until their inboxes are empty; how many it took."""
    here.up()
    ticks = 0
    for name in TARGETS:
        while here.told("inbox", name)["items"]:
            ticks += 1
            done = here.ask("tick", name, "--wait")
            assert done.returncode == 0, done.stderr
    here.drain()
    return ticks


def test_a_flood_while_the_engine_is_killed_stays_within_every_limit_and_every_message_is_shown(ground, address, say):
    each = 50
    here = ground(crowd(each, leaders=True, cooldown="0s"), store=address, port=free_port())
    told = flood(here, each * len(SENDERS), say, kills=6, leaders=True)
    counts = counted(here)
    say(f"woken {dict(counts.by_agent())}; refused by {dict(told.guards(TARGETS))}")
    assert max(counts.by_agent().values()) <= 12 and max(counts.by_pair().values()) <= 5
    # What is told of a day is what its rows add up to.
    assert counts.totals == {key: counts.by_agent()[key] for key in counts.totals}
    refusals = Counter(row.guard for row in counts.refused())
    assert min(refusals[guard] for guard in ("wakes_per_run", "wakes_per_day", "wakes_per_pair")) > 0
    # How many a run may wake is said by its own agent.
    assert {row.wake.sender for row in counts.refused() if row.guard == "wakes_per_run"} <= set(HELD)
    assert max(counts.by_run(HELD).values()) <= 3 < max(counts.by_run(SENDERS).values())
    assert counts.unexplained() == []
    assert len(counts.messages) == len({message for _, _, message, *_ in told.answers(TARGETS)}) == each * len(SENDERS)
    here.up()
    time.sleep(1)
    here.leave()
    assert counted(here).all() == counts.all(), "a restart changes nothing"
    say(f"all shown after {show_all(here)} more beats of {len(TARGETS)} agents")
    assert told.shown(TARGETS) == dict.fromkeys((item.id for item in counts.messages), 1)


def test_within_the_cooldown_a_flood_starts_one_run_of_each_target(ground, address, say):
    each = 15
    here = ground(crowd(each, leaders=False, cooldown="300s"), store=address, port=free_port())
    told = flood(here, each * len(SENDERS), say, kills=2, leaders=False)
    counts = counted(here)
    say(f"woken {dict(counts.by_agent())}; refused by {dict(told.guards(TARGETS))}")
    assert sorted(name for name, _ in counts.by_agent().elements()) == sorted(TARGETS)
    assert {row.guard for row in counts.refused()} - {"moot"} == {"cooldown"}
    assert counts.unexplained() == []
    assert len(counts.messages) == each * len(SENDERS)
    show_all(here)
    assert told.shown(TARGETS) == dict.fromkeys((item.id for item in counts.messages), 1)
