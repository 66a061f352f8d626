"""The routes under /hooks: webhooks, each by its signature; CloudEvents; and two that other loops know, by token.

Laws:
- The bytes that were sent are what is verified, and nothing of them is looked at before.
- A delivery that proves nothing is 401, as a wrong token is, and counts as one; so does one to a webhook that there is
  not, or that is closed: names are not to be had by guessing. What is right is always let in.
- The answer is given when everything is recorded: 202 and its id, and the same id again for the same delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from wakeful.core.errors import Forbidden, Unknown
from wakeful.core.hooks import CLOUD_EVENTS, Headers, Unverified
from wakeful.http.auth import Authority
from wakeful.http.entry import caller_of
from wakeful.http.errors import Problem, Refused
from wakeful.http.fields import Key, Name
from wakeful.http.hook_schemas import (
    DELIVERY,
    EVENTS,
    PASSED_OVER,
    RECORDED,
    TURN,
    TURNED,
    WAKE,
    WOKEN,
    Events,
    HookAgent,
    HookWake,
)
from wakeful.http.routes import refuse_query

if TYPE_CHECKING:
    from wakeful.control.control import Control

_KEY = Annotated[Key | None, Header()]
_UNSIGNED = (("www-authenticate", 'Signature realm="wakeful"'),)
_SIGN = "sign it with the secret of the webhook, as its preset says; see the guide to webhooks"


def hooks(control: Control, authority: Authority, variables: Mapping[str, str]) -> APIRouter:
    """`variables` hold the secrets; they are looked at each time."""
    router = APIRouter(tags=["hooks"])
    _known_elsewhere(router, control)
    incoming = _Incoming(control, authority, variables)

    @router.post(
        f"/hooks/{CLOUD_EVENTS}",
        name="hook_events",
        operation_id="hook_events",
        summary="CloudEvents 1.0: structured, binary or in a batch",
        status_code=202,
        response_model=None,
        responses=RECORDED,
        openapi_extra={"requestBody": EVENTS},
        # Before anything else that was said is looked at.
        dependencies=[Depends(incoming.let_in)],
    )
    async def hook_events(request: Request, given: Annotated[Events, Query()]) -> Response:
        return await incoming.events(request, given.agent)

    @router.post(
        "/hooks/{source}",
        name="hook",
        operation_id="hook",
        summary="A delivery of a webhook that an agent has in ON, by its signature",
        status_code=202,
        response_model=None,
        responses=RECORDED,
        openapi_extra={"requestBody": DELIVERY},
    )
    async def hook(request: Request, source: Annotated[Name, Path()]) -> Response:
        return await incoming.delivery(request, source)

    return router


def _known_elsewhere(router: APIRouter, control: Control) -> None:
    @router.post(
        "/hooks/wake",
        name="hook_wake",
        operation_id="hook_wake",
        summary="A line for an agent's inbox, which rings now or waits for its next run",
        status_code=202,
        response_model=None,
        responses=WOKEN,
        openapi_extra={"requestBody": WAKE},
    )
    async def hook_wake(request: Request, given: Annotated[HookWake, Body()], idempotency_key: _KEY = None) -> Response:
        refuse_query(request)
        said: dict[str, Any] = {"text": given.text, "mode": given.mode, "agent": given.agentId}
        return _told(await control.hook_wake(caller_of(request.scope), **said, key=idempotency_key), given)

    @router.post(
        "/hooks/agent",
        name="hook_agent",
        operation_id="hook_agent",
        summary="A turn of an agent by itself: a one-off, from outside",
        status_code=202,
        response_model=None,
        responses=TURNED,
        openapi_extra={"requestBody": TURN},
    )
    async def hook_agent(
        request: Request, given: Annotated[HookAgent, Body()], idempotency_key: _KEY = None
    ) -> Response:
        refuse_query(request)
        timeout = f"{given.timeoutSeconds}s" if given.timeoutSeconds else None
        said: dict[str, Any] = {"message": given.message, "name": given.name, "agent": given.agentId}
        answer = await control.hook_agent(caller_of(request.scope), **said, timeout=timeout, key=idempotency_key)
        return _told(answer, given)


def _told(answer: dict[str, Any], given: HookWake | HookAgent) -> Response:
    status = 200 if answer["verdict"] == "refuse" else 202
    return JSONResponse({**answer, "ignored": sorted(given.model_fields_set & PASSED_OVER)}, status)


class _Incoming:
    def __init__(self, control: Control, authority: Authority, variables: Mapping[str, str]) -> None:
        self._control = control
        self._authority = authority
        self._variables = variables

    async def delivery(self, request: Request, source: str) -> Response:
        body, headers = await request.body(), _headers(request)
        try:
            return JSONResponse(await self._control.deliver(source, self._variables, headers, body), 202)
        except Unverified as error:
            raise self._refused(request, error) from None
        except (Unknown, Forbidden):
            self._authority.refuse_wrong(_address(request), "signature")
            raise

    async def events(self, request: Request, agent: str | None) -> Response:
        body, headers = await request.body(), _headers(request)
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            answer = await self._control.take_events(request.state.bearer, self._variables, media, headers, body, agent)
            return JSONResponse(answer, 202)
        except Unverified as error:
            raise self._refused(request, error) from None

    async def let_in(self, request: Request) -> None:
        """Whoever brings events has a token, or nobody is known where a signature is to be looked at instead."""
        authorization = request.headers.getlist("authorization")
        signed = not authorization and await self._control.is_signed(CLOUD_EVENTS, self._variables)
        bearer = None if signed else await self._authority.caller(authorization, _address(request))
        request.state.bearer = bearer

    def _refused(self, request: Request, error: Unverified) -> Refused:
        self._authority.refuse_wrong(_address(request), "signature")
        problem = Problem(status=401, kind="signature", detail=str(error), remedy=_SIGN, headers=_UNSIGNED)
        return Refused(problem, why="signature")


def _headers(request: Request) -> Headers:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.headers.raw]


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
