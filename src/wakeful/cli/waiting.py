"""Waiting for what was asked: until the wake was refused, or its run has ended.

Law: whoever waits follows an engine through its restart, and gives up only when none comes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from wakeful.cli.complaints import LATER, NO_ENGINE, Complaint, no_engine
from wakeful.cli.connection import connect
from wakeful.cli.place import Place

FIRST, LONGEST, GROWTH = 0.1, 1.0, 1.3
# An engine that is being replaced is back within seconds.
AWAY = 30.0

Row = dict[str, Any]


def rests() -> Iterator[None]:
    """Rests between looks, ever longer."""
    rest = FIRST
    while True:
        yield
        time.sleep(rest)
        rest = min(rest * GROWTH, LONGEST)


class Patient:
    """Asks again and again, as long as an engine is there or may come back."""

    def __init__(self, place: Place, clock: Callable[[], float] = time.monotonic, away: float = AWAY) -> None:
        self._place = place
        self._clock = clock
        self._away = away
        self._seen = clock()

    def ask(self, operation: str, **parameters: Any) -> Row:
        for _ in rests():
            try:
                with connect(self._place) as connection:
                    if connection.live:
                        answer = connection.ask(operation, **parameters)
                        self._seen = self._clock()
                        return answer
                    if self._clock() - self._seen <= self._away:
                        return connection.ask(operation, **parameters)
            except Complaint as complaint:
                # Cut off in the middle of an answer, or the next engine has the folder and does not listen yet.
                if complaint.exit_code not in (NO_ENGINE, LATER) or self._clock() - self._seen > self._away:
                    raise
                continue
            raise no_engine(self._place.data, "what was asked waits in the store")
        raise AssertionError("rests never end")


def wait_for_wake(place: Place, wake: int, deferred: Callable[[Row], None]) -> Row:
    """The ended run of that wake, or the decision that refuses it; `deferred` is told of each new reason to wait."""
    patient, told = Patient(place), ""
    run: int | None = None
    for _ in rests():
        if run is None:
            decision = patient.ask("decision", wake=wake)
            if decision["verdict"] == "refuse":
                return decision
            run, wake = decision.get("run_id"), decision.get("joined") or wake
            if run is None and decision.get("reason") and decision["reason"] != told:
                told = decision["reason"]
                deferred(decision)
        if run is not None:
            found = patient.ask("show_run", run=run)
            if found["state"] == "ended":
                return found
            # A run that was vetoed before it began: its wake waits to be decided again.
            run = None if found["state"] == "void" else run
    raise AssertionError("rests never end")


def wait_for_run(place: Place, run: int) -> Row:
    patient = Patient(place)
    for _ in rests():
        found = patient.ask("show_run", run=run)
        if found["state"] in ("ended", "void"):
            return found
    raise AssertionError("rests never end")
