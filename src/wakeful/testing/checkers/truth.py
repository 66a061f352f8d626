"""What the store was told of a run is what became of it, what callers were told is there, and no run is taken while it
goes on."""

from __future__ import annotations

from collections.abc import Iterator

from wakeful.core.events import EventKind
from wakeful.testing.checkers.history import History, Violation
from wakeful.testing.witness import Execution

TOLD = "what is told of a run is what its guardian wrote"
FENCED = "without trouble no lease runs out"
MIRRORED = "in the end the store shows what is there outside"
STOPPED = "a run that is to end is over before its lease could be"
KEPT = "what a caller was told is recorded is there"
TAKEN = "a run is taken from its node only when it is over"


def check_truth(history: History) -> Iterator[Violation]:
    yield from _acknowledged(history)
    yield from _mirrored(history)
    yield from _stopped(history)
    for execution in history.witness.executions.values():
        if execution.told is None:
            continue
        yield from _needless(history, execution)
        if execution.told.orphaned:
            yield from _was_over(execution)
        elif not _is_true(execution):
            what = f"run {execution.run} ended as {execution.exit}, and is told as {execution.told}"
            yield Violation(rule=TOLD, what=what, rows=(execution.order.run,))


def _needless(history: History, execution: Execution) -> Iterator[Violation]:
    """With every node at work and the store there, no lease runs out."""
    drained, told = history.witness.drained, execution.told
    assert told is not None
    if drained is None or execution.claimed.elapsed < drained:
        return
    if told.orphaned or told.by == "fencing":
        what = f"run {execution.run} began when the faults had stopped, and is told as {told}"
        yield Violation(rule=FENCED, what=what, rows=(execution.order.run,))


def _mirrored(history: History) -> Iterator[Violation]:
    """Nothing changes outside during the drain: by its end the store shows what is there."""
    for source, things in history.witness.shelves.items():
        items = [item for item in history.items.values() if item.source == source and item.external_id is not None]
        found = {item.external_id: item.fingerprint for item in items if item.state == "open"}
        agent = next((item.agent for item in items), None)
        if items and found != things and any(agent in (name.address, name.name) for name in history.declared):
            yield Violation(rule=MIRRORED, what=f"{source} holds {things}, and the store shows {found}")


def _stopped(history: History) -> Iterator[Violation]:
    """Its node hears of it; or is away for so long that the fence ends what it held."""
    for event in history.of(EventKind.stopped):
        execution = history.execution(event.run)
        if execution is None or execution.started is None:
            continue
        asked = history.call(event).elapsed
        ended = execution.ended or history.witness.clock.elapsed
        peace = history.witness.drained is not None and asked > history.witness.drained
        # It is renewed ten times in a lease.
        if ended > asked + history.witness.lease * (0.2 if peace else 1.25):
            what = f"run {execution.run} was asked to end at {asked}, and went on until {execution.ended}"
            yield Violation(rule=STOPPED, what=what, rows=(event,))


def _acknowledged(history: History) -> Iterator[Violation]:
    for id, words in history.witness.acknowledged.items():
        item = history.items.get(id)
        if item is None or words not in (item.subject, item.body):
            yield Violation(rule=KEPT, what=f"item {id} was told to hold {words!r}, and is {item}")


def _was_over(execution: Execution) -> Iterator[Violation]:
    assert execution.settled is not None
    at = execution.settled.elapsed
    if execution.started is not None and (execution.ended is None or execution.ended > at):
        what = f"run {execution.run} was ended for its node at {at}, and went on until {execution.ended}"
        yield Violation(rule=TAKEN, what=what, rows=(execution.order.run,))


def _is_true(execution: Execution) -> bool:
    told = execution.told
    assert told is not None
    if execution.started is None:
        # Nothing ever executed: somebody ended it first, or it could not be started.
        return told.by is not None or told.exit_code is None
    return told == execution.exit if execution.exit is not None else told.lost
