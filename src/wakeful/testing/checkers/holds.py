"""What holds an agent: what a failure brings on it (quarantine, a quota waited out, parking), and how a hold ends."""

from __future__ import annotations

from collections.abc import Iterator

from wakeful.core.events import Event, EventKind
from wakeful.testing.checkers.history import History, Violation, error_class, outcome_of
from wakeful.testing.checkers.ledger import Ledger

RULE = "a failure pauses its agent when it must, and only then"


def check_resume(ledger: Ledger, history: History, event: Event) -> Iterator[Violation]:
    """One resumed event, before it is folded: somebody asked for it, or its time had come."""
    if event.kind is not EventKind.resumed:
        return
    fields = event.fields or {}
    scope, owner = str(fields["scope"]), str(fields["owner"])
    until, _ = ledger.pauses.get((scope, owner), (None, 0))
    asked = any(
        released.call.at == event.at and released.scope == scope and released.owner in (None, owner)
        for released in history.witness.released
    )
    if not asked and (until is None or until > event.at):
        what = f"the pause of {scope} by {owner} (until {until}) was lifted, and nobody asked"
        yield Violation(rule="a pause stands until it is lifted", what=what, rows=(event,))


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
