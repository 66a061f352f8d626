"""wakeful as its users run it: `wakeful up` in a process of its own, tasks done by handlers in warm workers.

Laws:
- The caller is a process beside the engine. On SQLite the engine is the one writer, so the caller asks it over HTTP, on
  a connection that it keeps; on PostgreSQL it is a client of the store, and the engine hears of its commit.
- A queue that is to be full before there is an engine is filled by the operations of `Control` on the store itself.
- The job is the peers' job, in a process that can be ended without harm to the engine.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from benchmarks.peers import job
from benchmarks.peers.peer import POSTGRES, SQLITE, Options, Peer
from wakeful.control.callers import OPERATOR
from wakeful.control.control import Control
from wakeful.engine.clock import SystemClock
from wakeful.fleet.load import load_fleet
from wakeful.opening import open_offline
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_access import PostgresAccess
from wakeful.store.sqlite import open_sqlite

ROLE, NOBODY = "desk", "nobody"
HANDLERS = """
from job import job


def handle(run):
    job(run.task.payload)
"""
AGENT = "* one-{number}\n:PROPERTIES:\n:HANDLER: peers_handlers:handle\n:TASKS: desk\n:ENV: PEERS_MARKS\n:END:\n"
OPERATIONS = {"add_task": "/v1/tasks", "add_tasks": "/v1/tasks/batch"}
START = 60.0
KEPT = 2.0


def data_of(folder: Path) -> Path:
    return folder / ".wakeful"


def fields(number: int, role: str) -> dict[str, Any]:
    return {"title": "job", "role": role, "payload": number}


class Wakeful(Peer):
    note = "the job runs in a process that can be ended; attempts, results and events are kept"
    unfinished = "SELECT count(*) FROM item WHERE kind = 'task' AND state <> 'completed'"
    ours = True
    batches = True
    busy: ClassVar[Options] = {"workers": 3}
    calm: ClassVar[Options] = {"workers": 1}

    @property
    def role(self) -> str:
        """Where only enqueueing is measured, nobody takes what is enqueued."""
        return NOBODY if self.context.setting == "enqueue" else ROLE

    @property
    def fleet(self) -> Path:
        return self.folder / "fleet.org"

    def prepare(self) -> None:
        (self.folder / "job.py").write_text(Path(job.__file__).read_text())
        (self.folder / "peers_handlers.py").write_text(HANDLERS)
        workers = self.options["workers"]
        head = f"#+WORKERS: {workers}\n#+GRACE: 0s\n"
        store = f"#+STORE: {self.store}\n" if self.kind == POSTGRES else ""
        agents = "".join(AGENT.format(number=number) for number in range(1, workers + 1))
        self.fleet.write_text(head + store + agents, encoding="utf-8")
        self.declare()

    def declare(self) -> None:
        """As an engine does at its start: so that tasks can be recorded before there is one."""
        data_of(self.folder).mkdir(exist_ok=True)
        store = self.open_store()
        loaded = load_fleet(self.fleet)
        assert loaded.fleet is not None, loaded.diagnostics
        store.declare(loaded.fleet, datetime.now(UTC), boot=True)
        store.close()

    def open_store(self) -> Any:
        return open_sqlite(self.database) if self.kind == SQLITE else open_postgres(self.store)

    @property
    def database(self) -> Path:
        return data_of(self.folder) / "wakeful.db"

    def command(self) -> Sequence[str]:
        return ("wakeful", "up", "--fleet", str(self.fleet), "--port", "0")


class WakefulSqlite(Wakeful):
    title = "wakeful (SQLite), from beside the engine"
    kind = SQLITE
    note = "each call is a request over HTTP; " + Wakeful.note
    served = True
    apart = True

    def open(self) -> None:
        self.line: HTTPConnection | None = None
        self.used = 0.0
        if self.context.setting == "preload":
            return
        data, until = data_of(self.folder), time.monotonic() + START
        while not (data / "engine.json").exists():
            if time.monotonic() > until:
                raise RuntimeError("the engine did not come up")
            time.sleep(0.01)
        url = urlsplit(json.loads((data / "engine.json").read_bytes())["url"])
        token = (data / "token").read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.line = HTTPConnection(url.hostname or "", url.port, timeout=START)

    def ask(self, operation: str, **parameters: Any) -> None:
        if self.line is None:
            self._offline(operation, **parameters)
            return
        # A connection that was idle for long may have been closed at the other end; then it is opened again.
        if time.monotonic() - self.used > KEPT:
            self.line.close()
        self.line.request("POST", OPERATIONS[operation], json.dumps(parameters), self.headers)
        answer = self.line.getresponse()
        body = answer.read()
        self.used = time.monotonic()
        if answer.status >= 300:
            raise RuntimeError(body.decode(errors="replace"))

    def _offline(self, operation: str, **parameters: Any) -> None:
        """Without an engine, as the command line does it: one who holds the folder while it writes."""
        with open_offline(data_of(self.folder), self.fleet) as control, asyncio.Runner() as runner:
            runner.run(getattr(control, operation)(OPERATOR, **parameters))

    def one(self, number: int) -> None:
        self.ask("add_task", **fields(number, self.role))

    def batch(self, numbers: Sequence[int]) -> None:
        self.ask("add_tasks", tasks=[fields(number, self.role) for number in numbers])

    def close(self) -> None:
        if self.line is not None:
            self.line.close()


class WakefulPostgres(Wakeful):
    title = "wakeful (PostgreSQL), from beside the engine"
    kind = POSTGRES
    asynchronous = True

    async def open(self) -> None:
        self.own = self.open_store()
        self.access = PostgresAccess(self.own)
        runs = data_of(self.folder) / "runs"
        self.control = Control(self.access, runs=runs, clock=SystemClock().now, fleet_file=self.fleet, shared=True)

    async def one(self, number: int) -> None:
        await self.control.add_task(OPERATOR, **fields(number, self.role))

    async def batch(self, numbers: Sequence[int]) -> None:
        await self.control.add_tasks(OPERATOR, tasks=[fields(number, self.role) for number in numbers])

    async def close(self) -> None:
        self.access.close()
        self.own.close()
