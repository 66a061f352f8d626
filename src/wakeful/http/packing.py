"""Long answers are sent packed to whoever takes them so.

Laws:
- Only what is given whole, is text and is worth it. What goes on, as a stream does, passes as it comes, at once.
- What has an entity tag is sent as it is: its tag is of those very bytes.
- It stands within the entry: whoever is not let in has nothing packed.
"""

from __future__ import annotations

import asyncio
import gzip
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST = 1_024
# From so many bytes on it is done beside the loop, so that nobody waits for it.
LONG = 65_536
# An answer is packed once and read once: little is gained by trying hard.
EFFORT = 3

_TEXT = re.compile(rb"(?:text/|application/(?:[\w.+-]+\+)?json|application/javascript|image/svg)")
_ONE = re.compile(r"\s*(?P<name>gzip|x-gzip|\*)\s*(?:;\s*q\s*=\s*(?P<weight>[0-9.]+)\s*)?", re.ASCII | re.IGNORECASE)


class Packing:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_taken(scope):
            await self.app(scope, receive, send)
            return
        held: Message | None = None

        async def tell(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_worth_it(message):
                held = message
                return
            start, held = held, None
            if start is not None:
                if not message.get("more_body"):
                    start, message = await _packed(start, message)
                await send(start)
            await send(message)

        await self.app(scope, receive, tell)


def _is_taken(scope: Scope) -> bool:
    """A weight of nothing is a no; what is named counts more than a star."""
    said = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding").decode("latin-1")
    weights = {}
    for each in said.split(","):
        if found := _ONE.fullmatch(each):
            weights[found["name"].lower()] = found["weight"] is None or found["weight"].strip("0.") != ""
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


def _is_worth_it(start: Message) -> bool:
    """What goes on does not know its length."""
    headers = dict(start.get("headers", ()))
    alone = b"content-encoding" not in headers and b"etag" not in headers
    text = _TEXT.match(headers.get(b"content-type", b"")) is not None
    return alone and text and int(headers.get(b"content-length", b"0")) >= SHORTEST


async def _packed(start: Message, message: Message) -> tuple[Message, Message]:
    body: bytes = message["body"]
    packed = await asyncio.to_thread(_pack, body) if len(body) >= LONG else _pack(body)
    kept = [(name, value) for name, value in start["headers"] if name != b"content-length"]
    told = [
        (b"content-encoding", b"gzip"),
        (b"content-length", str(len(packed)).encode()),
        (b"vary", b"accept-encoding"),
    ]
    return {**start, "headers": [*kept, *told]}, {**message, "body": packed}


def _pack(body: bytes) -> bytes:
    return gzip.compress(body, EFFORT, mtime=0)
