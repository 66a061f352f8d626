"""A house whose agents are told things by webhooks, and the senders who sign them."""

import base64
import hashlib
import hmac
import http.client
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.http import house
from tests.http.served import PATIENCE, Answer, serve
from wakeful.control.auditing.audit import audit
from wakeful.control.control import Control
from wakeful.control.noting import Denials
from wakeful.testing.contracts.store_case import NOW, a_fleet

SECRETS = {
    "GITHUB": "github's",
    "CI": "the-new-one",
    "CI_OLD": "the-old-one",
    "PAYMENTS": "whsec_" + base64.b64encode(b"x" * 24).decode(),
}
ON = {
    "wren": ("webhook://github?preset=github&secret=GITHUB", "webhook://ci?secret=CI&secret=CI_OLD"),
    "moss": (
        "webhook://github?preset=github&secret=GITHUB",
        "webhook://payments?preset=standard&secret=PAYMENTS",
        "webhook://shut",
        "webhook://unset?secret=NOT_SET",
    ),
}
BODY = b'{"action": "opened", "issue": {"number": 7}}'


class House(house.House):
    """`secrets` are the variables that its server looks at."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.secrets = dict(SECRETS)
        self.declare(ON)

    def declare(self, on: dict[str, tuple[str, ...]]) -> None:
        fleet = a_fleet(*on)
        agents = tuple(replace(agent, events=on[agent.name]) for agent in fleet.agents)
        self.write(lambda store: store.declare(replace(fleet, agents=agents), self.now))

    def write(self, verb: Any) -> Any:
        return self.writer.submit(verb).result()

    def inbox(self, agent: str) -> list[Any]:
        return self.writer.store.items(agent=agent, kind="message")

    def told(self) -> dict[str, int]:
        return {agent: len(self.inbox(agent)) for agent in ON}

    def send(self, path: str, body: bytes, headers: list[tuple[str, str]], media: str = "application/json") -> Answer:
        """Headers are sent as they are: twice, if they are there twice."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=PATIENCE)) as connection:
            connection.putrequest("POST", path)
            for name, value in [("Content-Type", media), ("Content-Length", str(len(body))), *headers]:
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())


class Standing:
    """One server for many tests, each of which has a store of its own."""

    def __init__(self) -> None:
        self.house: House | None = None
        self.secrets: dict[str, str] = {}
        self.elapsed = 0.0
        self.served: Any = None

    async def write(self, verb: Any, *, quiet: bool = False) -> Any:
        return await self.house.writer.write(verb, quiet=quiet)

    async def read(self, verb: Any) -> Any:
        return await self.house.writer.read(verb)

    def control(self) -> Control:
        given = {"runs": Path(), "clock": lambda: self.house.now, "beside": house.Beside()}
        self.made = Control(self, node="here", **given)
        return self.made


@contextmanager
def standing() -> Iterator[Standing]:
    server = Standing()
    with serve(server.control, app={"variables": server.secrets, "clock": lambda: server.elapsed}) as server.served:
        yield server


@contextmanager
def hooked(server: Standing, folder: Path) -> Iterator[House]:
    """Whatever comes of a test, the store adds up."""
    server.house = found = House(folder)
    # What one test was denied is news to the next, and does not count for it.
    server.elapsed += 3_600
    server.made._closed = frozenset()
    server.made.denials = Denials(server, lambda: found.now)
    server.secrets.clear()
    server.secrets.update(SECRETS)
    found.served, found.secrets = server.served, server.secrets
    try:
        yield found
        report = audit(found.writer.store, found.now + timedelta(days=1))
        assert report.adds_up, report
    finally:
        found.writer.close()
        found.writer.store.close()


def mac(secret: str | bytes, *parts: str | bytes) -> bytes:
    key, *rest = (part.encode() if isinstance(part, str) else part for part in (secret, *parts))
    return hmac.new(key, b".".join(rest), hashlib.sha256).digest()


def github(body: bytes = BODY, *, delivery: str = "d-1", secret: str = SECRETS["GITHUB"]) -> list[tuple[str, str]]:
    return [
        ("X-GitHub-Event", "issues"),
        ("X-GitHub-Delivery", delivery),
        ("X-Hub-Signature-256", f"sha256={mac(secret, body).hex()}"),
    ]


def ci(id: str = "m-1", at: datetime = NOW, body: bytes = BODY, secret: str = SECRETS["CI"]) -> list[tuple[str, str]]:
    moment = str(int(at.timestamp()))
    return [
        ("X-Webhook-Id", id),
        ("X-Webhook-Timestamp", moment),
        ("X-Webhook-Signature", f"sha256={mac(secret, id, moment, body).hex()}"),
    ]


def payments(id: str = "m-1", at: datetime = NOW, body: bytes = BODY) -> list[tuple[str, str]]:
    moment = str(int(at.timestamp()))
    signature = base64.b64encode(mac(b"x" * 24, id, moment, body)).decode()
    return [("webhook-id", id), ("webhook-timestamp", moment), ("webhook-signature", f"v1,{signature}")]


def spelled(headers: list[tuple[str, str]], name: str, change: Any) -> list[tuple[str, str]]:
    """The same with one of them written in another way."""
    return [(each, change(value) if each == name else value) for each, value in headers]
