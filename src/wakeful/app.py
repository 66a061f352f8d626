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
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful import belongings
from wakeful.belongings import SQLITE, write_private
from wakeful.core.agents import Agent, Fleet
from wakeful.core.errors import Busy, Conflict, Sick
from wakeful.core.runs import Run
from wakeful.opening import access_to, data_path, fleet_path, now_utc, open_store
from wakeful.store.folder import DataFolder

if TYPE_CHECKING:
    from wakeful.control.control import Control
    from wakeful.engine.engine import Engine
    from wakeful.engine.sourcing import Sources
    from wakeful.fleet.watch import FleetFile
    from wakeful.http.auth import Keys
    from wakeful.http.listening import Listening
    from wakeful.http.server import Server
    from wakeful.runners.hiding import Hiding
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
    # Addresses other than the loopback: see `http.listening`.
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    private_key: Path | None = None
    insecure: bool = False


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
        print(f"{busy} ({busy.remedy if isinstance(busy, Sick) else _who_holds(folder.path)})", file=sys.stderr)
        return TRY_LATER
    try:
        folder.close_off()
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
    store = open_store(address, folder)
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
    from wakeful.engine.logs import hide
    from wakeful.engine.services import Lasting
    from wakeful.http.app import build
    from wakeful.http.auth import Keys
    from wakeful.http.entry import caller_of
    from wakeful.http.server import Server
    from wakeful.mcp.served import Served
    from wakeful.runners.carrier import Carrier
    from wakeful.sources.drop import drop_in
    from wakeful.telemetry.telemetry import Telemetry

    token = belongings.Token(data)
    keys = Keys(operator=token(), secret=belongings.secret(data))
    listening = _listen(options, file.fleet, data)
    url, shared = listening.url, address != SQLITE
    access, sick = access_to(store, shared)
    clock, answers, root = SystemClock(), Answers(), file.path.absolute().parent
    # Of one folder, or of one database: what is known of its runs elsewhere is known by that.
    identity = belongings.named(address) if shared else keys.secret.hex()
    telemetry = Telemetry(access, clock.now, node, shared=shared, identity=identity, variables=os.environ)
    told: dict[str, Any] = {"token": _tokens(keys), "trace": telemetry.traceparent}
    hiding = _hiding(file, store, token, keys.secret)
    hide(hiding)
    carrier = Carrier(root, data, url=lambda: url, link=answers, base=os.environ, hidden=hiding.values, **told)
    # Whoever holds the folder is the only one on a store in it, also after the machine was given another name.
    host = belongings.host(data) if shared else ""
    fed: dict[str, Any] = {"sources": _sources(root, data, url), "drop": drop_in(data), "hide": hiding}
    engine = Engine(telemetry.access, carrier, file, clock, node, data, host=host, url=url, shared=shared, **fed)
    given: dict[str, Any] = {"runs": data / belongings.RUNS, "beside": engine, "fleet_file": file.path}
    given |= {"recalling": True, "redact": hiding}
    control = Control(telemetry.access, clock=clock.now, node=node, shared=shared, **given)
    answers.control = control
    named: dict[str, Any] = {"hosts": listening.hosts, "origins": listening.origins, "operator": token}
    named["mounts"] = {"/mcp": Served(control, caller_of, sick=(OSError, *sick))}
    api = build(control, keys=keys, sick=(OSError, *sick), scrape=telemetry.scrape, **named)
    engine.add(Lasting(telemetry.name, telemetry.run))
    engine.add(Asked(Server(api), listening))
    try:
        if shared:
            await _alone(access, node, host)
        await telemetry.begin()
        wide = {"wide": listening.wide_url} if listening.wide_url else {}
        known = {"url": url, **wide, "store": belongings.named(address)}
        return await _live(engine, data, known, lambda: f"{url}/#token={token()}")
    finally:
        await telemetry.end()
        access.close()


def _tokens(keys: Keys) -> Callable[[Run], str]:
    from wakeful.http.auth import run_token

    def token(run: Run) -> str:
        assert run.started_at is not None, "only a run that was begun is given a token"
        return run_token(keys, run.id, run.epoch, run.started_at)

    return token


def _hiding(file: FleetFile, store: SqlStore, token: Callable[[], str], key: bytes) -> Hiding:
    """What is secret here, of the fleet as it stands; until a file can be read, of the one that is known."""
    from wakeful.runners.hiding import Hiding

    known = tuple(store.agents()) if file.fleet is None else ()
    return Hiding(lambda: known if file.fleet is None else file.fleet.agents, os.environ, token, key=key)


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
        rows = await access.read(lambda store: store.nodes(now_utc()))
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

    def __init__(self, server: Server, listening: Listening) -> None:
        self._server = server
        self._listening = listening

    async def start(self) -> None:
        local, wide, context = self._listening.local, self._listening.wide, self._listening.context
        if wide is None or context is None:
            await self._server.start([local] if wide is None else [local, wide])
        else:
            await self._server.start([local], {wide: context})

    async def stop(self) -> None:
        await self._server.stop()


def _listen(options: Options, fleet: Fleet | None, data: Path) -> Listening:
    """Port 0 is any free one; an engine that comes back takes the one that it had, for its runs still know it. So does
    one whose fleet file is broken, and says nothing of a port."""
    from wakeful.http.listening import Reach, listen

    before = None
    with suppress(OSError, ValueError, KeyError):
        before = int(json.loads((data / ENGINE).read_bytes())["url"].rpartition(":")[2])
    # On another address the port of the loopback is not the fleet's own.
    last = before if options.host == Options().host else None
    declared = fleet.port if fleet is not None else last or Fleet().port
    port = options.port if options.port is not None else declared
    reach = Reach(
        host=options.host,
        port=port,
        names=options.names,
        certificate=options.certificate,
        private_key=options.private_key,
        insecure=options.insecure,
    )
    return listen(reach, before=before)


async def _live(engine: Engine, data: Path, told: dict[str, str], dashboard: Callable[[], str]) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _leave, engine, number)
    try:
        await engine.start()
        # Somebody may have wanted it to leave before it began.
        if engine.ready:
            about = {"pid": os.getpid(), "url": told["url"], "since": now_utc().isoformat(), "node": engine.node}
            # Who looks after it wants to know from where else it can be reached.
            about |= {"wide": told["wide"]} if "wide" in told else {}
            write_private(data / ENGINE, json.dumps(about) + "\n")
            page = {"dashboard": f"{told['url']}/"}
            log.info("ready", extra={"fields": {**told, **page, "data": str(data), "node": engine.node}})
            if sys.stderr.isatty():
                # Beside the log, which holds no secret: whoever sits there opens it with a click.
                print(f"dashboard: {dashboard()}", file=sys.stderr, flush=True)
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
