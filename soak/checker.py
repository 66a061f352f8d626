"""What must be true of a store after a kill, whatever the moment. Reads the file by itself, without the store's code.

Laws:
- Whatever was accepted is there, once, as it was accepted. What was not may be there: it was only not heard.
- The counters say what the events say.
- The scans name no index: a broken index must not hide what it should find.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw

Totals = Counter[tuple[str, str, str]]

MEASURES = ("wakes", "ms", "usd", "tokens")


class Accepted:
    """What the killed processes said that they had accepted, over all their lives."""

    def __init__(self) -> None:
        self.records: dict[str, int] = {}
        self.decisions: list[tuple[int, str, int | None]] = []
        self.claims: dict[int, int] = {}
        self.finishes: dict[int, tuple[int, str]] = {}
        self.tasks: dict[tuple[int, int], str] = {}
        self.voids: set[int] = set()
        self.twice: list[str] = []

    def add(self, line: str) -> None:
        match line.split(" "):
            case ["record", key, id]:
                if self.records.setdefault(key, int(id)) != int(id):
                    self.twice.append(f"{key} was accepted as item {self.records[key]} and as item {id}")
            case ["decide", wake, verdict, run]:
                self.decisions.append((int(wake), verdict, None if run == "-" else int(run)))
            case ["claim", run, epoch]:
                self._once(self.claims, int(run), int(epoch), line)
            case ["finish", run, epoch, outcome]:
                self._once(self.finishes, int(run), (int(epoch), outcome), line)
            case ["task", run, task, outcome]:
                self._once(self.tasks, (int(run), int(task)), outcome, line)
            case ["void", run, _]:
                self.voids.add(int(run))
            case ["declare"]:
                pass
            case _:
                raise AssertionError(f"the writer said {line!r}")

    def _once(self, known: dict[Any, Any], key: object, value: object, line: str) -> None:
        if key in known:
            self.twice.append(f"accepted before: {line}")
        known[key] = value


def complaints(database: Path, accepted: Accepted) -> list[str]:
    """Everything that is wrong; an empty list is a store that kept its word."""
    if not database.exists():
        return ["there is no store, and something was accepted"] if accepted.records else []
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    # Whatever is in the log stays there: only its owner writes it into the file.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    try:
        connection.set_busy_timeout(5_000)
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema'").fetchall():
            return ["the store has no schema, and something was accepted"] if accepted.records else []
        connection.execute("PRAGMA query_only = 1")
        return list(_complaints(connection, accepted))
    finally:
        connection.close()


def _complaints(connection: apsw.Connection, accepted: Accepted) -> Iterator[str]:
    yield from accepted.twice
    for (said,) in connection.execute("PRAGMA integrity_check"):
        if said != "ok":
            yield f"integrity_check: {said}"
    for row in connection.execute("PRAGMA foreign_key_check"):
        yield f"foreign_key_check: {row}"
    yield from _records(connection, accepted)
    events = [
        (kind, agent, wake, run, item, json.loads(fields))
        for kind, agent, wake, run, item, fields in connection.execute(
            "SELECT kind, agent, wake, run, item, fields FROM event NOT INDEXED ORDER BY id"
        )
    ]
    yield from _decisions(connection, accepted, events)
    yield from _runs(connection, accepted, events)
    yield from _tasks(connection, accepted, events)
    yield from _totals(connection, events)


def _records(connection: apsw.Connection, accepted: Accepted) -> Iterator[str]:
    rows = connection.execute("SELECT dedupe, id FROM item NOT INDEXED WHERE dedupe IS NOT NULL").fetchall()
    found: dict[str, int] = dict(rows)
    for key, count in Counter(key for key, _ in rows).items():
        if count > 1:
            yield f"{key} is there {count} times"
    for key, id in accepted.records.items():
        if found.get(key) != id:
            yield f"{key} was accepted as item {id}, and is {found.get(key, 'not there')}"


def _decisions(connection: apsw.Connection, accepted: Accepted, events: list[Any]) -> Iterator[str]:
    told = Counter(
        (wake, "joined" if "joined" in fields else fields["verdict"]["kind"], run)
        for kind, _, wake, run, _, fields in events
        if kind == "decided"
    )
    # What was found twice and decided once has left no trace of the second.
    decisions = [decision for decision in accepted.decisions if decision[0]]
    for decision, count in Counter(decisions).items():
        if told[decision] < count:
            yield f"wake, verdict, run {decision} was accepted {count} times and is told {told[decision]} times"
    wakes = {id for (id,) in connection.execute("SELECT id FROM wake NOT INDEXED")}
    for wake, _, _ in decisions:
        if wake not in wakes:
            yield f"wake {wake} was decided, and is not there"


def _runs(connection: apsw.Connection, accepted: Accepted, events: list[Any]) -> Iterator[str]:
    query = "SELECT id, agent, state, epoch, outcome, ended_at FROM run NOT INDEXED"
    runs = {row[0]: row for row in connection.execute(query)}
    times = Counter((kind, run) for kind, _, _, run, _, _ in events)
    opened = Counter(agent for _, agent, _, _, _, ended_at in runs.values() if ended_at is None)
    for agent, count in opened.items():
        if count > 1:
            yield f"{agent} has {count} open runs"
    for id, _, state, _, _, _ in runs.values():
        expected = (int(state in ("running", "ended")), int(state == "ended"), int(state == "void"))
        told = (times["started", id], times["ended", id], times["voided", id])
        if told != expected:
            yield f"run {id} is {state}, and is told to have started, ended, been voided {told} times"
    for run, (epoch, outcome) in accepted.finishes.items():
        if run not in runs or runs[run][2:5] != ("ended", epoch, outcome):
            yield f"run {run} was accepted as {outcome} in epoch {epoch}, and is {runs.get(run, 'not there')}"
    for run, epoch in accepted.claims.items():
        if run not in runs or runs[run][3] != epoch:
            yield f"run {run} was claimed in epoch {epoch}, and is {runs.get(run, 'not there')}"
    for run in accepted.voids:
        if run not in runs or runs[run][2] != "void":
            yield f"run {run} was accepted as void, and is {runs.get(run, 'not there')}"
    held = "SELECT i.id, i.held_by FROM item i NOT INDEXED JOIN run r ON r.id = i.held_by WHERE r.ended_at IS NOT NULL"
    for item, run in connection.execute(held):
        yield f"item {item} is held by run {run}, which is over"


def _tasks(connection: apsw.Connection, accepted: Accepted, events: list[Any]) -> Iterator[str]:
    told = Counter(
        (run, task)
        for kind, _, _, run, item, fields in events
        if kind == "task_ended"
        # Tasks that ended together are told as one.
        for task in ([end[0] for end in fields["ends"]] if "ends" in fields else [item])
    )
    ended = {
        (run, item): outcome
        for run, item, outcome in connection.execute("SELECT run, item, outcome FROM attempt WHERE outcome IS NOT NULL")
    }
    for attempt, outcome in ended.items():
        if told[attempt] != 1:
            yield f"run, task {attempt} ended as {outcome}, and is told {told[attempt]} times"
    for attempt, outcome in accepted.tasks.items():
        if ended.get(attempt) != outcome:
            yield f"run, task {attempt} was accepted as {outcome}, and is {ended.get(attempt, 'not there')}"


def _totals(connection: apsw.Connection, events: list[Any]) -> Iterator[str]:
    kept = {
        (scope, day, measure): amount
        for scope, day, *amounts in connection.execute(f"SELECT scope, day, {', '.join(MEASURES)} FROM total")
        for measure, amount in zip(MEASURES, amounts, strict=True)
        if amount
    }
    counted = {key: amount for key, amount in recount(events).items() if amount}
    for key in sorted(kept.keys() | counted.keys()):
        if kept.get(key, 0) != counted.get(key, 0):
            yield f"total {key} is {kept.get(key, 0)}, the events say {counted.get(key, 0)}"


def recount(events: Iterable[Any]) -> Totals:
    """The totals as the events tell them: taken when admitted, given back when void, settled at the end."""
    totals: Totals = Counter()
    admitted: dict[int, tuple[str, str, str, dict[str, int]]] = {}
    for kind, agent, _, run, _, fields in events:
        if kind == "decided" and fields.get("verdict", {}).get("kind") == "admit":
            facts = fields["facts"]
            day = _day(facts)
            pair = "pair:" + "|".join(sorted((fields.get("from") or "", agent)))
            admitted[run] = (f"agent:{agent}", pair, day, facts.get("reserve") or {})
            _charge(totals, admitted[run], int(fields["charged"]))
            _spend(totals, admitted[run], admitted[run][3], 1)
        elif kind == "voided":
            _charge(totals, admitted[run], -int(fields["charged"]))
            _spend(totals, admitted[run], admitted[run][3], -1)
        elif kind == "ended":
            _spend(totals, admitted[run], admitted[run][3], -1)
            _spend(totals, admitted[run], fields["spend"].get("spend", {}), 1)
            scope, _, day, _ = admitted[run]
            for whose in (scope, "fleet"):
                totals[whose, day, "ms"] += fields["ms"]
    return totals


def _day(facts: dict[str, Any]) -> str:
    moment = datetime.fromisoformat(facts["now"])
    return moment.astimezone(ZoneInfo(facts.get("timezone", "UTC"))).date().isoformat()


def _charge(totals: Totals, run: tuple[str, str, str, dict[str, int]], times: int) -> None:
    scope, pair, day, _ = run
    totals[scope, day, "wakes"] += times
    totals[pair, day, "wakes"] += times


def _spend(totals: Totals, run: tuple[str, str, str, dict[str, int]], amounts: dict[str, int], times: int) -> None:
    scope, _, day, _ = run
    for measure in ("usd", "tokens"):
        totals[scope, day, measure] += times * amounts.get(measure, 0)
        totals["fleet", day, measure] += times * amounts.get(measure, 0)
