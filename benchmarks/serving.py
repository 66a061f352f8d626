"""Durable messages over HTTP, one to a request, beside an endpoint of the same server that does nothing.

Laws:
- The engine is the command that users call; who asks is a process of its own, with connections that stay open.
- The bare endpoint and the messages take turns, and their ratio is what counts.
- Each message is committed before it is answered; that every one of them is there is checked at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.engine import engine_up, fleet_file, line_of
from benchmarks.lines import Goal, Line
from wakeful import belongings
from wakeful.core.items import Item
from wakeful.store.protocol import Store
from wakeful.store.sqlite import open_sqlite

CONNECTIONS, SLOW = 32, 500
SLICE = 4.0
# Of the bare rate; milliseconds; milliseconds beside slow connections.
HALF, LATEST, LATEST_BESIDE_SLOW = 0.5, 50, 200
FLEET = "#+RUN: /bin/true\n#+GRACE: 2h\n* one\n:PROPERTIES:\n:INTERVAL: 1d\n:END:\n"
BODY = json.dumps({"body": "hello" * 10})

Say = Callable[[str], None]


def serving(folder: Path, rounds: int, say: Say) -> list[Line]:
    fleet = fleet_file(folder / "serving", FLEET)
    data = fleet.parent / ".wakeful"
    samples: dict[str, list[dict[str, float]]] = {"bare": [], "send": [], "slow": []}
    with engine_up(fleet):
        host = json.loads((data / "engine.json").read_bytes())["url"].removeprefix("http://")
        token = belongings.operator_token(data)
        for round in range(rounds):
            samples["bare"].append(_called(host, token, "GET", "/healthz"))
            samples["send"].append(_called(host, token, "POST", "/v1/agents/one/messages", "--body", BODY))
            told = {name: taken[-1] for name, taken in samples.items() if taken}
            say(f"round {round + 1} of {rounds}: {_said(told['send'])} beside {told['bare']['rate']:,.0f}/s bare")
        for _ in range(min(rounds, 2)):
            slow = _called(host, token, "POST", "/v1/agents/one/messages", "--body", BODY, "--slow", str(SLOW))
            samples["slow"].append(slow)
            say(f"beside {SLOW} slow connections: {_said(slow)}")
    _must_be_there(data, sum(int(each["count"]) for name in ("send", "slow") for each in samples[name]))
    return _lines(samples)


def _called(host: str, token: str, method: str, path: str, *more: str) -> dict[str, float]:
    given = ["--connections", str(CONNECTIONS), "--seconds", str(SLICE), *more]
    command = [sys.executable, "-m", "benchmarks.callers", host, method, path, *given]
    done = subprocess.run(command, input=token + "\n", capture_output=True, check=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    assert not answer["refused"], answer
    return answer


def _said(taken: dict[str, float]) -> str:
    return f"{taken['rate']:,.0f} messages/s, p50 {taken['p50'] * 1e3:.1f} ms, p99 {taken['p99'] * 1e3:.1f} ms"


def _must_be_there(data: Path, answered: int) -> None:
    store = open_sqlite(data / "wakeful.db")
    try:
        found = sum(1 for _ in _messages(store))
    finally:
        store.close()
    assert found == answered, f"{answered} were answered, and {found} are there"


def _messages(store: Store) -> Iterator[Item]:
    after = 0
    while page := store.items(agent="one", after=after, limit=1000):
        yield from page
        after = page[-1].id


def _lines(samples: dict[str, list[dict[str, float]]]) -> list[Line]:
    bare, rate = (median(each["rate"] for each in samples[name]) for name in ("bare", "send"))
    named = f"message by HTTP, {CONNECTIONS} connections"
    first = line_of(f"{named}, each durable", rate, "messages/s", bare)
    late = median(each["p99"] for each in samples["send"]) * 1e3
    slow = median(each["p99"] for each in samples["slow"]) * 1e3
    return [
        replace(first, goal=Goal(least=HALF)),
        line_of(f"{named}, p99", late, f"ms, goal {LATEST}"),
        line_of(f"{named}, beside {SLOW} slow ones, p99", slow, f"ms, goal {LATEST_BESIDE_SLOW}"),
    ]
