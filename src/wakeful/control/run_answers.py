"""What is answered about runs, as types; see `answers` for the laws."""

from __future__ import annotations

from typing import Literal, TypedDict

from wakeful.control.pages import Page
from wakeful.control.told import (
    Asked,
    Chain,
    From,
    Link,
    PriorityName,
    Root,
    Run,
    Step,
    StreamName,
    TaskState,
    Time,
    TypeName,
    Usage,
)


class ShownItem(From):
    """What a run was shown; of its text the first 500 characters."""

    id: int
    kind: str
    subject: str
    body: str
    type: TypeName
    priority: PriorityName
    state: str
    source: str | None


class RunTask(TypedDict):
    id: int
    title: str
    state: TaskState
    attempts: int


class RunStep(TypedDict):
    """Of its result, which is JSON, the first 500 characters; what is only intended has none. A step belongs to a task,
    or to the beat."""

    name: str
    state: Literal["intent", "done"]
    at: Time
    result: str | None
    task: int | None


class RunChain(Chain, From):
    """Who led to it: the run that asked for its wake, if one did."""

    by_run: int | None


class ShownRun(Run):
    """`items`, `tasks` and `steps` as they stand now, 200 of each at most, of steps the newest; steps are kept until
    what they are of has ended well."""

    wake: Asked | None
    briefing: str | None
    items: list[ShownItem]
    tasks: list[RunTask]
    steps: list[RunStep]
    chain: RunChain | None


class Output(TypedDict):
    """One piece of a stream, by bytes; `over` when the run has ended and this is the last."""

    run: int
    stream: StreamName
    offset: int
    next_offset: int
    text: str
    over: bool
    size: int


class Lineage(TypedDict):
    wakes: int
    runs: int
    refused: int
    usage: Usage
    cut: bool


class Blame(TypedDict):
    run: int
    agent: str
    depth: int
    root: Root
    whole: bool
    chain: list[Link]
    woke: list[Link]
    lineage: Lineage
    items: list[Link]


class Steps(Page[Step]):
    task: int | None


class SavedStep(Step):
    task: int | None
