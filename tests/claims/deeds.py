"""What the agents of `test_work` do, from a copy beside their fleet file: `:HANDLER: deeds:do`.

`ledger` stands for somebody outside who does a thing once for each key that he is given, however often he is asked.
"""

import os
import signal
import time
from pathlib import Path
from threading import Event
from typing import Any

from wakeful import Run


def tell(*words: object) -> None:
    file = os.open("told", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(file, " ".join(map(str, words)).encode() + b"\n")
    os.close(file)


def do(run: Run) -> Any:
    if run.task is None:
        return "NO-WORK"
    return globals()[run.task.payload["deed"]](run)


def read(run: Run) -> Any:
    """Two steps, each recorded, and a result."""
    pages = run.step("read", taken, run, "read", 412)
    return {"pages": run.step("count", taken, run, "count", pages)}


def taken(run: Run, step: str, value: int) -> int:
    tell(run.task.id, step, run.attempt)
    return value


def stumbles(run: Run) -> Any:
    """Fails inside, once, when the first step is recorded."""
    pages = run.step("read", taken, run, "read", 412)
    if run.attempt == 1:
        raise RuntimeError(f"page {pages} is torn")
    return {"pages": run.step("count", taken, run, "count", pages)}


def dies_behind(run: Run) -> Any:
    """The process dies between one step, which is recorded, and the end of the next."""
    run.step("read", taken, run, "read", 412)
    return run.step("count", dying, run)


def dying(run: Run) -> str:
    tell(run.task.id, "count", run.attempt)
    if run.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "counted"


def pays(run: Run) -> Any:
    """The tool is called, and the process dies before that is recorded."""
    begun, key = run.was_begun("pay"), run.key("pay")
    tell(run.task.id, "asks", run.attempt, begun, key)
    return run.step("pay", pay, run, key)


def pay(run: Run, key: str) -> str:
    ledger = Path("ledger")
    paid = ledger.read_text().splitlines() if ledger.exists() else []
    if key not in paid:
        ledger.write_text("\n".join([*paid, key]) + "\n")
    if run.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


def unwritable(run: Run) -> Any:
    return {run.task.id}


def unwritable_step(run: Run) -> Any:
    run.step("count", lambda: {run.task.id})


def fails(run: Run) -> Any:
    print(f"attempt {run.attempt} is about to fail")
    raise RuntimeError("the disk is full")


def hangs(run: Run) -> Any:
    if run.attempt == 1:
        Event().wait(600)
    return "in time"


def waits(run: Run) -> Any:
    """Until three of them are here at once, or long enough."""
    tell(run.task.payload["group"], "here", run.agent)
    end = time.monotonic() + 20
    while len(set(here(run.task.payload["group"]))) < 3 and time.monotonic() < end:
        Event().wait(0.02)
    return len(set(here(run.task.payload["group"])))


def here(group: str) -> list[str]:
    words = [line.split() for line in Path("told").read_text().splitlines()]
    return [agent for which, what, agent in (each[:3] for each in words) if (which, what) == (group, "here")]
