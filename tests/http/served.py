"""A server on a loopback port, in a thread with a loop of its own, and the plainest of clients."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from wakeful.http.app import build
from wakeful.http.auth import Keys
from wakeful.http.listening import Listening, Reach, listen
from wakeful.http.server import Server

KEYS = Keys(operator="the-operator's-own-token", secret=b"s" * 32)
JSON = "application/json"
# Far above what anything takes; nothing waits for it to pass.
PATIENCE = 10.0


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    def __init__(self, port: int, loop: asyncio.AbstractEventLoop, server: Server, app: Any) -> None:
        self.port = port
        self.loop = loop
        self.server = server
        self.app = app

    def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        token: str | None = KEYS.operator,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """`body` is sent as it is when it is bytes or an iterator, else as JSON."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, bytes | Iterator):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("Content-Type", JSON)
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request(method, target, body=body, headers=sent, encode_chunked=isinstance(body, Iterator))
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def call(self, awaitable: Any) -> Any:
        """Run a coroutine where the server runs."""
        return asyncio.run_coroutine_threadsafe(awaitable, self.loop).result(PATIENCE)

    def stop(self) -> None:
        self.call(self.server.stop())


@contextmanager
def serve(
    make: Callable[[], Any], *, app: dict[str, Any] | None = None, listening: Listening | None = None, **bounds: Any
) -> Iterator[Served]:
    """Serve the control that `make` gives on the server's own loop, as long as the block lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="served")
    thread.start()

    async def start() -> Served:
        places = listening or listen(Reach())
        built = build(make(), keys=KEYS, hosts=places.hosts, origins=places.origins, **(app or {}))
        server = Server(built, **bounds)
        secured = {places.wide: places.context} if places.wide and places.context else {}
        await server.start([places.local], secured)
        return Served(places.local.getsockname()[1], loop, server, built)

    try:
        served = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE)
        try:
            yield served
        finally:
            served.stop()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def raw(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    received = b""
    while piece := _piece(connection):
        received += piece
    return received


def _piece(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def head(port: int, *lines: str, line: str = "GET /v1/status HTTP/1.1", token: str | None = KEYS.operator) -> bytes:
    said = [line, f"Host: 127.0.0.1:{port}", *lines]
    if token is not None:
        said.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*said, "", ""]).encode()


class Frame(NamedTuple):
    event: str
    id: str
    data: Any


class Stream:
    """A reader of server-sent events."""

    def __init__(
        self,
        served: Served,
        target: str,
        *,
        token: str = KEYS.operator,
        last: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
        known = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last} if last is not None else {})
        self.connection.request("GET", target, headers={**known, **(headers or {})})
        self.answer = self.connection.getresponse()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self.connection.close()

    def __iter__(self) -> Iterator[Frame]:
        fields: dict[str, str] = {}
        for line in self.answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name and value:
                fields[name] = value
            elif not value and "data" in fields:
                yield Frame(fields["event"], fields["id"], json.loads(fields["data"]))
                fields = {}
