"""Sums of days, slots, sources, nodes, and the steps of beats: what is left when all else is held."""

from __future__ import annotations

from collections import Counter
from typing import Any

from wakeful.control.auditing.counts import Sum
from wakeful.control.auditing.findings import EVENTS, REST, TOTALS, Findings, moment_or_none
from wakeful.control.auditing.fleet_rows import FleetRows
from wakeful.control.auditing.history import History
from wakeful.control.auditing.item_rows import ItemRows
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.task_rows import TaskRows

Row = dict[str, Any]

MEASURES = ("wakes", "ms", "usd", "tokens")


class RestRows:
    def __init__(
        self, history: History, fleet: FleetRows, items: ItemRows, tasks: TaskRows, runs: RunRows, findings: Findings
    ) -> None:
        self.history = history
        self.fleet = fleet
        self.items = items
        self.tasks = tasks
        self.runs = runs
        self.findings = findings

    def read(self) -> None:
        self._totals()
        self._beat_steps()
        self._slots()
        self._nodes_and_sources()
        self._reckonings()

    def _totals(self) -> None:
        counts = self.history.counts
        left = {key: total for key, total in counts.sums.items() if total != Sum()}
        for row in self.history.pages.of("total"):
            scope, day = row["scope"], row["day"]
            total = left.pop((scope, day), None) or Sum()
            for measure in MEASURES:
                self._sum(scope, day, measure, getattr(total, measure), row[measure])
        for (scope, day), total in sorted(left.items()):
            if counts.whole(day):
                for measure in MEASURES:
                    self._sum(scope, day, measure, getattr(total, measure), 0)

    def _sum(self, scope: str, day: str, measure: str, expected: int, found: int) -> None:
        if expected == found or (not self.history.counts.whole(day) and found > expected):
            return
        least = "" if self.history.counts.whole(day) else "at least "
        self.findings.add(TOTALS, f"total {scope} {day}", f"{measure} {least}{expected}", found)

    def _beat_steps(self) -> None:
        for subject, named in self.tasks.beat_steps:
            _, _, rest = subject.partition(":")
            agent, _, beat = rest.rpartition(":")
            stands = self.fleet.beats.get(agent)
            if str(stands) != beat:
                self.findings.add(
                    REST, named, f"a step of the beat that {agent} stands in, {stands}", f"of beat {beat}"
                )

        standing = {f"beat:{agent}:{beat}" for agent, beat in self.fleet.beats.items()}
        for subject, step in self.tasks.lost_steps:
            if subject in standing:
                self.findings.add(REST, f"step {subject} {step}", "a step that was recorded", "it is not there")

    def _slots(self) -> None:
        """Only where several nodes decide at once: each open run has a slot, and each slot one run or none."""
        rows = list(self.history.pages.of("slot"))
        if not rows:
            return
        taken: Counter[int] = Counter(row["run"] for row in rows if row["run"] is not None)
        for run, row in self.runs.open.items():
            if not taken[run]:
                named = (f"run {run}", f"slot of {row['pool']}")
                self.findings.add(REST, named, f"a slot of the {row['pool']} for an open run", "no such row")
        for row in rows:
            if row["run"] is not None and row["run"] not in self.runs.open:
                named = (f"slot {row['pool']}/{row['number']}", f"run {row['run']}")
                self.findings.add(REST, named, "an open run that has it, or none", f"run {row['run']} is not open")
        for pool in ("sessions", "workers"):
            numbers = [row["number"] for row in rows if row["pool"] == pool]
            most = max(self._declared(pool), default=0)
            missing = sorted(set(range(1, most + 1)) - set(numbers))
            if missing:
                self.findings.add(REST, f"slot {pool}/{missing[0]}", f"{most} slots of the {pool}", len(numbers))

    def _declared(self, pool: str) -> list[int]:
        lives = self.history.lives.of.values()
        return [getattr(life.agent.limits, pool) for life in lives if life.removed_at is None]

    def _nodes_and_sources(self) -> None:
        nodes = {row["name"] for row in self.history.pages.of("node")}
        for run, row in self.runs.open.items():
            if nodes and row["node"] is not None and row["node"] not in nodes:
                self.findings.add(REST, (f"run {run}", f"node {row['node']}"), "the node that holds it", "no such row")
        away: set[tuple[str, str]] = set()
        for row in self.history.pages.of("source"):
            named = f"source {row['source']} of {row['agent']}"
            if nodes and row["node"] is not None and row["node"] not in nodes:
                self.findings.add(REST, (named, f"node {row['node']}"), "the node that tends it", "no such row")
            if row["outage"] is None:
                continue
            away.add((row["agent"], row["source"]))
            told = self.history.tales.outages.get((row["agent"], row["source"]))
            if told is not None:
                self.findings.hold(REST, named, "why it is away, and told when", told, (row["told"], row["told_at"]))
            elif self.history.covers(row["told_at"]):
                at = moment_or_none(row["told_at"])
                self.findings.add(REST, named, f"an event that told of its outage at {at}", "no event does")
        mirrored = {item.mirrored for item in self.items.of.values() if item.mirrored and item.closed_at is None}
        for key in sorted(self.history.tales.outages.keys() - away):
            if key in mirrored:
                named = f"source {key[1]} of {key[0]}"
                self.findings.add(REST, named, "a row while its outage lasts and things of it are open", "no such row")

    def _reckonings(self) -> None:
        """Those behind which no event is left tell nothing any more."""
        if self.history.late:
            return
        newest = self.history.newest
        for event, at in self.history.reckonings.items():
            unseen = self.history.one_writer and self.history.set_back.get(event) != at
            if event > newest or unseen:
                expected = f"event {event} at {moment_or_none(at)}, earlier than the one before it"
                self.findings.add(EVENTS, f"reckoning {event}", expected, "it is not")
