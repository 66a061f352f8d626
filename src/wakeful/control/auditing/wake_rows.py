"""Wakes: each is waiting, joined, refused or admitted, as its events tell, and knows where it came from."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from wakeful.control.auditing.findings import WAKES, Findings, micros, moment_or_none
from wakeful.control.auditing.history import History
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.tales import ASKED, WakeTale
from wakeful.core.codec import read_time
from wakeful.core.settlement import LONGEST_QUOTA_HOLD
from wakeful.core.wakes import POOLS, RANKS

Row = dict[str, Any]

# What is waited for without an instant at which it may have changed.
_UNTIMED = ("busy", "slots", "paused")
# What was put off is let go over some minutes; and a run may say that its quota returns only in a while.
_SPREAD, _QUOTA = 3_600_000_000, LONGEST_QUOTA_HOLD // timedelta(microseconds=1)
_RANKS = {cause.value: rank for cause, rank in RANKS.items()}
_POOLS = {subject.value: pool.value for subject, pool in POOLS.items()}


class WakeRows:
    def __init__(self, history: History, runs: RunRows, findings: Findings) -> None:
        self.history = history
        self.runs = runs
        self.findings = findings
        self.states: dict[int, str] = {}
        self.decided: dict[int, int | None] = {}
        self.joined: dict[int, int | None] = {}
        self.slots: set[tuple[str, str]] = set()
        self.one_offs: set[int] = set()
        # Agents for whom a beat waits; what each wake is about.
        self.timers: dict[str, int] = {}
        self.about: dict[int, tuple[int, int | None]] = {}
        self._from: dict[int, tuple[int | None, int, int | None]] = {}
        # One of a kind waits, and others of that kind join it.
        self._kinds: dict[int, tuple[object, ...]] = {}

    def read(self) -> None:
        kinds: dict[tuple[object, ...], int] = {}
        for row in self.history.pages.of("wake"):
            self._remember(row)
            self._shape(row)
            if row["state"] == "waiting":
                kind = self._kinds[row["id"]]
                if kind in kinds:
                    named = (f"wake {kinds[kind]}", f"wake {row['id']}")
                    self.findings.add(WAKES, named, "one waiting wake of a kind", "two wait")
                kinds[kind] = row["id"]
            tale = self.history.tales.wakes.get(row["id"])
            if row["state"] == "waiting" and row["retry_at"] is not None:
                self._until(row, tale)
            if tale is None:
                self._untold(row)
            else:
                self._hold(row, tale)
        self._chains()
        self._targets()

    def _remember(self, row: Row) -> None:
        id = row["id"]
        self.states[id], self.decided[id], self.joined[id] = row["state"], row["decided_at"], row["joined"]
        self._from[id] = (row["root"], row["depth"], row["by_run"])
        self._kinds[id] = (row["agent"], row["cause"], row["subject"], row["task"], row["slot"])
        about = row["item"] or row["task"]
        if about is not None:
            self.about[id] = (about, row["decided_at"])
        if row["slot"]:
            self.slots.add((row["agent"], row["slot"]))
            self.one_offs.add(id)
        if row["state"] == "waiting" and row["cause"] == "timer" and not row["slot"]:
            self.timers[row["agent"]] = id

    def _shape(self, row: Row) -> None:
        named = f"wake {row['id']}"
        rank, pool = _RANKS.get(row["cause"]), _POOLS.get(row["subject"])
        if row["rank"] != rank or row["pool"] != pool:
            expected = f"rank {rank} in the {pool}, for {row['cause']} about {row['subject']}"
            self.findings.add(WAKES, named, expected, f"rank {row['rank']} in the {row['pool']}")
        if row["state"] != "waiting" and row["retry_at"] is not None and not row["slot"]:
            self.findings.add(WAKES, named, f"no instant to try it again: it is {row['state']}", row["retry_at"])
        if row["state"] == "waiting" and row["retry_at"] is None and row["guard"] not in _UNTIMED:
            expected = "an instant at which it is tried again"
            self.findings.add(WAKES, named, expected, f"none, and it waits for {row['guard'] or 'nothing'}")

    def _until(self, row: Row, tale: WakeTale | None) -> None:
        """What is put off is put off until an instant that somebody named, or that has nearly come: not for ever."""
        named = [self.history.latest, row["requested_at"], (tale.until if tale is not None else None) or 0]
        if row["slot"]:
            named.append(micros(read_time(row["slot"])))
        late = tale is None or not tale.whole or tale.failed
        latest = max(named) + _SPREAD + (_QUOTA if late and not row["slot"] else 0)
        if row["retry_at"] > latest and not (self.history.late and late):
            expected = f"put off until {moment_or_none(max(named))} or so"
            self.findings.add(WAKES, f"wake {row['id']}", expected, f"until {moment_or_none(row['retry_at'])}")

    def _untold(self, row: Row) -> None:
        """A one-off that was declared waits without a word; all else is told."""
        if row["slot"] and row["state"] == "waiting":
            return
        at = row["decided_at"] or row["requested_at"]
        if self.history.covers(at):
            when = moment_or_none(at)
            self.findings.add(WAKES, f"wake {row['id']}", f"an event that tells of it at {when}", "no event does")

    def _hold(self, row: Row, tale: WakeTale) -> None:
        named, hold = f"wake {row['id']}", self.findings.hold
        if row["state"] not in tale.states:
            expected = f"that it is {' or '.join(tale.states)}, as its last event leaves it"
            self.findings.add(WAKES, named, expected, row["state"])
            return
        if tale.cause is not None:
            hold(WAKES, named, "cause", tale.cause, row["cause"])
        for column, told in zip(ASKED, tale.asked, strict=False):
            if row[column] != told:
                hold(WAKES, named, f"{column} as it was asked for,", told, row[column])
        settled = len(tale.states) == 1 and not tale.failed
        if settled and row["state"] != "joined":
            hold(WAKES, named, "guard", tale.guard, row["guard"])
            if tale.reason is not None:
                hold(WAKES, named, "verdict", tale.reason, row["verdict"])
        if tale.decided_at is not None:
            decided, found = moment_or_none(tale.decided_at), moment_or_none(row["decided_at"])
            hold(WAKES, named, "decided at", decided, found)
        if tale.whole:
            hold(WAKES, named, "charged", int(tale.charged), row["charged"])
            again = tale.failed and row["state"] == "waiting"
            hold(WAKES, named, "attempt", tale.attempt + again, row["attempt"])
        if row["state"] == "admitted":
            missing = [run for run in tale.runs[-1:] if self.runs.states.get(run) in (None, "void")]
            if missing and not self.history.late:
                self.findings.add(WAKES, (named, f"run {missing[0]}"), "a run for an admitted wake", "there is none")

    def depth(self, wake: int) -> int | None:
        """How deep in its chain; None of one that is gone."""
        return self._from[wake][1] if wake in self._from else None

    def _chains(self) -> None:
        """Root and depth are those of the wake of the run that asked, one further; what it took may stand deeper."""
        takers = {run for _, run in self.history.tales.taken}
        for id, (root, depth, by_run) in self._from.items():
            if by_run is None:
                if (root, depth) != (None, 0):
                    self.findings.add(
                        WAKES, f"wake {id}", "no root and depth 0: no run asked", f"{root}, depth {depth}"
                    )
                continue
            parent = self.runs.wakes.get(by_run)
            if parent is None or parent not in self._from:
                continue
            above, deep, _ = self._from[parent]
            deeper = depth > deep + 1 and by_run in takers
            if (root, depth) != (above or parent, deep + 1) and not (deeper and root == (above or parent)):
                expected = f"root {above or parent} and depth {deep + 1}, one below wake {parent}"
                self.findings.add(WAKES, f"wake {id}", expected, f"root {root} and depth {depth}")

    def _targets(self) -> None:
        """What a wake joined is there; or it is what waits in the place of that."""
        tales, after = self.history.tales.wakes, self.history.tales.after
        for id, joined in self.joined.items():
            if joined is None:
                continue
            if joined not in self.states:
                self.findings.add(WAKES, (f"wake {id}", f"wake {joined}"), "the wake that it joined", "it is not there")
            elif self._kinds[joined] != self._kinds[id]:
                rows = (f"wake {id}", f"wake {joined}")
                self.findings.add(WAKES, rows, "joined to one of its own kind", f"wake {joined} is of another")
            tale = tales.get(id)
            told = tale.joined if tale is not None else None
            while told is not None and told != joined and told in after:
                told = after[told]
            if tale is not None and tale.joined is not None and told != joined:
                self.findings.hold(WAKES, f"wake {id}", "joined to wake", tale.joined, joined)
