"""After the drain: with faults off and nobody paused, whatever still waits has a reason that holds now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.store.protocol import WakeRow
from wakeful.testing.checkers.door import objections
from wakeful.testing.checkers.history import History, Violation
from wakeful.testing.checkers.ledger import Ledger
from wakeful.testing.checkers.tasks import Queue

RULE = "nothing waits for ever: whoever waits has a reason that holds now"
# What was deferred is let go spread over some minutes.
SLACK = timedelta(minutes=11)


def check_drain(history: History, ledger: Ledger, queue: Queue) -> Iterator[Violation]:
    for row in history.wakes.values():
        if row.state == "waiting":
            yield from _waits_for_a_reason(history, ledger, row)
    yield from _tasks_are_taken(history, ledger, queue)
    yield from _beats_are_taken(history, ledger)


def _reasons(history: History, ledger: Ledger, wake: Wake) -> dict[str, list[str]]:
    """What stands in the way of each agent that could answer; an agent in whose way nothing stands has none."""
    return {name: list(objections(ledger, wake, ledger.agents[name], history.now)) for name in ledger.behind(wake)}


def _waits_for_a_reason(history: History, ledger: Ledger, row: WakeRow) -> Iterator[Violation]:
    wake = row.wake
    # A retry, or a one-off, whose time has not come.
    if row.guard is None and row.retry_at is not None and row.retry_at > history.now:
        return
    if row.retry_at is not None and history.now <= row.retry_at <= history.now + SLACK:
        return
    reasons = _reasons(history, ledger, wake)
    free = [name for name, found in reasons.items() if not found]
    if free:
        what = f"wake {wake.id} waits ({row.guard}, until {row.retry_at}), and nothing stands in the way of {free}"
        yield Violation(rule=RULE, what=what, rows=(row,))
    elif not reasons and (row.retry_at is None or row.retry_at < history.now):
        yield Violation(rule=RULE, what=f"wake {wake.id} waits for nobody", rows=(row,))


def _tasks_are_taken(history: History, ledger: Ledger, queue: Queue) -> Iterator[Violation]:
    waiting = [row.wake for row in history.wakes.values() if row.state == "waiting"]
    for job in queue.jobs.values():
        if not queue.ready(job):
            continue
        agent, role = job.said.agent, job.said.role
        wake = Wake(
            agent=agent,
            role=None if agent else role,
            cause=Cause.task,
            subject=Subject.task,
            requested_at=history.now,
            task=job.row.id,
        )
        free = [name for name, found in _reasons(history, ledger, wake).items() if not found]
        queued = any((other.agent, other.role) == (wake.agent, wake.role) for other in waiting if other.task)
        if free and not queued:
            what = f"task {job.row.id} is ready, and {free} stand idle"
            yield Violation(rule=RULE, what=what, rows=(job,))


def _beats_are_taken(history: History, ledger: Ledger) -> Iterator[Violation]:
    for name, place in ledger.places.items():
        overdue = place.due is not None and place.due + timedelta(minutes=1) < history.now
        if not overdue or not ledger.lives(name):
            continue
        wake = Wake(agent=name, cause=Cause.timer, subject=Subject.beat, requested_at=history.now)
        waits = any(
            row.state == "waiting" and row.wake.agent == name and row.wake.cause == "timer"
            for row in history.wakes.values()
        )
        if not waits and not list(objections(ledger, wake, ledger.agents[name], history.now)):
            what = f"{name} was due at {place.due}, and stands idle at {history.now}"
            yield Violation(rule=RULE, what=what, rows=(history.standings[name],))
