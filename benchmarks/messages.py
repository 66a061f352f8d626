"""From a message to the first instruction of the idle agent that it is for: by the library, by HTTP and by the command.

Laws:
- The clock starts before the message is handed over, so that its recording is part of the time; for the command, whose
  own start is not ours to bound, also when the engine accepted it.
- The moments after it are those of the run's own exit record. Bare starts of the same program take turns with the
  messages, and are taken off.
- An agent is idle when its last run has been settled.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.engine import bare_start, engine_up, fleet_file, line_of, since_boot
from benchmarks.lines import Line
from wakeful import belongings
from wakeful.cli.exchange import exchange
from wakeful.control.callers import OPERATOR
from wakeful.control.control import Control
from wakeful.engine.clock import SystemClock
from wakeful.engine.engine import Engine
from wakeful.fleet.watch import FleetFile
from wakeful.runners.carrier import Carrier
from wakeful.store.sqlite import open_sqlite
from wakeful.store.writer import Writer

MESSAGES = 40
ADDED = 10
FLEET = "#+RUN: /bin/true\n#+GRACE: 2h\n* one\n:PROPERTIES:\n:INTERVAL: 1d\n:BURST: 100000/10m\n:END:\n"
BETWEEN = 0.05

Say = Callable[[str], None]


def messages(folder: Path, rounds: int, say: Say) -> list[Line]:
    place = folder / "messages"
    place.mkdir()
    count = MESSAGES * min(rounds, 3)
    return [
        *_told("library", *asyncio.run(_by_library(fleet_file(place / "library", FLEET), count)), say),
        *_told("HTTP", *_by_engine(fleet_file(place / "http", FLEET), count, _by_http), say),
        *_told("command", *_by_engine(fleet_file(place / "command", FLEET), count, _by_command), say),
    ]


def _told(way: str, taken: list[dict[str, float]], bare: list[float], say: Say) -> Iterator[Line]:
    for since in ("sent", "accepted"):
        times = [each["exited"] - each[since] for each in taken]
        name = f"message by the {way}, {since} to exited" if way != "HTTP" else f"message by HTTP, {since} to exited"
        goal = f"ms, goal {ADDED}" if (way, since) == ("library", "sent") else "ms"
        middle = (median(times) - median(bare)) * 1e3
        tail = (quantiles(times, n=100)[98] - quantiles(bare, n=100)[98]) * 1e3
        say(f"{name}: {middle:.1f} ms more than a bare start, {tail:.1f} ms at the 99th percentile")
        yield line_of(f"{name}, p50 added to a bare start", middle, goal, median(bare) * 1e3)
        yield line_of(f"{name}, p99 added to a bare start", tail, "ms", median(bare) * 1e3)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _steps(data: Path, run: int, sent: float, accepted: str) -> dict[str, float]:
    """All of these in seconds since boot."""
    steps: dict[str, float] = json.loads((data / "runs" / str(run) / "exit.json").read_bytes())["steps"]
    boot = time.time() - _now()
    return {"sent": sent, "accepted": since_boot(datetime.fromisoformat(accepted), boot), **steps}


async def _by_library(fleet: Path, count: int) -> tuple[list[dict[str, float]], list[float]]:
    data = fleet.parent / ".wakeful"
    data.mkdir()
    store = open_sqlite(data / "wakeful.db")
    access, clock, file = Writer(store), SystemClock(), FleetFile(fleet)
    carrier = Carrier(fleet.parent, data, url=lambda: "", token=lambda run: "", base=os.environ)
    engine = Engine(access, carrier, file, clock, "here", data)
    control = Control(access, runs=data / belongings.RUNS, clock=clock.now, beside=engine, node="here")
    await engine.start()
    taken, bare = [], []
    try:
        for _ in range(count + 2):
            bare.append(bare_start())
            await asyncio.sleep(BETWEEN)
            sent = _now()
            answer = await control.send(OPERATOR, agent="one", body="look", priority="urgent")
            run = answer["wake"]["run_id"]
            while (await control.show_run(OPERATOR, run=run))["state"] != "ended":
                await asyncio.sleep(0.01)
            taken.append(_steps(data, run, sent, answer["message"]["created_at"]))
    finally:
        await engine.stop()
        access.close()
        store.close()
    return taken[2:], bare


def _by_engine(
    fleet: Path, count: int, send: Callable[[Path, str, str], dict[str, Any]]
) -> tuple[list[dict[str, float]], list[float]]:
    data = fleet.parent / ".wakeful"
    taken, bare = [], []
    with engine_up(fleet):
        url = json.loads((data / "engine.json").read_bytes())["url"]
        token = belongings.operator_token(data)
        for _ in range(count + 2):
            bare.append(bare_start())
            time.sleep(BETWEEN)
            sent = _now()
            answer = send(fleet, url, token)
            run = answer["wake"]["run_id"]
            while exchange(url, token, "GET", f"/v1/runs/{run}", None)["state"] != "ended":
                time.sleep(0.01)
            taken.append(_steps(data, run, sent, answer["message"]["created_at"]))
    return taken[2:], bare


def _by_http(fleet: Path, url: str, token: str) -> dict[str, Any]:
    return exchange(url, token, "POST", "/v1/agents/one/messages", {"body": "look", "priority": "urgent"})


def _by_command(fleet: Path, url: str, token: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "wakeful", "send", "one", "look", "--priority", "urgent", "--json"]
    done = subprocess.run([*command, "--fleet", str(fleet)], capture_output=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
