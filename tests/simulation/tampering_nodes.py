"""The same for what the checkers know of nodes, guardians and the world outside."""

from dataclasses import replace
from datetime import timedelta

from tests.simulation.tampering import HOUR, Tamper
from wakeful.core.events import EventKind
from wakeful.testing.checkers import History


def a_run_ended_otherwise(history: History) -> bool:
    for execution in history.witness.executions.values():
        if execution.exit is not None and execution.told == execution.exit:
            execution.exit = replace(execution.exit, output="other words")
            return True
    return False


def a_run_was_taken_while_it_went_on(history: History) -> bool:
    for execution in history.witness.executions.values():
        if execution.told is not None and execution.told.orphaned and execution.ended is not None:
            execution.ended += 24 * HOUR
            return True
    return False


def what_was_acknowledged_is_another(history: History) -> bool:
    known = history.witness.acknowledged
    history.witness.acknowledged = dict.fromkeys(known, "other words")
    return bool(known)


def a_lease_ran_out_in_peace(history: History) -> bool:
    """The same story, but the faults had never begun."""
    taken = [each.told for each in history.witness.executions.values() if each.told and each.told.orphaned]
    history.witness.drained = timedelta()
    return bool(taken)


def a_file_is_not_in_the_store(history: History) -> bool:
    shelves = {source: {**things, "unseen.txt": "generation 0"} for source, things in history.witness.shelves.items()}
    history.witness.shelves = shelves
    return bool(shelves)


def a_run_that_was_to_end_went_on(history: History) -> bool:
    for event in history.of(EventKind.stopped):
        execution = history.execution(event.run)
        if execution is not None and execution.ended is not None:
            execution.ended += 24 * HOUR
            return True
    return False


OF_NODES: list[tuple[str, Tamper]] = [
    ("what is told of a run", a_run_ended_otherwise),
    ("a run is taken from its node", a_run_was_taken_while_it_went_on),
    ("what a caller was told", what_was_acknowledged_is_another),
    ("without trouble no lease", a_lease_ran_out_in_peace),
    ("in the end the store shows", a_file_is_not_in_the_store),
    ("a run that is to end", a_run_that_was_to_end_went_on),
]
