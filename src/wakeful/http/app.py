"""The application: routes behind the entry, and a description of itself at /openapi.json.

Laws:
- Every refusal has the one shape, those of the framework too: what cannot be understood is 400, never 422.
- An unknown field is told with the nearest known one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from wakeful import __version__
from wakeful.control.operations import OPERATIONS
from wakeful.core.wording import shortened
from wakeful.http.auth import Authority, Failures, Keys
from wakeful.http.entry import Entry, caller_of
from wakeful.http.errors import Problem
from wakeful.http.hook_schemas import HOOK_FORMS
from wakeful.http.hooks import hooks
from wakeful.http.live import Live
from wakeful.http.metrics import Scrape, metrics, nothing_measured
from wakeful.http.packing import Packing
from wakeful.http.page import page
from wakeful.http.peers import peers
from wakeful.http.routes import NOT_ASKED, health, is_list, operations, streams
from wakeful.http.schemas import FORMS, LIVE
from wakeful.http.straight import Straight

if TYPE_CHECKING:
    from wakeful.control.control import Control


class Guarded(FastAPI):
    """Nothing stands before the entry, which tells every error in our own words."""

    def build_middleware_stack(self) -> ASGIApp:
        stack: Any = super().build_middleware_stack()
        while not isinstance(stack, Entry):
            stack = stack.app
        return stack


def build(
    control: Control,
    *,
    keys: Keys,
    hosts: Collection[str],
    sick: tuple[type[Exception], ...] = (OSError,),
    clock: Callable[[], float] = time.monotonic,
    operator: Callable[[], str] | None = None,
    origins: Collection[str] = (),
    variables: Mapping[str, str] | None = None,
    mounts: Mapping[str, ASGIApp] | None = None,
    scrape: Scrape = nothing_measured,
) -> FastAPI:
    """`hosts` are the names that clients may call this server by, with the port; `sick` are the errors by which storage
    tells that it is in trouble; `operator` gives the operator's token as it is now, where it may become another; see
    `Entry` for `origins`; `variables`, our own unless others are given, hold the secrets of webhooks. Setting
    `app.state.leaving` ends the live streams."""
    app = Guarded(
        title="wakeful",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Runs are traced, not requests; and to ask each time whether to trace costs as much as to answer.
        telemetry={"tracing": False, "metrics": False},
        exception_handlers={RequestValidationError: _misunderstood, HTTPException: _misplaced},
    )
    app.state.leaving = asyncio.Event()
    app.state.judge = control.judge
    authority = Authority(keys, control, Failures(clock), operator)
    app.add_middleware(Straight, control=control)
    app.add_middleware(Packing)
    app.state.parting = [control.denials.flush]
    app.add_middleware(Entry, authority=authority, hosts=hosts, sick=sick, deny=control.denied, origins=origins)
    routers = (
        health(control),
        peers(control, authority),
        streams(Live(control, authority, app.state.leaving)),
        operations(control),
        metrics(scrape),
        hooks(control, authority, os.environ if variables is None else variables),
        page(),
    )
    for router in routers:
        # Not included: each request would then be looked for twice in every router.
        app.router.routes += router.routes
    # What is not of HTTP's own making, as MCP: asked by POST, behind the same entry.
    app.router.routes += [Route(path, mounted, methods=["POST"]) for path, mounted in (mounts or {}).items()]
    _describe(app, mounts or {})
    return app


def _describe(app: FastAPI, mounted: Collection[str]) -> None:
    """When somebody asks for it: an engine that begins has no time for it."""
    generate = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            from wakeful.http.description import description

            app.openapi_schema = description(generate(), mounted)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


async def _misunderstood(request: Request, error: Exception) -> Response:
    """Pydantic's errors, in our words; what was sent is not told back."""
    assert isinstance(error, RequestValidationError)
    if request.method not in _methods(request):
        # It went to a path with a place in it, for there is none of that method where it was meant to go.
        return _not_a_method(request)
    operation = getattr(request.scope.get("route"), "name", "")
    if operation in OPERATIONS:
        # Whoever may not ask is told that first, however they have put it.
        agent = request.path_params.get("agent")
        await request.app.state.judge(caller_of(request.scope), operation, agent)
    mistakes = tuple(_mistake(request, found) for found in error.errors())
    remedies = {found.pop("remedy") for found in mistakes if found.get("remedy")}
    detail = "; ".join(f"{found['where']}: {found['reason']}" for found in mistakes)
    remedy = "; ".join(sorted(remedies)) or "see /openapi.json for what is expected"
    return Problem(status=400, kind="mistake", detail=detail, remedy=remedy, mistakes=mistakes).response()


def _mistake(request: Request, found: dict[str, Any]) -> dict[str, str]:
    if found["type"] == "json_invalid":
        return {"where": "body", "reason": f"not JSON: {found['ctx']['error']} at character {found['loc'][1]}"}
    where = ".".join(shortened(str(part)) for part in found["loc"])
    if found["type"] not in ("extra_forbidden", NOT_ASKED):
        return {"where": where, "reason": found["msg"]}
    known = _fields(request)
    near = get_close_matches(str(found["loc"][-1]), known, n=1)
    if found["type"] == NOT_ASKED:
        body = f"say {near[0]} in the body" if near else f"known in the body: {', '.join(known) or 'nothing'}"
        return {"where": where, "reason": "nothing is taken from the query here", "remedy": body}
    remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known) or 'nothing'}"
    return {"where": where, "reason": "unknown field", "remedy": remedy}


def _fields(request: Request) -> list[str]:
    name = getattr(request.scope.get("route"), "name", "")
    given = FORMS[name].given if name in FORMS else LIVE.get(name) or HOOK_FORMS.get(name)
    if given is None:
        return []
    listed = request.method == "GET" and name in FORMS and is_list(FORMS[name])
    return sorted([*given.model_fields, *(["cursor"] if listed else ())])


async def _misplaced(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        problem = Problem(
            status=404, kind="unknown", detail="no such path", remedy="see /openapi.json for those there are"
        )
    elif error.status_code == 405:
        return _not_a_method(request)
    else:
        problem = Problem(status=400, kind="mistake", detail="the body cannot be read", remedy="send plain JSON")
    return problem.response()


def _methods(request: Request) -> list[str]:
    """Of the path itself; one without a place in it is nobody else's. What can be got can be asked for by its head."""
    path, routes = request.scope["path"], [route for route in request.app.routes if isinstance(route, Route)]
    own = [route for route in routes if route.path == path]
    found = own or [route for route in routes if route.path_regex.match(path)]
    known = {method for route in found for method in route.methods or ()}
    return sorted(known | {"HEAD"} if "GET" in known else known)


def _not_a_method(request: Request) -> Response:
    allowed = ", ".join(_methods(request))
    headers = (("allow", allowed),)
    detail, remedy = "not a method of this path", f"use {allowed}"
    return Problem(status=405, kind="method", detail=detail, remedy=remedy, headers=headers).response()
