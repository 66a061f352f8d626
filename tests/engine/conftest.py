"""One stage with a store of its own for each story.

Each story is told on SQLite. On PostgreSQL so are those of several nodes, of starting again and of a store that is
away, each in its first variant, and of every other file the first story: that both stores answer alike is for their
contract to show. What a company of nodes was seen to do there is not told again on SQLite, where nobody shares a store.
With --every-store, which `make soak` asks for, every story is told on both.
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

# What the engine does otherwise where others share its store.
SHARED = (
    *("test_away", "test_company", "test_leaving", "test_nodes", "test_quiet"),
    *("test_recovery", "test_taken", "test_taking", "test_task_leases", "test_tending"),
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--every-store"):
        return
    told: set[str] = set()
    left = {item for item in items if _was_told(item, told)}
    seen = {_variant(item) for item in items if item not in left and _keeper(item) == "postgres"}
    left |= {item for item in items if _of_a_company(item) and _keeper(item) == "sqlite" and _variant(item) in seen}
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _given(item: pytest.Item) -> dict[str, object]:
    return dict(item.callspec.params) if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _keeper(item: pytest.Item) -> object:
    return _given(item).get("keeper")


def _variant(item: pytest.Item) -> tuple[str, str]:
    """A story with all that is given to it but its store."""
    return item.nodeid.partition("[")[0], repr({**_given(item), "keeper": None})


def _of_a_company(item: pytest.Item) -> bool:
    return "company" in getattr(item, "fixturenames", ())


def _was_told(item: pytest.Item, told: set[str]) -> bool:
    """Whether it is one more of a story, or of a file of them, that was told on PostgreSQL before."""
    if _keeper(item) != "postgres":
        return False
    story = item.nodeid.partition("[")[0] if item.path.stem in SHARED else str(item.path)
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
