"""One stage with a store of its own for each story.

Each story is told on both stores; where it has variants, all of them on SQLite and the first on PostgreSQL.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.nodes import Company
from tests.engine.stage import Stage, plain
from tests.store.postgres_server import release, store_in
from wakeful.engine.watching import Watch
from wakeful.sources.folder import Listing


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    told: set[str] = set()
    left = [item for item in items if isinstance(item, pytest.Function) and _is_variant(item, told)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def _is_variant(item: pytest.Function, told: set[str]) -> bool:
    """Whether it is one more of a story that was told on PostgreSQL before."""
    variants = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    if variants.pop("keeper", None) != "postgres" or not variants:
        return False
    story = item.nodeid.partition("[")[0]
    known = story in told
    told.add(story)
    return known


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, made once: laying the tables takes longer than many stories."""
    stage = Stage(tmp_path_factory.mktemp("blank"))
    stage.store.close()
    return stage.data


@pytest.fixture(params=["sqlite", "postgres"])
def keeper(request: pytest.FixtureRequest) -> str:
    """Which store it is."""
    return str(request.param)


@pytest.fixture
def stages(keeper: str, blank: Path, tmp_path: Path) -> Iterator[Callable[[], Stage]]:
    """As many stages as a story wants."""
    made: list[Stage] = []

    def make() -> Stage:
        folder = tmp_path / str(len(made))
        if keeper == "sqlite":
            shutil.copytree(blank, folder / ".wakeful")
        made.append(Stage(folder, plain if keeper == "sqlite" else store_in))
        return made[-1]

    yield make
    for stage in made:
        stage.store.close()
    release(tmp_path)


@pytest.fixture
def stage(stages: Callable[[], Stage]) -> Stage:
    return stages()


@pytest.fixture
def company(keeper: str, blank: Path, tmp_path: Path) -> Iterator[Company]:
    """Two nodes on one store: `one` and `two`."""
    folder = tmp_path / "company"
    if keeper == "sqlite":
        shutil.copytree(blank, folder)
    folder.mkdir(exist_ok=True)
    company = Company(folder, plain if keeper == "sqlite" else store_in, keeper)
    company.add("one")
    company.add("two")
    yield company
    company.close()
    release(tmp_path)


@pytest.fixture
def deaf(monkeypatch):
    """Nobody hears of changes: what is noticed is noticed by looking, every other second."""

    async def start(self):
        return

    monkeypatch.setattr(Watch, "start", start)


@pytest.fixture
def scans(monkeypatch):
    """The folders that were looked into, one after the other."""
    seen = []

    def do(self, original=Listing.do):
        seen.append(self._folder)
        return original(self)

    monkeypatch.setattr(Listing, "do", do)
    return seen
