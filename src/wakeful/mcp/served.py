"""MCP over streamable HTTP, behind the entry, which has seen to the name, the origin, the token and the size.

Laws:
- No session and no stream: every request is answered by itself, in JSON, and judged by its own token. When a run ends,
  nothing of it is left open.
- The library is loaded by whoever asks first, beside the event loop: an engine that nobody asks over MCP does not pay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from wakeful.control.callers import Caller
from wakeful.core.errors import WakefulError, in_words
from wakeful.mcp.tools import Answer, Refusal

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

    from wakeful.control.control import Control

log = logging.getLogger(__name__)


class Asked:
    """One caller's questions to control in this process."""

    def __init__(self, control: Control, caller: Caller, sick: tuple[type[Exception], ...]) -> None:
        self._control, self._caller, self._sick = control, caller, sick

    async def whose(self) -> str | None:
        return None if self._caller.is_operator else self._caller.name

    async def ask(self, operation: str, /, **parameters: Any) -> Answer:
        try:
            answer: Answer = await getattr(self._control, operation)(self._caller, **parameters)
        except WakefulError as error:
            raise Refusal(in_words(error)) from None
        except self._sick as error:
            log.error("%s failed", operation, exc_info=error)
            raise Refusal("the store cannot be written or read now (try again in a moment)") from None
        return answer


class Served:
    """`caller_of` tells who was let in; `sick` are the errors by which storage tells that it is in trouble."""

    def __init__(
        self,
        control: Control,
        caller_of: Callable[[Scope], Caller],
        *,
        sick: tuple[type[Exception], ...] = (OSError,),
    ) -> None:
        self._control, self._caller_of, self._sick = control, caller_of, sick
        self._server: Server[Any] | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = self._server or await self._loaded()
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        # One for each request, so that it ends with the request: there is nothing to keep, and nothing to stop.
        manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(_accepting(scope), receive, send)

    async def _loaded(self) -> Server[Any]:
        async with self._loading:
            if self._server is None:
                self._server = await asyncio.to_thread(self._load)
        return self._server

    def _load(self) -> Server[Any]:
        from wakeful.mcp.server import build

        # It tells of every request that it has begun and ended.
        logging.getLogger("mcp").setLevel(logging.WARNING)
        return build(self._asker)

    def _asker(self, context: Any) -> Asked:
        return Asked(self._control, self._caller_of(context.request.scope), self._sick)


def _accepting(scope: Scope) -> Scope:
    """Who does not say what it accepts accepts anything, as elsewhere in HTTP."""
    if any(name == b"accept" for name, _ in scope["headers"]):
        return scope
    return {**scope, "headers": [*scope["headers"], (b"accept", b"application/json")]}
