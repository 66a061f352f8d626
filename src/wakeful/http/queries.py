"""What may be said in the query of what is only looked at."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wakeful.http.fields import (
    CauseWord,
    Cursor,
    EventWords,
    GuardWord,
    InboxWord,
    Key,
    Lanes,
    Name,
    Names,
    Number,
    Offset,
    OutcomeWord,
    Page,
    PriorityWord,
    Query,
    TaskStates,
    TypeWord,
    VerdictWord,
)


class Nothing(Query):
    pass


class Agents(Query):
    names: Names | None = None
    after: str = ""
    limit: Page | None = None


class Inbox(Query):
    state: InboxWord = "open"
    sender: str | None = None
    type: TypeWord | None = None
    priority: PriorityWord | None = None
    thread: Number | None = None
    after: Cursor = 0
    before: Number | None = None
    limit: Page = 100


class Stuck(Query):
    agent: Name | None = None
    after: str = ""
    limit: Page = 100


class Why(Query):
    cause: CauseWord = "timer"
    at: str | None = None
    sender: Name | None = None


class Forecast(Query):
    n: Page = 10
    outcome: OutcomeWord = "done"
    run_length: str = "0s"


class Runs(Query):
    agent: Name | None = None
    open: bool | None = None
    outcome: OutcomeWord | None = None
    cause: CauseWord | None = None
    before: Number | None = None
    limit: Page = 50


class Timeline(Query):
    agents: Lanes | None = None
    since: str | None = None
    until: str | None = None


class Costs(Query):
    days: Annotated[int, Field(ge=1, le=366)] = 14
    agent: Name | None = None


class Output(Query):
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Offset = 0
    limit: Annotated[int, Field(ge=4, le=1_048_576)] = 65_536


class Decisions(Query):
    agent: Name | None = None
    verdict: VerdictWord | None = None
    guard: GuardWord | None = None
    cause: CauseWord | None = None
    text: Name | None = None
    since: str | None = None
    until: str | None = None
    before: Number | None = None
    limit: Page = 50


class Events(Query):
    after: Cursor = 0
    agent: Name | None = None
    kinds: EventWords | None = None
    limit: Page = 100


class Log(Query):
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Offset = 0


class Stream(Query):
    """Without `after`, from now on."""

    after: Cursor | None = None
    agent: Name | None = None
    kinds: EventWords | None = None


class CountTasks(Query):
    agent: Name | None = None
    role: Name | None = None
    state: TaskStates | None = None
    tag: Name | None = None
    causal_key: Key | None = None
    source: Name | None = None
    priority: PriorityWord | None = None
    text: Name | None = None


class Tasks(CountTasks):
    after: Cursor = 0
    before: Number | None = None
    limit: Page = 100


class Dead(Query):
    agent: Name | None = None
    role: Name | None = None
    tag: Name | None = None
    causal_key: Key | None = None
    source: Name | None = None
    priority: PriorityWord | None = None
    text: Name | None = None
    after: Cursor = 0
    before: Number | None = None
    limit: Page = 100


class KeyedTask(Query):
    message_id: Key


class Steps(Query):
    task: Number | None = None
