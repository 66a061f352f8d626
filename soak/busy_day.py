"""A fleet in which everything is done that a store commits, and somebody who asks for all of it, over and over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from soak.queueing import Queue
from soak.standing import Ground
from soak.witness import LIFECYCLE, agent, overlaps, read_signs
from wakeful.cli.complaints import Complaint
from wakeful.store.store import SqlStore

_HEAD = """#+WORKDIR: .
#+SESSIONS: 4
#+WORKERS: 2
#+GRACE: 0s
#+STAGGER: 0s
#+RETRY-BASE: 1s
#+MAX-FAILURES: 100000
#+BURST: 1000000/10m
#+COOLDOWN: 1s
"""
_AGENTS = {
    "clerk-1": {"handler": "clerks:work", "tasks": "clerk"},
    "clerk-2": {"handler": "clerks:work", "tasks": "clerk"},
    "moss": {"run": "bash agent.sh", "interval": "1s", "lifecycle": "lifecycle.org"},
    "wren": {"run": "bash agent.sh", "interval": "1h", "inbox": "letters"},
    "fern": {"run": "bash agent.sh", "interval": "1s", "check": "bash check.sh"},
}
# Of three looks, one finds something to do.
_CHECK = "echo >> looks; (( $(wc -l < looks) % 3 )) && echo '{\"wakeAgent\": false}' || echo '{\"wakeAgent\": true}'\n"


def fleet(**changes: dict[str, str]) -> str:
    lines = [_HEAD.rstrip()]
    for name, keys in (_AGENTS | changes).items():
        drawer = [f":{key.upper()}: {value}" for key, value in keys.items()]
        lines += [f"* {name}", ":PROPERTIES:", *drawer, ":END:"]
    return "\n".join(lines) + "\n"


def prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "lifecycle.org").write_text(LIFECYCLE)
    # What clerks saw of their tasks is in the other file.
    (folder / "agent.sh").write_text(agent((1, 2, 3)).replace(">> witness", ">> signs"))
    (folder / "check.sh").write_text(_CHECK)
    (folder / "letters").mkdir()
    (folder / "signs").touch()
    (folder / "silence").unlink(missing_ok=True)


class Day:
    """Whatever is not answered is asked again; what the state of things forbids is let be."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.queue = Queue(ground)
        self.numbers = count()
        self.added: list[int] = []

    def ask(self, method: str, target: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            return self.queue.ask(method, target, body)
        except Complaint:
            return {}
        except AssertionError:
            # Engines may die for minutes before one of them answers.
            return self.ask(method, target, body)

    def once(self) -> None:
        """From its first word to its last; each in its own moment, so that others come in between."""
        number = next(self.numbers)
        for part in (self.work, self.letters, self.talk, self.hold, self.edit):
            part(number)

    def work(self, number: int) -> None:
        tasks = [self._task(number * 10 + place, place) for place in range(7)]
        ids: list[int] = []
        while not ids:
            # As above; under their keys they are the same.
            with suppress(AssertionError):
                ids = self.queue.add(tasks)
        self.added += ids
        self.ask("POST", f"/v1/tasks/{ids[4]}/cancel", {})
        self.ask("POST", "/v1/tasks/change", {"change": "cancel", "tasks": ids[5:]})

    def _task(self, number: int, place: int) -> dict[str, Any]:
        told: dict[str, Any] = {"number": number, "seconds": (0.0, 0.01, 0.1, 0.0, 0.5, 30.0, 0.5)[place]}
        if place == 1:
            told["steps"] = ["read", "write"]
        if place == 3:
            told["fails"] = "once"
        return {"title": f"task {number}", "role": "clerk", "key": f"task-{number}", "max_retries": 20, "payload": told}

    def letters(self, number: int) -> None:
        folder = self.ground.folder / "letters"
        (folder / f"letter-{number}").write_text(f"{number}\n")
        (folder / f"letter-{number - 2}").unlink(missing_ok=True)
        before = folder / f"letter-{number - 1}"
        if before.exists():
            before.write_text("edited\n" * number)

    def talk(self, number: int) -> None:
        read, later = (
            self.ask("POST", "/v1/agents/moss/messages", {"body": f"{what} {number}"}) for what in ("read", "later")
        )
        self.ask("POST", "/v1/agents/wren/messages", {"body": f"now {number}", "priority": "urgent"})
        if read and later:
            self.ask("POST", "/v1/agents/moss/inbox/read", {"messages": [read["message"]["id"]]})
            until = {"messages": [later["message"]["id"]], "until": "10s"}
            self.ask("POST", "/v1/agents/moss/inbox/snooze", until)
        self.ask("POST", "/v1/agents/fern/tick", {})

    def hold(self, number: int) -> None:
        self.ask("POST", "/v1/agents/moss/pause", {"reason": "a look"})
        self.ask("PATCH", "/v1/agents/moss/settings", {"settings": {"wakes_per_day": str(20 + number)}})
        self.ask("POST", "/v1/agents/moss/resume", {})
        for run in self.ask("GET", "/v1/runs?open=true").get("items", [])[:1]:
            if not run["agent"].startswith("clerk"):
                self.ask("POST", f"/v1/runs/{run['id']}/kill", {})

    def edit(self, number: int) -> None:
        """Every other time wren has no letters, and another day."""
        other = {"wren": {"run": "bash agent.sh", "interval": f"{number + 1}h"}} if number % 2 else {}
        path = self.ground.folder / "fleet.org"
        path.write_text(self.ground.declared(self.ground.store_address).replace(fleet(), fleet(**other)))
        self.ask("POST", "/v1/reload", {})

    def over(self) -> bool:
        counts = self.queue.counts()
        return sum(counts.get(state, 0) for state in ("completed", "dead_letter", "cancelled")) == len(set(self.added))

    def complaints(self) -> list[str]:
        """Of a fleet whose engine has left."""
        tasks, attempts = self.queue.known()
        with self.ground.store() as store:
            lost = _killed(store)
        return [*overlaps(read_signs(self.ground.folder / "signs"), lost), *self.queue.check(tasks, attempts)]


def _killed(store: SqlStore) -> list[int]:
    found: list[int] = []
    last = 0
    while page := store.runs(after=last, limit=1000):
        last = page[-1].id
        found += [row.id for row in page if row.outcome == "killed"]
    return found


def wait(condition: Callable[[], object], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
