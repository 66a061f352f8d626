"""Fleets of real engines, gone with everything on their machines when the story is over."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from soak.databases import own_database
from soak.standing import Place
from tests.store.postgres_server import dsn


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
def database() -> Iterator[str]:
    """The address of a database of its own, on the server of all tests."""
    with own_database(dsn()) as address:
        yield address
