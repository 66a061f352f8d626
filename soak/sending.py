"""Somebody who writes to the agents of a place over HTTP, and remembers what was accepted."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from itertools import cycle
from typing import NamedTuple

from soak.standing import Node
from wakeful.cli.complaints import Complaint
from wakeful.cli.exchange import exchange


class Accepted(NamedTuple):
    id: int
    body: str
    # By `time.monotonic`, when the answer was there.
    at: float


class Sender:
    """Asks each node in turn, so often a second, until it is told to stop; a refusal is not repeated."""

    def __init__(self, nodes: Iterable[Node], agents: int, *, rate: float, priority: str = "normal") -> None:
        self._nodes = list(nodes)
        self._agents = agents
        self._every = 1 / rate
        self._priority = priority
        self.accepted: list[Accepted] = []
        self.refused: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send_all, daemon=True)

    def __enter__(self) -> Sender:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _send_all(self) -> None:
        due = time.monotonic()
        for number, node in enumerate(cycle(self._nodes)):
            self._stop.wait(max(0.0, due - time.monotonic()))
            if self._stop.is_set():
                return
            due = max(due + self._every, time.monotonic())
            self._send(node, f"agent-{number % self._agents}", f"word {number}")

    def _send(self, node: Node, agent: str, body: str) -> None:
        try:
            url = json.loads((node.data / "engine.json").read_text())["url"]
            token = (node.data / "token").read_text().strip()
            message = {"body": body, "priority": self._priority}
            answer = exchange(url, token, "POST", f"/v1/agents/{agent}/messages", message)
        except (Complaint, OSError, ValueError) as refusal:
            self.refused.append(str(refusal))
        else:
            self.accepted.append(Accepted(int(answer["message"]["id"]), body, time.monotonic()))
