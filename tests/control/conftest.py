"""One desk with a store of its own for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.audited import Kept, make_busy
from tests.control.desk import Desk, SharedDesk
from tests.store.postgres_server import release, store_in
from wakeful.store.sqlite import open_sqlite


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, made once: laying the tables takes longer than most tests."""
    path = tmp_path_factory.mktemp("blank") / "store.db"
    open_sqlite(path, durable=False).close()
    return path


@pytest.fixture(scope="session")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A store with a past of every kind; what is changed by hand is changed in a copy."""
    return make_busy(tmp_path_factory.mktemp("busy") / "store.db")


@pytest.fixture
def desk(blank: Path, tmp_path: Path) -> Iterator[Desk]:
    database = tmp_path / "store.db"
    shutil.copyfile(blank, database)
    desk = Desk(tmp_path, open_sqlite(database, durable=False))
    yield desk
    desk.close()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedDesk]:
    desk = SharedDesk(tmp_path, store_in(tmp_path))
    yield desk
    desk.close()
    release(tmp_path)
