"""A fleet in a folder, as a command finds it: a fleet file, a real store with a past, and agents that mean ill."""

import asyncio
import inspect
import json
import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
from click.testing import CliRunner, Result

from tests.store.blank import open_blank
from tests.store.postgres_server import dsn
from wakeful.cli import main
from wakeful.control.callers import OPERATOR, Claim, leave_to_others
from wakeful.control.control import Control
from wakeful.control.operations import OPERATIONS
from wakeful.core.admission import admit
from wakeful.core.errors import Mistake, Unknown, WakefulError
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.core.runs import Ending
from wakeful.core.runs import Result as Told
from wakeful.core.settlement import settle
from wakeful.core.wakes import Cause, Pause, Subject, Wake
from wakeful.fleet.load import load_fleet
from wakeful.store.folder import DataFolder
from wakeful.store.inline import Inline
from wakeful.store.protocol import Finish
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore

ROOT = Path(__file__).resolve().parents[2]
LEASE = timedelta(hours=1)
# A terminal's title, a colour, the end of a line, an eight-bit sequence, a turned direction.
EVIL = "\x1b]0;evil\x07 \x1b[31mred\x1b[0m \r\x9b2J\x7f \u202egnp"
TOKEN = "the-operators-token"
PASSWORD = "geheim-1234"

FLEET = """\
#+TITLE: night desk
#+RUN: true

* wren
:PROPERTIES:
:INTERVAL: 10m
:COOLDOWN: 5m
:END:
* moss
:PROPERTIES:
:INTERVAL: 20m
:END:
"""


def wakeful(*arguments: str, **environment: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, arguments, env=environment)


def spawned(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command as a process of its own."""
    start = "from wakeful.cli import main; main(prog_name='wakeful')"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        timeout=60,
    )


class Office:
    """The folder of a fleet, and its store while nobody else has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / ".wakeful"

    def declare(self, fleet: str = FLEET) -> None:
        (self.folder / "fleet.org").write_text(fleet, encoding="utf-8")
        declared = load_fleet(self.folder / "fleet.org").fleet
        assert declared is not None
        with self.store() as store:
            store.declare(declared, now())

    def shares(self, address: str) -> None:
        """From now on the fleet file says that the store is there."""
        (self.folder / "fleet.org").write_text(FLEET.replace("#+RUN: true\n", f"#+RUN: true\n#+STORE: {address}\n"))

    @contextmanager
    def store(self) -> Iterator[SqlStore]:
        with DataFolder(self.data) as folder:
            store = open_blank(folder.database)
            try:
                yield store
            finally:
                store.close()

    def begin(self, agent: str = "wren") -> int:
        """A beat that is under way."""
        at = now()
        wake = Wake(agent=agent, cause=Cause.operator, subject=Subject.beat, requested_at=at, sender="operator")
        with self.store() as store:
            run = store.decide([wake], admit, at)[0].run
            store.claim("here", at, LEASE)
        assert run is not None
        return run

    def end(self, run: int, *, exit_code: int = 0, summary: str = "") -> None:
        with self.store() as store:
            row = store.run(run)
            ending = Ending(exit_code=exit_code, result=Told(summary=summary))
            store.finish([Finish(run=run, epoch=row.epoch, ending=ending)], settle, now())

    def prints(self, run: int, text: str, stream: str = "stdout") -> None:
        folder = self.data / "runs" / str(run)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / stream).open("ab") as file:
            file.write(text.encode())

    def befoul(self) -> None:
        """Everything that a stranger can write is written ill: run 1 of wren, run 2 of moss, a task 2, a dead 3."""
        run = self.begin()
        self.prints(run, f"before {EVIL} after\n")
        self.end(run, summary=f"summary {EVIL}")
        failed = self.begin("moss")
        self.end(failed, exit_code=1, summary=EVIL)
        message = NewItem(kind=Kind.message, agent="wren", sender=EVIL, origin=Origin.external, subject=EVIL, body=EVIL)
        task = NewItem(kind=Kind.task, agent="moss", subject=EVIL, body=EVIL, sender=EVIL)
        wake = Wake(
            agent="wren",
            cause=Cause.peer,
            subject=Subject.inbox,
            requested_at=now(),
            sender=EVIL,
            reason=EVIL,
        )
        with self.store() as store:
            store.record([message, task, task], now())
            store.change_task(3, "fail", EVIL, now(), reason=EVIL)
            store.ask([wake], now())
            store.pause(Pause(scope="agent:moss", owner="operator", reason=EVIL, since=now()), now())


def now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def schema() -> Iterator[str]:
    """The address of an empty schema of a real server, with a password in it that nobody may ever be shown."""
    name = f"cli_{secrets.token_hex(6)}"
    plain = dsn()
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        try:
            joint = "&" if "?" in plain else "?"
            yield plain.replace("wakeful@", f"wakeful:{PASSWORD}@") + f"{joint}options=-csearch_path%3D{name}"
        finally:
            connection.execute("SET client_min_messages = warning")
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


T = TypeVar("T")


class Beside:
    """What an engine says of itself; told to leave, it gives the folder back."""

    leaving = False

    def __init__(self) -> None:
        self.left: list[bool] = []
        self.answers: dict[str, object] = {"changed": ["wren"], "diagnostics": []}
        self.sickness: dict[str, object] = {}
        self.away = threading.Event()

    async def taking(self, write: Callable[[Claim], Awaitable[T]]) -> T:
        return await write(leave_to_others)

    def health(self) -> dict[str, object]:
        well = {"node": "here", "since": "2026-03-02T12:00:00Z", "ready": True, "heartbeat_age": 0.25, "why_not": ""}
        return {**well, **self.sickness}

    async def reload(self) -> dict[str, object]:
        return self.answers

    def leave(self, *, drain: bool) -> None:
        self.left.append(drain)
        self.away.set()

    async def starts_settled(self) -> None:
        return None


class Served:
    """The operations of a real control over HTTP, one request at a time; as an engine, it holds the folder."""

    def __init__(self, office: Office) -> None:
        self.beside = Beside()
        self.tokens: list[str] = []
        self._folder = DataFolder(office.data)
        self._folder.lock(0)
        self._store = open_sqlite(self._folder.database, durable=False)
        self.control = Control(
            Inline(self._store),
            runs=office.data / "runs",
            clock=now,
            beside=self.beside,
            node="here",
            fleet_file=office.folder / "fleet.org",
        )
        self._server = HTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        (office.data / "engine.json").write_text(json.dumps({"pid": os.getpid(), "url": self.url}))
        (office.data / "token").write_text(TOKEN + "\n")
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._store.close()
        self._folder.unlock()

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, dict[str, object]]:
        path = urlsplit(target)
        for name, operation in OPERATIONS.items():
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(operation.path))
            found = re.fullmatch(pattern, path.path)
            if found and operation.method == method:
                ask = getattr(self.control, name)
                given = dict(parse_qsl(path.query)) | {key: unquote(value) for key, value in found.groupdict().items()}
                typed = {key: _typed(ask, key, value) for key, value in given.items()} | json.loads(body or b"{}")
                return self._asked(ask, typed)
        return 404, {"detail": "no such path"}

    def _asked(self, ask, parameters) -> tuple[int, dict[str, object]]:
        try:
            return 200, asyncio.run(ask(OPERATOR, **parameters))
        except Mistake as error:
            return 400, {"detail": error.reason, "remedy": error.remedy}
        except Unknown as error:
            return 404, {"detail": str(error), "remedy": error.remedy}
        except WakefulError as error:
            return 409, {"detail": str(error), "remedy": error.remedy}

    def _handler(served) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.tokens.append(self.headers["Authorization"])
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = served.answer(self.command, self.path, body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                return None

        return Handler


def _typed(ask, key: str, value: str) -> object:
    """A query holds only text; the operation says what it means."""
    kind = str(inspect.signature(ask).parameters[key].annotation)
    if "int" in kind:
        return int(value)
    if "list" in kind or "Sequence" in kind:
        return value.split(",")
    return value == "true" if "bool" in kind else value
