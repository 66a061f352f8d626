"""The application: routes behind the entry, and a description of itself at /openapi.json.

Laws:
- Every refusal has the one shape, those of the framework too: what cannot be understood is 400, never 422.
- An unknown field is told with the nearest known one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from wakeful import __version__
from wakeful.http.auth import Authority, Failures, Keys
from wakeful.http.entry import OPEN_PATHS, Entry
from wakeful.http.errors import Problem
from wakeful.http.live import Live
from wakeful.http.routes import health, operations, streams
from wakeful.http.schemas import FORMS, LIVE, Told
from wakeful.http.straight import Straight

if TYPE_CHECKING:
    from wakeful.control.control import Control


def build(
    control: Control,
    *,
    keys: Keys,
    hosts: Collection[str],
    sick: tuple[type[Exception], ...] = (OSError,),
    clock: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """`hosts` are the names that clients may call this server by, with the port; `sick` are the errors by which storage
    tells that it is in trouble. Setting `app.state.leaving` ends the live streams."""
    app = FastAPI(
        title="wakeful",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={RequestValidationError: _misunderstood, HTTPException: _misplaced},
    )
    app.state.leaving = asyncio.Event()
    authority = Authority(keys, control, Failures(clock))
    app.add_middleware(Straight, control=control)
    app.add_middleware(Entry, authority=authority, hosts=hosts, sick=sick)
    app.include_router(health(control))
    app.include_router(streams(Live(control, authority, app.state.leaving)))
    app.include_router(operations(control))
    _describe(app)
    return app


async def _misunderstood(request: Request, error: Exception) -> Response:
    """Pydantic's errors, in our words; what was sent is not told back."""
    assert isinstance(error, RequestValidationError)
    mistakes = tuple(_mistake(request, found) for found in error.errors())
    remedies = {found.pop("remedy") for found in mistakes if found.get("remedy")}
    detail = "; ".join(f"{found['where']}: {found['reason']}" for found in mistakes)
    remedy = "; ".join(sorted(remedies)) or "see /openapi.json for what is expected"
    return Problem(status=400, kind="mistake", detail=detail, remedy=remedy, mistakes=mistakes).response()


def _mistake(request: Request, found: dict[str, Any]) -> dict[str, str]:
    if found["type"] == "json_invalid":
        return {"where": "body", "reason": f"not JSON: {found['ctx']['error']} at character {found['loc'][1]}"}
    where = ".".join(str(part) for part in found["loc"])
    if found["type"] != "extra_forbidden":
        return {"where": where, "reason": found["msg"]}
    known = _fields(request)
    near = get_close_matches(str(found["loc"][-1]), known, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known) or 'nothing'}"
    return {"where": where, "reason": "unknown field", "remedy": remedy}


def _fields(request: Request) -> list[str]:
    name = getattr(request.scope.get("route"), "name", "")
    given = FORMS[name].given if name in FORMS else LIVE.get(name)
    return sorted(given.model_fields) if given else []


async def _misplaced(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = tuple((error.headers or {}).items())
    if error.status_code == 404:
        problem = Problem(
            status=404, kind="unknown", detail="no such path", remedy="see /openapi.json for those there are"
        )
    elif error.status_code == 405:
        remedy = f"use {dict(headers).get('Allow', 'another')}"
        problem = Problem(status=405, kind="method", detail="not a method of this path", remedy=remedy, headers=headers)
    else:
        problem = Problem(status=400, kind="mistake", detail="the body cannot be read", remedy="send plain JSON")
    return problem.response()


def _describe(app: FastAPI) -> None:
    """FastAPI's description, corrected: there is no 422, and all but the open paths need a token."""
    generate = app.openapi

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = generate()
            for path, methods in described["paths"].items():
                for operation in methods.values():
                    operation["responses"].pop("422", None)
                    if path not in OPEN_PATHS:
                        operation["security"] = [{"token": []}]
            parts = described.setdefault("components", {})
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            shapes = parts.setdefault("schemas", {})
            for name in ("HTTPValidationError", "ValidationError"):
                shapes.pop(name, None)
            shapes["Problem"] = Told.model_json_schema()
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]
