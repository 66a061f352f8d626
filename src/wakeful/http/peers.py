"""`POST /peer-todo`: another loop leaves a task here, with its token in the body, as such loops have always spelled it.

Laws:
- The token is a peer's (`wakeful token --peer`) or the operator's; it is looked at before anything else that was said.
- A wrong one counts as a wrong token does everywhere. Every refusal says `ok: false` beside what all refusals say,
  those of the entry too; but not what is cut off before it is a request.
- What else a peer sends is passed over: it may be newer than we are.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ConfigDict, Field, ValidationError

from wakeful.control.callers import OPERATOR, Caller
from wakeful.core.errors import Mistake, WakefulError
from wakeful.core.peers import LONGEST_PEER, peer_token
from wakeful.http.auth import Authority
from wakeful.http.entry import TODO
from wakeful.http.errors import Problem, Refused, problem_of
from wakeful.http.fields import Body, Key

if TYPE_CHECKING:
    from wakeful.control.control import Control


class PeerTodo(Body):
    """What a peer says of itself, and what it wants done."""

    model_config = ConfigDict(extra="ignore")

    token: str
    peer: Annotated[str, Field(alias="from", min_length=1, max_length=LONGEST_PEER)]
    name: Annotated[str | None, Field(alias="fromName", max_length=LONGEST_PEER)] = None
    message: Annotated[str, Field(min_length=1)]
    idempotency_key: Key | None = None


def peers(control: Control, authority: Authority) -> APIRouter:
    router = APIRouter()

    @router.post(TODO, name="peer_todo", operation_id="peer_todo", response_model=None)
    async def peer_todo(request: Request) -> Response:
        try:
            return await _left(control, authority, request)
        except (Refused, WakefulError) as error:
            problem = problem_of(error)
            assert problem is not None
            return problem.response(ok=False, error=problem.detail)

    return router


async def _left(control: Control, authority: Authority, request: Request) -> Response:
    told = _read(await request.body())
    by = _let_in(authority, told.get("token"), request.client.host if request.client else "")
    key = request.headers.get("idempotency-key")
    if key is not None and told.setdefault("idempotency_key", key) != key:
        raise Mistake("the body has another key than the Idempotency-Key header", "send one of them")
    try:
        todo = PeerTodo.model_validate(told)
    except ValidationError as error:
        raise _misunderstood(error) from None
    said: dict[str, Any] = {"peer": todo.peer, "name": todo.name, "message": todo.message, "key": todo.idempotency_key}
    recorded = await control.leave_todo(**said, by=by)
    return JSONResponse({"ok": True, "id": recorded.id, "duplicate": recorded.duplicate})


def _read(body: bytes) -> dict[str, Any]:
    """What has no token in it is nobody's, whatever else it may be."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    return told if isinstance(told, dict) else {}


def _let_in(authority: Authority, token: object, address: str) -> Caller | None:
    """The operator, or a peer, who is nobody here; raises `Refused`."""
    if isinstance(token, str):
        # No token of ours has any other sign. Both are always compared.
        spelled, operator = token if token.isascii() else "", authority.operator
        known = [authority.is_operator(spelled), hmac.compare_digest(spelled, peer_token(operator))]
        if operator and any(known):
            return OPERATOR if known[0] else None
        authority.refuse_wrong(address)
    remedy = 'send {"token": "…", "from": "…", "message": "…"}; `wakeful token --peer` prints the token for peers'
    raise Refused(Problem(status=401, kind="unauthenticated", detail="the token is wrong, or missing", remedy=remedy))


def _misunderstood(error: ValidationError) -> Mistake:
    found = [f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()]
    return Mistake("; ".join(found), "see /openapi.json for what is expected")
