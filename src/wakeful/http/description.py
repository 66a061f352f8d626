"""What the API says of itself at /openapi.json: every operation with its answers, its refusals, words and examples.

Laws:
- Nothing is described twice: parameters come from the forms, answers from `control.answers`, words from the docstrings
  of `Control`, examples from what was really asked and answered (`examples.json`; tests/http/recorded.py writes it).
- It is made when it is asked for, and once.
- All that may come of a request is named, also what the entry says before any route is found.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import Any

from wakeful.control.answers import ANSWERS
from wakeful.control.operations import OPERATIONS
from wakeful.control.shapes import Schema, Shapes
from wakeful.http.entry import OPEN_PATHS, needs_no_token
from wakeful.http.errors import MEDIA_TYPE, TITLES
from wakeful.http.live import frame
from wakeful.http.words import ABOUT, DONE, EITHER, LINKS, OTHERS, TAGS, WORDS, tag_of

JSON = "application/json"

_ANYWHERE = {
    400: "mistake",
    401: "unauthenticated",
    403: "forbidden",
    404: "unknown",
    408: "late",
    413: "too_large",
    415: "media",
    421: "host",
    429: "too_many",
    500: "internal",
    503: "busy",
}
# What is open to all, and says nothing of anybody, refuses no more than this.
_BEFORE = {status: _ANYWHERE[status] for status in (400, 403, 408, 421, 500)}
_CONFLICTS = {409: "conflict"}
_SHAPE = {"$ref": "#/components/schemas/Problem"}
_TAG = {"description": "The version of what is told, in quotes.", "schema": {"type": "string"}, "required": True}


def description(generated: dict[str, Any], mounted: Collection[str] = ()) -> dict[str, Any]:
    """What FastAPI says of the app, made true; `mounted` are paths that it says nothing of."""
    for path in mounted:
        generated["paths"][path] = {"post": {"responses": {}}}
    _rename_bodies(generated)
    _Description(generated).complete()
    return generated


@cache
def examples() -> dict[str, dict[str, Any]]:
    """By operation: what was `said`, the `status` and the `answer`."""
    found: dict[str, dict[str, Any]] = json.loads(resources.files(__package__).joinpath("examples.json").read_bytes())
    return found


def summary_of(name: str) -> tuple[str, str]:
    """The first sentence, and all that is said of an operation."""
    from wakeful.control.control import Control

    whole = " ".join((inspect.getdoc(getattr(Control, name)) or "").split())
    return re.split(r"(?<=[^.])\.(?:\s|$)", whole, maxsplit=1)[0], whole


def _rename_bodies(told: dict[str, Any]) -> None:
    """What is said and what is answered may have the same name here."""
    parts = told.setdefault("components", {})
    shapes = {name: shape for name, shape in parts.get("schemas", {}).items() if "ValidationError" not in name}
    text = json.dumps({"paths": told["paths"], "schemas": {f"{name}Body": shape for name, shape in shapes.items()}})
    text = re.sub(r"#/components/schemas/(?!Problem\b)(\w+)", r"#/components/schemas/\1Body", text)
    renamed = json.loads(text)
    told["paths"], parts["schemas"] = renamed["paths"], renamed["schemas"]


class _Description:
    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told
        self._shapes = Shapes()
        self._names = {(operation.method, operation.path): name for name, operation in OPERATIONS.items()}

    def complete(self) -> None:
        for name, shape in self._told["components"]["schemas"].items():
            for field, described in shape.get("properties", {}).items():
                described.setdefault("description", WORDS.get(f"{name}.{field}") or WORDS.get(field, ""))
        for path, methods in self._told["paths"].items():
            for method, operation in methods.items():
                self._one(path, method.upper(), operation)
        parts = self._told["components"]
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": ABOUT["token"]}}
        parts["schemas"] |= {"Problem": _problem(), **self._shapes.components}
        self._told["info"]["description"] = ABOUT["api"]
        used = {tag for methods in self._told["paths"].values() for each in methods.values() for tag in each["tags"]}
        self._told["tags"] = [{"name": tag, "description": words} for tag, words in TAGS.items() if tag in used]

    def _one(self, path: str, method: str, operation: Schema) -> None:
        name = self._names.get((method, path))
        answers = operation["responses"]
        answers.pop("422", None)
        operation.setdefault("tags", [tag_of(path)])
        operation.setdefault("description", operation.get("summary", ""))
        if name is not None:
            self._operation(name, operation)
        elif path in OTHERS:
            operation |= OTHERS[path]
            answers = operation["responses"] = dict(operation["responses"])
            if path in _STREAMS:
                content = {"text/event-stream": {"schema": {"type": "string"}, "example": _STREAMS[path]()}}
                answers["200"] = {"description": "Server-sent events", "content": content}
        anywhere = _BEFORE if path in OPEN_PATHS else _ANYWHERE
        for status, kind in {**anywhere, **(_CONFLICTS if method != "GET" else {})}.items():
            answers.setdefault(str(status), _refusal(kind))
        if "409" in answers:
            # The type of the problem says which.
            answers["409"]["description"] = f"{TITLES['conflict']}; or: {TITLES['ended'].lower()}"
        if path in EITHER:
            operation["security"] = EITHER[path]
        elif not needs_no_token(re.sub(r"\{\w+\}", "x", path)):
            operation["security"] = [{"token": []}]
        for parameter in operation.get("parameters", ()):
            parameter.setdefault("description", WORDS.get(parameter["name"].lower(), ""))
        operation["responses"] = dict(sorted(answers.items()))

    def _operation(self, name: str, operation: Schema) -> None:
        from wakeful.http.schemas import FORMS

        form, example = FORMS[name], examples().get(name, {})
        operation["summary"], operation["description"] = summary_of(name)
        for parameter in operation.get("parameters", ()):
            # A key is better said beside the body.
            spelled = "key" if parameter["name"].lower() == "idempotency-key" else parameter["name"]
            if spelled in example.get("said", {}):
                parameter["example"] = example["said"][spelled]
        if "requestBody" in operation:
            self._body(name, operation, example)
        answers = operation["responses"]
        for status in form.statuses:
            told: Schema = {"schema": self._shapes.of(ANSWERS.get(name, Any))}
            if status == example.get("status"):
                told["example"] = example["answer"]
            answers[str(status)] = {"description": DONE[status], "content": {JSON: told}}
            if name in LINKS:
                answers[str(status)]["links"] = LINKS[name]
            if form.tagged:
                answers[str(status)]["headers"] = {"ETag": _TAG}
        if form.tagged and OPERATIONS[name].method == "GET":
            answers["304"] = {"description": DONE[304], "headers": {"ETag": _TAG}}
        elif form.tagged:
            answers["412"] = _refusal("outdated")

    def _body(self, name: str, operation: Schema, example: Schema) -> None:
        content = operation["requestBody"]["content"][JSON]
        path = OPERATIONS[name].path
        if "said" in example:
            content["example"] = {
                field: value
                for field, value in example["said"].items()
                if f"{{{field}}}" not in path and field != "key"
            }


def _events() -> str:
    event = examples()["events"]["answer"]["items"][0]
    return frame(event["kind"], event, event["id"]).decode()


def _output() -> str:
    page = examples()["output"]["answer"]
    return frame("output", page, page["next_offset"]).decode()


_STREAMS = {"/v1/stream": _events, "/v1/runs/{run}/log": _output}


def _refusal(kind: str) -> Schema:
    return {"description": TITLES[kind], "content": {MEDIA_TYPE: {"schema": _SHAPE}}}


def _problem() -> Schema:
    from wakeful.http.schemas import Told

    return Told.model_json_schema()
