"""A fleet behind the real server, with MCP mounted as `wakeful up` does it."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.http.house import House
from tests.http.served import serve
from wakeful.core.errors import Stale
from wakeful.http.entry import caller_of
from wakeful.mcp.served import Served
from wakeful.testing.contracts.store_case import a_fleet, an_agent

EDITORS = ("wren", "robin", "heron", "finch", "crane", "swift")
OTHERS = ("moss", "fern")
FOUR = ("holm", "reed", "sedge", "alder")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Editors, each test has its own; and others, to write to."""
    house = House(tmp_path_factory.mktemp("house"))
    agents = (*(an_agent(name, roles=(f"{name}s",)) for name in EDITORS), *OTHERS, *FOUR)
    house.writer.submit(lambda store: store.declare(a_fleet(*agents, sessions=20), house.now)).result()
    control = house.control()
    try:
        with serve(lambda: control, app={"mounts": {"/mcp": Served(control, caller_of)}}) as house.served:
            yield house
    finally:
        house.writer.close()
        house.writer.store.close()


@pytest.fixture
def begin(house: House) -> Iterator[Callable[[str], tuple[int, int]]]:
    """A run under way, which ends with the test if it has not before."""
    begun: list[tuple[int, int]] = []

    def begin(agent: str) -> tuple[int, int]:
        begun.append(house.begin(agent))
        return begun[-1]

    yield begin
    for run, epoch in begun:
        with suppress(Stale):
            house.end(run, epoch)
