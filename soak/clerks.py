"""What clerks do with their tasks, as a handler: `:HANDLER: clerks:work`, from a copy beside the fleet file.

Each execution bears witness of itself, a line in one append, as it begins, while it lives, at every step and at its
end: `WHAT TASK RUN PROCESS MICROSECONDS WORD`. The order of the lines is the order of events; the instants are for what
the store says of the same. What a task does stands in its payload.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from wakeful import Run

TENTH = 0.1


class Sign:
    """Of one execution."""

    def __init__(self, run: Run) -> None:
        assert run.task is not None
        self._words = f"{run.task.id} {run.id} {os.getpid()}"

    def __call__(self, what: str, word: object = "-") -> None:
        file = os.open("witness", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(file, f"{what} {self._words} {time.time_ns() // 1000} {word}\n".encode())
        os.close(file)


def work(run: Run) -> Any:
    if run.task is None:
        return "NO-WORK"
    told, sign = run.task.payload, Sign(run)
    sign("begin", run.attempt)
    for name in told.get("steps", ()):
        run.step(name, _do, sign, name, told)
        sign("kept", name)
    _live(sign, told)
    for target in told.get("kills", ()):
        _kill(target)
    if told.get("fails") == "always" or (told.get("fails") == "once" and run.attempt == 1):
        sign("end", "failed")
        raise RuntimeError(f"attempt {run.attempt} fails, as it was told to")
    sign("end", "done")
    return {"number": told["number"]}


def _do(sign: Sign, name: str, told: dict[str, Any]) -> str:
    sign("did", name)
    _live(sign, told)
    return name


def _live(sign: Sign, told: dict[str, Any]) -> None:
    """For so long, or until there is the file that it waits for."""
    end = time.monotonic() + told.get("seconds", 0.0)
    while (left := end - time.monotonic()) > 0 and not os.path.exists(told.get("until", "")):
        time.sleep(min(left, TENTH))
        sign("alive")


def _kill(target: str) -> None:
    """Ourselves, or who is above: the worker, its guardian, the engine that is announced in the data folder."""
    worker = os.getppid()
    if target == "itself":
        victim = os.getpid()
    elif target == "worker":
        victim = worker
    elif target == "guardian":
        with open(f"/proc/{worker}/stat") as file:
            victim = int(file.read().rpartition(")")[2].split()[1])
    else:
        with open(".wakeful/engine.json") as file:
            victim = json.load(file)["pid"]
    os.kill(victim, signal.SIGKILL)
    if target in ("worker", "guardian"):
        # Whoever is above us takes us along.
        signal.pause()
        sys.exit("nobody took us along")
