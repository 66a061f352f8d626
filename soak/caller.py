"""A process that starts runs and can be killed at any moment: `python -m soak.caller FOLDER`, assignments on stdin.

Each line on stdin is one assignment as JSON. It says on stdout, a line at a time: `warm` when its nursery is, `go` just
before the first start, `held RUN` after each, `ended RUN` at each end. `Caller` is the other side.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from wakeful.runners.process import ProcessRunner
from wakeful.runners.protocol import Assignment

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 30.0


def as_json(assignment: Assignment) -> str:
    told: dict[str, Any] = {}
    for field in fields(assignment):
        value = getattr(assignment, field.name)
        told[field.name] = value.total_seconds() if isinstance(value, timedelta) else value
    return json.dumps(told, default=str)


def from_json(line: str) -> Assignment:
    told = json.loads(line)
    for name in ("wall_clock", "grace", "fence"):
        told[name] = timedelta(seconds=told[name])
    for name in ("folder", "workdir"):
        told[name] = Path(told[name])
    return Assignment(**{**told, "command": tuple(told["command"]), "secrets": tuple(told["secrets"])})


class Caller:
    """A caller that was given its runs, and what it says."""

    def __init__(self, assignments: list[Assignment], *, warm: bool = False) -> None:
        command = [sys.executable, "-m", "soak.caller", "warm" if warm else "cold"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("".join(f"{as_json(each)}\n" for each in assignments).encode())
        self.process.stdin.close()
        self.ear = self.process.stdout.fileno()
        self.heard = b""

    def hear(self, word: str) -> None:
        """Until it has said that."""
        end = time.monotonic() + PATIENCE
        while word not in self.heard.decode().splitlines():
            ready, _, _ = select.select([self.ear], [], [], max(end - time.monotonic(), 0))
            data = os.read(self.ear, 4096) if ready else b""
            assert data, f"waited in vain for {word!r}, heard {self.heard!r}"
            self.heard += data

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())


async def call(assignments: list[Assignment], *, warm: bool) -> None:
    runner = ProcessRunner()

    async def one(assignment: Assignment) -> None:
        held = await runner.start(assignment)
        say(f"held {assignment.run}")
        await held.wait()
        say(f"ended {assignment.run}")

    if warm:
        first = assignments.pop(0)
        held = await runner.start(first)
        await held.wait()
        say("warm")
    say("go")
    await asyncio.gather(*(one(each) for each in assignments))
    # Until we are killed: nobody may think that we ended by ourselves.
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(call([from_json(line) for line in sys.stdin], warm=sys.argv[1] == "warm"))
