"""What a command ends with when it does not end well: `reason (remedy)` on the standard error, and one of five codes.

Law: a person's mistake, a refusal and an engine that is not there never end in a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from wakeful.cli.output import say
from wakeful.core.errors import Busy, Ended, Mistake, TooOld, WakefulError

DONE = 0
REFUSED = 1
BAD = 2
NO_ENGINE = 69
LATER = 75


class Complaint(click.ClickException):
    """Ends the command; click calls `show` and exits with `exit_code`."""

    def __init__(self, reason: str, remedy: str = "", code: int = REFUSED) -> None:
        super().__init__(f"{reason} ({remedy})" if remedy else reason)
        self.exit_code = code  # type: ignore[misc]

    def show(self, file: IO[Any] | None = None) -> None:
        say(self.message, to_stderr=True)


@contextmanager
def interruptible(what: str, remedy: str) -> Iterator[None]:
    """Ctrl-C ends the waiting, and nothing of what is waited for: that is said."""
    try:
        yield
    except KeyboardInterrupt:
        raise Complaint(f"no longer waited for; {what}", remedy) from None


def no_engine(folder: str, what: str = "") -> Complaint:
    reason = f"no engine is at work in {folder}" + (f", and {what}" if what else "")
    return Complaint(reason, "start one: wakeful up", NO_ENGINE)


def from_error(error: WakefulError) -> Complaint:
    if isinstance(error, Mistake):
        return Complaint(error.reason, error.remedy, REFUSED if isinstance(error, Ended) else BAD)
    if isinstance(error, Busy):
        return Complaint(str(error), error.remedy, LATER)
    return Complaint(str(error), error.remedy, BAD if isinstance(error, TooOld) else REFUSED)


def from_problem(status: int, problem: dict[str, Any]) -> Complaint:
    """An RFC 9457 problem of the engine, with the code that the same error has without an engine."""
    reason = problem.get("reason") or problem.get("detail") or problem.get("title") or f"the engine answered {status}"
    code = {400: BAD, 422: BAD, 429: LATER, 503: LATER}.get(status, REFUSED)
    return Complaint(str(reason), str(problem.get("remedy") or ""), code)
