"""uvicorn inside our own event loop: it listens, it stops, and while nobody asks it does nothing at all.

Laws:
- It takes no signals and sets no logging; those are the process's own.
- No tick: uvicorn's loop wakes ten times a second to write a date and to look whether it should end. We need neither.
- Where it listens was settled before (`listening`); a handshake has the deadline of a request.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

import uvicorn
from fastapi import FastAPI

from wakeful.http.arrival import Arrival, State
from wakeful.http.listening import BACKLOG
from wakeful.http.listening import bind as bind
from wakeful.http.listening import hosts_of as hosts_of
from wakeful.http.listening import url_of as url_of

DEADLINE = 10.0
MOST_WAITING = 256
PATIENCE = 3


class Server:
    """Started once and stopped once; a second stop does nothing."""

    def __init__(
        self, app: FastAPI, *, deadline: float = DEADLINE, most_waiting: int = MOST_WAITING, patience: int = PATIENCE
    ) -> None:
        """`patience` is for requests under way when it stops, in seconds; then they are cancelled."""
        self._app = app
        self._config = uvicorn.Config(
            app,
            http=Arrival,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=patience,
        )
        self._uvicorn = uvicorn.Server(self._config)
        self._uvicorn.server_state = self._state = State(deadline, most_waiting)
        self._sockets: list[socket.socket] = []

    async def start(
        self, sockets: list[socket.socket], secured: dict[socket.socket, ssl.SSLContext] | None = None
    ) -> None:
        """`secured` are sockets besides, on which TLS is spoken."""
        self._sockets = [*sockets, *(secured or {})]
        # What `uvicorn.Server.serve` does before it begins to tick.
        self._config.load()
        self._uvicorn.lifespan = self._config.lifespan_class(self._config)
        await self._uvicorn.startup(sockets)
        for listening, context in (secured or {}).items():
            self._uvicorn.servers.append(await self._listen(listening, context))

    async def _listen(self, listening: socket.socket, context: ssl.SSLContext) -> asyncio.Server:
        """As uvicorn does; but a handshake that does not come on has as long as a request, not a minute."""

        def protocol() -> Arrival:
            return Arrival(config=self._config, server_state=self._state, app_state=self._uvicorn.lifespan.state)

        return await asyncio.get_running_loop().create_server(
            protocol,
            sock=listening,
            ssl=context,
            backlog=BACKLOG,
            ssl_handshake_timeout=self._state.deadline,
            ssl_shutdown_timeout=1.0,
        )

    async def stop(self) -> None:
        if not self._uvicorn.started:
            return
        self._uvicorn.started = False
        self._app.state.leaving.set()
        await self._uvicorn.shutdown(self._sockets)
        for part in getattr(self._app.state, "parting", ()):
            await part()
        tasks = list(self._state.tasks)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
