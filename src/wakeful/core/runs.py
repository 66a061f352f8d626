"""A run, how it ended, and which of the four outcomes that is.

Laws:
- Exit 0 is done, or no_work if the result says so; anything else is failed; past the wall clock, or past what one run
  may use, it is killed.
- A structured result is believed before a text; a text says no_work only with its very first word.
- A result can never turn a failed process into a done one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from wakeful.core.lifecycle import Position
from wakeful.core.standing import NOTHING, Spend
from wakeful.core.wakes import Cause, Subject


class Outcome(StrEnum):
    done = "done"
    no_work = "no_work"
    failed = "failed"
    killed = "killed"


# Who ended a run whose lease was about to be another node's to take.
FENCING = "fencing"


class ErrorClass(StrEnum):
    """What a result may say of its failure. The first three are not ordinary failures."""

    quota = "quota"
    config = "config"
    auth = "auth"
    memory = "memory"
    other = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One admitted wake under way, with the place in the day and the declaration it began with."""

    id: int
    agent: str
    wake: int
    cause: Cause
    subject: Subject
    version: int
    position: Position
    epoch: int = 0
    attempt: int = 1
    reserved: Spend = NOTHING
    admitted_at: datetime | None = None
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the agent itself declared in its result file."""

    outcome: str | None = None
    summary: str = ""
    usage: Spend | None = None
    error: str | None = None
    error_class: ErrorClass | None = None
    retry_at: datetime | None = None
    # What the work came to, a text or JSON: kept as the result of a task.
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Everything known about how a run, or one task of a shift, came to its end.

    `by` names who ended it on purpose (an operator, a pause, fencing): such an end is no attempt.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    # It was ended because it had used more than one run may: by how much, in words.
    over_limit: str | None = None
    lost: bool = False
    # Its node was gone, and another one ended it.
    orphaned: bool = False
    out_of_memory: bool = False
    by: str | None = None
    output: str = ""
    # The last of what it printed, on whichever stream.
    printed: str = ""
    result: Result | None = None
    elapsed: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd:
    """One task's own end inside a run; `result` is what is kept of it, as text or JSON."""

    task: int
    ending: Ending
    result: str | None = None


# The word must stand alone: "NO-WORK-AROUND found" is work.
_NO_WORK = re.compile(r"\s*NO-WORK(?=$|[\s:.,])", re.IGNORECASE)
_SILENT = re.compile(r"\s*(\[SILENT\]|NO_REPLY)(?=$|\s)")
_HEARTBEAT_SLACK = 300

# Of what an agent only printed, this much stands for it in a list.
LONGEST_SUMMARY = 200


def says_no_work(text: str) -> bool:
    """Whether a text result declares that there was nothing to do."""
    if _NO_WORK.match(text) or _SILENT.match(text):
        return True
    bare = text.strip()
    if bare.startswith("HEARTBEAT_OK") or bare.endswith("HEARTBEAT_OK"):
        return len(bare) - len("HEARTBEAT_OK") <= _HEARTBEAT_SLACK
    return False


_DECLARED: dict[str, Outcome] = {each.value: each for each in (Outcome.done, Outcome.no_work, Outcome.failed)}


def read_outcome(ending: Ending) -> Outcome:
    """The one of four outcomes that an ending amounts to."""
    if ending.by is not None or ending.over_limit is not None:
        return Outcome.killed
    if ending.timed_out or ending.lost or ending.orphaned:
        return Outcome.killed
    if ending.exit_code != 0:
        return Outcome.failed
    declared = ending.result.outcome if ending.result else None
    if declared is not None:
        return _DECLARED.get(declared, Outcome.failed)
    if ending.result is not None and (ending.result.error or ending.result.error_class):
        return Outcome.failed
    text = ending.result.summary if ending.result and ending.result.summary else ending.output
    return Outcome.no_work if says_no_work(text) else Outcome.done


def is_attempt(ending: Ending) -> bool:
    """An end that we brought about ourselves is nobody's failure."""
    return ending.by is None


def summarise(ending: Ending) -> str:
    """What the run says of itself: its declared summary, else the first line that it printed."""
    if ending.result is not None and ending.result.summary:
        return ending.result.summary
    first = next((line.strip() for line in ending.output.splitlines() if line.strip()), "")
    return first if len(first) <= LONGEST_SUMMARY else f"{first[:LONGEST_SUMMARY]}…"


def describe(ending: Ending) -> str:
    """One line for people and for a dead letter's history."""
    result = ending.result
    if ending.by is not None:
        return f"ended by {ending.by}" + (": its lease was not renewed in time" if ending.by == FENCING else "")
    if ending.over_limit is not None:
        return f"ended at its limit: {ending.over_limit}"
    if ending.timed_out:
        return "ran past its wall clock"
    if ending.orphaned:
        return "its node was gone"
    if ending.lost:
        return "its guardian was gone without an exit record"
    if ending.out_of_memory:
        return "ran out of memory"
    if result is not None and (result.error or result.error_class):
        return result.error or f"error of class {result.error_class}"
    if ending.signal is not None:
        return f"ended by signal {ending.signal}"
    return f"exit code {ending.exit_code}" if ending.exit_code else ""
