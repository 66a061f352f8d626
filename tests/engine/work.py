"""A desk for real work: the engine, its guardians and its workers, on a clock that can be set on."""

import asyncio
import functools
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.engine.stage import fleet, heading
from wakeful.core.items import Item, Kind, NewItem, State
from wakeful.core.runs import Run
from wakeful.engine.clock import SystemClock
from wakeful.engine.engine import Engine
from wakeful.fleet.watch import FleetFile
from wakeful.runners.carrier import Carrier
from wakeful.runners.processes import descendants
from wakeful.store.protocol import Attempt
from wakeful.store.sqlite import open_sqlite
from wakeful.store.writer import Writer

PATIENCE = 30.0

# A deed for each task, by the name in its payload; whoever wants to see more looks for the files that are left.
HANDLER = """
import os, signal, sys, time
from pathlib import Path

HERE = Path(__file__).parent

def mark(run, what):
    with open(HERE / "marks", "a") as file:
        file.write(f"{what} {run.task.id} {run.attempt}\\n")

def hold(run):
    mark(run, "begun")
    while not (HERE / "go").exists():
        time.sleep(0.01)
    mark(run, "ended")

def kill_worker(run):
    mark(run, "begun")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)

def kill_guardian(run):
    mark(run, "begun")
    with open(f"/proc/{os.getppid()}/stat") as file:
        guardian = int(file.read().rpartition(")")[2].split()[1])
    os.kill(guardian, signal.SIGKILL)
    time.sleep(60)

def crash(run):
    mark(run, "begun")
    print("about to fall")
    os.kill(os.getpid(), signal.SIGKILL)

def told(run):
    task = run.task
    return {
        "payload": task.payload, "description": task.description, "tags": list(task.tags), "timeout": task.timeout,
        "left": round((run.deadline.timestamp() - time.time())), "deadline": os.environ["WAKEFUL_DEADLINE"],
        "task": os.environ["WAKEFUL_TASK_ID"],
    }

def do(run):
    payload = run.task.payload
    return DEEDS[payload["deed"] if isinstance(payload, dict) else payload](run)

DEEDS = {
    "hold": hold, "crash": crash, "kill worker": kill_worker, "kill guardian": kill_guardian, "told": told,
    "nothing": lambda run: None, "sleep": lambda run: (mark(run, "begun"), time.sleep(60)),
    "say": lambda run: print("x" * 10_000 + "the last words"), "fail": lambda run: sys.exit("not today"),
}
"""


def worked(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, in real time."""

    @functools.wraps(story)
    def told(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(story(*arguments, **named), PATIENCE))

    return told


class SetClock(SystemClock):
    """The machine's, but for what a test sets it on by."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / ".wakeful"
        self.data.mkdir(parents=True)
        self.store = open_sqlite(self.data / "wakeful.db", durable=False)
        self.clock = SetClock()
        self.writer: Writer | None = None
        self.engine: Engine | None = None
        self.hide: Callable[[str], str] = str
        (folder / "deeds.py").write_text(HANDLER)

    def declare(self, *agents: str) -> None:
        (self.folder / "fleet.org").write_text(fleet(*agents, grace="0s"))

    def handler(self, **keys: str) -> str:
        return heading("moss", **{"handler": "deeds:do", "tasks": "desk", "kill_grace": "1s", **keys})

    def program(self, text: str, **keys: str) -> str:
        file = self.folder / "program"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return heading("moss", **{"run": str(file), "tasks": "desk", "kill_grace": "1s", **keys})

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Engine]:
        writer = Writer(self.store)

        def token(run: Run) -> str:
            return f"token-{run.id}"

        carrier = Carrier(self.folder, self.data, url=lambda: "", token=token, base=os.environ)
        given = (self.clock, "here", self.data)
        engine = Engine(writer, carrier, FleetFile(self.folder / "fleet.org"), *given, hide=self.hide)
        self.writer, self.engine = writer, engine
        await engine.start()
        try:
            yield engine
        finally:
            (self.folder / "go").touch()
            for conducted in engine.conductor.open:
                if conducted.held is not None:
                    await conducted.held.end("the end of the test", at_once=True)
            await engine.stop()
            writer.close()
            self.writer = None

    def close(self) -> None:
        self.store.close()

    # ---- what is asked of it

    def _write(self, verb: Callable[[Any], Any]) -> Any:
        return verb(self.store) if self.writer is None else self.writer.submit(verb).result(PATIENCE)

    def add(self, *deeds: Any, **more: Any) -> list[int]:
        """A task for each deed."""
        items = [
            NewItem(kind=Kind.task, role="desk", subject="work", **{"payload": json.dumps(deed), **more})
            for deed in deeds
        ]
        return [task.id for task in self._write(lambda store: store.record(items, datetime.now(UTC)))]

    def change(self, task: int, change: str, **more: Any) -> Item:
        changed: Item = self._write(lambda store: store.change_task(task, change, "rana", self.clock.now(), **more))
        return changed

    def later(self, by: timedelta = timedelta(hours=1)) -> None:
        """What waits for its time need not wait any more."""
        self.clock.ahead += by
        if self.engine is not None:
            self.engine.nudge()

    # ---- what is seen of it

    def item(self, task: int) -> Item:
        item = self.store.item(task)
        assert item is not None
        return item

    def states(self, tasks: list[int]) -> list[State]:
        return [self.item(task).state for task in tasks]

    def attempts(self, task: int) -> list[Attempt]:
        return self.store.attempts(task)

    def marks(self, what: str = "begun") -> list[int]:
        """The tasks that left this mark, in order."""
        file = self.folder / "marks"
        lines = file.read_text().splitlines() if file.exists() else []
        return [int(line.split()[1]) for line in lines if line.split()[0] == what]

    def children(self) -> list[int]:
        return descendants(os.getpid())


async def until(condition: Callable[[], Any]) -> Any:
    """Look again and again at processes that are not ours; `worked` says for how long."""
    never = asyncio.get_running_loop().create_future()
    while not (found := condition()):
        await asyncio.wait([never], timeout=0.01)
    return found
