"""Requests put before the application itself, without a connection: for tests that put thousands."""

from collections.abc import Iterable
from typing import Any, NamedTuple

HOST = "127.0.0.1:7717"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


async def put(
    app: Any,
    method: str,
    target: str,
    body: bytes = b"",
    *,
    host: str = HOST,
    headers: Iterable[tuple[str, str]] = (),
    address: str = "127.0.0.1",
) -> Reply:
    path, _, query = target.partition("?")
    said = [("host", host), *headers]
    if body:
        said.append(("content-length", str(len(body))))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in said],
        "client": (address, 4242),
        "server": ("127.0.0.1", 7717),
    }
    told: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = [
        {"type": "http.request", "body": body, "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return left.pop(0) if len(left) > 1 else left[0]

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    await app(scope, receive, send)
    start = told[0]
    names = {name.decode(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], names, b"".join(message.get("body", b"") for message in told[1:]))
