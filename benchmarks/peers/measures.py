"""What is measured of each peer, and how.

Laws:
- Each measurement has a stage of its own: a fresh store, fresh processes.
- Enqueueing has no worker beside it, unless the caller needs one; a drain has a queue that is full before its worker is
  started; produce and drain, and wakes, have a worker that has done a job already and is idle.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.machine import below, used
from benchmarks.peers.peer import Peer
from benchmarks.peers.servers import Servers
from benchmarks.peers.stage import Caller, Failure, Python, Stage

# A call that takes longer than all this is not waited for.
PATIENCE = 300.0
LONGEST_WAKE = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    jobs: int
    # No enqueueing takes longer than that, in seconds; the rate is that of what was done by then.
    seconds: float
    # So many in each round, or as many as there are in that many seconds.
    wakes: int
    waking: float
    # How long a rest is watched, and how long it is waited for at most.
    rest: float
    settle: float
    pause: float


# In three rounds: 200 wakes, and three quarters of a minute of rest.
FULL = Scale(jobs=10_000, seconds=15.0, wakes=67, waking=30.0, rest=15.0, settle=60.0, pause=1.0)
QUICK = Scale(jobs=1_000, seconds=4.0, wakes=20, waking=5.0, rest=3.0, settle=2.0, pause=0.3)

Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setup:
    servers: Servers
    python: Python
    scale: Scale


def enqueue(way: str) -> Callable[[type[Peer], Setup], Found]:
    def measure(kind: type[Peer], setup: Setup) -> Found:
        scale = setup.scale
        with Stage(kind, "enqueue", setup.servers, setup.python) as stage:
            if kind.served:
                stage.start_worker()
            with stage.caller() as caller:
                caller.ask("single 0", PATIENCE)
                return {"rate": _rate(caller.ask(f"{way} {scale.jobs} {scale.seconds}", PATIENCE))}

    return measure


def _rate(answer: dict[str, Any]) -> float:
    return float(answer["jobs"] / (answer["ended"] - answer["began"]) * 1e9)


def drain(kind: type[Peer], setup: Setup) -> Found:
    jobs = setup.scale.jobs
    with Stage(kind, "busy", setup.servers, setup.python) as stage:
        with stage.caller("preload") as caller:
            _all_of(caller.ask(f"{_fastest(kind)} {jobs} {PATIENCE}", PATIENCE), jobs)
        time.sleep(setup.scale.pause)
        stage.start_worker()
        marks = stage.collect(jobs)
        ended = stage.settled()
        return {"rate": jobs / (ended - marks.first) * 1e9, "begun": marks.count}


def together(kind: type[Peer], setup: Setup) -> Found:
    jobs = setup.scale.jobs
    with Stage(kind, "busy", setup.servers, setup.python) as stage:
        if not kind.embedded:
            stage.start_worker()
        with stage.caller() as caller:
            stage.warm(caller)
            time.sleep(setup.scale.pause)
            caller.send(f"{_fastest(kind)} {jobs} {PATIENCE}")
            marks = stage.collect(jobs)
            ended = stage.settled()
            answer = caller.hear(PATIENCE)
            _all_of(answer, jobs)
            return {"rate": jobs / (ended - answer["began"]) * 1e9, "begun": marks.count}


def _fastest(kind: type[Peer]) -> str:
    return "batch" if kind.batches else "one"


def _all_of(answer: dict[str, Any], jobs: int) -> None:
    if answer["jobs"] < jobs:
        raise Failure(f"only {answer['jobs']:,} of {jobs:,} jobs were enqueued in time")


def calm(setting: str) -> Callable[[type[Peer], Setup], Found]:
    """At rest, and woken out of it."""

    def measure(kind: type[Peer], setup: Setup) -> Found:
        with Stage(kind, setting, setup.servers, setup.python) as stage:
            if not kind.embedded:
                stage.start_worker()
            with stage.caller() as caller:
                stage.warm(caller)
                # Whoever polls all the time need not be waited for until it does so less.
                settle = kind.settle if setting == "calm" else Peer.settle
                time.sleep(min(settle, setup.scale.settle))
                rest = _rest(stage, caller, setup.scale.rest)
                return {**rest, "wakes": _wakes(stage, caller, setup.scale)}

    return measure


def _rest(stage: Stage, caller: Caller, seconds: float) -> Found:
    """Percent of a core: of all that the peer has started, and of its server."""
    # Whoever waits to enqueue is no part of the peer at rest, but where it is the worker, too.
    beside = set() if stage.kind.embedded else set(below(caller.pid))
    own, server = set(stage.processes()) - beside, stage.servers.pids(stage.kind.kind)
    began, own_before, server_before = time.monotonic(), used(own), used(server)
    time.sleep(seconds)
    taken = time.monotonic() - began
    # Those that came meanwhile count whole.
    own_after, server_after = used(own | set(stage.processes()) - beside), used(server)
    idle, serving = own_after - own_before, server_after - server_before
    return {"idle": max(0.0, 100 * idle / taken), "server": max(0.0, 100 * serving / taken)}


def _wakes(stage: Stage, caller: Caller, scale: Scale) -> list[float]:
    """Milliseconds from just before the call to the job's first line."""
    draw, taken = random.Random(scale.wakes), list[float]()
    between = stage.kind.between if stage.setting == "calm" else Peer.between
    until = time.monotonic() + scale.waking
    for number in range(1, scale.wakes + 1):
        if time.monotonic() > until:
            break
        time.sleep(draw.uniform(*between))
        called = caller.ask(f"single {number}", LONGEST_WAKE)["began"]
        taken.append((stage.mark_of(number, LONGEST_WAKE) - called) / 1e6)
    return taken


@dataclass(frozen=True, slots=True)
class Measure:
    key: str
    take: Callable[[type[Peer], Setup], Found]
    applies: Callable[[type[Peer]], bool]


MEASURES = (
    Measure("one", enqueue("one"), lambda kind: True),
    Measure("batch", enqueue("batch"), lambda kind: kind.batches),
    Measure("callers", enqueue("callers"), lambda kind: True),
    Measure("drain", drain, lambda kind: not kind.embedded),
    Measure("together", together, lambda kind: True),
    Measure("calm", calm("calm"), lambda kind: True),
    Measure("eager", calm("eager"), lambda kind: kind.eager is not None),
)
