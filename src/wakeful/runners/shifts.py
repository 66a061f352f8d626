"""A shift as it is asked for, and as it comes to its ends.

Laws:
- A shift is one run; each of its tasks has its own ending. A run without tasks, a beat or an inbox, is one call of the
  handler, and its ending is the run's.
- A text says no_work with its first word; a handler that returns nothing is done, whatever it printed.
- Of a shift whose worker was lost, only the tasks that had begun have been tried.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from wakeful.core.results import read_result
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result, TaskEnd, read_outcome, says_no_work
from wakeful.core.standing import NOTHING, Spend
from wakeful.runners.lease import Lease
from wakeful.runners.link import PART, SHIFT
from wakeful.runners.protocol import RESULT, Assignment

# What the environment says of one run, not of the agent: a worker is given it anew with every shift.
GIVEN = frozenset(
    {
        *("WAKEFUL_TOKEN", "WAKEFUL_RUN_ID", "WAKEFUL_WAKE_ID", "WAKEFUL_CAUSE", "WAKEFUL_REASON", "WAKEFUL_STATE"),
        *("WAKEFUL_HITS", "WAKEFUL_ATTEMPT", "WAKEFUL_DEADLINE", "WAKEFUL_TASK_ID", "TRACEPARENT"),
    }
)
# A handler is briefed by its argument and answers by returning: there are no files for that.
NEVER_GIVEN = frozenset({"WAKEFUL_BRIEFING", "WAKEFUL_RESULT"})

_DONE = Result(outcome="done")
# What most lines say (see `handlers.RECORD`).
_PLAIN = re.compile(
    rb'\{"version": 1, "task": (\d+), "exit_code": 0, "outcome": "done", "elapsed": (\d+)\.(\d{6}), '
    rb'"ended_at": \d+\.\d+\}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(Assignment):
    """What a handler is called for: once for each task, or once for the beat or inbox that the briefing tells of.

    `wall_clock` is the limit of one call, `limits` those of tasks that have their own; `briefing_json` is what
    `write_briefing` made; `command` is not used.
    """

    agent: str
    handler: str
    root: Path
    tasks: tuple[int, ...] = ()
    limits: Mapping[int, timedelta] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    # What is recorded already: for each task, or None for the beat, the steps and their results.
    steps: Mapping[int | None, Mapping[str, str | None]] = field(default_factory=dict)
    # How long a handler that asks may wait without an engine to answer it.
    patience: timedelta = timedelta(seconds=60)

    @property
    def kin(self) -> tuple[object, ...]:
        """Shifts that are equal in this may follow each other in one worker."""
        lasting = frozenset(self.lasting_environment().items())
        places = (str(self.root.absolute()), str(self.workdir.absolute()))
        return (self.agent, self.handler, places, lasting, self.memory, self.processes)

    def lasting_environment(self) -> dict[str, str]:
        return {name: value for name, value in self.environment.items() if name not in GIVEN | NEVER_GIVEN}

    @property
    def calls(self) -> list[int | None]:
        """What the handler is called for, one by one; None is the beat or the inbox."""
        return [*self.tasks] or [None]

    @property
    def longest(self) -> timedelta:
        """What it may take at most."""
        limits = [self.limits.get(task, self.wall_clock) for task in self.tasks] or [self.wall_clock]
        return sum(limits, timedelta()) + self.grace * len(limits)

    @property
    def lease(self) -> Lease:
        return Lease(str(self.folder.absolute()), self.leased_until, self.fence.total_seconds())

    def message(self) -> bytes:
        """As a worker reads it."""
        variables = {name: value for name, value in self.environment.items() if name in GIVEN}
        control = {
            "run": self.run,
            "epoch": self.epoch,
            "folder": str(self.folder.absolute()),
            "tasks": self.calls,
            "limit": self.wall_clock.total_seconds(),
            "limits": {str(task): limit.total_seconds() for task, limit in self.limits.items()},
            "grace": self.grace.total_seconds(),
            "patience": self.patience.total_seconds(),
            "leased_until": self.leased_until,
            "fence": self.fence.total_seconds(),
            "output_limit": self.output_limit,
            "secrets": list(self.secrets),
            "hidden": list(self.hidden),
            "variables": variables,
            "steps": {str(task): dict(steps) for task, steps in self.steps.items()},
        }
        # Line ends stand between the parts of the JSON, never in its texts.
        body = self.briefing_json.replace("\n", " ").replace("\t", " ").encode()
        return SHIFT + json.dumps(control).encode() + PART + body + b"\n"


def marker(worker: Path) -> dict[str, str]:
    """By this variable what a lost worker left behind is found."""
    return {"WAKEFUL_RESULT": str((worker / RESULT).absolute())}


def plain_end(line: bytes) -> TaskEnd | None:
    """The end of a task that was done and left nothing to be told, from its line; None where there is more to it."""
    found = _PLAIN.fullmatch(line)
    if found is None:
        return None
    task, seconds, micros = found.groups()
    return TaskEnd(task=int(task), ending=_done(int(seconds), int(micros)))


@lru_cache(maxsize=4096)
def _done(seconds: int, micros: int) -> Ending:
    """Tasks of which there are many take little, and as long as others did."""
    return Ending(exit_code=0, result=_DONE, elapsed=timedelta(0, seconds, micros))


def read_end(line: Mapping[str, Any]) -> tuple[int | None, Ending, str | None]:
    """One line of a shift's record. Of a newer kind we believe what we know of it."""
    kept = line.get("result")
    ending = Ending(
        exit_code=line.get("exit_code"),
        signal=line.get("signal"),
        timed_out=bool(line.get("timed_out")),
        out_of_memory=bool(line.get("out_of_memory")),
        by=line.get("by"),
        output=line.get("output") or "",
        printed=line.get("output") or "",
        result=_result(line),
        elapsed=timedelta(seconds=line.get("elapsed") or 0),
    )
    if line.get("task") is None and kept and ending.result is not None and not ending.result.summary:
        # A beat keeps no result of its own: what it came to is its summary.
        ending = replace(ending, result=replace(ending.result, summary=kept))
    return line.get("task"), ending, kept


def _result(line: Mapping[str, Any]) -> Result | None:
    error = line.get("error")
    if error is not None:
        named = str(line.get("error_class"))
        return Result(error=str(error), error_class=ErrorClass(named) if named in [*ErrorClass] else None)
    if "declared" in line:
        declared = read_result(line["declared"])
        if declared.outcome is None and not declared.error and not declared.error_class:
            return replace(declared, outcome=_said(declared.summary))
        return declared
    if line.get("exit_code") != 0:
        return None
    summary = line.get("summary")
    return _DONE if not summary else Result(outcome=line.get("outcome") or _said(summary), summary=summary)


def _said(summary: str) -> str:
    return "no_work" if says_no_work(summary) else "done"


def sum_up(ends: Sequence[TaskEnd], by: str | None, elapsed: timedelta) -> Ending:
    """The ending of the run that the shift was. A quota that is used up holds the agent, not only the task."""
    number = len(ends)
    others = [end for end in ends if not _is_plain(end.ending)]
    counts = Counter([read_outcome(end.ending) for end in others])
    if len(others) < number:
        counts[Outcome.done] += number - len(others)
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    summary = f"{number} task{'' if number == 1 else 's'}: {told}" if ends else "no task"
    results = [end.ending.result for end in others if end.ending.result is not None]
    usage = _total(result.usage for result in results if result.usage is not None)
    empty = [result for result in results if result.error_class is ErrorClass.quota]
    if empty:
        until = max((result.retry_at for result in empty if result.retry_at is not None), default=None)
        result = Result(
            summary=summary, usage=usage, error=empty[0].error, error_class=ErrorClass.quota, retry_at=until
        )
    else:
        result = Result(outcome="done", summary=summary, usage=usage)
    return Ending(exit_code=0, by=by, result=result, elapsed=elapsed)


def _is_plain(ending: Ending) -> bool:
    return ending.result is _DONE and ending.exit_code == 0 and ending.by is None and not ending.timed_out


def _total(usages: Iterable[Spend]) -> Spend | None:
    known = list(usages)
    return sum(known, NOTHING) if known else None
