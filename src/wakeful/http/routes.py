"""One route for each operation, made from its form; and the few that are no operations: health and the live streams.

Laws:
- What is said beside the body or the query is said once: a key in a header and another in the body are a mistake. What
  is changed is told by its body alone: a query there is one too.
- Every list goes on in one way: `cursor` is the `next` of the page before it, with the other parameters as they were.
- What has a version is changed under `If-Match` only in that version.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, create_model
from starlette.routing import BaseRoute, Route

from wakeful.control.operations import OPERATIONS, Operation
from wakeful.core.errors import Mistake, Outdated
from wakeful.http.entry import caller_of
from wakeful.http.errors import Problem
from wakeful.http.fields import Key, Number
from wakeful.http.live import Live, resume_at
from wakeful.http.queries import Log, Stream
from wakeful.http.schemas import FORMS, PLACES, Form

if TYPE_CHECKING:
    from wakeful.control.control import Control

_EMPTY = inspect.Parameter.empty
# The error of something in a query that takes nothing.
NOT_ASKED = "not_asked"

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
        )
        if name in ("pause_agent", "resume_agent"):
            _let_sources_have_slashes(router.routes[-1])
    return router


def _let_sources_have_slashes(route: BaseRoute) -> None:
    """What is in braces is one part of a path; but a source may be named by an address."""
    assert isinstance(route, Route)
    route.path_regex = re.compile(route.path_regex.pattern.replace("[^/]+", "[^/]+|source:.+"))


def _endpoint(ask: Callable[..., Awaitable[dict[str, Any]]], operation: Operation, form: Form) -> Endpoint:
    places, looked_at = re.findall(r"\{(\w+)\}", operation.path), operation.method == "GET"

    async def answer(request: Request, **told: Any) -> Response:
        if not looked_at:
            refuse_query(request)
        parameters = {place: told[place] for place in places} | told["given"].model_dump(exclude_unset=True)
        _say_once(parameters, "key", told.get("idempotency_key"), "Idempotency-Key")
        _say_once(parameters, "version", _seen(told.get("if_match")), "If-Match")
        if looked_at and "cursor" in parameters:
            _go_on(parameters, form)
        result = await ask(caller_of(request.scope), **parameters)
        tag = {"etag": f'"{result["version"]}"'} if form.tagged and "version" in result else {}
        if looked_at and tag and _is_known(told.get("if_none_match"), tag["etag"]):
            return Response(status_code=304, headers=tag)
        return JSONResponse(result, form.status(result), headers=tag)

    # FastAPI reads what a route takes off its signature; this one is made from the form.
    signature = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    signature += [_keyword(place, Annotated[PLACES[place], Path()]) for place in places]
    if looked_at:
        signature.append(_keyword("given", Annotated[_listed(form), Query()]))
    else:
        # Where a body has nothing that must be said, it may be left out altogether.
        wanted = any(field.is_required() for field in form.given.model_fields.values())
        signature.append(_keyword("given", Annotated[form.given, Body()], _EMPTY if wanted else form.given()))
    if "key" in form.given.model_fields:
        signature.append(_keyword("idempotency_key", Annotated[Key | None, Header()], None))
    if form.tagged:
        header = "if_none_match" if looked_at else "if_match"
        signature.append(_keyword(header, Annotated[str | None, Header()], None))
    answer.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return answer


def refuse_query(request: Request) -> None:
    """For what takes all that it is told from its body: nothing is passed over in silence."""
    said = dict.fromkeys(request.query_params.keys())
    if said:
        raise RequestValidationError([{"type": NOT_ASKED, "loc": ("query", name), "msg": ""} for name in said])


def _say_once(parameters: dict[str, Any], name: str, said: Any, header: str) -> None:
    """What a header says, unless the body says something else."""
    if said is not None and parameters.setdefault(name, said) != said:
        raise Mistake(f"the body has another {name} than the {header} header", "send one of them")


# ---- lists


def is_list(form: Form) -> bool:
    return not {"after", "before"}.isdisjoint(form.given.model_fields)


def _listed(form: Form) -> type[BaseModel]:
    """The form with a place for the cursor, where what it asks for is a list."""
    if not is_list(form):
        return form.given
    kind = form.given.model_fields.get("after")
    cursor: Any = str | None if kind is not None and kind.annotation is str else Number | None
    listed: type[BaseModel] = create_model(form.given.__name__, __base__=form.given, cursor=(cursor, None))
    return listed


def _go_on(parameters: dict[str, Any], form: Form) -> None:
    cursor = parameters.pop("cursor")
    onwards = "after" in form.given.model_fields and "before" not in parameters
    parameters["after" if onwards else "before"] = cursor


# ---- versions


def _seen(if_match: str | None) -> int | None:
    """The version that was seen; None where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = re.fullmatch(r'\s*"([0-9]{1,18})"\s*', if_match, re.ASCII)
    if found is None and "," in if_match:
        raise Mistake("expected one entity tag in If-Match, found several", "send the one that you have seen")
    if found is None:
        raise Outdated("If-Match names no version that these settings ever had")
    return int(found[1])


def _is_known(if_none_match: str | None, tag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return tag in known or known == ["*"]


def _keyword(name: str, annotation: Any, default: Any = _EMPTY) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def health(control: Control) -> APIRouter:
    """Open to everybody, and so without any detail."""
    router = APIRouter()

    @router.get("/healthz", response_model=None)
    async def healthz() -> Response:
        return JSONResponse({"status": "alive"})

    @router.get("/readyz", response_model=None)
    async def readyz() -> Response:
        engine = control.beside
        if engine is not None and engine.health()["ready"]:
            return JSONResponse({"status": "ready"})
        return Problem(status=503, kind="busy", remedy="`wakeful status` says why").response()

    return router


def streams(live: Live) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/runs/{run}/log", name="log", response_model=None)
    async def log(
        request: Request,
        run: Annotated[Number, Path()],
        given: Annotated[Log, Query()],
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        return await live.log(caller_of(request.scope), run, given.stream, resume_at(last_event_id, given.offset))

    @router.get("/v1/stream", name="stream", response_model=None)
    async def stream(
        request: Request,
        given: Annotated[Stream, Query()],
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        after = resume_at(last_event_id, given.after)
        return await live.events(caller_of(request.scope), after, given.agent, given.kinds)

    return router
