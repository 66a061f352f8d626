"""What may be said to each operation, and with which statuses it answers.

Laws:
- A form holds the parameters of the operation of the same name that do not stand in its path, with the same defaults;
  a test compares them. Only what was said is handed on, so that a default is the operation's own.
- Unknown fields are refused, in a query as in a body. A body is read strictly: "3" is no number.
- What a word or a time means is for the operation to say; here only what JSON and the store can hold.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

# The largest integer that a row can hold.
LARGEST = 2**63 - 1

Number = Annotated[int, Field(ge=1, le=LARGEST)]
Cursor = Annotated[int, Field(ge=0, le=LARGEST)]
# Counted from the end where it is negative.
Offset = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Page = Annotated[int, Field(ge=1, le=1000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Key = Annotated[str, Field(min_length=1, max_length=255)]


def _listed(value: Any) -> Any:
    """`kinds=a,b` and `kinds=a&kinds=b` are the same."""
    return [part for text in value for part in text.split(",") if part] if isinstance(value, list) else value


Words = Annotated[list[Name], BeforeValidator(_listed)]


class Query(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _storable(cls, told: Any) -> Any:
        """JSON can spell half a character, and depths that nobody can go back to; no store takes either."""
        try:
            json.dumps(told, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair is no character") from None
        except RecursionError:
            raise ValueError("nested too deeply") from None
        return told


# -- queries ------------------------------------------------------------------------------------------------------


class Nothing(Query):
    pass


class Agents(Query):
    after: str = ""
    limit: Page = 100


class Inbox(Query):
    state: str = "open"
    sender: str | None = None
    type: str | None = None
    priority: str | None = None
    thread: Number | None = None
    after: Cursor = 0
    before: Number | None = None
    limit: Page = 100


class Stuck(Query):
    agent: Name | None = None
    limit: Page = 100


class Why(Query):
    cause: str = "timer"
    at: str | None = None
    sender: Name | None = None


class Forecast(Query):
    n: Page = 10
    outcome: str = "done"
    run_length: str = "0s"


class Runs(Query):
    agent: Name | None = None
    open: bool | None = None
    before: Number | None = None
    limit: Page = 50


class Output(Query):
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Offset = 0
    limit: Annotated[int, Field(ge=4, le=1_048_576)] = 65_536


class Decisions(Query):
    agent: Name | None = None
    verdict: str | None = None
    before: Number | None = None
    limit: Page = 50


class Events(Query):
    after: Cursor = 0
    agent: Name | None = None
    kinds: Words | None = None
    limit: Page = 100


class Log(Query):
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Offset = 0


class Stream(Query):
    """Without `after`, from now on."""

    after: Cursor | None = None
    agent: Name | None = None
    kinds: Words | None = None


class CountTasks(Query):
    agent: Name | None = None
    role: Name | None = None
    state: Words | None = None
    tag: Name | None = None
    causal_key: Key | None = None
    source: Name | None = None
    priority: str | None = None
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
    priority: str | None = None
    text: Name | None = None
    after: Cursor = 0
    before: Number | None = None
    limit: Page = 100


class KeyedTask(Query):
    message_id: Key


class Steps(Query):
    task: Number | None = None


# -- bodies -------------------------------------------------------------------------------------------------------


class Tick(Body):
    reason: str | None = None
    key: Key | None = None


class Wake(Body):
    reason: str | None = None
    body: str | None = None
    key: Key | None = None


class Send(Body):
    body: str
    subject: str = ""
    type: str = "info"
    priority: str = "normal"
    key: Key | None = None
    reply_to: Number | None = None
    metadata: dict[str, JsonValue] | None = None


class MarkRead(Body):
    messages: Annotated[list[Number], Field(min_length=1, max_length=1000)]


class Snooze(MarkRead):
    until: str


class At(Body):
    when: str
    reason: str | None = None


class Set(Body):
    settings: dict[str, str | None]


class Pause(Body):
    reason: str = ""
    duration: str | None = None
    now: bool = False


class Resume(Body):
    owner: str | None = None


class Kill(Body):
    at_once: bool = False


class Run(Body):
    agent: Name
    prompt: str
    title: str | None = None
    timeout: str | None = None
    key: Key | None = None


class AddTask(Body):
    title: str
    agent: Name | None = None
    role: Name | None = None
    description: str = ""
    payload: JsonValue = None
    priority: str = "normal"
    tags: list[str] | None = None
    key: Key | None = None
    causal_key: Key | None = None
    depends_on: list[Number | Key] | None = None
    not_before: str | None = None
    max_retries: Annotated[int, Field(ge=0, le=1000)] | None = None
    timeout: str | None = None


class AddTasks(Body):
    """Each is read by the operation itself, which says which of them is wrong."""

    tasks: Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=1000)]


class ChangeTasks(Body):
    change: str
    tasks: Annotated[list[Number], Field(min_length=1, max_length=500)] | None = None
    all: bool = False
    agent: Name | None = None
    role: Name | None = None
    state: list[Name] | None = None
    tag: Name | None = None
    causal_key: Key | None = None
    source: Name | None = None
    priority: str | None = None
    text: Name | None = None
    reason: str = ""
    result: str | None = None
    after: Cursor = 0
    until: Number | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 500


class Reasoned(Body):
    reason: str = ""


class CompleteTask(Body):
    result: str | None = None


class Bare(Body):
    """Nothing is to be said."""


class SaveStep(Body):
    name: Key
    result: JsonValue = None
    begun: bool = False
    task: Number | None = None


class Stop(Body):
    drain: bool = False


class Backup(Body):
    path: Annotated[str, Field(min_length=1)]


# -- which operation is told what ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Form:
    """`statuses` are those of success, the usual one first."""

    given: type[BaseModel]
    statuses: tuple[int, ...] = (200,)

    def status(self, answer: dict[str, Any]) -> int:
        """A request that was accepted and goes on is 202; a refused wake is an answer like any other, 200."""
        return 200 if answer.get("verdict") == "refuse" and 200 in self.statuses else self.statuses[0]


_WAKE = (202, 200)

FORMS: dict[str, Form] = {
    "status": Form(Nothing),
    "agents": Form(Agents),
    "agent": Form(Nothing),
    "tick": Form(Tick, _WAKE),
    "wake": Form(Wake, _WAKE),
    "send": Form(Send, (201,)),
    "inbox": Form(Inbox),
    "mark_read": Form(MarkRead),
    "snooze": Form(Snooze),
    "at": Form(At, _WAKE),
    "why": Form(Why),
    "forecast": Form(Forecast),
    "settings": Form(Nothing),
    "set": Form(Set),
    "wake_stats": Form(Nothing),
    "pause_agent": Form(Pause),
    "resume_agent": Form(Resume),
    "pause": Form(Pause),
    "resume": Form(Resume),
    "runs": Form(Runs),
    "show_run": Form(Nothing),
    "kill": Form(Kill, (202,)),
    "blame": Form(Nothing),
    "output": Form(Output),
    "stuck": Form(Stuck),
    "decisions": Form(Decisions),
    "decision": Form(Nothing),
    "events": Form(Events),
    "run": Form(Run, _WAKE),
    "add_task": Form(AddTask, (201,)),
    "tasks": Form(Tasks),
    "add_tasks": Form(AddTasks, (201,)),
    "count_tasks": Form(CountTasks),
    "keyed_task": Form(KeyedTask),
    "change_tasks": Form(ChangeTasks),
    "task": Form(Nothing),
    "cancel_task": Form(Reasoned),
    "retry_task": Form(Bare),
    "complete_task": Form(CompleteTask),
    "fail_task": Form(Reasoned),
    "remove_task": Form(Bare),
    "dead": Form(Dead),
    "replay": Form(Bare),
    "discard": Form(Bare),
    "steps": Form(Steps),
    "save_step": Form(SaveStep),
    "nodes": Form(Nothing),
    "audit": Form(Nothing),
    "reload": Form(Bare),
    "stop": Form(Stop, (202,)),
    "backup": Form(Backup),
}

LIVE: dict[str, type[BaseModel]] = {"log": Log, "stream": Stream}

# What stands in a path.
PLACES: dict[str, Any] = {"agent": Name, "run": Number, "wake": Number, "task": Number}


class Told(BaseModel):
    """The shape of every refusal (RFC 9457), for the description of the API."""

    type: str
    title: str
    status: int
    detail: str
    remedy: str
    mistakes: list[dict[str, str]] | None = None
