"""The one door. `admit` is the only opinion on whether a run may begin; `explain` says all of it aloud."""

from __future__ import annotations

from dataclasses import dataclass

from wakeful.core.agents import Limits
from wakeful.core.facts import Facts
from wakeful.core.guards import GUARDS
from wakeful.core.wakes import ADMIT, Verdict, Wake


def admit(wake: Wake, facts: Facts, limits: Limits) -> Verdict:
    """The first objection of the ordered guards, or admission."""
    for guard in GUARDS:
        verdict = guard.objection(wake, facts, limits)
        if verdict is not None:
            return verdict
    return ADMIT


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one guard has to say; None is no objection."""

    guard: str
    verdict: Verdict | None


def explain(wake: Wake, facts: Facts, limits: Limits) -> list[Opinion]:
    """Every guard's opinion, in order, also of those behind the first objection."""
    return [Opinion(guard.name, guard.objection(wake, facts, limits)) for guard in GUARDS]
