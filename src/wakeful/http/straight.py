"""The short way in for what is asked most: no search for a route, no framework around the answer.

Law: only a request that is understood at once goes this way. Anything else about it, and every mistake, goes the long
way, so that each has one answer, in one shape.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.control.operations import OPERATIONS
from wakeful.http.entry import caller_of, replay
from wakeful.http.fields import Key
from wakeful.http.schemas import FORMS, PLACES, Form

if TYPE_CHECKING:
    from wakeful.control.control import Control

# Whose value stands in a path: `/v1/agents/wren/messages` is `messages` of the agent wren.
_PLACE = 3
_KEY: TypeAdapter[str] = TypeAdapter(Key)

Shape = tuple[str, ...]


class _Way:
    """One operation: how its request is understood, and who is asked."""

    def __init__(self, ask: Callable[..., Awaitable[Any]], form: Form, place: str) -> None:
        self.ask = ask
        self.form = form
        self._place = place
        self._value: TypeAdapter[Any] | None = TypeAdapter(PLACES[place]) if place else None
        self._keyed = "key" in form.given.model_fields

    def understood(self, value: str, body: bytes, key: str | None) -> dict[str, Any] | None:
        try:
            given = self.form.given.model_validate(json.loads(body)).model_dump(exclude_unset=True)
            if self._value is not None:
                given[self._place] = self._value.validate_python(value)
            if key is None:
                return given
            # Said twice, or where nobody wants it.
            return None if "key" in given or not self._keyed else {**given, "key": _KEY.validate_python(key)}
        except (ValueError, ValidationError, RecursionError):
            return None


class Straight:
    """Stands behind the entry, which has seen to the token and to the size of the body."""

    def __init__(self, app: ASGIApp, *, control: Control) -> None:
        self.app = app
        self._plain: dict[str, _Way] = {}
        self._placed: dict[Shape, _Way] = {}
        for name, operation in OPERATIONS.items():
            if operation.method != "POST":
                continue
            ask, form = getattr(control, name), FORMS[name]
            if "{" not in operation.path:
                self._plain[operation.path] = _Way(ask, form, "")
            elif operation.path.count("{") == 1:
                shape, place = _split(operation.path)
                if place.startswith("{"):
                    self._placed[shape] = _Way(ask, form, place.strip("{}"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way, value = self._find(scope) if scope.get("method") == "POST" and not scope["query_string"] else (None, "")
        said = _said(scope) if way is not None else None
        if way is None or said is None:
            await self.app(scope, receive, send)
            return
        body = (await receive()).get("body", b"")
        given = way.understood(value, body, said.get(b"idempotency-key"))
        if given is None:
            await self.app(scope, replay(body, receive), send)
            return
        result = await way.ask(caller_of(scope), **given)
        await _answer(send, way.form.status(result), result)

    def _find(self, scope: Scope) -> tuple[_Way | None, str]:
        path: str = scope["path"]
        way = self._plain.get(path)
        if way is not None:
            return way, ""
        shape, value = _split(path)
        return self._placed.get(shape), value


def _split(path: str) -> tuple[Shape, str]:
    """What stands around the place, and what stands in it."""
    parts = path.split("/", _PLACE + 1)
    return (*parts[:_PLACE], *parts[_PLACE + 1 :]), parts[_PLACE] if len(parts) > _PLACE else ""


def _said(scope: Scope) -> dict[bytes, str] | None:
    """The headers that matter here, each once; None where there is more to it than these."""
    said: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in (b"idempotency-key", b"content-length"):
            if name in said:
                return None
            said[name] = value.decode("latin-1")
    return said if b"content-length" in said else None


async def _answer(send: Send, status: int, result: Any) -> None:
    body = json.dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
