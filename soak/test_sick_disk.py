"""A real engine on a disk that fills up, fails, is slow or is locked by a stranger: it refuses, stays up, and goes on.

It needs a file system of its own, so root, and strace.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

FLEET = """#+GRACE: 1s
#+STAGGER: 1s
#+BURST: 100000/10m
* wren
:PROPERTIES:
:RUN: sh -c 'sleep 0.5; echo seen; date >> {witness}'
:INTERVAL: 1s
:END:
"""
REFUSED_WITHIN, BACK_WITHIN = 5.0, 10.0


class Ground:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "disk"
        self.witness = folder / "witness"
        self.log = folder / "log"
        self.folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(self.folder)], check=True)
        (self.folder / "fleet.org").write_text(FLEET.format(witness=self.witness))
        with open(self.log, "wb") as log:
            self.engine = subprocess.Popen([*self._wakeful, "up", "--port", "0"], cwd=self.folder, stderr=log)
        self.until(lambda: self.runs() > 1, "its first runs", 30)

    _wakeful = (sys.executable, "-m", "wakeful")

    def ask(self, *words: str) -> tuple[int, str, float]:
        began = time.monotonic()
        done = subprocess.run([*self._wakeful, *words], cwd=self.folder, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr, time.monotonic() - began

    def runs(self) -> int:
        return len(self.witness.read_text().splitlines()) if self.witness.exists() else 0

    def until(self, holds: Callable[[], bool], what: str, seconds: float) -> float:
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < seconds, f"no {what} within {seconds:g} s: {self.log.read_text()[-2000:]}"
            time.sleep(0.1)
        return time.monotonic() - began

    def must_refuse(self) -> None:
        code, said, seconds = self.ask("send", "wren", "refused")
        assert (code, seconds < REFUSED_WITHIN) == (75, True), (said, seconds)

    def must_be_back(self) -> float:
        seen = self.runs()
        seconds = self.until(lambda: self.runs() > seen + 1, "run", BACK_WITHIN)
        assert self.ask("send", "wren", "accepted")[0] == 0
        assert self.engine.poll() is None
        return seconds

    @contextmanager
    def traced(self, what: str) -> Iterator[None]:
        command = ["strace", "-f", "-p", str(self.engine.pid), "-o", "/dev/null", "-e", f"inject={what}"]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
        assert tracer.stderr is not None
        assert b"attached" in tracer.stderr.readline()
        try:
            yield
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(10)
            tracer.stderr.close()

    def outcomes(self) -> list[str]:
        rows = json.loads(self.ask("runs", "--json", "--limit", "500")[1])["items"]
        return [row["outcome"] for row in rows if row["ended_at"]]

    def close(self) -> None:
        assert self.ask("audit")[0] == 0
        assert set(self.outcomes()) == {"done"}
        assert self.ask("stop")[0] == 0
        self.engine.wait(30)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    if os.geteuid() != 0 or shutil.which("strace") is None:
        pytest.skip("needs root and the package strace")
    ground = Ground(tmp_path)
    try:
        yield ground
        ground.close()
    finally:
        ground.engine.kill()
        ground.engine.wait()
        time.sleep(1)
        subprocess.run(["umount", "--lazy", str(ground.folder)], check=True)


def test_a_full_disk_begins_no_run_and_loses_none(ground):
    for _ in range(3):
        ballast = ground.folder / "ballast"
        # In small pieces, so that the last page is taken too.
        subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=4k"], capture_output=True, check=False)
        time.sleep(1.5)
        seen = ground.runs()
        ground.must_refuse()
        time.sleep(3)
        assert ground.runs() == seen
        ballast.unlink()
        ground.must_be_back()


def test_a_disk_that_cannot_sync_is_not_believed(ground):
    for _ in range(3):
        with ground.traced("fdatasync,fsync:error=EIO"):
            ground.must_refuse()
            time.sleep(2)
        ground.must_be_back()


def test_a_disk_that_takes_no_writes_is_not_either(ground):
    with ground.traced("pwrite64:error=EROFS"):
        ground.must_refuse()
    ground.must_be_back()


def test_a_slow_disk_is_slow_and_takes_no_run_from_anybody(ground):
    with ground.traced("fdatasync,fsync:delay_enter=500000"):
        assert ground.ask("send", "wren", "slowly")[0] == 0
        time.sleep(5)
    ground.must_be_back()


def test_a_stranger_that_holds_the_lock_for_half_a_minute_is_outlived(ground):
    stranger = apsw.Connection(str(ground.folder / ".wakeful" / "wakeful.db"))
    stranger.execute("BEGIN IMMEDIATE")
    until = time.monotonic() + 30
    while time.monotonic() < until:
        code, said, seconds = ground.ask("send", "wren", "locked out")
        assert (code, seconds < REFUSED_WITHIN + 1) == (75, True), (said, seconds)
    stranger.execute("ROLLBACK")
    stranger.close()
    ground.must_be_back()
