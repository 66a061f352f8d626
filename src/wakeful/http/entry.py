"""The way in: every request passes here before any route, and every error leaves here in its one shape.

Laws:
- In this order: a name of this server (421), no foreign page (403), a token (401, 429) on every path but the named open
  ones, JSON (415) of a bearable size (413). The order holds for every method and for paths that do not exist.
- A body is read whole, and counted as it comes, before a route sees it: what says nothing of its length is bounded too.
- What goes wrong behind this is told as a problem, or, where nobody foresaw it, logged and told without detail.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.control.callers import Caller
from wakeful.http.auth import Authority
from wakeful.http.errors import INTERNAL, Problem, Refused, problem_of

log = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
BODY_LIMIT = 1_048_576
CALLER = "wakeful.caller"

_ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class _Gone(Exception):
    """The client left before its request was whole."""


class Entry:
    def __init__(
        self,
        app: ASGIApp,
        *,
        authority: Authority,
        hosts: Collection[str],
        sick: tuple[type[Exception], ...],
        body_limit: int = BODY_LIMIT,
    ) -> None:
        self.app = app
        self._authority = authority
        self._hosts = frozenset(host.lower() for host in hosts)
        self._sick = sick
        self._body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def tell(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", ()), *_ALWAYS]
            await send(message)

        try:
            await self._let_in(scope)
            await self.app(scope, await self._whole(scope, receive), tell)
        except _Gone:
            pass
        except Exception as error:
            problem = problem_of(error, self._sick)
            if problem is None or problem.kind == "sick":
                log.error("%s %r failed", scope["method"], scope["path"], exc_info=error)
            if not begun:
                await (problem or INTERNAL).response()(scope, receive, tell)

    async def _let_in(self, scope: Scope) -> None:
        host = _values(scope, b"host")
        if len(host) != 1 or host[0].lower() not in self._hosts:
            remedy = f"ask for {', '.join(sorted(self._hosts))}"
            raise Refused(
                Problem(status=421, kind="host", detail="the Host header names another server", remedy=remedy)
            )
        if any(origin.lower() != f"http://{host[0].lower()}" for origin in _values(scope, b"origin")):
            detail = "the request comes from a page of another origin"
            raise Refused(Problem(status=403, kind="forbidden", detail=detail, remedy="ask from outside a browser"))
        if scope["path"] not in OPEN_PATHS:
            address = scope["client"][0] if scope.get("client") else ""
            scope[CALLER] = await self._authority.caller(_values(scope, b"authorization"), address)

    async def _whole(self, scope: Scope, receive: Receive) -> Receive:
        """The same `receive` with the body, if there is one, already here."""
        length = int((_values(scope, b"content-length") or ["0"])[0])
        if not length and not _values(scope, b"transfer-encoding"):
            return receive
        media = (_values(scope, b"content-type") or [""])[0]
        if media.partition(";")[0].strip().lower() != "application/json":
            remedy = "send it with `Content-Type: application/json`"
            raise Refused(Problem(status=415, kind="media", detail="a JSON body was expected", remedy=remedy))
        if length > self._body_limit:
            raise self._too_large()
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._body_limit:
                raise self._too_large()
        return replay(bytes(body), receive)

    def _too_large(self) -> Refused:
        detail = f"a body may have {self._body_limit} bytes"
        return Refused(Problem(status=413, kind="too_large", detail=detail, remedy="send less, or name a file"))


def caller_of(scope: Scope) -> Caller:
    """Who was let in; a path that is open to all has no caller."""
    caller: Caller = scope[CALLER]
    return caller


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def replay(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
