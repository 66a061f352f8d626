"""What is told and no longer there: taken by retention, or missing.

Law: retention takes what ended first before what ended later, and never what is open, younger than a day, or needed by
what is kept. A row is excused while everything that would have been taken before it is gone as well.
"""

from __future__ import annotations

from wakeful.control.auditing.findings import MESSAGES, RUNS, TASKS, WAKES, Findings, micros
from wakeful.control.auditing.history import TODAY, History
from wakeful.control.auditing.item_rows import ItemRows
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.task_rows import TaskRows
from wakeful.control.auditing.wake_rows import WakeRows

_NEVER = 0
_GONE = "it is not there"


class Swept:
    def __init__(
        self, history: History, runs: RunRows, wakes: WakeRows, items: ItemRows, tasks: TaskRows, findings: Findings
    ) -> None:
        self.history = history
        self.runs = runs
        self.wakes = wakes
        self.items = items
        self.tasks = tasks
        self.findings = findings
        self._latest = micros(history.now - TODAY)
        # When the last thing ended that is told, and was taken all the same: a sweep is under way.
        self.until: int | None = None

    def look(self, showings: set[int]) -> None:
        """`showings` are the runs that were the last to see something."""
        runs, wakes, items = self._sweepable_runs(showings), self._sweepable_wakes(), self._sweepable_items()
        firsts = [min(ends) for ends in (runs, wakes, items) if ends]
        made = [item.created_at for item in self.items.of.values()]
        made += [at for at in (*self.runs.ended.values(), *self.wakes.decided.values()) if at is not None]
        self.history.missing_in_front(min(made, default=1 << 62))
        self._runs(self._horizon(runs, firsts))
        self._wakes(self._horizon(wakes, firsts))
        self._items(self._horizon(items, firsts))

    def _horizon(self, ends: list[int], firsts: list[int]) -> int:
        """Before this, what has ended may have been taken: of some kind nothing is left that ended earlier."""
        if not self.history.late:
            return _NEVER
        return min(self._latest, max([self.history.since or _NEVER, *firsts])) if ends else self._latest

    def _taken(self, at: int, horizon: int) -> bool:
        # Of those that ended at one instant some may be left.
        if at > horizon:
            return False
        self.until = max(at, self.until or at)
        return True

    # -- runs -------------------------------------------------------------------------------------------------
    def _sweepable_runs(self, showings: set[int]) -> list[int]:
        authors = {item.by_run for item in self.items.of.values() if item.closed_at is None}
        kept = self.tasks.kept_runs | authors | showings
        kept |= set(self.runs.last_ended.values()) | set(self.runs.last_charged.values())
        return [at for run, at in self.runs.ended.items() if at is not None and run not in kept]

    def _runs(self, horizon: int) -> None:
        for run, tale in self.history.tales.runs.items():
            if run not in self.runs.states and not self._taken(tale.last_at, horizon):
                expected = f"a row for run {run} of {tale.agent}, which is {tale.state}"
                self.findings.add(RUNS, (f"run {run}", f"wake {tale.wake}"), expected, _GONE)

    # -- wakes ------------------------------------------------------------------------------------------------
    def _sweepable_wakes(self) -> list[int]:
        # What others had joined is taken after them, at the next turn.
        told = self.history.tales.wakes.values()
        resting = set(self.runs.wakes.values()) | {tale.joined for tale in told} | set(self.wakes.joined.values())
        resting |= self.history.tales.after.keys() | set(self.history.tales.after.values())
        found = []
        for wake, state in self.wakes.states.items():
            at, joined = self.wakes.decided[wake], self.wakes.joined[wake]
            waits = joined is not None and self.wakes.states.get(joined) == "waiting"
            kept = waits or wake in resting or wake in self.wakes.one_offs
            if state != "waiting" and at is not None and not kept:
                found.append(at)
        return found

    def _wakes(self, horizon: int) -> None:
        for wake, tale in self.history.tales.wakes.items():
            if wake in self.wakes.states:
                continue
            at = tale.decided_at
            over = tale.states != ("waiting",)
            before = at is None and self.history.late
            if not (over and (before or self._taken(at or 1 << 62, horizon))):
                state = " or ".join(tale.states)
                self.findings.add(WAKES, f"wake {wake}", f"a row for wake {wake}, which is {state}", _GONE)
        for run, wake in self.runs.wakes.items():
            if wake not in self.wakes.states:
                self.findings.add(WAKES, (f"wake {wake}", f"run {run}"), f"the wake that run {run} rests on", _GONE)

    def _unkeyed(self, at: int) -> bool:
        """What has lost its key to a sweep is taken by the next one, after what is younger: it says nothing of that."""
        return self.history.late and at <= self._latest

    # -- items ------------------------------------------------------------------------------------------------
    def _sweepable_items(self) -> list[int]:
        # What others need or a key guards is kept; of the rest the first that ended says how far it was swept.
        needed = self.tasks.needed
        items = ((id, item) for id, item in self.items.of.items() if not item.keyed and id not in needed)
        return [item.closed_at for _, item in items if item.closed_at is not None]

    def _items(self, horizon: int) -> None:
        tales = self.history.tales
        for item, tale in tales.items.items():
            if item in self.items.of:
                continue
            over = tale.closed or tale.answered_at is not None
            if not (over and (self._taken(tale.at, horizon) or self._unkeyed(tale.at))):
                self.findings.add(MESSAGES, f"item {item}", "an item that its events tell of", _GONE)
        removed = {item for item, changes in tales.changes.items() if changes[-1].change == "remove"}
        mentioned: dict[int, int] = {}
        for (item, _), end in tales.ends.items():
            if end.held:
                mentioned[item] = max(end.at, mentioned.get(item, 0))
        for item, changes in tales.changes.items():
            mentioned[item] = max(changes[-1].at, mentioned.get(item, 0))
        for item, at in (*mentioned.items(), *self._asked(mentioned)):
            if (
                item not in self.items.of
                and item not in removed
                and not (self._taken(at, horizon) or self._unkeyed(at))
            ):
                self.findings.add(TASKS, f"item {item}", "a task that its events tell of", _GONE)
        for item in removed:
            if item in self.items.of:
                self.findings.add(TASKS, f"item {item}", "no row for a task that was removed", "a row")

    def _asked(self, known: dict[int, int]) -> list[tuple[int, int]]:
        """What wakes are about; they may be decided after it has ended, and was taken."""
        if self.history.late:
            return []
        told = self.history.tales.items
        about = self.wakes.about.values()
        return [(item, at or 1 << 62) for item, at in about if item not in known and item not in told]
