"""The events, folded once in the order of their ids.

Laws:
- What is told twice, out of turn or not at all is a finding. What retention took from the front is not: before the
  start of the whole history only the last words are left that it keeps, and they are believed.
- Every `decided` event is judged before it is folded, every `ended` one as it is.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from wakeful.control.auditing.counts import Counts, Opened
from wakeful.control.auditing.door import POOLS, Door, is_check
from wakeful.control.auditing.findings import EVENTS, UNREADABLE, Findings, micros, moment
from wakeful.control.auditing.lives import Lives
from wakeful.control.auditing.pages import Pages
from wakeful.control.auditing.tales import Tales
from wakeful.core.standing import NOTHING, Spend

Row = dict[str, Any]

_NEVER = 253_402_000_000 * 10**6
# Longer than any transaction takes, in microseconds.
_MOMENT = 60 * 10**6
# What is younger is never swept.
TODAY = timedelta(hours=26)
# Of these retention keeps the last of each agent, or of each pause.
LAST_WORDS = ("declared", "set", "removed", "paused", "ended")
_KNOWN = frozenset(
    {
        *("booted", "declared", "removed", "set", "paused", "resumed", "asked", "decided", "started", "stopped"),
        *("voided", "ended", "task_ended", "task_changed", "marked_read", "snoozed", "outage", "restored", "gone"),
        *("task_taken", "returned", "acted", "denied", "tainted", "step_saved", "passed_over"),
    }
)


class History:
    def __init__(self, pages: Pages, findings: Findings, now: datetime, *, swept_until: int | None = None) -> None:
        """`swept_until`: when the last thing ended that was taken while its events are still there."""
        self.pages = pages
        self._swept_until = swept_until
        self.now = now
        self.findings = findings
        self.lives = Lives(findings)
        self.counts = Counts(findings)
        self.tales = Tales(self.lives, self.counts, findings)
        self.door = Door(self.lives, self.counts, findings)
        self.reckonings = {row["event"]: row["at"] for row in pages.of("reckoning")}
        # The first event of the whole history, and when that was; None where the history has its beginning.
        self.start = 0
        self.since: int | None = None
        # Events that are earlier than the one before them.
        self.set_back: dict[int, int] = {}
        self._dense = pages.last_number("event")
        self._gaps_until = pages.gaps_until("event")
        self._last: tuple[int, int] | None = None
        # The latest instant before the history begins: a clock that was set back may have been further than it.
        self._latest = 0
        # The first event that is left: its number, and when it was told; and the latest instant of any.
        self.first: tuple[int, int] | None = None
        self.latest = micros(now)

    @property
    def late(self) -> bool:
        return self.since is not None

    def covers(self, at: int | None) -> bool:
        """Whether what happened then is told. Of the first instant that is left, some may have been swept."""
        return self.since is None or (at is not None and at > self.since)

    @property
    def one_writer(self) -> bool:
        """Whether whoever wrote an event saw the one before it."""
        return self._dense is not None

    @property
    def newest(self) -> int:
        return self._last[0] if self._last else 0

    # -- where it begins --------------------------------------------------------------------------------------
    def read(self) -> None:
        self._find_start()
        begun = not self.late
        self.lives.believing = not begun
        for event in self.pages.of("event"):
            event["moment"] = moment(event["at"])
            if not begun and event["id"] >= self.start:
                self._begin(event)
                begun = True
            self._number(event)
            if event["kind"] not in _KNOWN:
                self.findings.add(EVENTS, f"event {event['id']}", "a kind of event that is known", event["kind"])
                continue
            try:
                self._tell(event, begun)
            except UNREADABLE as error:
                found = f"{type(error).__name__}: {error}"
                self.findings.add(EVENTS, f"event {event['id']}", "what such an event tells", found)
        if not begun:
            self._begin(None)
        self._newest()

    def _tell(self, event: Row, begun: bool) -> None:
        told = json.loads(event["fields"])
        if begun:
            self._fold(event, told)
            return
        self._latest = max(self._latest, event["at"])
        if event["kind"] in (*LAST_WORDS, "resumed"):
            self._last_word(event, told)

    def _find_start(self) -> None:
        """What was never swept begins with its first event; else behind the last words, and behind any stretch of time
        that was swept because the clock had been set back into it."""
        last = first = None
        gaps = False
        for event in self.pages.of("event"):
            first = first or event["id"]
            gaps = gaps or (last is not None and event["id"] > last + 1)
            # The very first is often a start, of which nothing is kept; else it may be a last word itself, and behind
            # it a gap, which may be what was swept.
            beginning = first == 1 and not gaps
            if beginning and self._swept_until is None and event["kind"] not in LAST_WORDS:
                return
            if last is None and self._dense is None and event["kind"] == "booted":
                return
            swept = last is not None and event["id"] > last + 1 and self._set_back(last, event["id"])
            half = self._swept_until is not None and event["at"] <= self._swept_until
            if half or swept:
                self.start = 0
            if not (half or self.start) and event["kind"] not in LAST_WORDS:
                self.start, self.since = event["id"], event["at"]
            last = event["id"]
        if (first is None and not self._dense) or (first == 1 and not gaps and last == self._dense):
            return
        if not self.start:
            self.start, self.since = 1 << 62, 1 << 62

    def _set_back(self, last: int, id: int) -> bool:
        return self._dense is not None and any(last < event <= id for event in self.reckonings)

    def _begin(self, event: Row | None) -> None:
        self.lives.unsure()
        self.tales.late = True
        self.lives.believing = False
        self.counts.begin_late(moment(max(event["at"], self._latest)) if event else moment(_NEVER))

    # -- numbers and times ------------------------------------------------------------------------------------
    def _number(self, event: Row) -> None:
        self.first = self.first or (event["id"], event["at"])
        self.latest = max(self.latest, event["at"])
        if self._last is not None:
            id, at = self._last
            whole = event["id"] > self.start or (moment(at) > self.now - TODAY and not self._set_back(id, event["id"]))
            if self._dense is not None and event["id"] > max(id, self._gaps_until) + 1 and whole:
                missing = f"event {id + 1}" if event["id"] == id + 2 else f"events {id + 1} to {event['id'] - 1}"
                self.findings.add(EVENTS, missing, "events numbered without a gap", f"no {missing}")
            if event["at"] < at:
                self.set_back[event["id"]] = event["at"]
            # Of two nodes that write at the same moment neither sees the other's event.
            beside = not self.one_writer and event["at"] > at - _MOMENT
            if event["at"] < at and event["id"] == id + 1 and event["id"] not in self.reckonings and not beside:
                expected = "a reckoning row where the clock was set back"
                self.findings.add(EVENTS, f"event {event['id']}", expected, "no such row")
        self._last = (event["id"], event["at"])

    def missing_in_front(self, oldest: int) -> None:
        """`oldest` is when the oldest row was made: where that is too young to be swept, so is every event."""
        if self._dense is None or self.first is None or min(oldest, self.first[1]) <= micros(self.now - TODAY):
            return
        number = max(self._gaps_until, 0) + 1
        if self.first[0] > number:
            missing = f"event {number}" if self.first[0] == number + 1 else f"events {number} to {self.first[0] - 1}"
            expected = "all from the first on: nothing here is old enough to be swept"
            self.findings.add(EVENTS, missing, expected, f"no {missing}")

    def _newest(self) -> None:
        newest = self.newest
        # Where only last words are left, the newest may have been swept too.
        if self._dense is not None and self._dense > newest and self.start < 1 << 62:
            found = f"the newest is event {newest}"
            self.findings.add(EVENTS, f"event {newest + 1}", f"events up to number {self._dense}", found)

    # -- the fold ---------------------------------------------------------------------------------------------
    def _last_word(self, event: Row, told: Row) -> None:
        match event["kind"]:
            case "declared":
                self.lives.declared(event, told)
            case "set":
                self.lives.set(event, told)
            case "removed":
                self.lives.removed(event)
            case "paused":
                self.counts.paused(event, told)
            case "resumed":
                self.counts.pauses.pop((told["scope"], told["owner"]), None)
            case "ended":
                self.lives.last_words(event, told)

    def _fold(self, event: Row, told: Row) -> None:
        fold = getattr(self, f"_{event['kind']}")
        fold(event, told)

    def _booted(self, event: Row, told: Row) -> None:
        self.lives.booted(event, told)

    def _declared(self, event: Row, told: Row) -> None:
        self.lives.declared(event, told)

    def _set(self, event: Row, told: Row) -> None:
        self.lives.set(event, told)

    def _removed(self, event: Row, told: Row) -> None:
        self.lives.removed(event)

    def _paused(self, event: Row, told: Row) -> None:
        self.counts.paused(event, told)

    def _resumed(self, event: Row, told: Row) -> None:
        self.counts.resumed(event, told, event["moment"])

    def _asked(self, event: Row, told: Row) -> None:
        self.tales.asked(event, told)

    def _decided(self, event: Row, told: Row) -> None:
        if "joined" in told:
            self.tales.joined(event, told)
        elif "withdrawn" in told:
            self.tales.withdrawn(event, told)
        elif "verdict" in told:
            self.door.judge(event, told)
            life = self.lives.get(event["agent"])
            place = life.place() if life is not None and life.sure_place else None
            known = life is not None or not self.late
            opened = self._open(event, told) if event["run"] is not None and known else None
            if event["run"] is not None and not known:
                self.counts.untold(event["agent"] or "", event["at"])
            self.tales.decided(event, told, opened, (place.state, place.hits) if place else None)
            if is_check(told):
                self.lives.skipped(event, told)

    def _open(self, event: Row, told: Row) -> Opened:
        life = self.lives.get(event["agent"])
        name = event["agent"] or ""
        address = life.agent.address if life else name
        reserved = told.get("facts", {}).get("reserve")
        opened = Opened(
            run=event["run"],
            agent=name,
            address=address,
            wake=event["wake"],
            cause=told["cause"],
            pool=POOLS[told["subject"]],
            by_run=told.get("by_run"),
            charged=told.get("charged", False),
            pair=self.door.pair(told.get("from"), address),
            day=self.counts.day(event["at"], life.agent.timezone if life else "UTC"),
            fleet_day=self.counts.day(event["at"], life.agent.limits.fleet_timezone if life else "UTC"),
            at=event["at"],
            reserved=Spend(**reserved) if reserved else NOTHING,
        )
        self.counts.open_one(opened)
        return opened

    def _started(self, event: Row, told: Row) -> None:
        self.tales.started(event, told)
        life = self.lives.get(event["agent"])
        if life is None:
            return
        if life.epoch is not None:
            rows = (f"event {event['id']}", f"run {event['run']}")
            self.findings.hold("runs", rows, "started in epoch", life.epoch + 1, told["epoch"])
        life.epoch = told["epoch"]

    def _stopped(self, event: Row, told: Row) -> None:
        self.tales.stopped(event)

    def _voided(self, event: Row, told: Row) -> None:
        self.tales.voided(event, told)
        self.counts.void(event["run"], "joined" in told)

    def _ended(self, event: Row, told: Row) -> None:
        name = event["agent"] or ""
        held = any((f"agent:{name}", owner) in self.counts.pauses for owner in ("quarantine", "quota"))
        self.lives.ended(event, told, held)
        self.tales.ended(event, told)
        self.counts.end(event, told, self.lives.get(name))

    def _task_taken(self, event: Row, told: Row) -> None:
        self.tales.task_taken(event)

    def _task_ended(self, event: Row, told: Row) -> None:
        # Tasks that ended together are told together.
        for item, outcome, state, error in told.get("ends", ()):
            self.tales.task_ended({**event, "item": item}, {"outcome": outcome, "state": state, "error": error})
        if "ends" not in told:
            self.tales.task_ended(event, told)

    def _task_changed(self, event: Row, told: Row) -> None:
        self.tales.task_changed(event, told)

    def _marked_read(self, event: Row, told: Row) -> None:
        self.tales.marked_read(event)

    def _snoozed(self, event: Row, told: Row) -> None:
        self.tales.snoozed(event)

    def _gone(self, event: Row, told: Row) -> None:
        self.tales.gone(event)

    def _returned(self, event: Row, told: Row) -> None:
        self.tales.returned(event)

    def _acted(self, event: Row, told: Row) -> None:
        """Says who did it; what was done is told by its own rows."""
        self._note(event, told, "by", "operation")

    def _denied(self, event: Row, told: Row) -> None:
        self._note(event, told, "why", "count")

    def _tainted(self, event: Row, told: Row) -> None:
        self._note(event, told, "operation")

    def _passed_over(self, event: Row, told: Row) -> None:
        """An instant of a schedule that gave no task; its next one is the recurrence's own row."""
        self._note(event, told, "source", "instant")

    def _step_saved(self, event: Row, told: Row) -> None:
        self.tales.step_saved(event, told)

    def _note(self, event: Row, told: Row, *names: str) -> None:
        missing = [name for name in names if not told.get(name)]
        if missing:
            self.findings.add(EVENTS, f"event {event['id']}", f"{event['kind']}, and {missing[0]}", "nothing of it")

    def _outage(self, event: Row, told: Row) -> None:
        self.tales.outage(event, told)

    def _restored(self, event: Row, told: Row) -> None:
        self.tales.restored(event, told)
