"""Two nodes on one store: each counts what it did, and the sum is what was done."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.store.postgres_server import release, store_in
from wakeful.core.admission import admit
from wakeful.core.settlement import settle
from wakeful.store.postgres_access import PostgresAccess
from wakeful.store.protocol import Backlog, Finish, Store
from wakeful.store.sqlite import open_sqlite
from wakeful.store.writer import Writer
from wakeful.telemetry.exposition import exposition
from wakeful.telemetry.owning import Owned
from wakeful.telemetry.tally import OTHER, Tally
from wakeful.telemetry.telemetry import Telemetry
from wakeful.testing.contracts.store_case import DONE, LEASE, NOW, a_fleet, operator, tick

NAMES = ("one", "two")


class Shared:
    """Two nodes, each with its access; in a file of our own they share one."""

    def __init__(self, accesses: dict[str, Writer]) -> None:
        self.accesses = accesses
        self.nodes = {name: Telemetry(access, lambda: NOW, name, shared=True) for name, access in accesses.items()}

    async def do(self, node: str, verb: Callable[[Store], Any]) -> Any:
        return await self.nodes[node].access.write(verb)

    async def begin(self, node: str, agent: str) -> tuple[int, int]:
        run = (await self.do(node, lambda store: store.decide([tick(agent)], admit, NOW)))[0].run
        orders = await self.do(node, lambda store: store.claim(node, NOW, LEASE))
        return run, next(order.run.epoch for order in orders if order.run.id == run)

    async def end(self, node: str, run: int, epoch: int) -> None:
        end = Finish(run=run, epoch=epoch, ending=DONE)
        await self.do(node, lambda store: store.finish([end], settle, NOW))

    async def scraped(self) -> dict[str, str]:
        return {name: await node.scrape() for name, node in self.nodes.items()}


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shared]:
    if request.param == "sqlite":
        accesses = dict.fromkeys(NAMES, Writer(open_sqlite(tmp_path / "wakeful.db", durable=False)))
    else:
        accesses = {name: PostgresAccess(store_in(tmp_path)) for name in NAMES}
    try:
        yield Shared(accesses)
    finally:
        for access in set(accesses.values()):
            access.close()
            access.store.close()
        release(tmp_path)


def _join(name: str, store: Store) -> None:
    store.join(name, name, "", NOW, LEASE)


def played(shared: Shared, scene: Callable[[], Awaitable[Any]]) -> Any:
    async def play() -> Any:
        await shared.accesses["one"].write(lambda store: store.declare(a_fleet("wren", "moss", "rook"), NOW))
        for name, node in shared.nodes.items():
            await shared.accesses[name].write(partial(_join, name))
            await node.begin()
        return await scene()

    return asyncio.run(play())


def test_each_decision_and_each_end_is_counted_by_the_node_that_made_it(shared):
    async def scene() -> Any:
        await shared.end("one", *await shared.begin("one", "wren"))
        # Its own node is gone: another one ends it.
        await shared.end("two", *await shared.begin("one", "moss"))
        again = operator("rook", NOW)
        await shared.do("two", lambda store: store.decide([again], admit, NOW))
        await shared.do("one", lambda store: store.decide([again], admit, NOW))
        return await shared.scraped()

    played(shared, scene)
    one, two = (shared.nodes[name].tally for name in NAMES)
    assert (one.completed.total(), two.completed.total()) == (1, 1)
    assert (one.decided.total(), two.decided.total()) == (3, 1)
    assert one.decided["rook", "operator", "defer", "busy"] == 1
    assert sum(one.duration.counts) + sum(two.duration.counts) == 2


def test_what_stands_in_the_store_is_told_by_the_first_node_that_is_up(shared):
    async def scene() -> Any:
        before = await shared.scraped()
        await shared.accesses["one"].write(lambda store: store.leave("one", NOW))
        return before, await shared.scraped()

    before, after = played(shared, scene)
    told = "\nwakeful_oldest_unhandled_seconds "
    assert {name: told in text for name, text in before.items()} == {"one": True, "two": False}
    assert {name: told in text for name, text in after.items()} == {"one": False, "two": True}


def test_what_was_rolled_back_is_not_counted_and_what_was_committed_unheard_is(shared):
    async def scene() -> None:
        def undone(store: Store) -> None:
            store.decide([tick("wren")], admit, NOW)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await shared.do("one", undone)
        access = shared.accesses["one"]
        commit = access.write

        async def lost(verb: Callable[[Any], Any], *, quiet: bool = False) -> Any:
            await commit(verb, quiet=quiet)
            raise ConnectionError

        access.write = lost
        with pytest.raises(ConnectionError):
            await shared.do("one", lambda store: store.decide([tick("moss")], admit, NOW))
        access.write = commit
        await shared.scraped()

    played(shared, scene)
    decided = shared.nodes["one"].tally.decided
    assert decided == {("moss", "operator", "admit", ""): 1}
    assert not shared.nodes["two"].tally.decided


def test_what_is_never_told_of_is_forgotten():
    owned = Owned(most=3)
    for wake in range(10):
        owned.note(("decided", wake, NOW + timedelta(seconds=wake)))
    assert len(owned._deeds) == 3


def test_queues_beyond_the_most_are_counted_together(monkeypatch):
    monkeypatch.setattr("wakeful.telemetry.exposition.MOST_QUEUES", 2)
    backlog = Backlog(open={("a", "task"): 1, ("b", "task"): 7, ("c", "message"): 5, ("d", "task"): 1}, oldest=None)
    lines = exposition(Tally(), backlog, 0.0).splitlines()
    assert [line for line in lines if line.startswith("wakeful_items_open{")] == [
        'wakeful_items_open{agent="b",kind="task"} 7',
        'wakeful_items_open{agent="c",kind="message"} 5',
        'wakeful_items_open{agent="other",kind="task"} 2',
    ]


def test_agents_beyond_the_most_are_counted_together():
    tally = Tally(most_agents=2)
    assert [tally._named(name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", OTHER, "a", OTHER]
