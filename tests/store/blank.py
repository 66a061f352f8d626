"""An empty store file, laid once in a process: the tables take longer to lay than most tests to run."""

import tempfile
from functools import cache
from pathlib import Path

from wakeful.store.session import Probe
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore


@cache
def _blank() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wakeful.db"
        open_sqlite(path, durable=False).close()
        return path.read_bytes()


def open_blank(path: Path, probe: Probe | None = None) -> SqlStore:
    """As `open_sqlite` opens it, and hasty: with what an earlier one has left there, or empty."""
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(_blank())
    return open_sqlite(path, durable=False, probe=probe)
