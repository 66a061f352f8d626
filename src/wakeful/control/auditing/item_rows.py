"""Messages and mirrored items: open, read, gone, or closed by a run that was shown them.

Laws:
- `shown` moves only with the outcome of a run that was shown the item, and back when it is put off.
- Events do not tell when a mirrored thing changed: its count of failures may then begin anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern
from typing import Any

from wakeful.control.auditing.findings import MESSAGES, Findings, moment_or_none
from wakeful.control.auditing.history import History
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.tales import ItemTale
from wakeful.control.auditing.wake_rows import WakeRows

Row = dict[str, Any]

# What is held against the rest once all items are known.
_OF_TASKS = (
    *("id", "state", "agent", "role", "target", "held_by", "attempts", "max_retries", "waits_for", "shown", "dedupe"),
    *("by_run", "error", "created_at", "closed_at", "asked", "place", "priority", "not_before"),
    *("key", "depth", "behind"),
)
_COMMON = frozenset({"state", "agent", "role", "target"})


class Task:
    """Those columns of a task's row, in a fifth of the room; what many rows have in common they share."""

    __slots__ = _OF_TASKS

    def __init__(self, row: Row) -> None:
        for column in _OF_TASKS:
            value = row[column]
            setattr(self, column, intern(value) if column in _COMMON and value is not None else value)

    def __getitem__(self, column: str) -> Any:
        return getattr(self, column)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered of an item."""

    task: bool
    state: str
    held_by: int | None
    closed_at: int | None
    created_at: int
    keyed: bool
    by_run: int | None
    reply_to: int | None
    asked: int | None
    mirrored: tuple[str, str] | None
    thread: int | None


# A sweep rings again half an hour later.
_SWEEP = 3_600_000_000


class ItemRows:
    def __init__(self, history: History, runs: RunRows, wakes: WakeRows, findings: Findings) -> None:
        self.history = history
        self.runs = runs
        self.wakes = wakes
        self.findings = findings
        self.of: dict[int, Kept] = {}
        self.tasks: dict[int, Task] = {}
        # When runs ended whose start is not told: what they were shown is not either.
        self._seen: set[tuple[int, int]] | None = None
        self._unseen = {tale.ended_at for tale in history.tales.runs.values() if tale.started is None}

    def read(self) -> None:
        for row in self.history.pages.of("item"):
            task = row["kind"] == "task"
            mirrored = (row["agent"], row["source"]) if row["external_id"] is not None else None
            self.of[row["id"]] = Kept(
                task,
                intern(row["state"]),
                row["held_by"],
                row["closed_at"],
                row["created_at"],
                row["dedupe"] is not None,
                row["by_run"],
                row["reply_to"],
                row["asked"],
                mirrored,
                row["thread"],
            )
            self._shape(row)
            if task:
                self.tasks[row["id"]] = Task(row)
            else:
                self._message(row)
                self._rings(row)
        self._references()
        self._numbers()

    def _shape(self, row: Row) -> None:
        named, addresses = f"item {row['id']}", self.history.lives.timerless
        if row["agent"] is not None and row["agent"] not in addresses and not self.history.late:
            self.findings.add(MESSAGES, named, "an agent or address that was declared", row["agent"])
        if row["kind"] == "message":
            self.findings.hold(
                MESSAGES, named, "attempts and dependencies", (0, 0), (row["attempts"], row["waits_for"])
            )
        if row["external_id"] is None:
            self.findings.hold(MESSAGES, named, "one generation", "1", row["fingerprint"])
        if row["reply_to"] is None:
            self.findings.hold(MESSAGES, named, "in no thread but its own", None, row["thread"])
        elif row["reply_to"] in self.of:
            thread = self.of[row["reply_to"]].thread or row["reply_to"]
            self.findings.hold(MESSAGES, named, "in the thread", thread, row["thread"])

    def _message(self, row: Row) -> None:
        tale = self.history.tales.items.get(row["id"]) if row["id"] in self.history.tales.items else None
        fresh = self.history.covers(row["created_at"])
        if tale is None:
            if fresh:
                self._hold(row, ItemTale())
            elif self.history.covers(row["closed_at"]) and row["closed_at"] not in (None, *self._unseen):
                at = moment_or_none(row["closed_at"])
                self.findings.add(MESSAGES, f"item {row['id']}", f"an event that closed it at {at}", "no event does")
            return
        if (fresh and not tale.loose) or tale.sure:
            self._hold(row, tale)
        self._end(row, tale)

    def _rings(self, row: Row) -> None:
        """What is open is asked for by a wake about it, or when it rings; and was shown to those whom it is for."""
        named, asked, tale = f"item {row['id']}", row["asked"], self.history.tales.items.get(row["id"])
        if tale is not None and tale.by is not None and row["agent"] not in tale.by:
            self.findings.hold(MESSAGES, named, "for the agent that was shown it,", tale.by[0], row["agent"])
        about = self.wakes.about.get(asked, (None, None))[0]
        known = asked in self.wakes.states and not self.history.late
        if known and about != row["id"] and (asked, row["id"]) not in self._shown():
            expected = "a wake about it, or one whose run was shown it"
            self.findings.add(MESSAGES, (named, f"wake {asked}"), expected, f"wake {asked} is neither")
        if row["closed_at"] is not None or row["held_by"] is not None or asked is not None:
            return
        rings = row["ring_at"]
        if rings is None and row["external_id"] is not None:
            self.findings.add(MESSAGES, named, "an instant at which what is mirrored rings", "none")
        latest = max(self.history.latest, row["created_at"], row["not_before"] or 0)
        if rings is not None and rings > latest + _SWEEP:
            expected = f"that it rings by {moment_or_none(latest)} or soon after"
            self.findings.add(MESSAGES, named, expected, f"at {moment_or_none(rings)}")

    def _shown(self) -> set[tuple[int, int]]:
        """Which wakes had a run that was shown which items."""
        if self._seen is None:
            runs = self.history.tales.runs.values()
            self._seen = {(tale.wake, item) for tale in runs if tale.started for item in tale.started["shown"]}
        return self._seen

    def _hold(self, row: Row, tale: ItemTale) -> None:
        named, hold = f"item {row['id']}", self.findings.hold
        hold(MESSAGES, named, "held by run", tale.held_by, row["held_by"])
        if row["external_id"] is None:
            hold(MESSAGES, named, "shown, by outcomes, as", tale.shown, row["shown"])
            hold(MESSAGES, named, "unanswered by so many runs,", tale.unanswered, row["unanswered"])
            if tale.again:
                self.findings.add(
                    MESSAGES, named, "a message that is closed to stay closed", "a run was shown it again"
                )
        else:
            if (tale.shown is None) != (row["shown"] is None):
                outcome = "no outcome" if tale.shown is None else f"the outcome of a run that saw {tale.shown}"
                self.findings.add(MESSAGES, named, f"shown as {outcome} left it", f"shown is {row['shown']}")
            if row["unanswered"] > tale.unanswered:
                expected = f"unanswered by at most {tale.unanswered} runs"
                self.findings.add(MESSAGES, named, expected, row["unanswered"])
        if tale is not None and not tale.at:
            self._end(row, tale)

    def _end(self, row: Row, tale: ItemTale) -> None:
        closed_at = tale.closed_at if tale.closed else None
        if row["external_id"] is None and tale.answered_at is not None:
            closed_at = tale.answered_at if closed_at is None else min(closed_at, tale.answered_at)
        expected, found = moment_or_none(closed_at), moment_or_none(row["closed_at"])
        if (
            closed_at is None
            and not self.history.covers(row["created_at"])
            and not self.history.covers(row["closed_at"])
        ):
            return
        self.findings.hold(MESSAGES, f"item {row['id']}", "closed at", expected, found)

    def _references(self) -> None:
        """What is named is there, or was taken by retention."""
        late, wakes = self.history.late, self.wakes.states
        for id, item in self.of.items():
            if item.asked is not None and item.asked not in wakes and not late:
                rows = (f"item {id}", f"wake {item.asked}")
                self.findings.add(MESSAGES, rows, f"wake {item.asked}, which it asked for", "it is not there")
            # What answered nothing that was there has no thread.
            if item.thread is not None and item.reply_to is not None and item.reply_to not in self.of and not late:
                rows = (f"item {id}", f"item {item.reply_to}")
                self.findings.add(MESSAGES, rows, f"item {item.reply_to}, which it answers", "it is not there")
            if item.held_by is not None and item.held_by not in self.runs.open:
                rows = (f"item {id}", f"run {item.held_by}")
                self.findings.add(MESSAGES, rows, f"an open run {item.held_by}, which holds it", "it is not open")

    def _numbers(self) -> None:
        """Where numbers have no gaps, an item that nobody ever mentioned is missed by its own."""
        pages, tales = self.history.pages, self.history.tales
        newest = pages.last_number("item")
        # What is older than the whole history may have been swept with what told of it; a clock that was set back hides
        # which that is.
        if newest is None or (self.history.late and self.history.set_back):
            return
        old = [id for id, item in self.of.items() if not self.history.covers(item.created_at)]
        if self.history.late and len(old) == len(self.of):
            return
        first = max([pages.gaps_until("item"), *old]) + 1
        told = {*tales.items, *tales.changes, *(item for item, _ in (*tales.ends, *tales.taken))}
        for id in range(first, newest + 1):
            if id not in self.of and id not in told:
                self.findings.add(MESSAGES, f"item {id}", "a message or task of that number", "it is not there")
