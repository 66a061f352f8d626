"""How long a request may take to arrive, and how many may be on their way: uvicorn bounds neither.

Laws:
- A request, head and body, arrives within the deadline, counted from the connection or from its first byte; else it is
  told so, if it can be, and cut off. Each byte does not begin the time anew.
- Of the connections on which no request is being answered only so many are kept. One more closes the oldest: whoever
  opens connections in order to hold them loses them first, and a client that speaks at once gets its answer.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from wakeful.http.errors import MEDIA_TYPE, Problem

_ARRIVING = (h11.IDLE, h11.SEND_BODY)


class State(ServerState):
    """What all connections of a server share."""

    def __init__(self, deadline: float, most_waiting: int) -> None:
        super().__init__()
        self.deadline = deadline
        self.most_waiting = most_waiting
        # In the order in which they began to wait.
        self.waiting: dict[Arrival, None] = {}


class Gathered:
    """A transport that sends what is written in one turn of the loop in one piece: the head of an answer and its body
    are two writes, and each time the threads that commit would have to be waited for."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not data:
            return
        if not self._pieces:
            self._loop.call_soon(self._send)
        self._pieces.append(data)

    def _send(self) -> None:
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._transport.write(data)

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._pieces.clear()
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Arrival(H11Protocol):
    server_state: State
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Gathered(transport, self.loop)))
        self._wait()
        self._timer = self.loop.call_later(self.server_state.deadline, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.waiting.pop(self, None)
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._timer is None and self.conn.their_state in _ARRIVING and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.server_state.deadline, self._late)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state not in _ARRIVING:
            self.server_state.waiting.pop(self, None)
            self._arrived()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._cut_off(Problem(status=400, kind="mistake", detail=msg, remedy="speak HTTP/1.1"))

    def _wait(self) -> None:
        waiting = self.server_state.waiting
        waiting[self] = None
        if len(waiting) > self.server_state.most_waiting:
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.transport.abort()

    def _arrived(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        detail = f"the request was not here within {self.server_state.deadline:g} s"
        self._cut_off(Problem(status=408, kind="late", detail=detail, remedy="send it in one go"))

    def _cut_off(self, problem: Problem) -> None:
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = problem.body()
            headers = [
                ("content-type", MEDIA_TYPE),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            for event in (
                h11.Response(status_code=problem.status, headers=headers, reason=HTTPStatus(problem.status).phrase),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
