"""The store's contract over PostgreSQL, and what only its schema can say: the impossible cannot be written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.postgres_server import release, store_in
from wakeful.store.protocol import Store
from wakeful.store.session import Probe
from wakeful.testing.contracts.store import StoreContract


@pytest.fixture(autouse=True)
def _released(tmp_path: Path) -> Iterator[None]:
    yield
    release(tmp_path)


class TestPostgresStore(StoreContract):
    def make_store(self, tmp_path: Path, probe: Probe | None = None) -> Store:
        return store_in(tmp_path, probe)
