"""The git work trees that agents work in: brought to the head of their origin between runs, never under one.

Laws:
- Fast-forward only: nothing of a person's or an agent's own is merged, stashed, reset or thrown away.
- In one tree there are runs or there is a pull. A pull finds runs under way and says so; a run waits for a pull.
- Nobody is asked for anything: where git would want a password it is told no. What takes too long is ended.
- Whatever is in the way is a sentence, and never raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

LIMIT = timedelta(seconds=30)
# How long git may take to remove its locks when it is told to end, in seconds.
_GRACE = 2.0
_LONGEST = 300

# No questions, no pager, and nothing that goes on in the background when git has ended.
_GIT = (
    *("git", "-c", "core.askPass=", "-c", "credential.interactive=false", "-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false", "-c", "merge.autoStash=false"),
)
# Where these are set they speak of another repository, or of somebody who could be asked.
_NOT_PASSED = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_ASKPASS", "SSH_ASKPASS", "DISPLAY"),
    }
)


class Stuck(Exception):
    """What is in the way of a pull, in one sentence."""


class Tree:
    """One work tree, and who is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: set[int] = set()
        self.pulling = asyncio.Lock()

    async def enter(self, run: int) -> None:
        """Once no pull is under way."""
        async with self.pulling:
            self.runs.add(run)


class Trees:
    def __init__(self, base: Mapping[str, str], limit: timedelta = LIMIT) -> None:
        self._limit = limit.total_seconds()
        self._trees: dict[Path, Tree] = {}
        self._environment = {name: value for name, value in base.items() if name not in _NOT_PASSED}
        self._environment.update(GIT_TERMINAL_PROMPT="0", LC_ALL="C")
        self._environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")

    def holding(self, place: Path) -> Tree | None:
        """The tree that a folder lies in, if it lies in one: the nearest folder above it that git keeps."""
        path = place.resolve()
        for folder in (path, *path.parents):
            if (folder / ".git").exists():
                return self._trees.setdefault(folder, Tree(folder))
        return None

    async def pull(self, place: Path) -> str:
        """Bring the tree that holds `place` to the head of what it follows; "" or what was in the way."""
        tree = self.holding(place)
        if tree is None:
            return f"{place} is in no git work tree"
        async with tree.pulling:
            if tree.runs:
                numbers = ", ".join(str(run) for run in sorted(tree.runs))
                return f"not pulled: run {numbers} is under way in {tree.path}"
            try:
                async with asyncio.timeout(self._limit):
                    await self._bring_forward(tree.path)
            except Stuck as problem:
                return str(problem)
            except TimeoutError:
                return f"git took longer than {self._limit:g} s in {tree.path}"
        return ""

    async def _bring_forward(self, path: Path) -> None:
        if await self._git(path, "rev-parse", "--verify", "--quiet", "@{u}"):
            raise Stuck(f"{path} has no upstream branch (set one with git branch --set-upstream-to)")
        for words in (("fetch", "--quiet"), ("merge", "--quiet", "--ff-only", "@{u}")):
            problem = await self._git(path, *words)
            if problem:
                raise Stuck(f"git {words[0]} failed in {path}: {problem}")

    async def _git(self, path: Path, *words: str) -> str:
        """ "" if it went well, else what it said."""
        try:
            process = await asyncio.create_subprocess_exec(
                *_GIT,
                *words,
                cwd=path,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                # A group of its own: its helpers are ended with it, and it has no terminal to ask on.
                start_new_session=True,
            )
        except OSError as error:
            raise Stuck(f"git cannot be executed: {error.strerror}") from None
        try:
            _, said = await process.communicate()
        except asyncio.CancelledError:
            await _end(process)
            raise
        if process.returncode == 0:
            return ""
        return _one_line(said.decode(errors="replace")) or f"exit code {process.returncode}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """The whole group: politely, so that no lock is left, then not."""
    for number, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), patience)
            return


def _one_line(said: str) -> str:
    lines = (line.strip() for line in said.splitlines())
    told = " ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in lines if line)
    return told if len(told) <= _LONGEST else told[:_LONGEST] + "…"
