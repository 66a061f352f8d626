"""200 readers of the events while messages come in and the engine is killed and redeployed: each is told every event
once and in order, however often it was cut off.

SUBSCRIBERS=, SECONDS= and SEED= in the environment change that.
"""

import asyncio
import json
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from soak.standing import Ground, free_port
from wakeful.cli.complaints import Complaint
from wakeful.cli.exchange import exchange

SUBSCRIBERS = int(os.environ.get("SUBSCRIBERS", "200"))
SECONDS = float(os.environ.get("SECONDS", "30"))
SEED = int(os.environ.get("SEED", "2026"))
FLEET = "#+RUN: true\n#+GRACE: 2h\n* one\n:PROPERTIES:\n:INTERVAL: 1d\n:END:\n"
# How long the last of them may take to have heard of everything.
LATEST = 60.0


class Reader:
    """One that goes on from where it was cut off, as a browser does."""

    def __init__(self, port: int, token: Callable[[], str]) -> None:
        self.port = port
        self.token = token
        self.told: list[str] = []
        self.last = "0"
        self.cuts = 0

    async def read(self) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._listen()
            self.cuts += 1
            await asyncio.sleep(1.0)

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        lines = ["GET /v1/stream HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Authorization: Bearer {self.token()}"]
        writer.write("\r\n".join([*lines, f"Last-Event-ID: {self.last}", "", ""]).encode())
        try:
            if b" 200 " not in await reader.readline():
                return
            id = ""
            # Pieces may end anywhere; a line that is none of these is the length of one.
            async for line in reader:
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                if name == "id":
                    id = value
                elif name == "data":
                    self.told.append(value)
                    self.last = id
        finally:
            writer.close()


class Sender(threading.Thread):
    """Sends messages, each under its key until it was taken."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__()
        self.url = f"http://127.0.0.1:{port}"
        self.token = token
        self.sent = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            said = {"body": f"message {self.sent}", "key": f"key-{self.sent}"}
            try:
                exchange(self.url, self.token, "POST", "/v1/agents/one/messages", said)
                self.sent += 1
                time.sleep(0.02)
            except Complaint:
                time.sleep(0.1)


def every_event(url: str, token: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while page := exchange(url, token, "GET", f"/v1/events?after={found[-1]['id'] if found else 0}&limit=1000", None)[
        "items"
    ]:
        found += page
    return found


async def followed(place: Ground, port: int, dice: random.Random) -> tuple[list[Reader], list[str], int]:
    token = (place.data / "token").read_text().strip()
    readers = [Reader(port, lambda: token) for _ in range(SUBSCRIBERS)]
    tasks = [asyncio.create_task(reader.read()) for reader in readers]
    sender = Sender(port, token)
    sender.start()
    try:
        for end in (place.kill, place.leave, place.kill):
            await asyncio.sleep(SECONDS / 4 * dice.uniform(0.6, 1.4))
            await asyncio.to_thread(end)
            await asyncio.to_thread(place.up)
        await asyncio.sleep(SECONDS / 4)
    finally:
        sender.over.set()
        await asyncio.to_thread(sender.join)
    expected = [json.dumps(event) for event in await asyncio.to_thread(every_event, sender.url, token)]
    until = time.monotonic() + LATEST
    while any(len(reader.told) < len(expected) for reader in readers) and time.monotonic() < until:
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return readers, expected, sender.sent


def test_every_reader_is_told_every_event_once_and_in_order_through_restarts(ground, say):
    port = free_port()
    place = ground(FLEET, port=port)
    place.up()
    readers, expected, sent = asyncio.run(followed(place, port, random.Random(SEED)))
    say(f"{SUBSCRIBERS} readers, {sent} messages, {len(expected)} events, {sum(r.cuts for r in readers)} cuts")
    assert sent > SECONDS and len(expected) > sent
    wrong = [number for number, reader in enumerate(readers) if reader.told[: len(expected)] != expected]
    assert wrong == [], f"{len(wrong)} were told otherwise, first {wrong[0]}"
    assert min(reader.cuts for reader in readers) >= 3
