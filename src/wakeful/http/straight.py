"""The short way in for what is asked most: no search for a route, no framework around the answer.

Law: only a request that is understood at once goes this way. Anything else about it, and every mistake, goes the long
way, so that each has one answer, in one shape.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.control.operations import OPERATIONS
from wakeful.http.entry import caller_of, replay
from wakeful.http.schemas import FORMS, Form

if TYPE_CHECKING:
    from wakeful.control.control import Control

# What it says stands beside the body: the long way puts them together.
_BESIDE = b"idempotency-key"


class Straight:
    """Stands behind the entry, which has seen to the token and to the size of the body."""

    def __init__(self, app: ASGIApp, *, control: Control) -> None:
        self.app = app
        self._ways = {
            operation.path: (getattr(control, name), FORMS[name])
            for name, operation in OPERATIONS.items()
            if operation.method == "POST" and "{" not in operation.path
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way = self._ways.get(scope["path"]) if scope.get("method") == "POST" else None
        headers = dict(scope["headers"]) if way else {}
        if way is None or scope["query_string"] or _BESIDE in headers or b"content-length" not in headers:
            await self.app(scope, receive, send)
            return
        ask, form = way
        message = await receive()
        body = message.get("body", b"")
        given = _understood(form, body)
        if given is None:
            await self.app(scope, replay(body, receive), send)
            return
        result = await ask(caller_of(scope), **given.model_dump(exclude_unset=True))
        await JSONResponse(result, form.status(result))(scope, receive, send)


def _understood(form: Form, body: bytes) -> BaseModel | None:
    try:
        return form.given.model_validate(json.loads(body))
    except (ValueError, ValidationError, RecursionError):
        return None
