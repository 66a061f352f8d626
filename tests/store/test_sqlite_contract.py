"""The store's contract over SQLite, and what only its schema can say: the impossible cannot be written."""

from pathlib import Path

from wakeful.store.protocol import Store
from wakeful.store.session import Probe
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.contracts.store import StoreContract


class TestSqliteStore(StoreContract):
    def make_store(self, tmp_path: Path, probe: Probe | None = None) -> Store:
        return open_sqlite(tmp_path / "wakeful.db", durable=False, probe=probe)
