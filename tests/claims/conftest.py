"""One desk with a store of its own for each story, which is told to either store.

What is true of a file only says so: `on_sqlite`.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claims.desk import Desk
from tests.store.postgres_server import release, store_in


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, made once: laying the tables takes longer than most stories."""
    desk = Desk(tmp_path_factory.mktemp("blank"))
    desk.close()
    return desk.folder.database


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, blank: Path, tmp_path: Path) -> Iterator[Desk]:
    if request.param == "sqlite":
        shutil.copyfile(blank, tmp_path / blank.name)
        desk = Desk(tmp_path)
    else:
        desk = Desk(tmp_path, store_in)
    yield desk
    desk.close()
    release(tmp_path)
