"""One stage with a store of its own for each story."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.stage import Stage


@pytest.fixture(scope="session")
def blank_stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, made once: laying the tables takes longer than many stories."""
    stage = Stage(tmp_path_factory.mktemp("blank"))
    stage.store.close()
    return stage.data


@pytest.fixture
def stages(blank_stage: Path, tmp_path: Path) -> Iterator[Callable[[], Stage]]:
    """As many stages as a story wants."""
    made: list[Stage] = []

    def make() -> Stage:
        folder = tmp_path / str(len(made))
        shutil.copytree(blank_stage, folder / ".wakeful")
        made.append(Stage(folder))
        return made[-1]

    yield make
    for stage in made:
        stage.store.close()


@pytest.fixture
def stage(stages: Callable[[], Stage]) -> Stage:
    return stages()
