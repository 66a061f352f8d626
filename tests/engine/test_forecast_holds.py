"""What is foretold is what happens: drawn fleets are asked for their next beats, and then lived by the real engine.

A seed draws the fleet, the instant (most of them within days of a change of offset), the outcome and the length of
every run. Half of the fleets are asked at their start, the others in the middle of a life in which runs ended this way
and that, some of them just after a restart: beats wait, are overdue, are under way, have streaks behind them. A failure
prints its seed and its fleet. FLEETS=1000 in the environment looks at more of them.
"""

import asyncio
import contextlib
import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from tests.engine.stage import MINUTE, Stage, fleet, heading
from wakeful.core.forecast import ENDINGS, Expected, forecast
from wakeful.core.lifecycle import SINGLE
from wakeful.core.orders import Order
from wakeful.core.runs import Outcome
from wakeful.core.wakes import Cause, Pause, Subject, Wake, agent_scope
from wakeful.engine import declarations, loop, retention, telling
from wakeful.testing.loop import LoopClock, live, passes
from wakeful.testing.runner import Plan

PORTIONS = 2
FLEETS = int(os.environ.get("FLEETS", 50))
# The rules are the same on every store; there it is only seen that its answers are.
FLEETS_ON_POSTGRES = 4
BEATS, HORIZON = 8, timedelta(days=7)
# A scripted guardian looks at its clock a microsecond late, so that each run is a little longer than foretold. Nothing
# else may come between: the least that any rule moves a beat by is a second.
TOLERANCE = timedelta(milliseconds=1)

# The zone, and a day close to which its offset changes. Kathmandu keeps its own, of a quarter of an hour.
WEEKS = (
    *(("Europe/Berlin", (2026, 3, 29)), ("Europe/Berlin", (2026, 10, 25))),
    *(("America/New_York", (2026, 3, 8)), ("America/New_York", (2026, 11, 1))),
    *(("Australia/Lord_Howe", (2026, 4, 5)), ("Australia/Lord_Howe", (2026, 10, 4))),
    *(("Africa/Cairo", (2026, 4, 24)), ("Africa/Cairo", (2026, 10, 30))),
    *(("Asia/Kathmandu", (2026, 12, 31)), ("UTC", (2028, 2, 29))),
)
ZONES = tuple(dict.fromkeys(zone for zone, _ in WEEKS))
NAMES = ("wren", "moss", "finch", "alder", "reed", "heron")
STATES = ("wake_plan", "wake_write", "wake_audit", "rem")
INTERVALS = ("5m", "20m", "47m", "2h", "5h", "11h")
SCHEDULES = (
    *("30 * * * *", "*/20 * * * *", "0 */3 * * *", "*/45 * * * *", "*/15 */2 * * *"),
    *("30 2 * * *", "15 0,1,2,3 * * *", "*/40 8-18 * * *", "0 0 * * *", "30 1 * * SUN", "10 2,14 * * MON-FRI"),
)
QUIET = ("23:00-07:00", "Mon-Fri 22:30-06:15", "01:30-03:00", "00:00-02:30", "Sat,Sun 00:00-24:00", "12:00-13:30")
WHENS = ("08:00-20:00", "22:00-04:00", "Mon-Fri 09:00-17:00", "0 3 * * *", "0 */6 * * *", "30 2 * * *")
# Of no length is a multiple a whole number of seconds that any rule counts in.
LENGTHS = (0.37, 3.37, 41.71, 187.29, 611.53)
# What holds beats back or moves them, in the words of a forecast: each portion meets all of it.
MET = {"quiet hours", "the gate of", "spent or reserved", "minutes today", "starts in", "under way", "asked for", "rem"}


@dataclass(frozen=True)
class World:
    start: datetime
    fleet: str
    days: dict[str, str]
    outcome: Outcome
    length: timedelta
    # How long the fleet has lived when it is asked, what its runs came to until then, and how long its engine was away.
    age: timedelta
    past: tuple[Outcome, ...]
    away: timedelta


def draw(seed: int) -> World:
    dice = Random(seed)
    zone, day = dice.choice(WEEKS)
    start = datetime(*day, tzinfo=UTC) + timedelta(seconds=dice.randrange(-48 * 3600, 24 * 3600))
    aged = dice.random() < 0.5
    names = NAMES[: dice.randint(1, len(NAMES))]
    days = {f"{name}-day.org": draw_day(dice) for name in names}
    agents = [heading(name, **draw_agent(dice, name, start)) for name in names]
    keys = {"timezone": dice.choice((zone, zone, "UTC")), "sessions": "20", "grace": dice.choice(("0s", "60s", "5m"))}
    if len(names) == 1 and dice.random() < 0.5:
        keys["budget_usd"] = dice.choice(("0.90", "4"))
    age = timedelta(seconds=dice.choice((1, 4, 12)) * 1000 * dice.random()) if aged else timedelta()
    away = timedelta(seconds=dice.choice((1, 100)) * 100 * dice.random()) if dice.random() < 0.4 else timedelta()
    return World(
        start=start,
        fleet=fleet(*agents, **{key.replace("_", "-"): value for key, value in keys.items()}),
        days=days,
        outcome=dice.choice((Outcome.done, Outcome.done, Outcome.no_work, Outcome.failed)),
        length=timedelta(seconds=dice.choice(LENGTHS)),
        age=age,
        past=tuple(dice.choices((Outcome.done, Outcome.no_work, Outcome.failed), (4, 3, 2), k=50)),
        away=away,
    )


def draw_agent(dice: Random, name: str, start: datetime) -> dict[str, str]:
    keys = draw_pace(dice)
    if dice.random() < 0.3:
        keys["timezone"] = dice.choice(ZONES)
    if dice.random() < 0.6:
        keys["lifecycle"] = f"{name}-day.org"
    if dice.random() < 0.45:
        keys["quiet_hours"] = "; ".join(dice.sample(QUIET, dice.randint(1, 2)))
    if dice.random() < 0.4:
        whole = start.replace(minute=0, second=0)
        moments = {whole + MINUTE * 30 * dice.randrange(1, 150) for _ in range(dice.randint(1, 3))}
        moments |= {start + MINUTE * dice.randrange(1, 600) for _ in range(dice.randint(0, 2))}
        keys["at"] = ", ".join(moment.isoformat() for moment in sorted(moments))
    if dice.random() < 0.25:
        keys["budget_usd"] = dice.choice(("0.50", "2"))
        if dice.random() < 0.7:
            keys["reserve"] = dice.choice(("0.13", "0.40", "0.40, 900 tokens"))
    if dice.random() < 0.15:
        keys["budget_tokens"] = "4000"
    if dice.random() < 0.25:
        keys["max_minutes_per_day"] = dice.choice(("1", "8", "30"))
    if dice.random() < 0.4:
        keys["burst"] = dice.choice(("2/30m", "3/1h", "5/2h"))
    if dice.random() < 0.4:
        keys["max_failures"] = str(dice.randint(1, 8))
    if dice.random() < 0.06:
        keys["enabled"] = "no"
    return keys


def draw_pace(dice: Random) -> dict[str, str]:
    match dice.choice(("interval", "interval", "schedule", "schedule", "continuous")):
        case "interval":
            offset = {"offset": dice.choice(("0s", "7m"))} if dice.random() < 0.2 else {}
            return {"interval": dice.choice(INTERVALS)} | offset
        case "schedule":
            return {"schedule": dice.choice(SCHEDULES)}
        case _:
            return {"interval": "continuous", "breather": dice.choice(("45s", "3m", "25m"))}


def draw_day(dice: Random) -> str:
    names = dice.sample(STATES, dice.randint(2, len(STATES)))
    states = []
    for index, name in enumerate(names):
        keys = {"kind": "rem" if name == "rem" else "wake", "next": names[(index + 1) % len(names)]}
        keys["repeat"] = str(dice.choice((1, 1, 2, 3)))
        # One state keeps the agent's own pace, as a lifecycle has to.
        if index and dice.random() < 0.35:
            keys["min_interval"] = dice.choice(("10m", "90m", "9h"))
        if index and dice.random() < 0.25:
            keys["when"] = dice.choice(WHENS)
        states.append(heading(name, **keys))
    return f"#+START: {dice.choice(names)}\n" + "".join(states)


@dataclass
class Witness:
    """What the guardians saw of each agent since the fleet was asked."""

    stage: Stage
    world: World
    asked: bool = False
    awaited: dict[str, int] = field(default_factory=dict)
    beats: dict[str, list[Order]] = field(default_factory=lambda: defaultdict(list))
    early: int = 0
    shown: asyncio.Event = field(default_factory=asyncio.Event)

    def script(self, order: Order) -> Plan:
        outcome = self.world.outcome
        if self.asked:
            self.see(order)
        else:
            outcome = self.world.past[self.early % len(self.world.past)]
            self.early += 1
        return Plan(duration=self.world.length, ending=ENDINGS[outcome])

    def see(self, order: Order) -> None:
        """Whoever has shown all that was foretold rests, so that a hasty agent does not keep the others waiting."""
        name = order.run.agent
        self.beats[name].append(order)
        if len(self.beats[name]) == self.awaited.get(name):
            rest = Pause(scope=agent_scope(name), owner="test", reason="seen enough", since=order.run.started_at)
            self.stage.store.pause(rest, order.run.started_at)
            del self.awaited[name]
            if not self.awaited:
                self.shown.set()

    def ask(self) -> dict[str, list[Expected]]:
        """The forecast of each agent, from what a store tells of it. Beats under way end as the others will."""
        self.asked = True
        for guardian in self.stage.carrier.runner.alive():
            guardian.plan = replace(guardian.plan, ending=ENDINGS[self.world.outcome])
        return {agent.name: self.foretold(agent.name) for agent in self.stage.store.agents()}

    def foretold(self, name: str) -> list[Expected]:
        store, now = self.stage.store, self.stage.now
        why = store.why(Wake(agent=name, cause=Cause.timer, subject=Subject.beat, requested_at=now), now)
        waiting, runs = store.wakes(agent=name, state="waiting"), store.runs(agent=name, before=1 << 62)
        known = {"outcome": self.world.outcome, "run_length": self.world.length, "facts": why.facts}
        subject = store.standing(name), store.agent(name), why.limits, now, BEATS
        told = forecast(*subject, **known, pauses=why.pauses, waiting=waiting, runs=runs)
        # Before anything has happened the facts alone say as much.
        assert self.world.age or told == forecast(*subject, **known)
        return told


async def lived(stage: Stage, world: World, met: Counter[str]) -> list[str]:
    """Every difference between what was foretold and what then was."""
    stage.clock = LoopClock(world.start)
    for name, text in (world.days | {"fleet.org": world.fleet}).items():
        stage.write(name, text)
    witness = Witness(stage, world)
    stage.script = witness.script
    engine = await stage.up()
    assert len(engine.declarations.fleet.agents) == world.fleet.count("\n* "), engine.declarations.diagnostics
    if world.age:
        await grow_old(stage, world)
    now, told = stage.now, witness.ask()
    end = now + HORIZON
    told = {name: [beat for beat in beats if beat.at < end] for name, beats in told.items()}
    # Of whoever less is foretold than was asked for, the whole week has to be seen.
    witness.awaited = {name: BEATS if len(beats) == BEATS else BEATS + 1 for name, beats in told.items()}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HORIZON.total_seconds()):
            await witness.shown.wait()
    await stage.down()
    met.update(word for beats in told.values() for beat in beats for word in MET if word in str(beat))
    differences = [f"{name}: {beat} is before {now}" for name in told for beat in told[name] if beat.at < now]
    return differences + [each for name, beats in told.items() for each in compare(name, beats, witness.beats[name])]


async def grow_old(stage: Stage, world: World) -> None:
    """Who was quarantined meanwhile is let go, so that nothing need be supposed."""
    await passes(world.age.total_seconds())
    if world.away:
        await stage.down()
        await passes(world.away.total_seconds())
        await stage.up()
        # What ended meanwhile is settled, as it ended.
        await passes(0.001)
    for pause in stage.store.pauses():
        if pause.until is None:
            await stage.access.write(lambda store: store.resume(pause.scope, "test", stage.now))  # noqa: B023


def compare(name: str, told: list[Expected], lived: list[Order]) -> list[str]:
    found = []
    for index in range(max(len(told), len(lived))):
        beat = told[index] if index < len(told) else None
        order = lived[index] if index < len(lived) else None
        if beat is None or order is None or not is_it(beat, order):
            was = f"{order.run.started_at} {order.run.position} {order.run.cause}" if order else "nothing"
            found.append(f"{name}: beat {index} was foretold as {beat}, and was {was}")
    return found[:3]


def is_it(beat: Expected, order: Order) -> bool:
    run, lifecycle = order.run, order.agent.lifecycle
    state = lifecycle.state(run.position.state) or SINGLE.states[0]
    where = (run.position.state, run.position.hits, state.kind)
    return abs(run.started_at - beat.at) <= TOLERANCE and (beat.state, beat.hits, beat.kind) == where


@pytest.fixture(autouse=True)
def without_a_net(monkeypatch):
    """Nobody sets the clock and nobody edits a file here. Without the looks that are only taken in case of that, a week
    is over sooner, and no beat can owe its instant to one of them."""
    monkeypatch.setattr(loop, "LONGEST", HORIZON)
    monkeypatch.setattr(loop, "RESYNC", HORIZON)
    monkeypatch.setattr(telling, "LONGEST", HORIZON)
    monkeypatch.setattr(retention, "FIRST", HORIZON * 2)
    monkeypatch.setattr(declarations, "HEARING", HORIZON)
    monkeypatch.setattr(declarations, "DEAF", HORIZON)


@pytest.mark.parametrize("keeper", ["sqlite"], indirect=True)
@pytest.mark.parametrize("portion", range(PORTIONS))
def test_what_is_foretold_is_what_the_engine_then_does(stages, portion):
    met: Counter[str] = Counter()
    for seed in range(portion, FLEETS, PORTIONS):
        compare_all(stages(), seed, met)
    assert met.keys() == MET, f"what was never foretold cannot have been compared: {MET - met.keys()}"


@pytest.mark.parametrize("keeper", ["postgres"], indirect=True)
def test_what_is_foretold_is_what_the_engine_then_does_on_another_store(stages):
    for seed in range(FLEETS_ON_POSTGRES):
        compare_all(stages(), seed, Counter())


def compare_all(stage: Stage, seed: int, met: Counter[str]) -> None:
    world = draw(seed)
    differences = live(lambda: lived(stage, world, met))
    assert not differences, "\n".join([f"seed {seed}", repr(world), *differences])
