"""Starts the writing process, hears what it accepts, and kills it at a random moment."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic

from soak.audits import unsound
from soak.checker import Accepted, complaints
from soak.fleet import LIFE, START
from wakeful.store.folder import DataFolder
from wakeful.store.sqlite import open_sqlite

ROOT = Path(__file__).resolve().parent.parent

# Seconds. A process that is not heard of for so long is stuck, which no kill explains.
PATIENCE = 60.0
LONGEST = 0.4
# One kill in so many is timed from the start of the process, not from its first acceptance: opening is hit too.
UNHEARD = 8


class Killer:
    """Many lives of one process over one store, which grows."""

    def __init__(self, folder: Path, seed: int, *, lies: bool = False) -> None:
        self.folder = DataFolder(folder)
        self.accepted = Accepted()
        self.life = 0
        # From the start of a process to the first that it accepted, in seconds.
        self.waits: list[float] = []
        self._dice = random.Random(seed)
        self._environment = {**os.environ, "SOAK_LIES": "early" if lies else ""}

    def kill_one(self) -> int:
        """Let it live and kill it; how many acceptances were heard."""
        self.life += 1
        errors = self.folder.path.parent / f"{self.folder.path.name}-errors.txt"
        command = [sys.executable, "-m", "soak.writer", str(self.folder.path), str(self.life)]
        with errors.open("wb") as file:
            process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, stderr=file)
            heard = self._hear_and_kill(process)
        if process.returncode != -signal.SIGKILL:
            raise AssertionError(f"it ended by itself:\n{errors.read_text('utf-8', 'replace')[-4_000:]}")
        return heard

    def check(self) -> list[str]:
        """The kill released the lock, and nothing that was accepted is missing or doubled."""
        self.folder.lock(patience=1.0)
        try:
            return complaints(self.folder.database, self.accepted)
        finally:
            self.folder.unlock()

    def audit(self) -> list[str]:
        """What does not add up of all that the store has kept; the next process would begin now."""
        with self.folder, closing(open_sqlite(self.folder.database)) as store:
            return unsound(store, START + (self.life + 1) * LIFE)

    def _hear_and_kill(self, process: subprocess.Popen[bytes]) -> int:
        assert process.stdout is not None
        ear, began = Ear(process.stdout.fileno()), monotonic()
        if self._dice.randrange(UNHEARD):
            ear.listen(monotonic() + PATIENCE, until_heard=True)
            self.waits.append(monotonic() - began)
            ear.listen(monotonic() + self._dice.uniform(0.001, LONGEST))
        else:
            ear.listen(monotonic() + self._dice.uniform(0.1, 2 * LONGEST))
        process.send_signal(signal.SIGKILL)
        ear.listen(monotonic() + PATIENCE, until_closed=True)
        process.stdout.close()
        process.wait(PATIENCE)
        for line in ear.lines():
            self.accepted.add(line)
        return len(ear.lines())


class Ear:
    """Reads a pipe without ever holding up the one that writes."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._heard = b""
        self._closed = False

    def listen(self, deadline: float, *, until_heard: bool = False, until_closed: bool = False) -> None:
        while not self._closed and not (until_heard and b"\n" in self._heard):
            ready, _, _ = select.select([self._pipe], [], [], max(deadline - monotonic(), 0))
            if not ready:
                if until_heard or until_closed:
                    raise AssertionError(f"nothing was heard of the writer for {PATIENCE:g} s")
                return
            piece = os.read(self._pipe, 65_536)
            self._closed = not piece
            self._heard += piece

    def lines(self) -> list[str]:
        """Whole lines only: what the kill cut short was not said."""
        return self._heard.decode().split("\n")[:-1]
