"""The composition root: the only file that knows every concrete class.

Laws:
- One process holds the data folder's lock, and only that process writes. It is taken before the store is opened and
  given back after it is closed.
- An engine is announced (`engine.json`) when it can be asked, and no sooner.
- The first signal lets go of the runs and leaves; a second one leaves at once. Neither ends a run.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.core.agents import Fleet
from wakeful.core.errors import Busy, Mistake
from wakeful.fleet.load import FLEET_NAMES, find_fleet
from wakeful.store.folder import DataFolder

if TYPE_CHECKING:
    from wakeful.control.control import Control
    from wakeful.engine.engine import Engine
    from wakeful.fleet.watch import FleetFile
    from wakeful.http.server import Server
    from wakeful.store.store import SqlStore

log = logging.getLogger("wakeful.engine")

DATA = ".wakeful"
ENGINE = "engine.json"
TOKEN = "token"
SECRET = "secret"
NODE = "node"
# A command holds the folder for at most a few seconds; another engine holds it for good.
PATIENCE = 8.0
BAD_FILE, TRY_LATER = 2, 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    fleet: Path | None = None
    data: Path | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    run: str | None = None


# ---- where things are


def fleet_path(fleet: Path | None) -> Path:
    found = fleet or find_fleet()
    if found is None:
        raise Mistake(
            f"no {' or '.join(FLEET_NAMES)} in this folder", "name it with --fleet, or begin with wakeful init"
        )
    return found


def data_path(data: Path | None, fleet: Path | None) -> Path:
    """`--data` or WAKEFUL_DATA, else `.wakeful` beside the fleet file, else in this folder."""
    if data is not None:
        return data
    found = fleet or find_fleet()
    return (found.absolute().parent if found else Path.cwd()) / DATA


def read_or_make(path: Path, make: Any) -> str:
    """A small private file: what it says, or what is written to it because it was not there."""
    with suppress(FileNotFoundError):
        text = path.read_text(encoding="ascii").strip()
        if text:
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
            return text
    text = str(make())
    write_private(path, text + "\n")
    return text


def write_private(path: Path, text: str) -> None:
    """The whole file or none of it, and nobody else's to read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def operator_token(data: Path) -> str:
    return read_or_make(data / TOKEN, lambda: secrets.token_urlsafe(32))


# ---- without an engine


@contextmanager
def open_offline(data: Path, fleet: Path | None = None) -> Iterator[Control]:
    """The fleet as a command reaches it when no engine runs: under the lock, for as short as possible."""
    from wakeful.control.control import Control
    from wakeful.store.inline import Inline
    from wakeful.store.sqlite import open_sqlite

    with DataFolder(data) as folder:
        store = open_sqlite(folder.database)
        try:
            yield Control(Inline(store), runs=data / "runs", clock=_now, beside=None, node=None, fleet_file=fleet)
        finally:
            store.close()


def _now() -> datetime:
    return datetime.now(UTC)


# ---- with an engine


def serve(options: Options) -> int:
    """`wakeful up`: until a signal, or until somebody asks it to stop. The exit code."""
    from wakeful.engine.logs import set_up
    from wakeful.fleet.watch import FleetFile

    set_up()
    path = fleet_path(options.fleet)
    file = FleetFile(path, run=options.run)
    folder = DataFolder(data_path(options.data, path))
    try:
        folder.lock(PATIENCE)
    except Busy as busy:
        print(f"{busy} ({_who_holds(folder.path)})", file=sys.stderr)
        return TRY_LATER
    try:
        return _with_store(options, file, folder)
    finally:
        folder.unlock()


def _who_holds(data: Path) -> str:
    try:
        known = json.loads((data / ENGINE).read_bytes())
        return f"an engine runs there as process {known['pid']}, at {known['url']}; stop it with wakeful stop"
    except (OSError, ValueError, KeyError):
        return "try again, or name another with --data"


def _with_store(options: Options, file: FleetFile, folder: DataFolder) -> int:
    from wakeful.store.sqlite import open_sqlite

    fleet = file.fleet
    if fleet is not None and fleet.store != "sqlite":
        raise Mistake(f"the store {fleet.store!r} is not there yet", "use sqlite")
    store = open_sqlite(folder.database)
    try:
        problems = _problems(file, fleet, bool(store.overview(limit=1)))
        if problems:
            print("\n".join(problems), file=sys.stderr)
            return BAD_FILE
        return asyncio.run(_serve(options, file, folder.path, store))
    finally:
        store.close()


def _problems(file: FleetFile, fleet: Fleet | None, known: bool) -> list[str]:
    """Why this fleet cannot be taken up. With a fleet that is known from before, a broken edit does not stop it."""
    lines = [str(diagnostic) for diagnostic in file.diagnostics]
    if fleet is None:
        if known:
            for line in lines:
                log.error("%s", line)
            log.error("%s is broken: the last good version is taken up", file.path)
            return []
        return [*lines, f"{file.path}: mend it, then try again (wakeful check says the same)"]
    from wakeful.engine.declarations import unrunnable

    return [
        f"{file.path}: {agent.name} has no RUN, HANDLER, URL or TMUX (add :RUN: to it, #+RUN: to the fleet, "
        "or give --run or WAKEFUL_RUN)"
        for agent in unrunnable(fleet)
    ]


async def _serve(options: Options, file: FleetFile, data: Path, store: SqlStore) -> int:
    import apsw

    from wakeful.control.control import Control
    from wakeful.engine.clock import SystemClock
    from wakeful.engine.engine import Engine
    from wakeful.http.app import build
    from wakeful.http.auth import Keys, run_token
    from wakeful.http.server import Server, bind, hosts_of, url_of
    from wakeful.runners.carrier import Carrier
    from wakeful.store.writer import Writer

    keys = Keys(operator=operator_token(data), secret=bytes.fromhex(read_or_make(data / SECRET, _hex)))
    node = read_or_make(data / NODE, socket.gethostname)
    listening = _listen(bind, options, file.fleet, data)
    url = url_of(listening)
    clock, writer = SystemClock(), Writer(store)
    answers = Answers()
    carrier = Carrier(
        file.path.absolute().parent,
        data,
        url=lambda: url,
        token=lambda run: run_token(keys, run.id, run.epoch),
        link=answers,
        base=os.environ,
    )
    engine = Engine(writer, carrier, file, clock, node, data)
    control = Control(writer, runs=data / "runs", clock=clock.now, beside=engine, node=node, fleet_file=file.path)
    answers.control = control
    api = build(control, keys=keys, hosts=hosts_of(listening), sick=(OSError, apsw.Error))
    engine.add(Asked(Server(api), listening))
    try:
        await _live(engine, data, url)
    finally:
        writer.close()
    return 0


class Answers:
    """What a Python handler asks in the course of its run, answered by control."""

    control: Control

    async def __call__(self, run: int, request: dict[str, Any]) -> dict[str, Any]:
        from wakeful.control.answering import answer

        return await answer(self.control, run, request)


class Asked:
    """The HTTP server as one of the engine's services."""

    name = "http"

    def __init__(self, server: Server, listening: socket.socket) -> None:
        self._server = server
        self._listening = listening

    async def start(self) -> None:
        await self._server.start([self._listening])

    async def stop(self) -> None:
        await self._server.stop()


def _hex() -> str:
    return secrets.token_hex(32)


def _listen(bind: Any, options: Options, fleet: Fleet | None, data: Path) -> socket.socket:
    """Port 0 is any free one; an engine that comes back takes the one that it had, for its runs still know it."""
    port = options.port if options.port is not None else (fleet.port if fleet else Fleet().port)
    if port == 0:
        with suppress(OSError, ValueError, KeyError, Mistake):
            before = json.loads((data / ENGINE).read_bytes())["url"]
            bound: socket.socket = bind(options.host, int(before.rpartition(":")[2]))
            return bound
    bound = bind(options.host, port)
    return bound


async def _live(engine: Engine, data: Path, url: str) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _leave, engine, number)
    await engine.start()
    about = {"pid": os.getpid(), "url": url, "since": _now().isoformat(), "node": engine.node}
    write_private(data / ENGINE, json.dumps(about) + "\n")
    log.info("ready", extra={"fields": {"url": url, "data": str(data), "node": engine.node}})
    try:
        await engine.stayed()
    finally:
        await engine.stop()
        log.info("left", extra={"fields": {"url": url}})


def _leave(engine: Engine, number: int) -> None:
    if engine.leaving:
        # Whoever asks twice does not want to wait: the runs are held by their guardians, the store by its journal.
        os._exit(128 + number)
    engine.leave()
