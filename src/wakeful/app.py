"""The composition root: the only file that knows every concrete class.

Laws:
- One process holds the data folder's lock, and only that process writes there. It is taken before the store is opened
  and given back after it is closed. A command needs it only where the store is in that folder.
- Which store is used is one line of the fleet file. What lies in the data folder (see `belongings`) is this node's own,
  whichever it is; psycopg is imported by nobody who does not need it.
- An engine is announced (`engine.json`) when it can be asked, and no sooner.
- The first signal lets go of the runs and leaves; a second one leaves at once. Neither ends a run.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wakeful import belongings
from wakeful.belongings import DATA, SQLITE, write_private
from wakeful.core.agents import Agent, Fleet
from wakeful.core.errors import Busy, Conflict, Mistake
from wakeful.fleet.load import FLEET_NAMES, find_fleet
from wakeful.store.folder import DataFolder

if TYPE_CHECKING:
    from wakeful.control.control import Control
    from wakeful.engine.engine import Engine
    from wakeful.engine.sourcing import Sources
    from wakeful.fleet.watch import FleetFile
    from wakeful.http.server import Server
    from wakeful.store.postgres_store import PostgresStore
    from wakeful.store.store import SqlStore
    from wakeful.store.writer import Writer

log = logging.getLogger("wakeful.engine")

ENGINE = "engine.json"
# A command holds the folder for at most a few seconds; another engine holds it for good.
PATIENCE = 8.0
BAD_FILE, TRY_LATER = 2, 75
# Seconds between two looks at a node of our own name.
LOOK_AT_TWIN = 0.5
# A run and its folder are the same if they were started at the same time, give or take what a start takes.
SAME_START = 60.0
NEWEST = 2**62


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


# ---- stores


def open_shared(address: str, *, patient: bool = False) -> PostgresStore:
    """The store at that address. A server that is away is waited for by a `patient` caller, and is `Busy` to others."""
    try:
        from wakeful.store.postgres import connect_when_there, may_pass, open_postgres
    except ImportError as error:
        if not (error.name or "psycopg").startswith("psycopg"):
            raise
        raise Mistake(
            "a store in PostgreSQL needs psycopg, which is not installed", "pip install 'wakeful[postgres]'"
        ) from error
    if patient:
        return connect_when_there(address)
    # A command says what it has to say itself; the doctor looks at how well the server keeps what it is given.
    logging.getLogger("wakeful.store").addHandler(logging.NullHandler())
    try:
        return open_postgres(address)
    except Mistake as mistake:
        if may_pass(mistake.__cause__):
            raise Busy(mistake.reason) from mistake
        raise


# ---- without an engine


@contextmanager
def open_offline(data: Path, fleet: Path | None = None, *, named: bool = True) -> Iterator[Control]:
    """The fleet as a command reaches it when no engine runs here: a store of its own under the lock, for as short as
    possible; one that is shared as one more of those who use it. See `belongings.store_address` for `named`."""
    from wakeful.control.control import Control

    given: dict[str, Any] = {"runs": data / belongings.RUNS, "clock": _now, "fleet_file": fleet}
    address = belongings.store_address(data, fleet, named=named)
    if address != SQLITE:
        shared = open_shared(address)
        from wakeful.store.postgres_access import PostgresInline

        try:
            yield Control(PostgresInline(shared), **given, node=belongings.known_node(data), shared=True)
        finally:
            shared.close()
        return
    from wakeful.store.inline import Inline
    from wakeful.store.sqlite import open_sqlite

    with DataFolder(data) as folder:
        store = open_sqlite(folder.database)
        try:
            yield Control(Inline(store), **given, node=belongings.known_node(data))
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
    fleet, data = file.fleet, folder.path
    before = belongings.remembered(data) or SQLITE
    # A broken file says nothing of its store: the one that was used last is taken up.
    address = fleet.store if fleet is not None else before
    file.keep_to(address)
    store = _open(address, folder)
    try:
        known = bool(store.overview(limit=1))
        problems = _problems(file, fleet, known)
        if problems:
            print("\n".join(problems), file=sys.stderr)
            return BAD_FILE
        node = belongings.node_name(data)
        _say_if_moved(before, address, folder, known)
        _set_aside(data, store, node, moved=address != before)
        belongings.remember(data, address)
        return asyncio.run(_serve(options, file, data, store, node, address))
    finally:
        store.close()


def _open(address: str, folder: DataFolder) -> SqlStore:
    if address != SQLITE:
        return open_shared(address, patient=True)
    from wakeful.store.sqlite import open_sqlite

    return open_sqlite(folder.database)


def _say_if_moved(before: str, address: str, folder: DataFolder, known: bool) -> None:
    """Who has changed the store has two of them now."""
    was = folder.database if before == SQLITE else belongings.named(before)
    if address == before or (before == SQLITE and (known or not folder.database.exists())):
        return
    bring = " (wakeful store copy brings it over)" if before == SQLITE else ""
    now = folder.database if address == SQLITE else belongings.named(address)
    log.warning("the store is %s from now on; what is in %s stays there%s", now, was, bring)


def _set_aside(data: Path, store: SqlStore, node: str, *, moved: bool) -> None:
    """Run numbers begin anew in another store, and go back in one that was restored."""

    def is_ours(run: int, started: float | None) -> bool:
        row = store.run(run)
        if row is None or row.node != node:
            return False
        return started is None or row.started_at is None or abs(row.started_at.timestamp() - started) < SAME_START

    newest = store.runs(before=NEWEST, limit=1)
    aside = belongings.set_aside(data, newest[0].id if newest else 0, is_ours if moved else None)
    if aside is not None:
        log.warning("what runs of another store left here is now in %s", aside)


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


async def _serve(options: Options, file: FleetFile, data: Path, store: SqlStore, node: str, address: str) -> int:
    from wakeful.control.control import Control
    from wakeful.engine.clock import SystemClock
    from wakeful.engine.engine import Engine
    from wakeful.http.app import build
    from wakeful.http.auth import Keys, run_token
    from wakeful.http.server import Server, bind, hosts_of, url_of
    from wakeful.runners.carrier import Carrier
    from wakeful.sources.drop import drop_in

    keys = Keys(operator=belongings.operator_token(data), secret=belongings.secret(data))
    listening = _listen(bind, options, file.fleet, data)
    url, shared = url_of(listening), address != SQLITE
    access, sick = _access(store, shared)
    clock, answers, root = SystemClock(), Answers(), file.path.absolute().parent
    carrier = Carrier(
        root, data, url=lambda: url, token=lambda run: run_token(keys, run.id, run.epoch), link=answers, base=os.environ
    )
    # Whoever holds the folder is the only one on a store in it, also after the machine was given another name.
    host = belongings.host(data) if shared else ""
    fed: dict[str, Any] = {"sources": _sources(root, data, url), "drop": drop_in(data)}
    engine = Engine(access, carrier, file, clock, node, data, host=host, url=url, shared=shared, **fed)
    given: dict[str, Any] = {"runs": data / belongings.RUNS, "beside": engine, "fleet_file": file.path}
    control = Control(access, clock=clock.now, node=node, shared=shared, **given)
    answers.control = control
    api = build(control, keys=keys, hosts=hosts_of(listening), sick=(OSError, *sick))
    engine.add(Asked(Server(api), listening))
    try:
        if shared:
            await _alone(access, node, host)
        return await _live(engine, data, {"url": url, "store": belongings.named(address)})
    finally:
        access.close()


def _access(store: SqlStore, shared: bool) -> tuple[Writer, tuple[type[Exception], ...]]:
    """How coroutines reach the store, and by which errors it tells that it is in trouble."""
    if shared:
        import psycopg

        from wakeful.store.postgres_access import PostgresAccess

        return PostgresAccess(cast("PostgresStore", store)), (psycopg.Error,)
    import apsw

    from wakeful.store.writer import Writer

    return Writer(store), (apsw.Error,)


def _sources(root: Path, data: Path, url: str) -> Sources:
    """What agents declare to be looked at: in their name, and without their secrets in what is told of it."""
    from wakeful.runners.environment import Surroundings, before_a_run, secret_values, with_ourselves
    from wakeful.runners.redaction import Redactor
    from wakeful.sources.registry import Around, declared

    around = Surroundings(base=with_ourselves(os.environ), root=root, data=data)

    def hide(agent: Agent) -> Callable[[str], str]:
        redactor = Redactor(secret_values(agent, os.environ))
        return lambda words: (redactor.feed(words.encode(errors="replace")) + redactor.flush()).decode(errors="replace")

    given: dict[str, Any] = {"root": root, "variables": os.environ, "hide": hide}
    given["environment"] = lambda agent: before_a_run(agent, around, url=url)
    return lambda agents, hints: declared(agents, Around(hints=hints, **given))


async def _alone(access: Writer, node: str, host: str) -> None:
    """A node of our name that is silent, since its machine went down a moment ago, is waited for as long as its lease
    lasts; one that speaks is another, and we shall be told so."""
    seen: datetime | None = None
    while True:
        rows = await access.read(lambda store: store.nodes(_now()))
        twin = next((row for row in rows if row.name == node and row.host != host and row.alive), None)
        if twin is None or (seen is not None and twin.seen_at > seen):
            return
        if seen is None:
            log.warning(
                "a node called %s was at work on %s a moment ago: waiting until it is known to be gone", node, twin.host
            )
        seen = twin.seen_at
        await asyncio.sleep(LOOK_AT_TWIN)


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


def _listen(
    bind: Callable[[str, int], socket.socket], options: Options, fleet: Fleet | None, data: Path
) -> socket.socket:
    """Port 0 is any free one; an engine that comes back takes the one that it had, for its runs still know it."""
    port = options.port if options.port is not None else (fleet.port if fleet else Fleet().port)
    if port == 0:
        with suppress(OSError, ValueError, KeyError, Mistake):
            before = json.loads((data / ENGINE).read_bytes())["url"]
            return bind(options.host, int(before.rpartition(":")[2]))
    return bind(options.host, port)


async def _live(engine: Engine, data: Path, told: dict[str, str]) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _leave, engine, number)
    try:
        await engine.start()
        # Somebody may have wanted it to leave before it began.
        if engine.ready:
            about = {"pid": os.getpid(), "url": told["url"], "since": _now().isoformat(), "node": engine.node}
            write_private(data / ENGINE, json.dumps(about) + "\n")
            log.info("ready", extra={"fields": {**told, "data": str(data), "node": engine.node}})
        await engine.stayed()
    except Conflict as conflict:
        print(conflict, file=sys.stderr)
        return TRY_LATER
    finally:
        await engine.stop()
        log.info("left", extra={"fields": told})
    return 0


def _leave(engine: Engine, number: int) -> None:
    if engine.leaving:
        # Whoever asks twice does not want to wait: the runs are held by their guardians, the store by its journal.
        os._exit(128 + number)
    engine.leave()
