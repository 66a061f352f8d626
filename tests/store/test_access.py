"""Access: the same store behind threads or called inline; whoever uses it cannot tell them apart."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.store.blank import open_blank
from tests.store.postgres_server import release, store_in
from wakeful.core.admission import admit
from wakeful.core.errors import Conflict, Unknown
from wakeful.core.items import Kind, NewItem
from wakeful.store.inline import Inline
from wakeful.store.postgres_access import PostgresAccess, PostgresInline
from wakeful.store.protocol import Access
from wakeful.store.writer import Writer
from wakeful.testing.contracts.store_case import LEASE, NOW, a_fleet, operator


@pytest.fixture(params=[Writer, Inline, PostgresAccess, PostgresInline])
def access(request, tmp_path) -> Iterator[Access]:
    shared = request.param in (PostgresAccess, PostgresInline)
    store = store_in(tmp_path) if shared else open_blank(tmp_path / "wakeful.db")
    store.declare(a_fleet("moss"), NOW)
    access = request.param(store)
    yield access
    if isinstance(access, Writer):
        access.close()
    store.close()
    release(tmp_path)


def note(body="", key=None):
    return [NewItem(kind=Kind.message, agent="moss", body=body, dedupe=key)]


def bodies(store):
    return [item.body for item in store.items()]


def test_what_was_written_is_there_for_whoever_reads(access):
    async def act():
        (recorded,) = await access.write(lambda store: store.record(note("hello"), NOW))
        return recorded.id, await access.read(bodies)

    assert asyncio.run(act()) == (1, ["hello"])


def test_several_verbs_in_one_call_are_one_transaction(access):
    def look(store):
        return len(store.items()), len(store.runs())

    def verbs(store):
        store.record(note("one"), NOW)
        store.decide([operator("moss")], admit, NOW)
        orders = store.claim("node", NOW, LEASE)
        # A reader sees what is committed: nothing of this yet.
        return [item.body for order in orders for item in order.items], look(store)

    async def act():
        return await access.write(verbs), await access.read(look)

    assert asyncio.run(act()) == ((["one"], (0, 0)), (1, 1))


def test_a_call_that_fails_leaves_nothing_of_it_and_raises_to_its_caller(access):
    def verbs(store):
        store.record(note("half"), NOW)
        store.decide([operator("nobody")], admit, NOW)

    async def act():
        with pytest.raises(Unknown):
            await access.write(verbs)
        await access.write(lambda store: store.record(note("whole"), NOW))
        return await access.read(bodies)

    assert asyncio.run(act()) == ["whole"]


def test_a_call_may_live_with_a_verb_that_was_refused(access):
    def verbs(store):
        store.record(note("first", "k"), NOW)
        with pytest.raises(Conflict):
            store.record([*note("second"), *note("other", "k")], NOW)
        store.record(note("third"), NOW)

    async def act():
        await access.write(verbs)
        return await access.read(bodies)

    assert asyncio.run(act()) == ["first", "third"]


def test_a_verb_refused_first_does_not_spoil_the_rest_of_its_call(access):
    def verbs(store):
        with pytest.raises(Unknown):
            store.decide([operator("nobody")], admit, NOW)
        store.record(note("kept"), NOW)

    async def act():
        await access.write(verbs)
        return await access.read(bodies)

    assert asyncio.run(act()) == ["kept"]


def test_whoever_watches_is_told_of_what_was_committed_and_not_of_what_was_not(access):
    seen = []

    async def act():
        told = asyncio.Event()
        store = await access.read(lambda store: store)
        access.watch(lambda: (seen.append(bodies(store)), told.set()))
        with pytest.raises(Unknown):
            await access.write(lambda store: store.decide([operator("nobody")], admit, NOW))
        await access.write(lambda store: store.record(note("quiet"), NOW), quiet=True)
        await access.write(lambda store: store.record(note("hello"), NOW))
        while ["quiet", "hello"] not in seen:
            await asyncio.wait_for(told.wait(), 30)
            told.clear()

    asyncio.run(act())
    # A node that has just come to a shared store is also told once to look for itself.
    assert isinstance(access, PostgresAccess) or seen == [["quiet", "hello"]]


def test_who_watches_can_be_told_without_a_commit(access):
    async def act():
        rings: list[int] = []
        told = asyncio.Event()
        access.watch(lambda: (rings.append(1), told.set()))
        for number in range(1, 4):
            access.tell()
            while len(rings) < number:
                await asyncio.wait_for(told.wait(), 30)
                told.clear()

    asyncio.run(act())


def test_what_is_undone_is_forgotten_also_by_whoever_read_it_meanwhile(access):
    """A declaration that was read before it was undone is not taken for the one that came in its place."""

    def change(store, burst, then):
        store.set("moss", {"burst": burst}, "rana", NOW)
        store.decide([operator("moss")], admit, NOW)
        then()

    def fail():
        raise RuntimeError("changed my mind")

    async def act():
        with pytest.raises(RuntimeError):
            await access.write(lambda store: change(store, 7, fail))
        await access.write(lambda store: change(store, 8, lambda: None))
        return await access.read(lambda store: store.agent("moss").limits.burst)

    assert asyncio.run(act()) == 8
