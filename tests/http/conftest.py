from collections.abc import Iterator

import pytest

from tests.http.served import Served, serve
from tests.http.stub import Stub


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Served, Stub]]:
    stub = Stub()
    with serve(lambda: stub) as served:
        yield served, stub


@pytest.fixture
def control(running: tuple[Served, Stub]) -> Stub:
    running[1].forget()
    return running[1]


@pytest.fixture
def served(running: tuple[Served, Stub], control: Stub) -> Served:
    return running[0]
