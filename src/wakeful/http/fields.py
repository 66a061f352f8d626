"""What forms are made of: numbers and texts as the store can hold them, and how a query and a body are read.

Law: a closed vocabulary stands in the description, and is refused by the operation, in its own words.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from wakeful.core.events import EventKind
from wakeful.core.guards import GUARDS
from wakeful.core.items import MessageType, Priority
from wakeful.core.runs import Outcome
from wakeful.core.tasks import TASK_STATES
from wakeful.core.wakes import Cause, VerdictKind

# The largest integer that a row can hold.
LARGEST = 2**63 - 1

Number = Annotated[int, Field(ge=1, le=LARGEST)]
Cursor = Annotated[int, Field(ge=0, le=LARGEST)]
# Counted from the end where it is negative.
Offset = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Page = Annotated[int, Field(ge=1, le=1000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Key = Annotated[str, Field(min_length=1, max_length=255)]
# What says something; the operation itself complains of what does not.
Text = Annotated[str, Field(json_schema_extra={"minLength": 1, "pattern": r"\S"})]
PriorityWord = Annotated[str, Field(json_schema_extra={"enum": [*Priority, "critical"]})]
TypeWord = Annotated[str, Field(json_schema_extra={"enum": [*MessageType]})]
CauseWord = Annotated[str, Field(json_schema_extra={"enum": [*Cause]})]
OutcomeWord = Annotated[str, Field(json_schema_extra={"enum": [*Outcome]})]
VerdictWord = Annotated[str, Field(json_schema_extra={"enum": [*VerdictKind]})]
GuardWord = Annotated[str, Field(json_schema_extra={"enum": [*(guard.name for guard in GUARDS), "check"]})]
InboxWord = Annotated[str, Field(json_schema_extra={"enum": ["open", "closed", "all"]})]
ChangeWord = Annotated[str, Field(json_schema_extra={"enum": ["cancel", "retry", "done", "fail", "remove"]})]
TaskStateWord = Annotated[str, Field(json_schema_extra={"enum": [*TASK_STATES]})]
EventWord = Annotated[str, Field(json_schema_extra={"enum": [*EventKind]})]


def _listed(value: Any) -> Any:
    """`kinds=a,b` and `kinds=a&kinds=b` are the same."""
    return [part for text in value for part in text.split(",") if part] if isinstance(value, list) else value


def _or_text(schema: dict[str, Any]) -> None:
    """A list of one is a text to whoever reads the query, and so is a list with commas."""
    listed = {key: schema.pop(key) for key in ("type", "items", "maxItems")}
    schema["anyOf"] = [listed, {"type": "string", "maxLength": 200}]


Names = Annotated[list[Name], BeforeValidator(_listed), Field(max_length=500, json_schema_extra=_or_text)]
Lanes = Annotated[list[Name], BeforeValidator(_listed), Field(max_length=100, json_schema_extra=_or_text)]
TaskStates = Annotated[list[TaskStateWord], BeforeValidator(_listed)]
EventWords = Annotated[list[EventWord], BeforeValidator(_listed)]


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
