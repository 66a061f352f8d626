"""Document 001 lived by the real engine with real processes: definitions, dreams, wall clocks, folders, a push.

What takes hours of the calendar is told in tests/engine, in time that jumps.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.engine.stage import fleet, heading
from tests.runners.carrier_case import Desk
from wakeful.core.admission import admit
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.engine.clock import SystemClock
from wakeful.engine.engine import Engine
from wakeful.fleet.watch import FleetFile
from wakeful.runners.dream import memory_path
from wakeful.runners.protocol import STDOUT
from wakeful.store.inline import Inline
from wakeful.store.protocol import RunRow
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.contracts.runner_case import real

# A beat of work, then a quiet one.
NIGHT = "#+START: work\n" + heading("work", next="rest") + heading("rest", kind="rem", next="work")
GIT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
IDENTITY = ("-c", "user.name=wren", "-c", "user.email=wren@example.org")


class House(Desk):
    """A fleet's folder with an engine in it."""

    async def up(self, *agents: str, **keys: str) -> None:
        self.data.mkdir(exist_ok=True)
        if agents:
            self.write("fleet.org", fleet(*agents, **keys))
        self.store = open_sqlite(self.data / "wakeful.db", durable=False)
        self.access = Inline(self.store)
        self.changed = asyncio.Event()
        self.access.watch(self.changed.set)
        clock, file = SystemClock(), FleetFile(self.root / "fleet.org")
        self.engine = Engine(self.access, self.carrier, file, clock, "here", self.data)
        await self.engine.start()

    async def down(self) -> None:
        self.engine.leave()
        await self.engine.stop()
        self.store.close()

    async def tick(self, name: str) -> RunRow:
        """A watched manual tick: its run, when it is over."""
        now = SystemClock().now()
        wake = Wake(agent=name, cause=Cause.operator, subject=Subject.beat, requested_at=now)
        (decision,) = await self.access.write(lambda store: store.decide([wake], admit, now))
        return await self.over(decision.run)

    async def over(self, run: int) -> RunRow:
        while True:
            row = self.store.run(run)
            if row is not None and row.ended_at is not None:
                return row
            self.changed.clear()
            await self.changed.wait()

    def printed(self, run: RunRow) -> str:
        return (self.run_folder(run.id) / STDOUT).read_text()

    def outcome(self, run: RunRow) -> tuple[str, str]:
        return run.outcome.value, run.reason


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[House]:
    with House(tmp_path).open() as house:
        yield house


@real
async def test_a_wake_state_runs_the_definition_and_a_rem_state_dreams_without_it(yard):
    yard.write("defs/writer.org", "You are wren, who writes.\n")
    yard.write("lifecycle.org", NIGHT)
    # The model of this agent leaves a line behind whenever it is called.
    run = 'echo "$WAKEFUL_STATE" >> called; cat'
    await yard.up(heading("wren", run=run, **{"def": "defs/writer.org"}, lifecycle="lifecycle.org", interval="1h"))
    work = await yard.tick("wren")
    rest = await yard.tick("wren")
    again = await yard.tick("wren")
    assert [run.outcome.value for run in (work, rest, again)] == ["done"] * 3
    assert yard.printed(work).startswith("You are wren, who writes.")
    assert (yard.data / "work" / "wren" / "called").read_text().split() == ["work", "work"]
    # The dream is there, and consolidated what was done before it.
    assert "1 done" in memory_path(yard.data, "wren").read_text()
    await yard.down()


@real
async def test_a_dream_is_bounded_held_and_judged_like_any_run_and_belongs_to_one_agent(yard):
    yard.write("lifecycle.org", NIGHT.replace("#+START: work", "#+START: rest"))
    own = {"lifecycle": "lifecycle.org", "interval": "1h"}
    await yard.up(
        heading("hangs", dream="sleep 600", timeout="1s", kill_grace="1s", **own),
        heading("fails", dream="false", **own),
        heading("wren", **own),
        heading("moss", **own),
        sessions="4",
    )
    runs = await asyncio.gather(*map(yard.tick, ("hangs", "fails", "wren", "moss")))
    assert [yard.outcome(run) for run in runs] == [
        ("killed", "ran past its wall clock"), ("failed", "exit code 1"), ("done", ""), ("done", ""),
    ]  # fmt: skip
    # Whoever failed to dream has not dreamt: it stands where it stood.
    places = [yard.store.standing(name).position.state for name in ("hangs", "fails", "wren", "moss")]
    assert places == ["rest", "rest", "work", "work"]
    assert sorted(path.name for path in (yard.data / "memory").iterdir()) == ["moss.md", "wren.md"]
    await yard.down()


@real
async def test_a_run_that_hangs_is_killed_at_its_wall_clock_and_one_that_crashes_takes_nobody_down(yard):
    await yard.up(
        heading("hangs", run="sleep 600", timeout="1s", kill_grace="1s", interval="1h"),
        heading("crashes", run="kill -9 $$", interval="1h"),
        heading("wren", run="echo fine", interval="1h"),
    )
    hangs, crashes = await asyncio.gather(yard.tick("hangs"), yard.tick("crashes"))
    assert yard.outcome(hangs) == ("killed", "ran past its wall clock")
    assert hangs.ended_at - hangs.started_at >= timedelta(seconds=1)
    assert yard.outcome(crashes) == ("failed", "ended by signal 9")
    # The same engine, the same agents: all of them can run again.
    again = [await yard.tick(name) for name in ("crashes", "wren")]
    assert [run.outcome.value for run in again] == ["failed", "done"]
    assert yard.engine.health()["ready"]
    for name in ("hangs", "crashes"):
        assert yard.store.standing(name).due_at > hangs.ended_at
    await yard.down()


@real
async def test_each_agent_works_in_a_folder_of_its_own(yard):
    run = "pwd; ls; touch mine"
    await yard.up(heading("wren", run=run, interval="1h"), heading("moss", run=run, interval="1h"))
    said = {name: yard.printed(await yard.tick(name)).split() for name in ("wren", "moss")}
    # Neither is where the other is, and neither sees what the other left.
    assert said == {name: [str(yard.data / "work" / name)] for name in ("wren", "moss")}
    assert (yard.data / "work" / "wren" / "mine").exists()
    await yard.down()


@real
async def test_a_push_from_anywhere_is_live_within_one_tick(yard):
    def git(folder: Path, *words: str) -> None:
        subprocess.run(["git", *IDENTITY, *words], cwd=folder, env=GIT, capture_output=True, check=True)

    elsewhere = yard.folder / "elsewhere"
    git(yard.folder, "init", "--quiet", "--bare", "--initial-branch=main", "origin")
    yard.write("lifecycle.org", "#+START: old\n" + heading("old", next="old"))
    wren = heading("wren", run='echo "$WAKEFUL_STATE"', lifecycle="lifecycle.org", gitops="yes", interval="1h")
    yard.write("fleet.org", fleet(wren, grace="0s"))
    for words in (("init", "--quiet", "--initial-branch=main"), ("add", "fleet.org", "lifecycle.org")):
        git(yard.root, *words)
    git(yard.root, "commit", "--quiet", "-m", "a fleet")
    git(yard.root, "remote", "add", "origin", str(yard.folder / "origin"))
    git(yard.root, "push", "--quiet", "-u", "origin", "main")
    git(yard.folder, "clone", "--quiet", "origin", "elsewhere")
    (elsewhere / "lifecycle.org").write_text("#+START: new\n" + heading("new", next="new"))
    git(elsewhere, "commit", "--quiet", "-a", "-m", "a new day")
    git(elsewhere, "push", "--quiet")
    # The engine begins with the old day; its first tick pulls, and is already the new one.
    await yard.up()
    run = await yard.over(1)
    assert (run.cause.value, run.outcome.value) == ("timer", "done")
    assert yard.printed(run).split() == ["new"]
    await yard.down()
