"""A cheap question before an expensive run: the agent's CHECK command, and what it says.

Laws:
- Only a clear no keeps an agent asleep: exit 0, and `{"wakeAgent": false}` or `{"fire": false}` on the last line. One
  that fails, hangs or says anything else wakes it: what is broken must not silence an agent.
- It runs under a guardian like any run, with a wall clock of its own, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from wakeful.core.runs import Ending, describe
from wakeful.runners.process import HeldRun, ProcessRunner
from wakeful.runners.protocol import STDOUT, Assignment, Checked

LIMIT = timedelta(seconds=60)
# The words for no: of wakeful and of those who come from elsewhere.
_NO = ("wakeAgent", "fire")
# What is read of its output, from the end, and what is kept of a reason.
_MOST_OUTPUT = 1024 * 1024
_LONGEST_REASON = 500


class Checks:
    def __init__(self, processes: ProcessRunner, folder: Path, limit: timedelta = LIMIT) -> None:
        self._processes = processes
        self._folder = folder
        self.limit = limit
        self._held: set[HeldRun] = set()
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def new_folder(self, agent: str) -> Path:
        """Never one that was used before: a guardian that comes late must not begin an old question in a new place."""
        return self._folder / agent / secrets.token_hex(6)

    async def ask(self, agent: str, assignment: Assignment) -> Checked:
        """One question at a time for each agent; `assignment` is to be carried out in a `new_folder`."""
        async with self._asking[agent]:
            await self._clear(self._folder / agent)
            try:
                held = await self._processes.start(assignment)
            except asyncio.CancelledError:
                await self._clear(self._folder / agent)
                raise
            self._held.add(held)
            try:
                ending = await held.wait()
                return read_check(ending, _last_line(assignment.folder), self.limit)
            finally:
                self._held.discard(held)
                if not held.ended.done():
                    await held.end("whoever asked has gone", at_once=True)
                    # Its guardian reads why in this folder, and writes how it ended there.
                    await held.wait()
                shutil.rmtree(self._folder / agent, ignore_errors=True)

    async def close(self) -> None:
        """A question outlives nobody: unlike a run, it is ended."""
        under_way = list(self._held)
        for held in under_way:
            await held.end("the end of the engine", at_once=True)
        await asyncio.gather(*(held.wait() for held in under_way))

    async def _clear(self, place: Path) -> None:
        """What has begun is ended, be it of an engine that was killed; what has not never will."""
        for folder in place.iterdir() if place.exists() else ():
            if not self._processes.veto(folder):
                left = await self._processes.adopt(0, folder)
                await left.end("another check", at_once=True)
                await left.wait()
        shutil.rmtree(place, ignore_errors=True)


def read_check(ending: Ending, line: str, limit: timedelta) -> Checked:
    if ending.timed_out:
        return Checked(wake=True, reason=f"the check took longer than {limit.total_seconds():g} s")
    if ending.exit_code != 0:
        return Checked(wake=True, reason=_sentence(f"the check failed: {describe(ending)}"))
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return Checked(wake=True, reason=_sentence(f"the check said nothing clear: {line}" if line else ""))
    words = said.get("reason") or said.get("message") or line
    wake = not any(said.get(word) is False for word in _NO)
    return Checked(wake=wake, reason=_sentence(str(words)), data=said.get("data"))


def _sentence(text: str) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= _LONGEST_REASON else whole[:_LONGEST_REASON] + "…"


def _last_line(folder: Path) -> str:
    try:
        with (folder / STDOUT).open("rb") as file:
            file.seek(max(file.seek(0, 2) - _MOST_OUTPUT, 0))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
