"""MCP on the standard input and output, until the input ends and everything that was asked is answered.

Laws:
- The standard output is the protocol's alone; whatever else is said goes to the standard error.
- Who has asked and closes the line at once, as `echo … | wakeful mcp` does, is answered all the same.
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
from mcp.server.stdio import stdio_server
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from wakeful.mcp.server import build
from wakeful.mcp.tools import Asker

# Seconds for what is asked when the input ends; longer than anything takes.
PATIENCE = 60.0


def serve(asker: Asker) -> None:
    anyio.run(_serve, asker)


async def _serve(asker: Asker) -> None:
    logging.getLogger("mcp").setLevel(logging.WARNING)
    server = build(lambda context: asker)
    async with stdio_server() as (reading, writing):
        asked = _Asked()
        options = server.create_initialization_options()
        await server.run(_Reading(reading, asked), _Writing(writing, asked), options)


class _Asked:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._open: set[Any] = set()
        self._answered = anyio.Event()

    def read(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._close((message.params or {}).get("requestId"))

    def written(self, message: Any) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    def _close(self, id: Any) -> None:
        self._open.discard(id)
        self._answered.set()

    async def all_answered(self) -> None:
        with anyio.move_on_after(PATIENCE):
            while self._open:
                self._answered = anyio.Event()
                await self._answered.wait()


class _Stream:
    """One end of a line, as the library has it."""

    def __init__(self, inner: Any, asked: _Asked) -> None:
        self._inner, self._asked = inner, asked

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class _Reading(_Stream):
    @property
    def last_context(self) -> Any:
        return self._inner.last_context

    def __aiter__(self) -> _Reading:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> Any:
        try:
            item = await self._inner.receive()
        except anyio.EndOfStream:
            await self._asked.all_answered()
            raise
        self._asked.read(getattr(item, "message", None))
        return item


class _Writing(_Stream):
    async def send(self, item: Any, /) -> None:
        await self._inner.send(item)
        self._asked.written(item.message)
