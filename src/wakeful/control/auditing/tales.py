"""What the events tell of each run, wake, message and task: the fold that the rows are held against.

Law: nothing here looks at a row. What an event may be followed by is said by `Tale.states`: the states in which the row
may now be, and no others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from wakeful.control.auditing.counts import Counts, Opened
from wakeful.control.auditing.findings import MESSAGES, RUNS, TASKS, WAKES, Findings, micros
from wakeful.control.auditing.lives import GOOD, Lives
from wakeful.core.agents import RetryPolicy
from wakeful.core.codec import read_time

Row = dict[str, Any]


# The columns of a wake's row that its events tell; and what is remembered of a run's start and end.
ASKED = (
    *("agent", "role", "subject", "sender", "item", "task", "source", "by_run", "depth", "slot"),
    "requested_at",
)
_START = ("node", "epoch", "state", "hits", "subject", "shown", "tasks")
_END = ("outcome", "reason", "day", "position", "spend")


@dataclass(slots=True)
class RunTale:
    agent: str
    wake: int
    # The event that admitted it; 0 where that is not told.
    event: int = 0
    opened: Opened | None = None
    subject: str | None = None
    version: int | None = None
    # The position that it was admitted in, where that is known; how many beats its agent had settled by then.
    place: tuple[str, int] | None = None
    beats: int = 0
    attempt: int | None = None
    started: Row | None = None
    started_at: int | None = None
    ended: Row | None = None
    ended_at: int | None = None
    voided_at: int | None = None
    stopped: bool = False

    @property
    def state(self) -> str:
        if self.voided_at is not None:
            return "void"
        if self.ended_at is not None:
            return "ended"
        return "admitted" if self.started_at is None else "running"

    @property
    def last_at(self) -> int:
        """When it was over; a time that never comes while it is not."""
        return self.ended_at or self.voided_at or 1 << 62


@dataclass(slots=True)
class WakeTale:
    """`states` are those that its last event leaves it in."""

    states: tuple[str, ...]
    at: int
    # Whether its first event is told too.
    whole: bool
    cause: str | None = None
    guard: str | None = None
    reason: str | None = None
    joined: int | None = None
    decided_at: int | None = None
    charged: bool = False
    attempt: int = 1
    failed: bool = False
    # Until when its last verdict put it off.
    until: int | None = None
    runs: list[int] = field(default_factory=list)
    # As it was asked for: what the columns of `ASKED` must hold.
    asked: tuple[object, ...] = ()


@dataclass(slots=True)
class ItemTale:
    """A message, or a thing that is mirrored, from its first event on as if it had been new before that."""

    held_by: int | None = None
    # As what it was last shown to a run, and as what an outcome has settled it.
    print: str | None = None
    shown: str | None = None
    unanswered: int = 0
    # Read by hand, or gone from its source.
    closed: bool = False
    closed_at: int | None = None
    # When a run that was shown it ended well: a message is closed by that. And whether a run was shown it since.
    answered_at: int | None = None
    again: bool = False
    # Of whom the run was that was last shown it: the name, and the address.
    by: tuple[str, str] | None = None
    # It came back: what it had and who held it then is not told.
    loose: bool = False
    # Whether nothing that happened before the history begins can matter any more.
    sure: bool = False
    at: int = 0


@dataclass(frozen=True, slots=True)
class TaskEnd:
    event: int
    at: int
    outcome: str
    state: str
    error: str
    # How the agent of then would have tried it again.
    retries: RetryPolicy | None
    # Whether the run still had the task: if not, its end changes nothing more.
    held: bool


@dataclass(frozen=True, slots=True)
class TaskChange:
    event: int
    at: int
    change: str
    state: str
    told: Row


class Tales:
    def __init__(self, lives: Lives, counts: Counts, findings: Findings) -> None:
        self.lives = lives
        self.counts = counts
        self.findings = findings
        self.late = False
        self.runs: dict[int, RunTale] = {}
        self.wakes: dict[int, WakeTale] = {}
        self.items: dict[int, ItemTale] = defaultdict(ItemTale)
        # By task and run, of what a run took beside its subject: the event, and when.
        self.taken: dict[tuple[int, int], tuple[int, int]] = {}
        self.ends: dict[tuple[int, int], TaskEnd] = {}
        # The end that last changed each task, where no hand has since.
        self.last_end: dict[int, TaskEnd] = {}
        self.changes: dict[int, list[TaskChange]] = defaultdict(list)
        # In whose place each of these waits, and who waits in the place of each of those.
        self.after: dict[int, int] = {}
        self.outages: dict[tuple[str, str], tuple[str, int]] = {}
        # What was recorded of each task or beat: the subject, and the name of the step.
        self.steps: set[tuple[str, str]] = set()
        self._holds: dict[int, list[int]] = defaultdict(list)

    # -- wakes ------------------------------------------------------------------------------------------------
    def asked(self, event: Row, told: Row) -> None:
        id, joined, after = event["wake"], told.get("joined"), told.get("after")
        known = self.wakes.get(id)
        if after is not None:
            self.after[after] = id
            if known is None:
                known = self.wakes[id] = WakeTale(("waiting",), event["at"], whole=False)
            known.states, known.guard, known.reason, known.failed = ("waiting",), None, "", False
            known.at = event["at"]
        else:
            if known is not None:
                self._twice(event, f"wake {id}", WAKES)
            state = "joined" if joined is not None else "waiting"
            known = WakeTale((state,), event["at"], whole=True, joined=joined, decided_at=event["at"])
            known.reason = "not decided yet"
            self.wakes[id] = known
        known.cause, known.asked = told["cause"], asked_for(event, told)
        if told["cause"] == "peer" and joined is None:
            self.counts.asks(told.get("by_run"), id, waits=True)

    def joined(self, event: Row, told: Row) -> None:
        if event["wake"] in self.wakes:
            self._twice(event, f"wake {event['wake']}", WAKES)
        tale = WakeTale(("joined",), event["at"], whole=True, cause=told["cause"], joined=told["joined"])
        tale.decided_at = event["at"]
        self.wakes[event["wake"]] = tale

    def withdrawn(self, event: Row, told: Row) -> None:
        tale = self.wakes.setdefault(event["wake"], WakeTale(("refused",), event["at"], whole=True))
        tale.states, tale.guard, tale.reason = ("refused",), "moot", "it is no longer declared"
        tale.at = tale.decided_at = event["at"]

    def decided(self, event: Row, told: Row, opened: Opened | None, place: tuple[str, int] | None) -> None:
        id, verdict = event["wake"], told["verdict"]
        tale = self.wakes.get(id)
        if tale is None:
            tale = self.wakes[id] = WakeTale((), event["at"], whole=not self.late)
        elif "waiting" not in tale.states:
            expected = "a verdict on a wake that waits"
            self.findings.add(WAKES, (f"event {event['id']}", f"wake {id}"), expected, f"it is {tale.states[0]}")
        tale.attempt += tale.failed
        tale.failed = False
        tale.states = ({"admit": "admitted", "defer": "waiting", "refuse": "refused"}[verdict["kind"]],)
        tale.guard, tale.reason = verdict.get("guard") or None, verdict.get("reason", "")
        tale.at = tale.decided_at = event["at"]
        tale.until = micros(read_time(verdict["until"])) if verdict.get("until") else None
        tale.cause, tale.asked = told["cause"], asked_for(event, told)
        tale.charged = tale.charged or told.get("charged", False)
        if event["run"] is not None:
            tale.runs.append(event["run"])
            if event["run"] in self.runs:
                self._twice(event, f"run {event['run']}", RUNS)
            life = self.lives.get(event["agent"])
            self.runs[event["run"]] = RunTale(
                event["agent"],
                id,
                event=event["id"],
                opened=opened,
                subject=told["subject"],
                version=told.get("version"),
                place=place,
                beats=life.beats if life else 0,
                attempt=self._attempt(tale, told, life),
            )
        if told["cause"] == "peer":
            self.counts.asks(told.get("by_run"), id, waits=verdict["kind"] != "refuse")

    def _attempt(self, tale: WakeTale, told: Row, life: Any) -> int | None:
        if told["subject"] == "inbox":
            return tale.attempt if tale.whole else None
        if told["subject"] == "beat" and life is not None and life.sure_failures:
            return int(life.failures) + 1
        return None

    # -- runs -------------------------------------------------------------------------------------------------
    def _run(self, event: Row, *allowed: str) -> RunTale:
        tale = self.runs.get(event["run"])
        if tale is None:
            tale = self.runs[event["run"]] = RunTale(event["agent"], event["wake"])
            early = self.late and event["run"] < (self.counts.first_run or 1 << 62)
            if not early:
                rows = (f"event {event['id']}", f"run {event['run']}")
                self.findings.add(RUNS, rows, "an event that admitted the run", f"it is {event['kind']} without one")
        elif tale.state not in allowed and not (tale.opened is None and self.late):
            rows = (f"event {event['id']}", f"run {event['run']}")
            self.findings.add(
                RUNS, rows, f"a run that is {' or '.join(allowed)}", f"{event['kind']} while {tale.state}"
            )
        return tale

    def started(self, event: Row, told: Row) -> None:
        tale = self._run(event, "admitted")
        tale.started, tale.started_at = {key: told[key] for key in _START}, event["at"]
        # There are many of these: a mapping takes less room than pairs, and is quicker to look into.
        tale.started["shown"] = {item: intern(print) for item, print in told["shown"]}
        life = self.lives.get(event["agent"])
        whose = (event["agent"], life.agent.address) if life is not None else None
        for item, print in told.get("shown", ()):
            item_tale = self.items[item]
            if item_tale.held_by is not None or item_tale.closed:
                found = f"run {item_tale.held_by} holds it" if item_tale.held_by else "it is closed"
                rows = (f"event {event['id']}", f"item {item}")
                self.findings.add(MESSAGES, rows, f"an open item that run {event['run']} may be shown", found)
            item_tale.held_by, item_tale.print, item_tale.at = event["run"], print, event["at"]
            item_tale.again = item_tale.answered_at is not None
            item_tale.by = whose
            self._holds[event["run"]].append(item)

    def stopped(self, event: Row) -> None:
        self._run(event, "admitted", "running").stopped = True

    def voided(self, event: Row, told: Row) -> None:
        tale = self._run(event, "admitted", "running")
        tale.voided_at = event["at"]
        for item in self._release(event["run"]):
            item.held_by = None
        wake = self.wakes.get(event["wake"])
        if wake is None:
            wake = self.wakes[event["wake"]] = WakeTale((), event["at"], whole=False)
        wake.at, wake.guard = event["at"], None
        wake.states, wake.joined = ("waiting",), told.get("joined")
        if wake.joined is not None:
            wake.states = ("joined",)
        if told.get("charged"):
            wake.charged = False

    def ended(self, event: Row, told: Row) -> None:
        tale = self._run(event, "running")
        tale.ended, tale.ended_at = {key: told[key] for key in _END}, event["at"]
        good = told["outcome"] in GOOD
        for item in self._release(event["run"]):
            item.held_by, item.shown, item.at = None, item.print, event["at"]
            item.unanswered = 0 if good else item.unanswered + 1
            if good:
                item.sure, item.loose, item.answered_at = True, False, event["at"]
        wake = self.wakes.get(event["wake"])
        if wake is None:
            wake = self.wakes[event["wake"]] = WakeTale((), event["at"], whole=False)
        again = told["subject"] == "inbox" and not good
        wake.states = ("admitted", "waiting", "joined") if again else ("admitted",)
        wake.at, wake.failed = event["at"], again

    def _release(self, run: int) -> list[ItemTale]:
        held = [self.items[item] for item in self._holds.pop(run, ())]
        return [item for item in held if item.held_by == run]

    # -- messages ---------------------------------------------------------------------------------------------
    def marked_read(self, event: Row) -> None:
        item = self.items[event["item"]]
        if item.closed:
            rows = (f"event {event['id']}", f"item {event['item']}")
            self.findings.add(MESSAGES, rows, "an open message to mark as read", "it was closed before")
        item.closed, item.closed_at, item.held_by, item.at = True, event["at"], None, event["at"]

    def snoozed(self, event: Row) -> None:
        item = self.items[event["item"]]
        item.held_by, item.shown, item.unanswered, item.at = None, None, 0, event["at"]
        item.loose, item.sure = False, True

    def gone(self, event: Row) -> None:
        item = self.items[event["item"]]
        item.closed, item.closed_at, item.held_by, item.at = True, event["at"], None, event["at"]

    def returned(self, event: Row) -> None:
        item = self.items[event["item"]]
        item.closed, item.closed_at, item.loose, item.sure, item.at = False, None, True, False, event["at"]

    # -- tasks ------------------------------------------------------------------------------------------------
    def task_taken(self, event: Row) -> None:
        run = self._run(event, "running")
        if run.subject == "task":
            rows = (f"event {event['id']}", f"run {event['run']}")
            self.findings.add(TASKS, rows, "a task taken by a run that is about none", "it is about its tasks")
        self.taken[event["item"], event["run"]] = (event["id"], event["at"])

    def task_ended(self, event: Row, told: Row) -> None:
        key = (event["item"], event["run"])
        life = self.lives.get(event["agent"])
        if key in self.ends:
            rows = (f"event {event['id']}", f"item {event['item']}", f"run {event['run']}")
            self.findings.add(TASKS, rows, "one end of a task in a run", f"event {self.ends[key].event} tells one too")
        retries = life.agent.retries if life is not None else None
        changed, run = self.changes.get(event["item"]), self.runs.get(event["run"])
        began = self.taken.get(key, (run.event if run is not None else 0,))[0]
        held = not changed or run is None or changed[-1].event < began
        error = told.get("error", "")
        end = TaskEnd(event["id"], event["at"], told["outcome"], told["state"], error, retries, held)
        self.ends[key] = end
        if held:
            self.last_end[event["item"]] = end

    def task_changed(self, event: Row, told: Row) -> None:
        change = TaskChange(event["id"], event["at"], told["change"], told["state"], told)
        self.changes[event["item"]].append(change)
        self.last_end.pop(event["item"], None)

    def step_saved(self, event: Row, told: Row) -> None:
        about = f"beat:{event['agent']}:{told['beat']}" if event["item"] is None else f"task:{event['item']}"
        self.steps.add((about, told["name"]))

    def _twice(self, event: Row, what: str, rule: str) -> None:
        self.findings.add(
            rule, (f"event {event['id']}", what), f"one event that begins {what}", "another began it before"
        )

    # -- sources ----------------------------------------------------------------------------------------------
    def outage(self, event: Row, told: Row) -> None:
        self.outages[event["agent"] or "", told["source"]] = (told["why"], event["at"])

    def restored(self, event: Row, told: Row) -> None:
        self.outages.pop((event["agent"] or "", told["source"]), None)


def asked_for(event: Row, told: Row) -> tuple[object, ...]:
    """In the order of `ASKED`."""
    role, subject = told.get("role"), told["subject"]
    return (
        told.get("to", None if role else event["agent"]),
        role,
        intern(subject),
        told.get("from"),
        None if subject == "task" else event["item"],
        event["item"] if subject == "task" else None,
        told.get("source"),
        told.get("by_run"),
        told.get("depth", 0),
        told.get("slot", ""),
        micros(read_time(told["requested_at"])),
    )
