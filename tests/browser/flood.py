"""95 changes a second of a crowd, each of another agent."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

from tests.browser.desk import Running
from wakeful import Client

RATE = 95
# The agents that change in two seconds, in so many requests: it is the page that is to be hard pressed, and not who
# presses it.
PIECES = 10


class Flood(threading.Thread):
    """A task that is for tomorrow is given up and taken up again, for so many seconds or until it is `over`."""

    def __init__(self, crowd: Running, seconds: float) -> None:
        super().__init__()
        self.client = Client(crowd.url, crowd.token)
        # A task that is taken up again is due at once.
        self.client.pause(reason="nothing is to begin")
        self.seconds = seconds
        self.over = threading.Event()
        self.changed = 0
        self.took = 0.0
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        agents = [f"agent-{number:04}" for number in range(RATE * 2)]
        rows = [{"title": f"for {agent}", "agent": agent, "not_before": tomorrow} for agent in agents]
        self.tasks = [row["id"] for row in self.client.add_tasks(rows)["items"]]

    def run(self) -> None:
        began = time.monotonic()
        many = len(self.tasks) // PIECES
        for number in range(int(self.seconds * PIECES / 2)):
            turn, piece = divmod(number, PIECES)
            meant = self.tasks[piece * many : (piece + 1) * many]
            answer = self.client.change_tasks("retry" if turn % 2 else "fail", tasks=meant)
            self.changed += len(answer["changed"])
            if self.over.wait(max((number + 1) * 2 / PIECES - (time.monotonic() - began), 0)):
                break
        self.took = time.monotonic() - began

    def close(self) -> None:
        self.over.set()
        if self.ident:
            self.join()
        self.client.change_tasks("cancel", tasks=self.tasks)
        self.client.resume()
        self.client.close()
