"""The checkers: rules worked out again from what the world saw and what the store wrote, apart from both.

Law: a checker imports types from the core, never a rule of it.
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from wakeful.core.events import Event
from wakeful.core.items import Item
from wakeful.store.protocol import Store
from wakeful.testing.checkers.door import check_decision
from wakeful.testing.checkers.drain import check_drain
from wakeful.testing.checkers.history import History, Violation
from wakeful.testing.checkers.holds import check_hold, check_resume
from wakeful.testing.checkers.inbox import Inbox
from wakeful.testing.checkers.ledger import Ledger
from wakeful.testing.checkers.rows import check_end, check_rows, check_start
from wakeful.testing.checkers.tasks import Queue
from wakeful.testing.checkers.truth import check_truth
from wakeful.testing.witness import Observed, Witness

__all__ = ["History", "Violation", "check", "judge"]


def check(store: Store, witness: Witness) -> list[Violation]:
    return list(judge(History(store, witness)))


def judge(history: History) -> Iterator[Violation]:
    """Hold every part of the story against every rule; a story that cannot be followed breaks one by that."""
    try:
        yield from _tell(history)
    except (AssertionError, KeyError, IndexError, ValueError):
        yield Violation(rule="the events tell a story that can be followed", what=traceback.format_exc())


def _tell(history: History) -> Iterator[Violation]:
    for complaint in history.witness.complaints:
        yield Violation(rule="the driver meets nothing impossible", what=complaint)
    ledger, together = Ledger(history), _by_call(history)
    inbox, queue = Inbox(history, ledger), Queue(history, ledger)
    for told in history.story():
        if isinstance(told, Item):
            inbox.born(told)
            queue.born(told)
        elif isinstance(told, Observed):
            yield from inbox.observed(told)
        else:
            yield from check_decision(ledger, history, told)
            yield from check_resume(ledger, history, told)
            ledger.apply(told)
            yield from check_start(ledger, history, told)
            yield from check_end(ledger, history, told)
            yield from check_hold(ledger, history, told, together[told.at])
            yield from inbox.apply(told)
            yield from queue.apply(told)
    ledger.boots_before(len(history.witness.calls))
    yield from check_rows(history, ledger)
    yield from inbox.finish()
    yield from queue.finish()
    yield from check_truth(history)
    yield from check_drain(history, ledger, queue)


def _by_call(history: History) -> dict[datetime, list[Event]]:
    found: dict[datetime, list[Event]] = defaultdict(list)
    for event in history.events:
        found[event.at].append(event)
    return found
