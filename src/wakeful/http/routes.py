"""One route for each operation, made from its form; and the few that are no operations: health and the live streams."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Header, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from wakeful.control.operations import OPERATIONS, Operation
from wakeful.core.errors import Mistake
from wakeful.http.entry import caller_of
from wakeful.http.errors import MEDIA_TYPE, TITLES, Problem
from wakeful.http.live import Live, resume_at
from wakeful.http.schemas import FORMS, PLACES, Form, Key, Log, Number, Stream

if TYPE_CHECKING:
    from wakeful.control.control import Control

Responses = dict[int | str, dict[str, Any]]

_REFUSALS = {
    400: "mistake",
    401: "unauthenticated",
    403: "forbidden",
    404: "unknown",
    409: "conflict",
    421: "host",
    429: "too_many",
    500: "internal",
    503: "busy",
}
_REFUSALS_OF_BODIES = {408: "late", 413: "too_large", 415: "media"}
# Where the description has the one shape of all refusals.
SHAPE = {"$ref": "#/components/schemas/Problem"}
_EMPTY = inspect.Parameter.empty
_ACCEPTED = {200: "Answered", 201: "Recorded", 202: "Accepted; it goes on"}

Endpoint = Callable[..., Awaitable[Response]]


def operations(control: Control) -> APIRouter:
    router = APIRouter()
    for name, operation in OPERATIONS.items():
        form = FORMS[name]
        router.add_api_route(
            operation.path,
            _endpoint(getattr(control, name), operation, form),
            methods=[operation.method],
            name=name,
            operation_id=name,
            status_code=form.statuses[0],
            response_model=None,
            responses=_responses(form.statuses, bodied=operation.method != "GET"),
        )
    return router


def _endpoint(ask: Callable[..., Awaitable[dict[str, Any]]], operation: Operation, form: Form) -> Endpoint:
    places = re.findall(r"\{(\w+)\}", operation.path)

    async def answer(request: Request, **told: Any) -> Response:
        parameters = {place: told[place] for place in places} | told["given"].model_dump(exclude_unset=True)
        key = told.get("idempotency_key")
        if key is not None and parameters.setdefault("key", key) != key:
            raise Mistake("the body has another key than the Idempotency-Key header", "send one of them")
        result = await ask(caller_of(request.scope), **parameters)
        return JSONResponse(result, form.status(result))

    # FastAPI reads what a route takes off its signature; this one is made from the form.
    signature = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    signature += [_keyword(place, Annotated[PLACES[place], Path()]) for place in places]
    if operation.method == "GET":
        signature.append(_keyword("given", Annotated[form.given, Query()]))
    else:
        # Where a body has nothing that must be said, it may be left out altogether.
        wanted = any(field.is_required() for field in form.given.model_fields.values())
        signature.append(_keyword("given", Annotated[form.given, Body()], _EMPTY if wanted else form.given()))
    if "key" in form.given.model_fields:
        signature.append(_keyword("idempotency_key", Annotated[Key | None, Header()], None))
    answer.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return answer


def _keyword(name: str, annotation: Any, default: Any = _EMPTY) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _responses(statuses: tuple[int, ...], *, bodied: bool = False) -> Responses:
    refusals = {**_REFUSALS, **(_REFUSALS_OF_BODIES if bodied else {})}
    named: Responses = {status: {"description": _ACCEPTED[status]} for status in statuses}
    for status, kind in sorted(refusals.items()):
        named[status] = {"description": TITLES[kind], "content": {MEDIA_TYPE: {"schema": SHAPE}}}
    return named


def health(control: Control) -> APIRouter:
    """Open to everybody, and so without any detail."""
    router = APIRouter()
    unready: Responses = {503: {"description": "Not ready", "content": {MEDIA_TYPE: {}}}}

    @router.get("/healthz", response_model=None)
    async def healthz() -> Response:
        return JSONResponse({"status": "alive"})

    @router.get("/readyz", response_model=None, responses=unready)
    async def readyz() -> Response:
        engine = control.beside
        if engine is not None and engine.health()["ready"]:
            return JSONResponse({"status": "ready"})
        return Problem(status=503, kind="busy", remedy="`wakeful status` says why").response()

    return router


def streams(live: Live) -> APIRouter:
    router = APIRouter()
    responses = _responses((200,))
    responses[200] = {"description": "Server-sent events", "content": {"text/event-stream": {}}}

    @router.get("/v1/runs/{run}/log", name="log", response_model=None, responses=responses)
    async def log(
        request: Request,
        run: Annotated[Number, Path()],
        given: Annotated[Log, Query()],
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        return await live.log(caller_of(request.scope), run, given.stream, resume_at(last_event_id, given.offset))

    @router.get("/v1/stream", name="stream", response_model=None, responses=responses)
    async def stream(
        request: Request,
        given: Annotated[Stream, Query()],
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        after = resume_at(last_event_id, given.after)
        return await live.events(caller_of(request.scope), after, given.agent, given.kinds)

    return router
