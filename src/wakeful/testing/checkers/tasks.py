"""Tasks: nothing leaves silently, nothing is tried too often or out of turn, nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.core.agents import Agent
from wakeful.core.events import Event, EventKind
from wakeful.core.items import Item, NewItem
from wakeful.core.runs import Ending
from wakeful.testing.checkers.history import History, Violation, error_class, outcome_of, taken
from wakeful.testing.checkers.ledger import Ledger

KEPT = "a task ends once, and its state is the fold of its attempts"
TURN = "a task runs in its turn: after its dependencies, its elders of the same key, and its time"
TRIES = "a task is tried at most once more than max_retries, each time after its backoff"
CLOSED = ("completed", "cancelled", "dead_letter")
NEVER = ("cancelled", "dead_letter", "blocked")


@dataclass(slots=True, kw_only=True)
class Job:
    """One task as it must be."""

    row: Item
    said: NewItem
    state: str = "pending"
    attempts: int = 0
    not_before: datetime | None = None
    # The place of the call that put it off, in the order of calls.
    put_off: int = -1
    run: int | None = None
    completed: int = 0
    # Blocked for a reason of its own, not for what it needs.
    parked: bool = False


class Queue:
    def __init__(self, history: History, ledger: Ledger) -> None:
        self.history = history
        self.ledger = ledger
        self.jobs: dict[int, Job] = {}

    def born(self, item: Item) -> None:
        if item.kind != "task":
            return
        said = self.history.said[item.id]
        job = Job(row=item, said=said, not_before=said.not_before)
        job.parked = self._too_deep(said)
        if job.parked or self.dead(job):
            job.state = "blocked"
        self.jobs[item.id] = job

    def _too_deep(self, said: NewItem) -> bool:
        """Whether the run that added it stands at the end of its chain."""
        run = self.history.runs.get(said.by_run or 0)
        if run is None:
            return False
        return self.history.wakes[run.wake].wake.depth + 1 > self.ledger.agents[run.agent].limits.chain

    def apply(self, event: Event) -> Iterator[Violation]:
        match event.kind:
            case EventKind.decided if event.run is not None:
                for task in self.history.runs[event.run].tasks or self._leased(event):
                    yield from self._begin(self.jobs[task], event)
            case EventKind.voided:
                for job in self.jobs.values():
                    if job.run == event.run:
                        job.state, job.run = "failed" if job.attempts else "pending", None
            case EventKind.task_ended:
                yield from self._ended(self.jobs[event.item or 0], event)
            case EventKind.task_changed:
                self._changed(self.jobs[event.item or 0], str((event.fields or {})["change"]))

    def _leased(self, event: Event) -> list[int]:
        """A void run keeps no attempts; its wake still names the first task."""
        wake = self.history.wakes[event.wake or 0].wake
        return [wake.task] if wake.task is not None else []

    # -- its turn ---------------------------------------------------------------------------------------------
    def waits_for(self, job: Job) -> list[int]:
        return [need for need in job.said.depends_on if self.jobs[need].state != "completed"]

    def dead(self, job: Job) -> list[int]:
        """Its dependencies that will never be completed."""
        return [need for need in job.said.depends_on if self.jobs[need].state in NEVER]

    def elders(self, job: Job) -> list[int]:
        if job.said.key is None:
            return []
        return [
            other.row.id
            for other in self.jobs.values()
            if other.said.key == job.said.key
            and (
                (other.row.id < job.row.id and other.state not in CLOSED)
                or (other is not job and other.run is not None)
            )
        ]

    def _begin(self, job: Job, event: Event) -> Iterator[Violation]:
        agent = self.ledger.agents[event.agent or ""]
        complaint = None
        if job.state not in ("pending", "failed"):
            complaint = f"it is {job.state}"
        elif waits := self.waits_for(job):
            complaint = f"it depends on {waits}"
        elif elders := self.elders(job):
            complaint = f"{elders} share its key and are open"
        elif job.not_before is not None and not self._ripe(job, event):
            complaint = f"it must wait until {job.not_before}"
        elif not _may_take(agent, job):
            complaint = f"it is for {job.said.agent or job.said.role}"
        if complaint is not None:
            what = f"task {job.row.id} began in run {event.run} of {agent.name}, and {complaint}"
            yield Violation(rule=TURN, what=what, rows=(event, job.row))
        # Without a number of its own, the agent that tried it last had the say.
        if job.said.max_retries is not None and job.attempts > job.said.max_retries:
            what = f"task {job.row.id} has been tried {job.attempts} times already"
            yield Violation(rule=TRIES, what=what, rows=(event, job.row))
        job.state, job.run = "in_progress", event.run

    def _ripe(self, job: Job, event: Event) -> bool:
        """Whether its instant has come; a clock that is set back afterwards changes nothing."""
        if job.not_before is None or job.not_before <= event.at:
            return True
        begun = self.history.call(event).order
        return any(
            "expire" in call.verb and job.put_off < call.order < begun and job.not_before <= call.at
            for call in self.history.witness.calls.values()
        )

    def _most(self, job: Job, agent: Agent) -> int:
        return agent.retries.max_retries if job.said.max_retries is None else job.said.max_retries

    # -- its end ----------------------------------------------------------------------------------------------
    def _ended(self, job: Job, event: Event) -> Iterator[Violation]:
        execution = self.history.execution(event.run)
        assert execution is not None
        own = execution.tasks.get(job.row.id)
        ending = own.ending if own is not None else execution.told
        assert ending is not None
        outcome = outcome_of(ending)
        if (event.fields or {})["outcome"] != outcome:
            what = f"task {job.row.id} ended {outcome} in run {event.run}, and is told otherwise"
            yield Violation(rule=KEPT, what=what, rows=(event,))
        if job.run != event.run:
            return
        job.run, job.put_off = None, self.history.call(event).order
        self._settle(job, ending, outcome, self.ledger.agents[event.agent or ""], event.at)
        if outcome in ("done", "no_work"):
            job.completed += 1
        if job.completed > 1:
            yield Violation(rule=KEPT, what=f"task {job.row.id} was completed twice", rows=(event,))

    def _settle(self, job: Job, ending: Ending, outcome: str, agent: Agent, now: datetime) -> None:
        kind = error_class(ending)
        if outcome in ("done", "no_work"):
            job.attempts += 1
            self._close(job, "completed")
            return
        at_once = taken(ending) and job.attempts == 0
        if ending.by is not None:
            job.state, job.not_before = "pending", now if at_once else now + agent.retries.base * 2
            return
        if kind == "quota":
            asked = ending.result.retry_at if ending.result else None
            later = timedelta(minutes=30) if asked is None or asked <= now else min(asked - now, timedelta(days=8))
            job.state, job.not_before = "pending", now + later
            return
        job.attempts += 1
        if kind in ("auth", "config"):
            job.not_before, job.parked = None, True
            self._close(job, "blocked")
        elif job.attempts > self._most(job, agent):
            self._close(job, "dead_letter")
        else:
            later = timedelta() if at_once else agent.retries.base * 2**job.attempts
            job.state, job.not_before = "failed", now + later

    def _close(self, job: Job, state: str) -> None:
        job.state = state
        for other in self._dependents(job):
            if state == "completed":
                self._free(other)
            elif other.state in ("pending", "failed"):
                self._close(other, "blocked")

    def _dependents(self, job: Job) -> list[Job]:
        return [other for other in self.jobs.values() if job.row.id in other.said.depends_on]

    def _free(self, job: Job) -> None:
        if job.state == "blocked" and not job.parked and not self.dead(job):
            job.state = "pending"
            for other in self._dependents(job):
                self._free(other)

    def _changed(self, job: Job, change: str) -> None:
        job.run, job.not_before = None, None
        if change != "retry":
            state = {"cancel": "cancelled", "complete": "completed", "fail": "dead_letter"}[change]
            self._close(job, state)
            return
        job.state, job.attempts, job.parked = "pending", 0, False
        for other in self._dependents(job):
            self._free(other)

    # -- at the end -------------------------------------------------------------------------------------------
    def finish(self) -> Iterator[Violation]:
        for job in self.jobs.values():
            row = self.history.items[job.row.id]
            found, wanted = (row.state.value, row.attempts), (job.state, job.attempts)
            if found != wanted:
                what = f"task {row.id}: (state, attempts) is {found}, and its history says {wanted}"
                yield Violation(rule=KEPT, what=what, rows=(row,))

    def ready(self, job: Job) -> bool:
        timely = job.not_before is None or job.not_before + timedelta(minutes=5) < self.history.now
        waits = self.waits_for(job) or self.elders(job)
        return job.state in ("pending", "failed") and timely and not waits


def _may_take(agent: Agent, job: Job) -> bool:
    if job.said.agent is not None:
        return job.said.agent in (agent.name, agent.address)
    return job.said.role in agent.roles
