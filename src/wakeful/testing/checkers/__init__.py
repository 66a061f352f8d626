"""The checkers: rules worked out again from what the world saw and what the store wrote, apart from both.

Law: a checker imports types from the core, never a rule of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wakeful.store.protocol import Store
from wakeful.testing.checkers.door import check_decision
from wakeful.testing.checkers.history import History, Violation
from wakeful.testing.checkers.ledger import Ledger
from wakeful.testing.witness import Witness

__all__ = ["Violation", "check"]


def check(store: Store, witness: Witness) -> list[Violation]:
    history = History(store, witness)
    return list(_all(history))


def _all(history: History) -> Iterator[Violation]:
    for complaint in history.witness.complaints:
        yield Violation(rule="the driver meets nothing impossible", what=complaint)
    ledger = Ledger(history)
    for event in history.events:
        yield from check_decision(ledger, history, event)
        ledger.apply(event)
