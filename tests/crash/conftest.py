"""Fleets of real engines, gone with everything on their machines when the story is over."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from soak.standing import Place
from tests.store.postgres_server import dsn

_numbers = count()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    places: list[Place] = []

    def make(**options: Any) -> Place:
        places.append(Place(tmp_path / "fleet", **options))
        return places[-1]

    yield make
    for each in places:
        each.close()


@pytest.fixture
def database() -> Iterator[str]:
    """The address of a database of its own, on the server of all tests."""
    name = f"crash_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(dsn(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        yield urlsplit(dsn())._replace(path=f"/{name}").geturl()
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
