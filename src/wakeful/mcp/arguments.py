"""What each tool may be told, in the words that a model reads.

Laws:
- A word of a closed vocabulary is listed in the schema and judged by control, which says what to do about a wrong one.
- What is left out, or null, is not handed on, so that a default is the operation's own.
- Unknown arguments are refused. `to` and `message` are the names that agents know; those of the API are taken too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from wakeful.core.items import MessageType, Priority
from wakeful.core.wakes import WakeReason

Number = Annotated[int, Field(ge=1)]

_ITSELF = "For the operator only: of which agent. In a run it is always your own."
_ONCE = "Your own name for this request: asked again under the same key, it is done once."
_BELONGS = "The task that the step belongs to; needed where the run is about several, or took it with claim_task."


def _either(*names: str, **more: Any) -> Any:
    return Field(validation_alias=AliasChoices(*names), **more)


def _maybe(description: str, **more: Any) -> Any:
    return Field(default=None, description=description, **more)


def _words(words: Iterable[str]) -> dict[str, Any]:
    return {"enum": [str(word) for word in words]}


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def said(self) -> dict[str, Any]:
        """What was said, and is not null."""
        return {name: value for name, value in self.model_dump(exclude_unset=True).items() if value is not None}


class MessageAgent(Arguments):
    to: str = _either("to", "agent", min_length=1, description="The name of the agent; see list_agents.")
    message: str = _either("message", "body", min_length=1, description="What it is to know or to do.")
    subject: str | None = _maybe("A few words that say what it is about.")
    priority: str | None = _maybe(
        "low and normal (the default) wait for its next run; high and urgent also ask to wake it.",
        json_schema_extra=_words(Priority),
    )
    type: str | None = _maybe("What kind of message it is; info, unless said.", json_schema_extra=_words(MessageType))
    reply_to: Number | None = _maybe("The number of the message that this answers.")
    metadata: dict[str, Any] | None = _maybe("A JSON object of your own that goes with it.")
    key: str | None = _maybe(_ONCE)


class WakeAgent(Arguments):
    to: str = _either("to", "agent", min_length=1, description="The name of the agent; see list_agents.")
    message: str = _either("message", "body", min_length=1, description="What it is woken for.")
    reason: str = Field(description="Why this cannot wait for its next run.", json_schema_extra=_words(WakeReason))
    key: str | None = _maybe(_ONCE)


class ReadInbox(Arguments):
    agent: str | None = _maybe(_ITSELF)
    state: str | None = _maybe("open, unless said.", json_schema_extra=_words(("open", "closed", "all")))
    sender: str | None = _either("from", "sender", default=None, description="Only what that one sent.")
    type: str | None = _maybe("Only messages of this kind.", json_schema_extra=_words(MessageType))
    priority: str | None = _maybe("Of this priority, or a higher one.", json_schema_extra=_words(Priority))
    thread: Number | None = _maybe("Only this conversation: the number of its first message.")
    after: int | None = _maybe("`next` of the page before.", ge=0)
    limit: Number | None = _maybe("How many at most; 100, unless said.")


class AddTask(Arguments):
    title: str = Field(min_length=1, description="In a few words, what is to be done.")
    agent: str | None = _either("agent", "to", default=None, description="Who is to do it: name an agent, or a role.")
    role: str | None = _maybe("Whoever has this role does it, the longest rested first.")
    description: str | None = _maybe("Everything that whoever does it needs to know.")
    payload: Any = _maybe("Any JSON that goes with it.")
    priority: str | None = _maybe("normal, unless said.", json_schema_extra=_words(Priority))
    tags: list[str] | None = _maybe("Words to find it by.")
    key: str | None = _maybe(_ONCE)
    causal_key: str | None = _maybe("Tasks of one causal key are done one after the other, in their order.")
    depends_on: list[Number | str] | None = _maybe("Numbers or keys of tasks that must be completed first.")
    not_before: str | None = _maybe("When it may begin: an instant such as 2030-01-31T08:00Z, `14:30`, or `in 20m`.")
    max_retries: int | None = _maybe("How often it is tried again when it fails.", ge=0)
    timeout: str | None = _maybe("How long it may take, such as 10m.")


class ClaimTask(Arguments):
    task: Number | None = _maybe("The number of the one that you want; without it, the best placed of yours.")


class CompleteTask(Arguments):
    task: Number = Field(description="The number of the task.")
    result: Any = _maybe("What came of it, a text or JSON; it is kept, and others can read it.")
    error: str | None = _maybe("Instead of a result, why it could not be done: the attempt has failed.", min_length=1)


class ListAgents(Arguments):
    after: str | None = _maybe("`next` of the page before.")
    limit: Number | None = _maybe("How many at most; 100, unless said.")


class MyStanding(Arguments):
    agent: str | None = _maybe(_ITSELF)


class SaveStep(Arguments):
    name: str = Field(min_length=1, description="What the step does, such as send-invoice.")
    result: Any = _maybe("What came of it, as JSON.")
    begun: bool | None = _maybe("true: it is about to be taken, and has no result yet.")
    task: Number | None = _maybe(_BELONGS)


class LoadStep(Arguments):
    name: str = Field(min_length=1, description="What the step does, as it was saved.")
    task: Number | None = _maybe(_BELONGS)
