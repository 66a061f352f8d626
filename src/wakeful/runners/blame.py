"""How a process that did not live to say it ended, in words and for the record."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from wakeful.runners.cage import Cage

Told = dict[str, Any]

TIMED_OUT: Told = {"timed_out": True}


def in_words(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            return f"ended by signal {number}"
    return f"ended with exit code {os.WEXITSTATUS(status)}"


def crashed(status: int, worker: str) -> Told:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        exhausted = number == signal.SIGKILL and _cage(worker).out_of_memory()
        return {"signal": number, "out_of_memory": exhausted, "error": f"its process was {in_words(status)}"}
    # Whatever it says, a process that ends within a task has not done it.
    return {"exit_code": os.WEXITSTATUS(status) or None, "error": f"its process {in_words(status)} within the task"}


def _cage(worker: str) -> Cage:
    try:
        with open(os.path.join(worker, "started"), "rb") as file:
            return Cage(dict(json.load(file).get("cage", {})))
    except (OSError, ValueError):
        return Cage({})


def asked_by(worker: str) -> tuple[str, bool]:
    """Who wants the end of the worker, and whether at once: what its guardian was told."""
    try:
        with open(os.path.join(worker, "stop.json"), "rb") as file:
            request = json.load(file)
        return str(request["by"]), bool(request["at_once"])
    except (OSError, ValueError, KeyError, TypeError):
        return "a signal to its worker", False


def why_gone(by: str | None, condemned: int | None, index: int, status: int, folder: str) -> Told:
    """What is told of the task that went with its process, which may have been ended for the sake of another."""
    if by is not None:
        return {"by": by}
    if condemned == index:
        return TIMED_OUT
    if condemned is not None:
        # The task for whose sake it was ended had just ended by itself.
        return {"by": "the late end of the task before it"}
    return crashed(status, folder)
