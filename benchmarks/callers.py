"""`python -m benchmarks.callers`: connections that ask one thing again and again, each as soon as it was answered.

A process of its own, so that who asks takes no time from who answers; raw protocols, so that it takes little itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import suppress
from statistics import median, quantiles
from time import perf_counter

PATIENCE = 30.0


class Caller(asyncio.Protocol):
    """One connection. `request` is sent anew once the whole answer is there, as long as there is time."""

    def __init__(self, request: bytes, until: float, over: asyncio.Future[None]) -> None:
        self.request = request
        self.until = until
        self.over = over
        self.taken: list[float] = []
        self.refused = 0
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.refused += 1
            self.over.set_result(None)

    def _ask(self) -> None:
        assert self._transport is not None
        self._sent = perf_counter()
        self._transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return
        now = perf_counter()
        self.taken.append(now - self._sent)
        self.refused += not head.startswith(b"HTTP/1.1 2")
        self._received = b""
        if now < self.until:
            self._ask()
        elif not self.over.done():
            self.over.set_result(None)
            assert self._transport is not None
            self._transport.close()


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length: ")
    return int(rest.partition(b"\r\n")[0] or 0)


class Slow(asyncio.Protocol):
    """One that sends a byte of its request a second, and comes again a second after it was cut off."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self._sent = 0
        self._transport: asyncio.Transport | None = None
        self.gone = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._drip()

    def _drip(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(self.request[self._sent : self._sent + 1])
            self._sent += 1
            asyncio.get_running_loop().call_later(1.0, self._drip)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.gone.done():
            self.gone.set_result(None)


def request_of(method: str, host: str, path: str, token: str, body: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body.encode())}"]
    return "\r\n".join([*lines, "", body]).encode()


async def called(host: str, request: bytes, connections: int, seconds: float, slow: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    name, _, port = host.rpartition(":")
    drips = [loop.create_task(_dripping(name, int(port), request)) for _ in range(slow)]
    if slow:
        await asyncio.sleep(2.0)
    began = perf_counter()
    callers, overs = [], []
    for _ in range(connections):
        over = loop.create_future()
        caller = Caller(request, began + seconds, over)
        callers.append(caller)
        overs.append(over)
        await loop.create_connection(lambda caller=caller: caller, name, int(port))  # type: ignore[misc]
    await asyncio.wait_for(asyncio.gather(*overs), seconds + PATIENCE)
    elapsed = perf_counter() - began
    for drip in drips:
        drip.cancel()
    await asyncio.gather(*drips, return_exceptions=True)
    taken = sorted(time for caller in callers for time in caller.taken)
    refused = sum(caller.refused for caller in callers)
    spread = quantiles(taken, n=1000)
    told = {"rate": len(taken) / elapsed, "p50": median(taken), "p99": spread[989], "most": taken[-1]}
    return {**told, "count": len(taken), "refused": refused}


async def _dripping(name: str, port: int, request: bytes) -> None:
    loop = asyncio.get_running_loop()
    while True:
        with suppress(OSError):
            _, slow = await loop.create_connection(lambda: Slow(request), name, port)
            await slow.gone
        await asyncio.sleep(1.0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.callers")
    parser.add_argument("host")
    parser.add_argument("method")
    parser.add_argument("path")
    parser.add_argument("--body", default="")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--slow", type=int, default=0)
    given = parser.parse_args()
    # The token comes by the standard input: what is said in arguments everybody can see.
    request = request_of(given.method, given.host, given.path, sys.stdin.readline().strip(), given.body)
    json.dump(asyncio.run(called(given.host, request, given.connections, given.seconds, given.slow)), sys.stdout)


if __name__ == "__main__":
    main()
