"""Whom a name means is looked up once between two commits, and anew after each that is heard of."""

import asyncio

import pytest

from wakeful.control.callers import OPERATOR
from wakeful.control.control import Control
from wakeful.core.errors import Unknown
from wakeful.store.inline import Inline
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.contracts.store_case import NOW, a_fleet


class Counted(Inline):
    """Counts what is read, and takes as long as one turn of the loop for it, as a store elsewhere does."""

    reads = 0

    async def read(self, verb):
        self.reads += 1
        turn = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turn.set_result, None)
        await turn
        return verb(self.store)


@pytest.fixture
def access(tmp_path):
    store = open_sqlite(tmp_path / "wakeful.db", durable=False)
    store.declare(a_fleet("wren", "moss"), NOW)
    yield Counted(store)
    store.close()


def control(access, recalling: bool) -> Control:
    return Control(access, runs=access.store.session.path.parent, clock=lambda: NOW, recalling=recalling)


@pytest.mark.parametrize(("recalling", "reads"), [(True, 1), (False, 3)])
def test_a_name_is_looked_up_once_between_two_commits(access, recalling, reads):
    asked = control(access, recalling)

    async def look() -> None:
        for _ in range(3):
            assert (await asked._whom("wren")).name == "wren"

    asyncio.run(look())
    assert access.reads == reads


def test_an_agent_that_is_gone_is_unknown_at_once(access):
    asked = control(access, True)

    async def act() -> None:
        await asked.send(OPERATOR, agent="moss", body="hello")
        await access.write(lambda store: store.declare(a_fleet("wren"), NOW))
        with pytest.raises(Unknown):
            await asked.send(OPERATOR, agent="moss", body="hello")

    asyncio.run(act())


def test_what_was_read_while_something_changed_is_not_recalled(access):
    asked = control(access, True)

    async def act() -> None:
        look = asyncio.create_task(asked._whom("moss"))
        turn = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turn.set_result, None)
        await turn
        access.tell()
        await look
        assert asked._recalled == {}

    asyncio.run(act())
