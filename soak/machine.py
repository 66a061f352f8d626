"""A machine with one engine on it: whatever begins there stays below one process, so that all of it can end at once.

As a program it starts the command of its arguments each time it is told to, says the number of the process, and how it
ended; processes that have lost their parent become its children. When nobody is left to tell it anything, the machine
goes down with all that is on it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

PATIENCE = 30.0
_PR_SET_CHILD_SUBREAPER = 36


# ---- seen from outside


class Machine:
    def __init__(self, folder: Path, log: Path, command: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder), str(log), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._ended: dict[int, int] = {}
        self._said = threading.Condition()
        self._started: list[int] = []
        self._still: set[int] = set()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                # Its last word, cut short by its end.
                return
            what, pid, *status = line.decode().split()
            with self._said:
                if what == "began":
                    self._started.append(int(pid))
                else:
                    self._ended[int(pid)] = int(status[0])
                self._said.notify_all()

    @property
    def process(self) -> int:
        """Whatever begins on it is below this one."""
        return self._process.pid

    def up(self) -> int:
        assert self._process.stdin is not None
        known = len(self._started)
        self._process.stdin.write(b"up\n")
        with self._said:
            assert self._said.wait_for(lambda: len(self._started) > known, PATIENCE)
            return self._started[-1]

    @property
    def engine(self) -> int | None:
        """The process of the engine that is up."""
        with self._said:
            return self._started[-1] if self._started and self._started[-1] not in self._ended else None

    def signal(self, number: int) -> None:
        assert self.engine is not None, "no engine is up"
        os.kill(self.engine, number)

    def ended(self, patience: float = PATIENCE) -> int:
        """Wait for the engine's end; its exit code."""
        with self._said:
            assert self._said.wait_for(lambda: self._started[-1] in self._ended, patience), "it has not ended"
            return self._ended[self._started[-1]]

    def cut(self) -> None:
        """The power goes: nobody on it does anything more, not even notice that the others are gone."""
        end_all_below(self._process.pid)
        if self._started:
            self.ended()

    def suspend(self) -> None:
        """Everything on it stands still, as on a laptop that is shut."""
        self._still = stop_all_below(self._process.pid)

    def resume(self) -> None:
        for pid in self._still:
            _tell(pid, signal.SIGCONT)

    def close(self) -> None:
        end_all_below(self._process.pid)
        self._process.kill()
        self._process.wait()
        self._listener.join()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()


def stop_all_below(pid: int) -> set[int]:
    still: set[int] = set()
    while fresh := below(pid) - still:
        for each in fresh:
            _tell(each, signal.SIGSTOP)
        still |= fresh
    return still


def end_all_below(pid: int) -> None:
    """First everything stands still, so that nobody sees anybody die."""
    stop_all_below(pid)
    while left := below(pid):
        for each in left:
            _tell(each, signal.SIGKILL)
        time.sleep(0.005)


def _tell(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def below(pid: int) -> set[int]:
    """Every descendant that has not ended."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                state, parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    children[int(parent)].append(int(entry))
    found, wanted = set[int](), [pid]
    while wanted:
        for child in children[wanted.pop()]:
            found.add(child)
            wanted.append(child)
    return found


# ---- the program


def _serve(folder: str, log: str, command: list[str]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    heard, ring = os.pipe()
    os.set_blocking(ring, False)
    os.set_blocking(heard, False)
    signal.set_wakeup_fd(ring)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    engine: subprocess.Popen[bytes] | None = None
    while True:
        ready, _, _ = select.select([0, heard], [], [])
        if heard in ready:
            os.read(heard, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            if engine is not None and pid == engine.pid:
                engine.returncode = os.waitstatus_to_exitcode(status)
                print("ended", pid, engine.returncode, flush=True)
        if 0 in ready:
            if not os.read(0, 4096):
                return
            with open(log, "ab") as file:
                engine = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            print("began", engine.pid, flush=True)


if __name__ == "__main__":
    try:
        _serve(sys.argv[1], sys.argv[2], sys.argv[3:])
    finally:
        end_all_below(os.getpid())
