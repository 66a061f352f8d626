"""Loops of agents that wake each other at every run: the real engine in time that jumps, cooldown 0, default limits.

How long a loop lives is worked out from the guards alone: 5 wakes a day between two, 8 in a chain, 12 a day of one
agent, 3 by one run. Whatever is refused on the way is a message that the next beat shows.
"""

import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engine.stage import HOUR, MINUTE, Stage, heading, lived
from tests.store.postgres_server import release, store_in
from wakeful.control.callers import Caller
from wakeful.control.control import Control
from wakeful.core.orders import Order
from wakeful.core.standing import Spend
from wakeful.testing.runner import Plan, done

CENT = 10_000
DAY = 24 * HOUR


class Told(NamedTuple):
    """What an agent heard of a wake that it asked for."""

    sender: str
    target: str
    verdict: str
    guard: str | None


class Loop:
    """Agents of which each wakes some others at the beginning of every run; a run takes a minute and a cent."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.wakes: dict[str, tuple[str, ...]] = {}
        self.told: list[Told] = []
        self.sent: set[int] = set()
        self.shown: Counter[int] = Counter()
        stage.script = lambda order: Plan(duration=MINUTE, ending=done(usage=Spend(usd=CENT)))
        stage.after = self._run

    async def begin(self, wakes: dict[str, tuple[str, ...]], *, every: str = "90m", **keys: str) -> None:
        """The first beats come after that long."""
        self.wakes = wakes
        agents = [heading(name, interval=every, cooldown="0s", **keys) for name in wakes]
        self.stage.declare(*agents, sessions="20", grace=every, stagger="0s")
        await self.stage.up()

    async def _run(self, order: Order) -> None:
        stage, run = self.stage, order.run
        self.shown.update(item.id for item in order.items)
        beside = stage.engine
        control = Control(stage.access, runs=stage.data, clock=lambda: stage.now, beside=beside, node=stage.node)
        caller = Caller(name=run.agent, run=run.id, epoch=run.epoch)
        for other in self.wakes[run.agent]:
            answer = await control.wake(caller, agent=other, reason="blocker", body=f"run {run.id} needs you")
            self.sent.add(answer["message_id"])
            self.told.append(Told(run.agent, other, answer["verdict"], answer["guard"]))

    async def goes_round(self, first: str, hours: float = 1) -> list[str]:
        """An operator ticks one of them; who ran after that, in order, until long after the last."""
        await self.stage.tick(first)
        await self.stage.hours(hours)
        return [seen.agent for seen in self.stage.seen]

    @property
    def refusals(self) -> list[str | None]:
        return [told.guard for told in self.told if told.verdict == "refuse"]

    @property
    def cents(self) -> int:
        """What the first day cost."""
        return self.stage.store.total("fleet", "2026-03-02", "usd") // CENT

    async def live(self, days: int, *, hours: float) -> list[str]:
        """So many days, of each the first hours; the rest is slept through, as by a laptop that is shut."""
        lived = []
        for _ in range(days):
            lived.append(self.stage.now.date().isoformat())
            await self.stage.hours(hours)
            midnight = datetime.combine(self.stage.now.date(), time(), UTC) + DAY
            self.stage.clock.set_wall(midnight - self.stage.now)
        return lived

    def woken(self) -> Counter[tuple[tuple[str, ...], str]]:
        """How often two agents woke each other on each day: from the rows, not from the totals."""
        wakes = {row.wake.id: row.wake for row in self.stage.store.wakes(limit=10_000)}
        runs = [row for row in self.stage.store.runs(limit=10_000) if row.cause == "peer"]
        pairs = [(wakes[row.wake].sender, row.agent) for row in runs]
        days = [row.admitted_at.date().isoformat() for row in runs]
        return Counter((tuple(sorted(pair)), day) for pair, day in zip(pairs, days, strict=True))

    async def all_is_shown_at_the_next_beat(self) -> None:
        """Nobody wakes anybody any more."""
        self.wakes = dict.fromkeys(self.wakes, ())
        kept = {item.id for item in self.stage.store.items(state="open", limit=1_000)}
        assert kept and kept == self.sent - self.shown.keys(), "what was refused, and nothing else"
        before = len(self.stage.seen)
        await self.stage.hours(1)
        assert {seen.cause for seen in self.stage.seen[before:]} == {"timer"}
        assert [self.shown[id] for id in self.sent] == [1] * len(self.sent)
        assert self.stage.store.items(state="open") == []


@pytest.fixture(params=["sqlite", "postgres"])
def loop(request: pytest.FixtureRequest, blank: Path, tmp_path: Path) -> Iterator[Loop]:
    folder = tmp_path / "stage"
    data = folder / ".wakeful"
    data.mkdir(parents=True)
    if request.param == "sqlite":
        shutil.copyfile(blank, data / "wakeful.db")
        stage = Stage(folder)
    else:
        stage = Stage(folder, store_in)
    yield Loop(stage)
    stage.store.close()
    release(tmp_path)


@lived
async def test_two_agents_that_wake_each_other_stop_after_five_wakes(loop):
    await loop.begin({"moss": ("wren",), "wren": ("moss",)})
    assert await loop.goes_round("moss") == ["moss", *["wren", "moss"] * 2, "wren"]
    assert (loop.refusals, loop.cents) == (["wakes_per_pair"], 6)
    await loop.all_is_shown_at_the_next_beat()


@lived
async def test_a_ring_of_three_stops_at_the_eighth_wake(loop):
    await loop.begin({"moss": ("wren",), "wren": ("reed",), "reed": ("moss",)})
    assert await loop.goes_round("moss") == ["moss", "wren", "reed"] * 3
    assert (loop.refusals, loop.cents) == (["chain"], 9)
    await loop.all_is_shown_at_the_next_beat()


@lived
async def test_a_fan_out_that_answers_stops_when_every_pair_and_the_chain_are_used_up(loop):
    """The hub may wake three of its four; those who answer while it runs are one wake. Round by round: three of them
    three times, then the three pairs that are left, then nobody."""
    spokes = ("wren", "reed", "lark", "crow")
    await loop.begin({"moss": spokes, **dict.fromkeys(spokes, ("moss",))})
    rounds = [["moss", "wren", "reed", "lark"]] * 3 + [["moss", "reed", "lark", "crow"], ["moss"]]
    assert await loop.goes_round("moss") == [name for each in rounds for name in each]
    assert Counter(loop.refusals) == {"wakes_per_run": 3, "wakes_per_pair": 6, "chain": 1}
    assert loop.cents == 17
    await loop.all_is_shown_at_the_next_beat()


@lived
async def test_agents_that_all_wake_all_others_stop_within_every_limit(loop):
    names = ("moss", "wren", "reed", "lark")
    await loop.begin({name: tuple(other for other in names if other != name) for name in names})
    runs = await loop.goes_round("moss")
    # Six pairs of five, but for what the chain or a busy agent took.
    assert len(runs) - 1 == sum(loop.woken().values()) <= 30
    assert max(loop.woken().values()) == 5
    assert "wakes_per_pair" in loop.refusals and loop.cents == len(runs)
    await loop.all_is_shown_at_the_next_beat()


@lived
async def test_two_agents_whose_every_beat_wakes_the_other_do_so_five_times_a_day(loop):
    await loop.begin({"moss": ("wren",), "wren": ("moss",)}, every="10m")
    days = await loop.live(3, hours=1.5)
    woken = loop.woken()
    assert [woken[("moss", "wren"), day] for day in days] == [5, 5, 5]
    assert len(loop.stage.seen) - 15 == sum(seen.cause == "timer" for seen in loop.stage.seen)
    assert set(loop.refusals) == {"wakes_per_pair"}
    await loop.all_is_shown_at_the_next_beat()


@lived
async def test_an_agent_that_is_woken_by_every_beat_of_four_others_runs_twelve_times_a_day_for_them(loop):
    others = ("wren", "reed", "lark", "crow")
    await loop.begin({"moss": (), **dict.fromkeys(others, ("moss",))}, every="10m")
    days = await loop.live(2, hours=3)
    woken = loop.woken()
    assert [sum(woken[tuple(sorted(("moss", other))), day] for other in others) for day in days] == [12, 12]
    assert max(woken.values()) <= 5
    assert set(loop.refusals) == {"wakes_per_day", "wakes_per_pair"}
    await loop.all_is_shown_at_the_next_beat()


@lived
async def test_agents_without_a_timer_that_wake_each_other_go_on_no_faster_than_their_sweep(loop):
    loop.wakes = {"moss": ("wren",), "wren": ("moss",)}
    loop.stage.declare(*(heading(name, tasks="any", cooldown="0s") for name in loop.wakes))
    await loop.stage.up()
    await loop.goes_round("moss", 3)
    later = [seen.at for seen in loop.stage.seen[6:]]
    assert {seen.cause for seen in loop.stage.seen[1:6]} == {"peer"}
    assert all(late - early >= 30 * 60 for early, late in pairwise([loop.stage.seen[5].at, *later]))
