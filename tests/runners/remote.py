"""An agent behind an address: a real server on the loopback that answers as it is told, and keeps what it was asked."""

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


Answering = Callable[[Asked], Reply]


def in_json(value: object, status: int = 200, **headers: str) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


class Remote:
    def __init__(self, answer: Answering) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        remote = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, self.path, dict(self.headers.items()), body)
                remote.asked.append(asked)
                remote.write(self, remote.answer(asked))

            do_GET = do_POST = do_DELETE = _answer

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def methods(self) -> list[str]:
        return [asked.method for asked in self.asked]

    def write(self, request: BaseHTTPRequestHandler, reply: Reply) -> None:
        request.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            if value:
                request.send_header(name, value)
        request.end_headers()
        try:
            request.wfile.write(reply.body)
        except OSError:
            request.close_connection = True

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
