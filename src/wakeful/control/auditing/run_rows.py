"""Runs, what they were shown, and what they printed: each row against the tale of its events."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from wakeful.control.auditing.findings import MESSAGES, REST, RUNS, Findings, moment_or_none
from wakeful.control.auditing.history import History
from wakeful.control.auditing.tales import RunTale

Row = dict[str, Any]


class RunRows:
    """What is remembered of the rows, for those who hold other rows against them."""

    def __init__(self, history: History, findings: Findings) -> None:
        self.history = history
        self.findings = findings
        self.states: dict[int, str] = {}
        self.ended: dict[int, int | None] = {}
        self.wakes: dict[int, int] = {}
        self.open: dict[int, Row] = {}
        self.agents: dict[int, str] = {}
        # By agent: how many beats it had settled before the history begins.
        self.beats: dict[str, int] = {}
        self.last_ended: dict[str, int] = {}
        self.last_charged: dict[str, int] = {}
        self.versions: set[tuple[str, int]] = set()
        # The version of the first run that is left of each agent.
        self.oldest: dict[str, int] = {}

    def read(self) -> None:
        for row in self.history.pages.of("run"):
            self._remember(row)
            tale = self.history.tales.runs.get(row["id"])
            if tale is None or (tale.opened is None and self.history.late):
                self._untold(row, tale)
            else:
                self._hold(row, tale)
        for agents in self._doubled():
            rows = tuple(f"run {row['id']}" for row in agents)
            self.findings.add(RUNS, rows, f"one open run of {agents[0]['agent']}", f"{len(agents)} are open")

    def _remember(self, row: Row) -> None:
        id = row["id"]
        self.states[id], self.ended[id], self.wakes[id] = row["state"], row["ended_at"], row["wake"]
        self.agents[id] = row["agent"]
        self.versions.add((row["agent"], row["version"]))
        self.oldest.setdefault(row["agent"], row["version"])
        if row["ended_at"] is None:
            self.open[id] = row
        if row["state"] == "ended":
            self.last_ended[row["agent"]] = id
        if row["charged"] and row["state"] != "void":
            self.last_charged[row["address"]] = id

    def _doubled(self) -> list[list[Row]]:
        by_agent: dict[str, list[Row]] = defaultdict(list)
        for row in self.open.values():
            by_agent[row["agent"]].append(row)
        return [rows for rows in by_agent.values() if len(rows) > 1]

    def _untold(self, row: Row, tale: RunTale | None) -> None:
        """Its admission is not told: then it was admitted before the history begins."""
        if tale is not None and tale.event:
            # Of an agent whose declaration is gone: nothing more is known.
            return
        if self.history.covers(row["admitted_at"]):
            at = moment_or_none(row["admitted_at"])
            self.findings.add(RUNS, f"run {row['id']}", f"an event that admitted it at {at}", "no event tells of it")
        elif tale is None and row["ended_at"] is not None and self.history.covers(row["ended_at"]):
            at = moment_or_none(row["ended_at"])
            self.findings.add(RUNS, f"run {row['id']}", f"an event that ended it at {at}", "no event tells of it")

    def _hold(self, row: Row, tale: RunTale) -> None:
        named = f"run {row['id']}"
        told: dict[str, object] = {"state": tale.state, "agent": tale.agent, "wake": tale.wake}
        opened = tale.opened
        if opened is not None:
            told |= {
                "subject": tale.subject,
                "address": opened.address,
                "cause": opened.cause,
                "pool": opened.pool,
                "version": tale.version,
                "charged": int(opened.charged),
                "pair": opened.pair,
                "day": opened.day,
                "fleet_day": opened.fleet_day,
                "reserved_usd": opened.reserved.usd,
                "reserved_tokens": opened.reserved.tokens,
                "admitted_at": opened.at,
            }
        if tale.place is not None:
            told |= {"position": tale.place[0], "hits": tale.place[1]}
        if tale.attempt is not None:
            told["attempt"] = tale.attempt
        if tale.started is not None:
            started = tale.started
            told |= {"started_at": tale.started_at, "node": started["node"], "epoch": started["epoch"]}
            told |= {"position": started["state"], "hits": started["hits"], "subject": started["subject"]}
        else:
            told |= {"started_at": None, "node": None, "epoch": 0}
        told |= self._end(tale)
        for column, expected in told.items():
            if row[column] != expected:
                self._differs(named, column, expected, row[column])
        if row["stop_by"] is not None and not tale.stopped:
            self.findings.add(RUNS, named, f"an event that {row['stop_by']} wants it stopped", "no event tells of it")
        self._beat(row, tale)

    def _end(self, tale: RunTale) -> dict[str, object]:
        if tale.voided_at is not None or tale.ended is None:
            nothing = {"outcome": None, "spent_usd": 0, "spent_tokens": 0, "estimated": 0}
            return {"ended_at": tale.voided_at, **nothing}
        ended, spend = tale.ended, tale.ended["spend"]
        return {
            "ended_at": tale.ended_at,
            "outcome": ended["outcome"],
            "reason": ended["reason"],
            "day": ended["day"],
            "position": ended["position"][0],
            "hits": ended["position"][1],
            "spent_usd": spend["spend"].get("usd", 0),
            "spent_tokens": spend["spend"].get("tokens", 0),
            "estimated": int(spend["estimated"]),
        }

    def _differs(self, named: str, column: str, expected: object, found: object) -> None:
        if column.endswith("_at"):
            times = [value if value is None else moment_or_none(int(str(value))) for value in (expected, found)]
            expected, found = times
        self.findings.hold(RUNS, named, f"{column} as its events tell it,", expected, found)

    def _beat(self, row: Row, tale: RunTale) -> None:
        """How many beats had been settled; the first run of an agent that we meet says how many there were before."""
        if tale.opened is None:
            return
        life = self.history.lives.get(row["agent"])
        new = life is not None and not self.history.late
        before = self.beats.setdefault(row["agent"], 0 if new else row["beat"] - tale.beats)
        if row["beat"] != before + tale.beats:
            self.findings.hold(RUNS, f"run {row['id']}", "the number of its beat", before + tale.beats, row["beat"])

    # -- what they were shown, and printed --------------------------------------------------------------------
    def read_shown(self, items: set[int]) -> set[int]:
        """`items` are those that there are. The last runs that saw something; retention keeps them while it is open."""
        tales = self.history.tales.runs
        found: dict[int, set[int]] = defaultdict(set)
        last: dict[int, int] = {}
        for row in self.history.pages.of("run_item"):
            run, item = row["run"], row["item"]
            named = f"run_item {run}/{item}"
            tale = tales.get(run)
            found[run].add(item)
            last[item] = max(run, last.get(item, 0))
            if run not in self.states or item not in items:
                missing = f"item {item}" if item not in items else f"run {run}"
                self.findings.add(MESSAGES, (named, missing), f"{missing}, which the row rests on", "it is not there")
            elif tale is not None and tale.started is not None:
                told = tale.started["shown"]
                if told.get(item) != row["fingerprint"]:
                    expected = f"that run {run} was shown it as {told.get(item, 'nothing')}"
                    self.findings.add(MESSAGES, named, expected, row["fingerprint"])
            elif self.states[run] in ("void", "admitted"):
                self.findings.add(MESSAGES, named, f"nothing shown to a run that is {self.states[run]}", "a row")
        for run, tale in tales.items():
            if tale.started is None or self.states.get(run) not in ("running", "ended"):
                continue
            for item in tale.started["shown"]:
                if item in items and item not in found.get(run, ()):
                    expected = f"a row that run {run} was shown item {item}"
                    self.findings.add(MESSAGES, f"run_item {run}/{item}", expected, "no such row")
        return set(last.values())

    def read_output(self) -> None:
        for row in self.history.pages.of("output"):
            named = f"output of run {row['run']}, {row['stream']}"
            if row["run"] not in self.states:
                self.findings.add(REST, named, f"run {row['run']}, which printed it", "it is not there")
            if row["length"] != row["reaches"]:
                found = f"{row['length']} of {row['reaches']} bytes"
                self.findings.add(REST, named, "pieces without a gap", found)
