"""A real engine that is killed again and again, and agents that bear witness outside of its store.

An agent writes one line when it begins and one when it ends, to a file that all of them append to; the order of the
lines is the order of events, whatever any clock says. What the store tells afterwards is laid beside it.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wakeful.core.events import EventKind
from wakeful.store.protocol import RunRow
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore

# What a run of each number does is known in advance: how long it takes, and whether it fails.
LENGTHS = ("0.05", "0.1", "0.2", "0.4", "0.7", "1", "1.5", "2.5", "5")
FAILS_EVERY = 7

AGENT = f"""#!/bin/sh
echo "begin $WAKEFUL_AGENT $WAKEFUL_RUN_ID" >> witness
set -- {" ".join(LENGTHS)}
shift $((WAKEFUL_RUN_ID % {len(LENGTHS)}))
sleep $1
echo "end $WAKEFUL_AGENT $WAKEFUL_RUN_ID" >> witness
[ $((WAKEFUL_RUN_ID % {FAILS_EVERY})) -ne 0 ]
"""

LIFECYCLE = """#+START: add
* add
:PROPERTIES:
:KIND: wake
:REPEAT: 3
:NEXT: audit
:END:
* audit
:PROPERTIES:
:KIND: wake
:NEXT: plan
:END:
* plan
:PROPERTIES:
:KIND: wake
:REPEAT: 2
:NEXT: add
:END:
"""
# The same by hand, for a fold that shares no code with ours.
DAY = {"add": (3, "audit"), "audit": (1, "plan"), "plan": (2, "add")}

READY = 30.0


class Place:
    """A fleet of witnesses in a folder, and the engine over it."""

    def __init__(self, folder: Path, agents: int, *, interval: str = "1s", agent: str = AGENT) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        (folder / "lifecycle.org").write_text(LIFECYCLE)
        (folder / "agent.sh").write_text(agent)
        (folder / "witness").touch()
        drawer = f":PROPERTIES:\n:INTERVAL: {interval}\n:LIFECYCLE: lifecycle.org\n:END:"
        names = "\n".join(f"* agent-{number}\n{drawer}" for number in range(agents))
        (folder / "fleet.org").write_text(
            f"#+RUN: sh agent.sh\n#+WORKDIR: .\n#+SESSIONS: {agents}\n#+GRACE: 0s\n#+STAGGER: 0s\n"
            f"#+MAX-FAILURES: 100000\n#+BURST: 1000000/10m\n{names}\n"
        )
        self.engine: subprocess.Popen[bytes] | None = None
        self.waits: list[float] = []

    @property
    def data(self) -> Path:
        return self.folder / ".wakeful"

    # -- the engine ---------------------------------------------------------------------------------------------
    def up(self) -> float:
        """Start it; the seconds until it said that it was ready."""
        announced = self.data / "engine.json"
        announced.unlink(missing_ok=True)
        began = time.monotonic()
        with (self.folder / "log").open("ab") as log:
            self.engine = subprocess.Popen(
                [sys.executable, "-m", "wakeful", "up", "--port", "0"], cwd=self.folder, stdout=log, stderr=log
            )
        while not announced.exists():
            assert self.engine.poll() is None, self.log()
            assert time.monotonic() - began < READY, self.log()
            time.sleep(0.01)
        self.waits.append(time.monotonic() - began)
        return self.waits[-1]

    def kill(self) -> None:
        assert self.engine is not None
        self.engine.kill()
        self.engine.wait()

    def leave(self) -> None:
        assert self.engine is not None
        self.engine.send_signal(signal.SIGTERM)
        assert self.engine.wait(READY) == 0, self.log()

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "wakeful", *words], cwd=self.folder, capture_output=True, text=True, timeout=90
        )

    def told(self, *words: str) -> Any:
        done = self.ask(*words, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def drain(self) -> None:
        """Nothing new begins, what is under way ends, and the engine leaves."""
        assert self.engine is not None
        asked = self.ask("stop", "--drain")
        assert asked.returncode == 0, asked.stderr
        assert self.engine.wait(60) == 0, self.log()

    def log(self) -> str:
        return (self.folder / "log").read_text()[-4000:]

    # -- the witness --------------------------------------------------------------------------------------------
    def witness(self) -> list[tuple[str, str, int]]:
        lines = (self.folder / "witness").read_text().splitlines()
        return [(what, agent, int(run)) for what, agent, run in (line.split() for line in lines)]

    def check(self) -> list[str]:
        """Whatever does not add up, of a place that has been drained."""
        store = open_sqlite(self.data / "wakeful.db")
        try:
            return [*alternation(self.witness()), *agreement(self.witness(), store), *positions(store)]
        finally:
            store.close()


class Killer:
    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.dice = random.Random(seed)

    def kill_one(self) -> None:
        """Let it work for a moment, kill it, start it again."""
        time.sleep(self.dice.choice((0.0, 0.02, 0.1, 0.5, 1.5)) * self.dice.random() * 1.5)
        self.place.kill()
        self.place.up()


# ---- the checks


def alternation(witness: list[tuple[str, str, int]]) -> list[str]:
    """No two runs of an agent overlap, none is executed twice, and each that began ended."""
    open_runs: dict[str, int] = {}
    seen: set[int] = set()
    found = []
    for what, agent, run in witness:
        if what == "begin":
            if agent in open_runs:
                found.append(f"run {run} of {agent} began while run {open_runs[agent]} was under way")
            if run in seen:
                found.append(f"run {run} of {agent} was executed twice")
            seen.add(run)
            open_runs[agent] = run
        elif open_runs.pop(agent, None) != run:
            found.append(f"run {run} of {agent} ended, and was not under way")
    return found + [f"run {run} of {agent} never ended" for agent, run in open_runs.items()]


def agreement(witness: list[tuple[str, str, int]], store: SqlStore) -> list[str]:
    """What was executed is what the store says, with the outcome that it had."""
    executed = {run for what, _, run in witness if what == "begin"}
    found = []
    for row in every_run(store):
        if row.state == "ended":
            due = "failed" if row.id % FAILS_EVERY == 0 else "done"
            if row.id not in executed:
                found.append(f"run {row.id} is {row.outcome}, and was never executed")
            elif row.outcome != due:
                found.append(f"run {row.id} is {row.outcome} ({row.reason}), and was {due}")
        elif row.state != "void":
            found.append(f"run {row.id} is still {row.state}")
        elif row.id in executed:
            found.append(f"run {row.id} is void, and was executed")
        executed.discard(row.id)
    return found + [f"run {run} was executed, and the store knows nothing of it" for run in executed]


def every_run(store: SqlStore) -> list[RunRow]:
    rows: list[RunRow] = []
    while page := store.runs(after=rows[-1].id if rows else 0, limit=1000):
        rows += page
    return rows


def positions(store: SqlStore) -> list[str]:
    """Each position is the fold of the outcomes that the events tell."""
    stands: dict[str, tuple[str, int]] = defaultdict(lambda: ("add", 0))
    after = 0
    while page := store.events(after=after, limit=1000):
        after = page[-1].id
        for event in page:
            if event.kind is EventKind.ended and event.agent and (event.fields or {}).get("outcome") == "done":
                state, hits = stands[event.agent]
                repeat, following = DAY[state]
                stands[event.agent] = (following, 0) if hits + 1 == repeat else (state, hits + 1)
    found = []
    for agent in store.agents():
        standing = store.standing(agent.name)
        assert standing is not None
        stored, folded = (standing.position.state, standing.position.hits), stands[agent.name]
        if stored != folded:
            found.append(f"{agent.name} stands at {stored}, and its outcomes lead to {folded}")
    return found


def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Look again and again at a process that is not ours, for as long as this."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.02)
