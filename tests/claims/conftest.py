"""One desk with a store of its own for each story."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claims.desk import Desk


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, made once: laying the tables takes longer than most stories."""
    desk = Desk(tmp_path_factory.mktemp("blank"))
    desk.close()
    return desk.folder.database


@pytest.fixture
def desk(blank: Path, tmp_path: Path) -> Iterator[Desk]:
    shutil.copyfile(blank, tmp_path / blank.name)
    desk = Desk(tmp_path)
    yield desk
    desk.close()
