"""What is said to the hooks that other loops know, as they spell it.

Law: what such a loop means by a field that has no meaning here is passed over, and told to have been.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue

from wakeful.core.cloud_events import BATCH, MOST_AT_ONCE, NO_CHARACTERS, STRUCTURED, VERSION
from wakeful.http.fields import Body, Name, Query

# More than blanks.
Said = Annotated[str, Field(min_length=1, pattern=r"\S")]
Mode = Literal["now", "next-heartbeat"]


class HookWake(Body):
    """`text` is what has happened; without `agentId` it is for the only agent, or the one called main."""

    text: Said
    mode: Mode = "now"
    agentId: Name | None = None
    sessionKey: JsonValue = None


class HookAgent(Body):
    """`message` is what the agent is to do."""

    message: Said
    name: Annotated[str, Field(max_length=200)] | None = None
    agentId: Name | None = None
    timeoutSeconds: Annotated[int, Field(ge=0, le=86_400)] | None = None
    wakeMode: Mode = "now"
    sessionKey: JsonValue = None
    deliver: JsonValue = None
    channel: JsonValue = None
    to: JsonValue = None
    model: JsonValue = None
    fallbacks: JsonValue = None
    thinking: JsonValue = None


# Of another loop's way of running; there is no such thing here.
PASSED_OVER = frozenset({"wakeMode", "sessionKey", "deliver", "channel", "to", "model", "fallbacks", "thinking"})


class Events(Query):
    """`agent` is whom the events are for; without it, all who have `webhook://cloudevents` in ON."""

    agent: Name | None = None


# By the name of the route.
HOOK_FORMS: dict[str, type[BaseModel]] = {"hook_wake": HookWake, "hook_agent": HookAgent, "hook_events": Events}


# ---- how it is described


def answered(words: str, schema: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema, "example": example}}}


_NUMBER = {"type": ["integer", "null"]}
_TAKEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ok": {"const": True},
        "id": _NUMBER | {"description": "The first message that was recorded."},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "duplicate": {"type": "boolean", "description": "It had come before; nothing more was recorded."},
        "agents": {"type": "array", "items": {"type": "string"}, "description": "Those who have it."},
        "note": {"type": "string"},
    },
    "required": ["ok", "id", "ids", "duplicate", "agents"],
}
_WOKEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ok": {"const": True},
        "agent": {"type": ["string", "null"]},
        "verdict": {"enum": ["admit", "defer", "refuse", None]},
        "reason": {"type": "string"},
        "run_id": _NUMBER,
        "message_id": _NUMBER,
        "duplicate": {"type": "boolean"},
        "ignored": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["ok", "agent", "verdict", "reason", "duplicate", "ignored"],
}
_WOKE = {"ok": True, "mode": "now", "agent": "wren", "verdict": "admit", "reason": "", "run_id": 7, "message_id": 41}
_TURNED = {"ok": True, "runId": 8, "agent": "wren", "verdict": "admit", "reason": "", "run_id": 8}
_REST: dict[str, Any] = {"duplicate": False, "ignored": []}
_TOOK = {"ok": True, "id": 42, "ids": [42], "duplicate": False, "agents": ["wren"]}

RECORDED: dict[int | str, dict[str, Any]] = {202: answered("Recorded; it rings as news", _TAKEN, _TOOK)}
WOKEN: dict[int | str, dict[str, Any]] = {
    202: answered("Recorded; it goes on", _WOKEN, _WOKE | _REST),
    200: answered("Recorded; its wake was refused", _WOKEN, _WOKE | _REST | {"verdict": "refuse", "run_id": None}),
}
TURNED: dict[int | str, dict[str, Any]] = {
    202: answered("Recorded; it goes on", _WOKEN, _TURNED | _REST | {"task_id": 43}),
    200: answered("Recorded; its wake was refused", _WOKEN, _TURNED | _REST | {"verdict": "refuse", "run_id": None}),
}

_TEXT = {"type": "string", "pattern": f"^[^{NO_CHARACTERS}]*$"}
_NAMED = {"type": "string", "minLength": 1, "pattern": f"^[^{NO_CHARACTERS}]+$"}
_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "specversion": {"const": VERSION},
        **dict.fromkeys(("id", "source", "type"), _NAMED),
        **dict.fromkeys(("subject", "datacontenttype", "dataschema"), _TEXT),
        "time": {"type": "string", "format": "date-time"},
        "data": {},
    },
    "required": ["specversion", "id", "source", "type"],
    "propertyNames": {"pattern": "^[a-z0-9]{1,20}$"},
    "additionalProperties": {"anyOf": [_TEXT, {"type": "integer"}, {"type": "boolean"}]},
}
_BATCH = {"type": "array", "items": _EVENT, "maxItems": MOST_AT_ONCE}
_FAILED = {"specversion": VERSION, "id": "a-1", "source": "/builds", "type": "build.failed", "data": {"build": 7}}

EVENTS: dict[str, Any] = {
    "required": True,
    "description": "Or in the binary mode: any data, and each attribute in a header `ce-…`.",
    "content": {
        STRUCTURED: {"schema": _EVENT, "example": _FAILED},
        BATCH: {"schema": _BATCH, "example": [_FAILED]},
    },
}
DELIVERY: dict[str, Any] = {
    "required": True,
    "description": "As its sender has it. The signature is of these very bytes.",
    "content": {"application/json": {"schema": {}, "example": {"action": "opened"}}},
}
_WAKE = {"text": "New mail from Ada", "mode": "now", "agentId": "wren"}
_TURN = {"message": "Sum up the new mail.", "name": "Mail", "agentId": "wren", "timeoutSeconds": 600}
WAKE: dict[str, Any] = {"content": {"application/json": {"example": _WAKE}}}
TURN: dict[str, Any] = {"content": {"application/json": {"example": _TURN}}}
