"""What may be said to each operation, and with which statuses it answers.

Laws:
- A form holds the parameters of the operation of the same name that do not stand in its path, with the same defaults;
  a test compares them. Only what was said is handed on, so that a default is the operation's own.
- Unknown fields are refused, in a query as in a body. A body is read strictly: "3" is no number.
- What a word or a time means is for the operation to say; here only what JSON and the store can hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, JsonValue, model_validator

from wakeful.http.fields import LARGEST as LARGEST
from wakeful.http.fields import Body, ChangeWord, Cursor, Key, Name, Number, PriorityWord, TaskStateWord, Text, TypeWord
from wakeful.http.queries import (
    Agents,
    Costs,
    CountTasks,
    Dead,
    Decisions,
    Events,
    Forecast,
    Inbox,
    KeyedTask,
    Log,
    Nothing,
    Output,
    Runs,
    Steps,
    Stream,
    Stuck,
    Tasks,
    Timeline,
    Why,
)

# -- bodies -------------------------------------------------------------------------------------------------------


class Tick(Body):
    reason: str | None = None
    key: Key | None = None


class Spoken(Body):
    """What is said is its body; `message`, as others call it, is understood too."""

    @model_validator(mode="before")
    @classmethod
    def _message(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "message" not in given or "body" in given:
            return given
        return {("body" if name == "message" else name): value for name, value in given.items()}


class Wake(Spoken):
    reason: str | None = None
    body: str | None = None
    key: Key | None = None


class Send(Spoken):
    body: Text
    subject: str = ""
    type: TypeWord = "info"
    priority: PriorityWord = "normal"
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
    key: Key | None = None


class Set(Body):
    """The settings by name, in `settings` or as they are."""

    settings: dict[str, str | int | float | None]
    version: Number | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, told: Any) -> Any:
        if not isinstance(told, dict) or "settings" in told or not told.keys() - {"version"}:
            return told
        beside = {"version": told["version"]} if "version" in told else {}
        return {"settings": {name: value for name, value in told.items() if name != "version"}, **beside}


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
    priority: PriorityWord = "normal"
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
    key: Key | None = None


class ChangeTasks(Body):
    change: ChangeWord
    tasks: Annotated[list[Number], Field(min_length=1, max_length=500)] | None = None
    all: bool = False
    agent: Name | None = None
    role: Name | None = None
    state: list[TaskStateWord] | None = None
    tag: Name | None = None
    causal_key: Key | None = None
    source: Name | None = None
    priority: PriorityWord | None = None
    text: Name | None = None
    reason: str = ""
    result: str | None = None
    after: Cursor = 0
    until: Number | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 500


class Reasoned(Body):
    reason: str = ""


class ClaimTask(Body):
    task: Number | None = None


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
    # Its answer has a version, which is its entity tag.
    tagged: bool = False

    def status(self, answer: dict[str, Any]) -> int:
        """A request that was accepted and goes on is 202; a refused wake is an answer like any other, 200, and so is
        that a run has ended already."""
        over = answer.get("verdict") == "refuse" or answer.get("asked") is False
        return 200 if over and 200 in self.statuses else self.statuses[0]


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
    "settings": Form(Nothing, tagged=True),
    "set": Form(Set, tagged=True),
    "wake_stats": Form(Nothing),
    "pause_agent": Form(Pause),
    "resume_agent": Form(Resume),
    "pause": Form(Pause),
    "resume": Form(Resume),
    "runs": Form(Runs),
    "show_run": Form(Nothing),
    "kill": Form(Kill, (202, 200)),
    "blame": Form(Nothing),
    "output": Form(Output),
    "timeline": Form(Timeline),
    "costs": Form(Costs),
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
    "claim_task": Form(ClaimTask),
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
