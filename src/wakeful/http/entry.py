"""The way in: every request passes here before any route, and every error leaves here in its one shape.

Laws:
- In this order: a name of this server (421), no foreign page (403), a token (401, 429) on every path but the named open
  ones, JSON (415) of a bearable size (413). The order holds for every method and for paths that do not exist.
- A body is read whole, and counted as it comes, before a route sees it: what says nothing of its length is bounded too.
- HEAD is answered as GET is, without the body.
- What goes wrong behind this is told as a problem, or, where nobody foresaw it, logged and told without detail.
- Whoever is not let in, here or behind, is told of in the events before they are told so themselves.
- An answer that goes on is cut off within a second of its caller's token losing its force, whatever gives it.
- Every answer says what time it is here: who draws how long something has lasted may have another clock.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.control.callers import Caller
from wakeful.control.noting import Denial
from wakeful.core.cloud_events import MARK
from wakeful.core.errors import Forbidden
from wakeful.core.hooks import CLOUD_EVENTS, NAME, RESERVED
from wakeful.core.peers import PEER_TODO
from wakeful.http import page
from wakeful.http.auth import Authority, normal
from wakeful.http.errors import INTERNAL, Problem, Refused, problem_of
from wakeful.http.vigil import Vigil

log = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
HOOKS = "/hooks/"
# Its token is in the body.
TODO = f"/{PEER_TODO}"
BODY_LIMIT = 1_048_576
CALLER = "wakeful.caller"
# The answers by which somebody is not let in, and what the events call it where nobody has said.
DENIED = {401: "unauthenticated", 403: "forbidden", 421: "host", 429: "too_many"}

Deny = Callable[[Denial], Awaitable[None]]
Said = dict[bytes, list[str]]

_ALWAYS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
# What we answer is no page; one that is says itself what it may load.
_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


def needs_no_token(path: str) -> bool:
    """Open to all, or to whoever proves themselves in a way of that path's own."""
    return path in OPEN_PATHS or path == TODO or page.is_open(path) or _is_signed(path)


def _is_signed(path: str) -> bool:
    """Whether what comes there proves itself by its signature: its route sees to that."""
    name = path.removeprefix(HOOKS)
    return name != path and NAME.fullmatch(name) is not None and name not in RESERVED


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
        deny: Deny,
        origins: Collection[str] = (),
        body_limit: int = BODY_LIMIT,
    ) -> None:
        """`origins` are those of pages that somebody else serves in our name, besides our own."""
        self.app = app
        self._authority = authority
        self._deny = deny
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._sick = sick
        self._body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        head = scope["method"] == "HEAD"
        if head:
            scope = {**scope, "method": "GET"}
        answer = _Answer(send, head, lambda status, why: self._note(scope, status, why))
        vigil: Vigil | None = None
        try:
            said = _said(scope)
            await self._let_in(scope, said)
            vigil = Vigil(self._authority, scope.get(CALLER), answer)
            await self.app(scope, await self._whole(scope, said, receive), answer.tell)
        except _Gone:
            pass
        except asyncio.CancelledError:
            if vigil is None or not vigil.cut:
                raise
            # A length that was promised cannot be kept; then the connection is closed.
            with suppress(Exception):
                await answer.tell({"type": "http.response.body", "body": b""})
        except Exception as error:
            if answer.over:
                return
            problem = problem_of(error, self._sick)
            if problem is None or problem.kind == "sick":
                log.error("%s %r failed", scope["method"], scope["path"], exc_info=error)
            if not answer.begun:
                answer.why = _why(error, problem)
                problem = problem or INTERNAL
                beside = {"ok": False, "error": problem.detail} if scope["path"] == TODO else {}
                await problem.response(**beside)(scope, receive, answer.tell)
        finally:
            if vigil is not None:
                vigil.end()

    async def _note(self, scope: Scope, status: int, why: str) -> None:
        caller: Caller | None = scope.get(CALLER)
        agent, run = (caller.name, caller.run) if caller and not caller.is_operator else (None, None)
        told = {"method": scope["method"], "path": scope["path"]}
        address = normal(_address(scope))
        await self._deny(Denial(why=why or DENIED[status], address=address, agent=agent, run=run, told=told))

    async def _let_in(self, scope: Scope, said: Said) -> None:
        host = said.get(b"host", [])
        if len(host) != 1 or host[0].lower() not in self._hosts:
            remedy = f"ask for {', '.join(sorted(self._hosts))}"
            raise Refused(
                Problem(status=421, kind="host", detail="the Host header names another server", remedy=remedy)
            )
        own = f"{scope['scheme']}://{host[0].lower()}"
        if any(origin.lower() not in (own, *self._origins) for origin in said.get(b"origin", ())):
            detail = "the request comes from a page of another origin"
            problem = Problem(status=403, kind="forbidden", detail=detail, remedy="ask from outside a browser")
            raise Refused(problem, why="origin")
        if not needs_no_token(scope["path"]):
            scope[CALLER] = await self._authority.caller(said.get(b"authorization", []), _address(scope))

    async def _whole(self, scope: Scope, said: Said, receive: Receive) -> Receive:
        """The same `receive` with the body, if there is one, already here."""
        length = int(said.get(b"content-length", ["0"])[0])
        if not length and b"transfer-encoding" not in said:
            return receive
        media = said.get(b"content-type", [""])[0]
        if not _is_json(media) and not _is_marked(scope, said):
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


class _Answer:
    """What is told to the client, and whether it has begun."""

    def __init__(self, send: Send, head: bool, note: Callable[[int, str], Awaitable[None]]) -> None:
        """With `head` no body is told, only what would stand before it."""
        self._send = send
        self._head = head
        self._note = note
        self.begun = False
        self.over = False
        # Why somebody was not let in; None where the events know of it already.
        self.why: str | None = ""

    async def tell(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            said = message.get("headers", ())
            own = any(name == _POLICY[0] for name, _ in said)
            policy = () if own else (_POLICY,)
            message["headers"] = [*said, *_ALWAYS, (b"date", _date(int(time.time()))), *policy]
            if message["status"] in DENIED and self.why is not None:
                await self._note(message["status"], self.why)
        elif self._head:
            await self._end(goes_on=message.get("more_body", False))
            return
        await self._send(message)

    async def _end(self, *, goes_on: bool) -> None:
        if not self.over:
            self.over = True
            await self._send({"type": "http.response.body", "body": b""})
        if goes_on:
            # As if the client had left: a stream would have no end.
            raise OSError("nothing more is wanted")


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


def _why(error: Exception, problem: Problem | None) -> str | None:
    if isinstance(error, Forbidden) and error.noted:
        return None
    if isinstance(error, Refused) and error.why:
        return error.why
    return problem.kind if problem is not None else ""


def _is_json(media: str) -> bool:
    """No page can send this elsewhere without asking first."""
    kind = media.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _is_marked(scope: Scope, said: Said) -> bool:
    """A CloudEvent whose attributes are headers has data of any kind; no page can send such headers unasked either."""
    return scope["path"] == f"{HOOKS}{CLOUD_EVENTS}" and MARK.encode() in said


def _address(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


def caller_of(scope: Scope) -> Caller:
    """Who was let in; a path that is open to all has no caller."""
    caller: Caller = scope[CALLER]
    return caller


def _said(scope: Scope) -> Said:
    """Each header with all that was said under its name."""
    said: Said = {}
    for name, value in scope["headers"]:
        said.setdefault(name, []).append(value.decode("latin-1"))
    return said


def replay(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
