"""A queue of tasks and its clerks, under kill -9 of engine, guardians and workers."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from soak.machine import below
from soak.standing import Ground, Node
from soak.traces import (
    Trace,
    attempts_told,
    completed_once,
    ended_as_told,
    executions_apart,
    keys_in_order,
    read_traces,
    steps_once,
)
from wakeful.cli.complaints import LATER, NO_ENGINE, Complaint
from wakeful.cli.exchange import exchange
from wakeful.core.items import Item
from wakeful.store.protocol import Attempt, TaskFilter

CLERKS = Path(__file__).resolve().parent / "clerks.py"
PAGE = 1_000
BATCH = 100
# Seconds.
PATIENCE = 120.0


def fleet(clerks: int, **keys: str) -> str:
    """So many agents of one role, who work in shifts."""
    head = {"workdir": ".", "workers": str(clerks), "grace": "0s", "stagger": "0s", "retry_base": "1s", **keys}
    lines = [f"#+{key.upper().replace('_', '-')}: {value}" for key, value in head.items()]
    for number in range(1, clerks + 1):
        lines += [f"* clerk-{number}", ":PROPERTIES:", ":HANDLER: clerks:work", ":TASKS: clerk", ":END:"]
    return "\n".join(lines) + "\n"


class Queue:
    """The tasks of a ground: added, cancelled and counted by whoever answers at the moment."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        shutil.copy(CLERKS, ground.folder)

    def ask(self, method: str, target: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Until there is an engine that answers; a task that is added again under its key is the same."""
        end = time.monotonic() + PATIENCE
        for node in cycle(self.ground.nodes):
            try:
                url = json.loads((node.data / "engine.json").read_text())["url"]
                token = (node.data / "token").read_text().strip()
                return exchange(url, token, method, target, body)
            except Complaint as complaint:
                # An answer may be cut off with its engine.
                if complaint.exit_code not in (NO_ENGINE, LATER) and "does not answer" not in str(complaint):
                    raise
            except (OSError, ValueError):
                pass
            assert time.monotonic() < end, f"nobody answered:\n{self.ground.log()}"
            time.sleep(0.05)
        raise AssertionError("there is no node")

    def add(self, tasks: list[dict[str, Any]]) -> list[int]:
        ids = []
        for start in range(0, len(tasks), BATCH):
            answer = self.ask("POST", "/v1/tasks/batch", {"tasks": tasks[start : start + BATCH]})
            ids += [int(row["id"]) for row in answer["items"]]
        return ids

    def cancel(self, task: int) -> bool:
        """Whether it was there to be cancelled."""
        try:
            return bool(self.ask("POST", f"/v1/tasks/{task}/cancel", {})["state"] == "cancelled")
        except Complaint:
            return False

    def at_work(self) -> list[int]:
        """What is under way, as far as one page goes."""
        return [int(row["id"]) for row in self.ask("GET", "/v1/tasks?state=in_progress")["items"]]

    def counts(self) -> dict[str, int]:
        counted: dict[str, int] = self.ask("GET", "/v1/tasks/counts")["counts"]
        return counted

    def show(self, task: int) -> dict[str, Any]:
        return self.ask("GET", f"/v1/tasks/{task}")

    def traces(self) -> list[Trace]:
        return read_traces(self.ground.folder / "witness")

    def known(self, *, after: int = 0) -> tuple[dict[int, Item], dict[int, list[Attempt]]]:
        """What the store says of its tasks, or of those after that one; of a ground whose engine has left."""
        tasks: dict[int, Item] = {}
        with self.ground.store() as store:
            while page := store.tasks(TaskFilter(), after=max(tasks, default=after), limit=PAGE):
                tasks |= {task.id: task for task in page}
            return tasks, {task: store.attempts(task) for task in tasks}

    def check(self, tasks: dict[int, Item], attempts: dict[int, list[Attempt]], *, after: int = 0) -> list[str]:
        """Whatever does not add up between what is known and what was seen of the tasks after that one."""
        traces = [trace for trace in self.traces() if trace.task > after]
        return [
            *ended_as_told(tasks),
            *executions_apart(traces),
            *steps_once(traces),
            *completed_once(traces, tasks),
            *keys_in_order(traces, tasks),
            *attempts_told(traces, tasks, attempts),
        ]


class Beside:
    """Does one thing after another in a thread, until it is told to stop."""

    def __init__(self, what: Callable[[], object], pause: Callable[[], float]) -> None:
        self._what, self._pause = what, pause
        self._stop = threading.Event()
        self.failed: BaseException | None = None
        self._thread = threading.Thread(target=self._go, daemon=True)

    def _go(self) -> None:
        try:
            while not self._stop.wait(self._pause()):
                self._what()
        except BaseException as error:
            self.failed = error

    def __enter__(self) -> Beside:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self.failed is None, repr(self.failed)


class Reaper:
    """Kills one process after another, on any node. An engine is started again; the others replace themselves."""

    def __init__(self, ground: Ground, dice: random.Random) -> None:
        self.ground, self.dice = ground, dice
        self.killed = dict.fromkeys(("engine", "guardian", "worker", "handler"), 0)

    def kill_one(self) -> None:
        what = self.dice.choice(list(self.killed))
        found = [] if what == "engine" else sorted(each for node in self.ground.nodes for each in on_duty(node)[what])
        if found:
            with suppress(ProcessLookupError):
                os.kill(self.dice.choice(found), signal.SIGKILL)
        else:
            what, node = "engine", self.dice.choice(self.ground.nodes)
            node.kill()
            node.up()
        self.killed[what] += 1


def on_duty(node: Node) -> dict[str, set[int]]:
    """Who is at work on a node beside its engine: a guardian has a worker, and that forks a handler's process."""
    parents = {process: parent for process in below(node.machine.process) if (parent := _worker_below(process))}
    workers = {process: parent for process, parent in parents.items() if parent not in parents}
    return {
        "guardian": set(workers.values()),
        "worker": set(workers),
        "handler": {process for process, parent in parents.items() if parent in workers},
    }


def _worker_below(process: int) -> int | None:
    """The parent of a worker, or of a fork of one; None of any other process."""
    with suppress(OSError):
        folder = Path(f"/proc/{process}")
        if b"wakeful.runners.worker" in (folder / "cmdline").read_bytes():
            return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return None
