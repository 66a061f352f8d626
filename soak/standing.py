"""Real engines that are killed again and again, and agents that bear witness outside of their store (`witness`)."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soak.audits import unsound_folder
from soak.machine import Machine
from soak.witness import LIFECYCLE, Sign, agent, agreement, lost_runs, once_each, overlaps, positions, read_signs
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore

READY = 30.0
ENDED = 90.0
# The data folder of a second node.
TWO = ".wakeful-two"


class Node:
    """An engine over the fleet of a ground, with a data folder and a machine of its own."""

    def __init__(
        self, place: Ground, name: str, store: str | None = None, port: int = 0, program: str = "wakeful"
    ) -> None:
        self.place = place
        self.data = place.folder / name
        self.log_file = place.folder / f"log{name}"
        fleet = place.folder / ("fleet.org" if store == place.store_address else f"fleet{name}.org")
        fleet.write_text(place.declared(store))
        command = [
            sys.executable,
            "-m",
            program,
            "up",
            "--port",
            str(port),
            "--data",
            str(self.data),
            "--fleet",
            str(fleet),
        ]
        self.machine = Machine(place.folder, self.log_file, command)
        self.waits: list[float] = []

    @property
    def name(self) -> str:
        """As the store knows it."""
        return (self.data / "node").read_text().strip()

    @property
    def is_up(self) -> bool:
        return self.machine.engine is not None

    def up(self) -> float:
        """Start it; the seconds until it said that it was ready."""
        announced = self.data / "engine.json"
        announced.unlink(missing_ok=True)
        began = time.monotonic()
        self.machine.up()
        while not announced.exists():
            assert self.is_up, self.log()
            assert time.monotonic() - began < READY, self.log()
            time.sleep(0.01)
        self.waits.append(time.monotonic() - began)
        return self.waits[-1]

    def kill(self) -> None:
        """The engine alone; its runs go on."""
        self.machine.signal(signal.SIGKILL)
        self.machine.ended()

    def cut(self) -> None:
        """The whole machine."""
        self.machine.cut()

    def leave(self) -> None:
        self.machine.signal(signal.SIGTERM)
        assert self.machine.ended() == 0, self.log()

    def drain(self) -> None:
        """Nothing new begins here, what is under way ends, and the engine leaves."""
        asked = self.ask("stop", "--drain")
        assert asked.returncode == 0, asked.stderr
        assert self.machine.ended(ENDED) == 0, self.log()

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "wakeful", *words],
            cwd=self.place.folder,
            env={**os.environ, "WAKEFUL_DATA": str(self.data)},
            capture_output=True,
            text=True,
            timeout=ENDED,
        )

    def told(self, *words: str) -> Any:
        done = self.ask(*words, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def log(self) -> str:
        return self.log_file.read_text()[-4000:]


class Ground(Node):
    """A fleet in a folder, and the first node over it. `more` names others, with the address by which each of them
    reaches the same store. With a `port` of its own a run finds the engine again after a restart; `program` is another
    one than `wakeful` that takes the same words."""

    def __init__(
        self,
        folder: Path,
        fleet: str,
        *,
        store: str | None = None,
        more: dict[str, str] | None = None,
        port: int = 0,
        program: str = "wakeful",
    ) -> None:
        self.folder = folder
        self.store_address = store
        self._fleet = fleet
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "witness").touch()
        super().__init__(self, ".wakeful", store, port, program)
        self.nodes: list[Node] = [self, *(Node(self, name, address) for name, address in (more or {}).items())]

    def declared(self, store: str | None) -> str:
        """The fleet file of a node that reaches its store there."""
        return f"#+STORE: {store}\n{self._fleet}" if store else self._fleet

    def close(self) -> None:
        for node in self.nodes:
            node.machine.close()

    def unsound(self) -> list[str]:
        """What does not add up in its own store, also while engines are at work on it; a shared one is its server's."""
        return unsound_folder(self.data) if self.store_address is None else []

    @contextmanager
    def store(self) -> Iterator[SqlStore]:
        """As it is now, beside the engines of a shared one; of a file, when they have left."""
        if self.store_address is None:
            opened: SqlStore = open_sqlite(self.data / "wakeful.db")
        else:
            from wakeful.store.postgres import open_postgres

            opened = open_postgres(self.store_address)
        try:
            yield opened
        finally:
            opened.close()


class Place(Ground):
    """A fleet of witnesses."""

    def __init__(
        self,
        folder: Path,
        agents: int,
        *,
        interval: str = "1s",
        agent: str = agent(),
        store: str | None = None,
        more: dict[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True)
        (folder / "lifecycle.org").write_text(LIFECYCLE)
        (folder / "agent.sh").write_text(agent)
        os.mkfifo(folder / "silence")
        drawer = f":PROPERTIES:\n:INTERVAL: {interval}\n:LIFECYCLE: lifecycle.org\n:END:"
        names = "\n".join(f"* agent-{number}\n{drawer}" for number in range(agents))
        fleet = (
            f"#+RUN: bash agent.sh\n#+WORKDIR: .\n#+SESSIONS: {agents}\n#+GRACE: 0s\n#+STAGGER: 0s\n"
            f"#+MAX-FAILURES: 100000\n#+BURST: 1000000/10m\n{names}\n"
        )
        super().__init__(folder, fleet, store=store, more=more)

    def witness(self) -> list[Sign]:
        return read_signs(self.folder / "witness")

    def begun(self) -> list[int]:
        return [sign.run for sign in self.witness() if sign.what == "begin"]

    def check(self, losses: Iterable[str] = ()) -> list[str]:
        """Whatever does not add up, of a place whose engines have left. Runs may have been lost in these ways only."""
        signs = self.witness()
        with self.store() as store:
            lost = lost_runs(store, losses)
            return [*overlaps(signs, lost), *agreement(signs, store, lost), *positions(store), *once_each(store)]


class Killer:
    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.dice = random.Random(seed)

    def kill_one(self) -> None:
        """Let it work for a moment, kill it, start it again."""
        time.sleep(self.dice.choice((0.0, 0.02, 0.1, 0.5, 1.5)) * self.dice.random() * 1.5)
        self.place.kill()
        self.place.up()


def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Look again and again at a process that is not ours, for as long as this."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.02)


def free_port() -> int:
    """One that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
