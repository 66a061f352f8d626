"""The one door. `admit` is the only opinion on whether a run may begin; `explain` says all of it aloud."""

from __future__ import annotations

from dataclasses import dataclass

from wakeful.core.agents import Limits
from wakeful.core.facts import Facts
from wakeful.core.guards import GUARDS
from wakeful.core.wakes import ADMIT, Verdict, VerdictKind, Wake


def admit(wake: Wake, facts: Facts, limits: Limits) -> Verdict:
    """The first objection of the ordered guards, or admission."""
    for guard in GUARDS:
        verdict = guard.objection(wake, facts, limits)
        if verdict is not None:
            return verdict
    return ADMIT


def soonness(verdict: Verdict) -> tuple[int, float]:
    """Orders what several agents were told about one wake: the smallest is whoever can take it soonest."""
    if verdict.kind is VerdictKind.admit:
        return (0, 0.0)
    if verdict.kind is VerdictKind.refuse:
        return (3, 0.0)
    if verdict.guard in ("busy", "slots"):
        return (1, 0.0)
    # To wait for a pause without an end is no better answer than to be refused by whoever is there.
    return (2, verdict.until.timestamp()) if verdict.until else (4, 0.0)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one guard has to say; None is no objection."""

    guard: str
    verdict: Verdict | None


def explain(wake: Wake, facts: Facts, limits: Limits) -> list[Opinion]:
    """Every guard's opinion, in order, also of those behind the first objection."""
    return [Opinion(guard.name, guard.objection(wake, facts, limits)) for guard in GUARDS]
