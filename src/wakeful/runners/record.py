"""What is known of a shift, in its run's folder: one line for each task that has ended, and which had begun.

Laws:
- The first line says whose shift it is and which tasks it has, the last that it is over; each line between is the exit
  record of one task, or what it printed. Lines are appended whole, never changed, and written before anybody is told.
- Who brings a task to its end writes its line: the process that did it, or the worker when that one did not live to.
  So neither of them, killed at any moment, takes the end of another task with it. A task's first line is right.
- Who creates `started` first is right: the worker, or the veto of a recovery. The exit record comes last.
- A task has begun when the page says so: a page of memory that outlives the processes, as the file that it is.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from typing import Any

from wakeful.runners.guardian import RECORD_VERSION
from wakeful.runners.whole import create_whole, now, write_whole

TASKS = "tasks.jsonl"
PAGE = "page"
VERSION = 1

# What fits on the page, behind the two numbers at its head.
MOST_TASKS = mmap.PAGESIZE // 8 - 2

Line = dict[str, Any]


class Page:
    """Which run, which process does it, and when each of its tasks began; numbers, shared by all who have it open."""

    def __init__(self, folder: str) -> None:
        file = os.open(os.path.join(folder, PAGE), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        os.ftruncate(file, mmap.PAGESIZE)
        self._memory = mmap.mmap(file, mmap.PAGESIZE)
        os.close(file)
        self._numbers = memoryview(self._memory).cast("d")

    def reset(self, run: int) -> None:
        self._memory[:] = bytes(mmap.PAGESIZE)
        self._numbers[0] = run

    @property
    def run(self) -> int:
        return int(self._numbers[0])

    def began(self, index: int) -> float:
        """When; 0 when it has not, less when it must not."""
        return self._numbers[index + 2]

    def begin(self, index: int, moment: float) -> bool:
        """False for a task that was taken back before it began."""
        if self._numbers[index + 2] < 0:
            return False
        self._numbers[index + 2] = moment
        return True

    def take_back(self, index: int) -> None:
        if self._numbers[index + 2] == 0:
            self._numbers[index + 2] = -1


class Record:
    """The record of one shift, as whoever carries it out writes it."""

    def __init__(self, folder: str, run: int, epoch: int, tasks: list[int | None], worker: str) -> None:
        self.folder = folder
        self.run = run
        self.epoch = epoch
        self._started = now()
        self._file = open_record(folder)
        self.header = line({"version": VERSION, "run": run, "epoch": epoch, "tasks": tasks, "worker": worker})

    def claim(self, holder: str | None) -> bool:
        """Whether the run is ours to begin. `holder` is the file that says who guards us; it says it of the run too."""
        self.append(self.header)
        path = os.path.join(self.folder, "started")
        if holder is None:
            return create_whole(path, {})
        try:
            os.link(holder, path)
        except FileExistsError:
            return False
        return True

    def append(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[os.write(self._file, view) :]

    def replay(self, untold: set[int | None]) -> bytes:
        """All lines so far, as they were told. What has not been told yet will be, with what it printed."""
        lines = read_record(self.folder)
        return b"".join(line(known) for known in lines if "task" not in known or known["task"] not in untold)

    def ends(self) -> dict[int | None, Line]:
        """The ends that tasks have told the record, and perhaps nobody else."""
        told = [known for known in read_record(self.folder) if "exit_code" in known and "over" not in known]
        return {known.get("task"): known for known in reversed(told)}

    def printed(self, task: int | None, output: str) -> None:
        """What a task that ended by itself had printed."""
        self.append(line({"version": VERSION, "printed_by": task, "output": output}))

    def finish(self, *, by: str | None = None, call: Line | None = None) -> bytes:
        """The shift is over: its last line, which is also the exit record of the run. `call` is the end of a run
        that had no tasks."""
        whole: Line = {
            "version": RECORD_VERSION,
            "run": self.run,
            "epoch": self.epoch,
            "exit_code": 0,
            "signal": None,
            "timed_out": False,
            "by": by,
            "error": None,
            "out_of_memory": False,
            "elapsed": round(now() - self._started, 6),
            "ended_at": round(time.time(), 3),
        }
        for key in ("exit_code", "signal", "timed_out", "by", "out_of_memory") if call is not None else ():
            whole[key] = (call or {}).get(key, whole[key] if key == "by" else None)
        last = line({**whole, "over": True})
        self.append(last)
        write_whole(os.path.join(self.folder, "exit.json"), whole)
        return last

    def close(self, *, sync: bool) -> None:
        if sync:
            os.fsync(self._file)
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            os.fsync(folder)
            os.close(folder)
        os.close(self._file)


def open_record(folder: str) -> int:
    """Whoever is first makes the folder."""
    path = os.path.join(folder, TASKS)
    try:
        return os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)


def line(value: Line) -> bytes:
    return json.dumps(value).encode() + b"\n"


def read_record(folder: str) -> list[Line]:
    """The lines of a record, as far as they are whole: who was killed while writing leaves at most a part of one."""
    try:
        with open(os.path.join(folder, TASKS), "rb") as file:
            texts = file.read().split(b"\n")[:-1]
    except OSError:
        return []
    lines: list[Line] = []
    ends: dict[int | None, Line] = {}
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if "printed_by" in value:
            ends.get(value["printed_by"], {})["output"] = value["output"]
        else:
            lines.append(value)
            if "task" in value:
                ends.setdefault(value["task"], value)
    return lines


def read_begun(worker: str, run: int, tasks: list[int | None]) -> set[int | None] | None:
    """The tasks of that run which had begun; None where nobody can know."""
    try:
        with open(os.path.join(worker, PAGE), "rb") as file:
            numbers = memoryview(file.read()).cast("d")
    except OSError:
        return None
    if len(numbers) < len(tasks) + 2 or numbers[0] != run:
        return None
    return {task for index, task in enumerate(tasks) if numbers[index + 2] > 0}
