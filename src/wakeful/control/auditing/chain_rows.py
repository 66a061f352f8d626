"""Causal keys and chains of tasks: who stands behind whom, and how deep.

Laws:
- Of one key the oldest that is open stands behind nobody; whoever is younger stands behind it, unless a run has it.
- What no run added is at the top; what a run added is one deeper than that run, whatever it took afterwards.
"""

from __future__ import annotations

from collections import defaultdict

from wakeful.control.auditing.findings import TASKS, Findings
from wakeful.control.auditing.history import History
from wakeful.control.auditing.item_rows import ItemRows
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.task_rows import TaskRows
from wakeful.control.auditing.wake_rows import WakeRows


class ChainRows:
    def __init__(
        self, history: History, runs: RunRows, wakes: WakeRows, items: ItemRows, tasks: TaskRows, findings: Findings
    ) -> None:
        self.history = history
        self.runs = runs
        self.wakes = wakes
        self.items = items
        self.tasks = tasks
        self.findings = findings

    def read(self) -> None:
        self._keys()
        self._depths()

    def _keys(self) -> None:
        first: dict[str, int] = {}
        for id, row in self.items.tasks.items():
            if row["closed_at"] is not None:
                continue
            # One without a key stands for itself.
            before = id if row["key"] is None else first.setdefault(row["key"], id)
            if before == id and row["behind"]:
                self.findings.add(TASKS, f"item {id}", "behind no other task: none older of its key is open", "behind")
            elif before != id and not row["behind"] and row["held_by"] is None:
                rows = (f"item {id}", f"item {before}")
                self.findings.add(TASKS, rows, f"behind task {before}, which is older and of its key", "not behind")

    def _depths(self) -> None:
        """Of a run that is gone, or whose tasks are, nobody knows how deep it was."""
        deepest: dict[int, int] = defaultdict(int)
        for item, attempts in self.tasks.tried.items():
            for attempt in attempts:
                task = self.items.tasks.get(item)
                deepest[attempt["run"]] = max(deepest[attempt["run"]], task["depth"] if task else 1 << 31)
        taking = {run for _, run in self.history.tales.taken}
        for id, row in self.items.tasks.items():
            run, named = row["by_run"], f"item {id}"
            if run is None:
                self.findings.hold(TASKS, named, "depth", 0, row["depth"])
                continue
            wake = self.runs.wakes.get(run)
            above = self.wakes.depth(wake) if wake is not None else None
            if above is None:
                continue
            most = max(above, deepest[run]) + 1
            sure = run not in taking and not self.history.late and not self.tasks.removed
            if (row["depth"] != most) if sure else not (above < row["depth"] <= most or self.tasks.removed):
                rows = (named, f"run {run}")
                self.findings.add(TASKS, rows, f"depth {most}, one below run {run}, which added it", row["depth"])
