"""What clerks saw of their tasks (`clerks`), laid beside what the store says of them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from wakeful.core.items import TERMINAL, Item, State
from wakeful.core.runs import Outcome
from wakeful.store.protocol import Attempt

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENDED = frozenset({State.completed, State.cancelled, State.dead_letter})


class Trace(NamedTuple):
    what: str
    task: int
    run: int
    process: int
    at: datetime
    word: str

    @property
    def execution(self) -> tuple[int, int]:
        """A run holds a task once."""
        return self.task, self.run


def read_traces(path: Path) -> list[Trace]:
    """Whole lines only: a kill may have cut the last one short."""
    traces = []
    for line in path.read_text().rpartition("\n")[0].splitlines():
        what, task, run, process, micros, word = line.split()
        at = EPOCH + timedelta(microseconds=int(micros))
        traces.append(Trace(what, int(task), int(run), int(process), at, word))
    return traces


def executions_apart(traces: Iterable[Trace]) -> Iterator[str]:
    """No two executions of a task overlap, and none is begun twice."""
    current: dict[int, Trace] = {}
    over: set[tuple[int, int]] = set()
    for trace in traces:
        if trace.what == "begin":
            before = current.get(trace.task)
            if trace.execution in over or (before is not None and before.execution == trace.execution):
                yield f"task {trace.task} was begun twice in run {trace.run}"
            if before is not None:
                over.add(before.execution)
            current[trace.task] = trace
        elif (now := current.get(trace.task)) is None or now.execution != trace.execution:
            other = "its end" if now is None else f"run {now.run} had begun it"
            yield f"task {trace.task} was still there in run {trace.run} ({trace.what}) after {other}"
        elif trace.what == "end":
            over.add(current.pop(trace.task).execution)


def steps_once(traces: Iterable[Trace]) -> Iterator[str]:
    """What was recorded is not executed again."""
    kept: set[tuple[int, str]] = set()
    for trace in traces:
        if trace.what == "kept":
            kept.add((trace.task, trace.word))
        elif trace.what == "did" and (trace.task, trace.word) in kept:
            yield f"step {trace.word} of task {trace.task} was recorded, and executed again in run {trace.run}"


def completed_once(traces: Iterable[Trace], tasks: dict[int, Item]) -> Iterator[str]:
    """A completed task was executed to its end, and never again once that was recorded."""
    done = set[int]()
    for trace in traces:
        task = tasks.get(trace.task)
        if task is None:
            yield f"task {trace.task} was executed, and the store knows nothing of it"
        elif trace.what == "begin" and task.state is State.completed and trace.at > task.closed_at:
            yield f"task {task.id} was completed at {task.closed_at}, and begun in run {trace.run} at {trace.at}"
        elif trace.what == "end" and trace.word == "done":
            done.add(trace.task)
    for task in tasks.values():
        if task.state is State.completed and task.id not in done:
            yield f"task {task.id} is completed, and was never executed to its end"


def keys_in_order(traces: Iterable[Trace], tasks: dict[int, Item]) -> Iterator[str]:
    """Of tasks that share a key none is begun before those that came earlier are over."""
    shared: dict[str, list[int]] = defaultdict(list)
    for task in sorted(tasks):
        if key := tasks[task].key:
            shared[key].append(task)
    earlier = {task: members[:place] for members in shared.values() for place, task in enumerate(members)}
    begun = set[int]()
    for trace in traces:
        if trace.what == "begin":
            begun.add(trace.task)
            for other in earlier.get(trace.task, ()):
                closed = tasks[other].closed_at
                if closed is None or closed > trace.at:
                    yield f"task {trace.task} was begun at {trace.at}; {other} of its key was over at {closed}"
        # One that was cancelled too: the next waits until its process is gone.
        for later in shared.get(tasks[trace.task].key or "", ()):
            if later > trace.task and later in begun:
                yield f"task {trace.task} was there ({trace.what}) when {later} of its key had begun"


def attempts_told(traces: Iterable[Trace], tasks: dict[int, Item], attempts: dict[int, list[Attempt]]) -> Iterator[str]:
    """Each execution is an attempt of its run; a completed task has one that is done, the last; a dead one has all."""
    runs = {task: [attempt.run for attempt in tried] for task, tried in attempts.items()}
    for trace in traces:
        if trace.what == "begin" and trace.run not in runs.get(trace.task, ()):
            yield f"task {trace.task} was begun in run {trace.run}, and its attempts are {runs.get(trace.task)}"
    for task in tasks.values():
        tried = attempts[task.id]
        done = [attempt.outcome for attempt in tried].count(Outcome.done)
        counted = [attempt for attempt in tried if attempt.counted]
        if max(Counter(runs[task.id]).values(), default=0) > 1:
            yield f"task {task.id} was tried twice in one run: {tried}"
        if task.state is State.completed and (done != 1 or tried[-1].outcome is not Outcome.done):
            yield f"task {task.id} is completed with the attempts {tried}"
        if task.state is State.dead_letter:
            most = 1 + (task.max_retries or 0)
            if len(counted) != most or task.attempts != most or not all(attempt.error for attempt in counted):
                yield f"task {task.id} is dead after {most} attempts, and told are {tried}"


def ended_as_told(tasks: dict[int, Item]) -> Iterator[str]:
    """Every task is over; what always fails is dead, or was cancelled; a result is that of its own task."""
    for task in tasks.values():
        told = json.loads(task.payload or task.body)
        if task.state not in ENDED:
            yield f"task {task.id} is {task.state}"
        elif (task.closed_at is None) or task.state not in TERMINAL:
            yield f"task {task.id} is {task.state}, and was never closed"
        if task.state is State.completed and told.get("fails") == "always":
            yield f"task {task.id} always fails, and is completed"
        if task.state is State.completed and json.loads(task.result or "null") != {"number": told["number"]}:
            yield f"task {task.id} has the result {task.result!r}, and is number {told['number']}"
