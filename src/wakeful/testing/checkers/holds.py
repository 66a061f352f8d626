"""What a failure brings on its agent: quarantine, a quota waited out, parking; and never without it."""

from __future__ import annotations

from collections.abc import Iterator

from wakeful.core.events import Event, EventKind
from wakeful.testing.checkers.history import History, Violation, error_class, outcome_of
from wakeful.testing.checkers.ledger import Ledger

RULE = "a failure pauses its agent when it must, and only then"


def check_hold(ledger: Ledger, history: History, event: Event, later: list[Event]) -> Iterator[Violation]:
    """One ended event, after it is folded; `later` are the events of the same call."""
    if event.kind is not EventKind.ended or event.run is None:
        return
    execution = history.execution(event.run)
    assert execution is not None and execution.told is not None
    ending, agent = execution.told, ledger.agents[event.agent or ""]
    subject, place = execution.order.run.subject, ledger.places[agent.name]
    kind, wanted = error_class(ending), None
    if outcome_of(ending) in ("failed", "killed") and ending.by is None:
        parked = subject != "task" and kind in ("auth", "config")
        if kind == "quota":
            wanted = "quota"
        elif parked or (subject == "beat" and place.failures >= agent.max_failures):
            wanted = "quarantine"
    scope = f"agent:{agent.name}"
    owners = [
        str((other.fields or {})["owner"])
        for other in later
        if other.kind is EventKind.paused and (other.fields or {})["scope"] == scope
    ]
    found = next((owner for owner in owners if owner in ("quota", "quarantine")), None)
    if found != wanted:
        what = f"{agent.name} ended {outcome_of(ending)} ({kind}) for the {place.failures}. time: held by {found}"
        yield Violation(rule=RULE, what=f"{what}, not {wanted}", rows=(event,))
