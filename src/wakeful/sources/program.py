"""A program that prints what is pending: run, bounded, and gone.

Laws:
- It has a process group of its own. When it has ended, or is given up, the whole group is killed: what it left behind
  neither goes on nor is waited for.
- No more of its output is kept than is allowed, and more than that is a failure. Of what it says on its standard error
  the last line is kept.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from wakeful.sources import text
from wakeful.sources.aside import Unreadable

MOST_OUTPUT = 4_000_000
_PIECE = 65_536
# How much is taken at a time: one that floods us is still asked to end.
_GULP = 1_048_576
_TAIL = 4_096
# Seconds between two looks whether it has ended, where the kernel gives no handle that would tell.
_LOOK = 0.05


class Program:
    """One run of it; `path` is absolute."""

    def __init__(self, path: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._folder = folder
        self._environment = environment
        self._lock = threading.Lock()
        self._aborted = False
        self._stopper: int | None = None
        self._printed = bytearray()
        self._said = bytearray()

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            if self._stopper is not None:
                os.write(self._stopper, b"x")

    def do(self) -> bytes:
        """What it printed."""
        with self._stopping() as stop, self._begun() as process:
            self._follow(process, stop)
        return self._judged(process.returncode)

    @contextmanager
    def _stopping(self) -> Iterator[int]:
        stop, stopper = os.pipe()
        try:
            with self._lock:
                self._stopper = stopper
                if self._aborted:
                    os.write(stopper, b"x")
            yield stop
        finally:
            with self._lock:
                self._stopper = None
            os.close(stop)
            os.close(stopper)

    @contextmanager
    def _begun(self) -> Iterator[subprocess.Popen[bytes]]:
        try:
            process = subprocess.Popen(
                [str(self._path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                env=dict(self._environment),
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise Unreadable(f"{self._name()} cannot be executed: {text.sentence(reason or '')}") from None
        with process:
            try:
                yield process
            finally:
                # Before it is waited for: until then nobody else can have its number.
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _follow(self, process: subprocess.Popen[bytes], stop: int) -> None:
        assert process.stdout is not None and process.stderr is not None
        handle = _handle(process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(stop, selectors.EVENT_READ)
                for pipe in (process.stdout, process.stderr):
                    os.set_blocking(pipe.fileno(), False)
                    selector.register(pipe, selectors.EVENT_READ)
                if handle is not None:
                    selector.register(handle, selectors.EVENT_READ)
                ended = False
                while not ended:
                    ready = [key.fileobj for key, _ in selector.select(_LOOK if handle is None else None)]
                    if stop in ready:
                        raise Unreadable(f"{self._name()} was broken off")
                    ended = handle in ready if handle is not None else process.poll() is not None
                    for pipe in (process.stdout, process.stderr):
                        if pipe in ready and not self._take(pipe, of_errors=pipe is process.stderr):
                            selector.unregister(pipe)
            # All that it printed is in the pipes by now, whoever else holds them open.
            self._take(process.stdout)
            self._take(process.stderr, of_errors=True)
        finally:
            if handle is not None:
                os.close(handle)

    def _take(self, pipe: IO[bytes], *, of_errors: bool = False) -> bool:
        """What is there now; False at its end."""
        for _ in range(_GULP // _PIECE):
            try:
                piece = os.read(pipe.fileno(), _PIECE)
            except BlockingIOError:
                return True
            if not piece:
                return False
            kept = self._said if of_errors else self._printed
            kept += piece
            if of_errors:
                del kept[:-_TAIL]
            elif len(kept) > MOST_OUTPUT:
                raise Unreadable(f"{self._name()} printed more than {MOST_OUTPUT:,} bytes")
        return True

    def _judged(self, code: int) -> bytes:
        if code == 0:
            return bytes(self._printed)
        lines = self._said.decode("utf-8", "replace").splitlines()
        last = text.sentence(next((line for line in reversed(lines) if line.strip()), ""))
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise Unreadable(f"{self._name()} ended with {how}" + (f": {last}" if last else ""))

    def _name(self) -> str:
        return text.name(str(self._path))


def _handle(process: int) -> int | None:
    """Readable when the process has ended."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None
