"""The two ways to wait for a server: to block, or to await. Everything else about the client is written once.

Law: a coroutine over `Blocking` never suspends: what it awaits has happened when it is awaited. So `completed` runs it
to its end by one push, on whatever thread it was called, with or without an event loop.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import httpx2

T = TypeVar("T")
C = TypeVar("C")

# Longer than anything an engine does before it answers: `pause` with `now` waits 12 s.
ANSWER, CONNECT = 30.0, 5.0
# An engine gives a sign of life every 15 s.
SILENCE = 40.0
# Shorter than the server's own: what it has closed already would be asked in vain.
IDLE = 2.0
_TIMEOUT = httpx2.Timeout(ANSWER, connect=CONNECT)
_STREAM_TIMEOUT = httpx2.Timeout(SILENCE, connect=CONNECT)
_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=IDLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None = None


class Unsent(Exception):
    """It never reached the server."""


class Cut(Exception):
    """It may have reached the server; its answer did not reach us."""


@dataclass(frozen=True, slots=True)
class Received:
    status: int
    headers: httpx2.Headers
    # Empty where the answer is a stream.
    body: bytes
    lines: AsyncIterator[str] | None = None


class Transport(Protocol):
    async def send(self, sending: Sending) -> Received:
        """The whole answer; `Unsent` or `Cut`."""

    def stream(self, sending: Sending) -> AbstractAsyncContextManager[Received]:
        """The answer as it comes, line by line, if there is one that is no refusal."""

    async def rest(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


class _Clients(Generic[C]):
    """Made when it is known what is asked: to read the world's certificates takes longer than most questions."""

    def __init__(self, make: Callable[..., C], verify: ssl.SSLContext | bool) -> None:
        self._make = make
        self._verify = verify
        self._lock = threading.Lock()
        self.made: dict[bool, C] = {}

    def to(self, url: str) -> C:
        secret = url.startswith("https:")
        with self._lock:
            if secret not in self.made:
                # Proxies of the environment are not for what has a token and usually listens on this machine.
                given = {"timeout": _TIMEOUT, "limits": _LIMITS, "trust_env": False}
                self.made[secret] = self._make(**given, verify=self._verify if secret else False)
            return self.made[secret]


class Blocking:
    """Each coroutine ends without ever having been suspended."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._clients = _Clients(httpx2.Client, verify)

    async def send(self, sending: Sending) -> Received:
        with _told_apart():
            answer = self._clients.to(sending.url).request(**_request(sending))
            return Received(answer.status_code, answer.headers, answer.content)

    @asynccontextmanager
    async def stream(self, sending: Sending) -> AsyncIterator[Received]:
        with (
            _told_apart(),
            self._clients.to(sending.url).stream(**_request(sending), timeout=_STREAM_TIMEOUT) as answer,
        ):
            body = b"" if answer.is_success else answer.read()
            yield Received(answer.status_code, answer.headers, body, _as_async(answer.iter_lines()))

    async def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        for client in self._clients.made.values():
            client.close()


class Awaiting:
    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._clients = _Clients(httpx2.AsyncClient, verify)

    async def send(self, sending: Sending) -> Received:
        with _told_apart():
            answer = await self._clients.to(sending.url).request(**_request(sending))
            return Received(answer.status_code, answer.headers, answer.content)

    @asynccontextmanager
    async def stream(self, sending: Sending) -> AsyncIterator[Received]:
        with _told_apart():
            async with self._clients.to(sending.url).stream(**_request(sending), timeout=_STREAM_TIMEOUT) as answer:
                body = b"" if answer.is_success else await answer.aread()
                yield Received(answer.status_code, answer.headers, body, answer.aiter_lines())

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        for client in self._clients.made.values():
            await client.aclose()


def completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine over `Blocking` comes to."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise RuntimeError("a coroutine over a blocking transport was suspended")


def iterated(pieces: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """The same for what gives one piece after another."""
    try:
        while True:
            try:
                piece = completed(pieces.__anext__())
            except StopAsyncIteration:
                return
            yield piece
    finally:
        completed(pieces.aclose())


async def _as_async(lines: Iterator[str]) -> AsyncIterator[str]:
    for line in lines:
        yield line


_UNSENT = (
    *(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
    # Of an address to which nothing can be sent.
    *(httpx2.UnsupportedProtocol, httpx2.InvalidURL),
)


class _told_apart:
    """What httpx2 raises, as one of two things that matter to whoever may ask again."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _UNSENT):
            raise Unsent(str(error) or type(error).__name__) from error
        if isinstance(error, httpx2.TransportError):
            raise Cut(str(error) or type(error).__name__) from error


def _request(sending: Sending) -> dict[str, Any]:
    return {
        "method": sending.method,
        "url": sending.url,
        "headers": sending.headers,
        "content": sending.content,
    }
