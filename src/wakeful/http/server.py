"""uvicorn inside our own event loop: it listens, it stops, and while nobody asks it does nothing at all.

Laws:
- It takes no signals and sets no logging; those are the process's own.
- No tick: uvicorn's loop wakes ten times a second to write a date and to look whether it should end. We need neither.
- Only the loopback, until there are certificates: a token on the wire of a network is everybody's.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket

import uvicorn
from fastapi import FastAPI

from wakeful.core.errors import Mistake
from wakeful.http.arrival import Arrival, State

DEADLINE = 10.0
MOST_WAITING = 256
PATIENCE = 3
BACKLOG = 512


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that a taken port shows now; port 0 takes any that is free."""
    address = _loopback(host)
    if not 0 <= port <= 65535:
        raise Mistake(f"a port is a number up to 65535, not {port}", "name another with --port")
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    # Named, because asyncio sends without delay only what is known to be TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # So that a restart need not wait for the last connections of the one before to be forgotten.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((str(address), port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        found = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {os.strerror(error.errno or 0)}"
        raise Mistake(f"port {port} of {host} {found}", "name another with --port, or 0 for any") from error
    listening.setblocking(False)
    return listening


def _loopback(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    name = host.strip("[]")
    try:
        address = ipaddress.ip_address("127.0.0.1" if name.lower() == "localhost" else name)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        remedy = "use 127.0.0.1, localhost or ::1; from another machine, a tunnel such as ssh -L"
        raise Mistake(f"{host} is not an address of the loopback, and only that is served", remedy)
    return address


def url_of(listening: socket.socket) -> str:
    return f"http://{_bracketed(listening.getsockname()[0])}:{listening.getsockname()[1]}"


def hosts_of(listening: socket.socket) -> frozenset[str]:
    """By which names a client may call what listens there."""
    address, port = listening.getsockname()[:2]
    names = {"127.0.0.1", "localhost", "[::1]", _bracketed(address)}
    return frozenset({f"{name}:{port}" for name in names} | (names if port == 80 else set()))


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


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

    async def start(self, sockets: list[socket.socket]) -> None:
        self._sockets = sockets
        # What `uvicorn.Server.serve` does before it begins to tick.
        self._config.load()
        self._uvicorn.lifespan = self._config.lifespan_class(self._config)
        await self._uvicorn.startup(sockets)

    async def stop(self) -> None:
        if not self._uvicorn.started:
            return
        self._uvicorn.started = False
        self._app.state.leaving.set()
        await self._uvicorn.shutdown(self._sockets)
        tasks = list(self._state.tasks)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
