"""A node on the shared store of a test: its access, and an ear for what is told there."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.store.desk import NOW
from tests.store.postgres_server import connection_of, dsn, release, store_in
from wakeful.core.items import Kind, NewItem
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_access import PostgresAccess
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import a_fleet

PATIENCE = 60


class Node:
    """Looks only when it is told to."""

    def __init__(self, address: str, schema: str) -> None:
        self.store = open_postgres(address, schema=schema)
        self.access = PostgresAccess(self.store)
        self.rings = 0
        self._changed = asyncio.Event()

    def watch(self) -> None:
        self.access.watch(self._hear)

    def _hear(self) -> None:
        self.rings += 1
        self._changed.set()

    async def until(self, true: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await true():
                await self._changed.wait()
                self._changed.clear()

    async def until_seen(self, number: int) -> None:
        async def seen() -> bool:
            return await self.access.read(count) >= number

        await self.until(seen)

    def close(self) -> None:
        self.access.close()
        self.store.close()


@contextmanager
def nodes(schema: str, *addresses: str) -> Iterator[list[Node]]:
    made: list[Node] = []
    try:
        for address in addresses:
            made.append(Node(address, schema))
        yield made
    finally:
        for node in made:
            node.close()


@contextmanager
def a_schema(folder: Path) -> Iterator[str]:
    """The name of one in which moss is declared, and nothing else is."""
    store = store_in(folder)
    store.declare(a_fleet("moss"), NOW)
    name = connection_of(store).execute("SELECT current_schema() AS name").fetchone()["name"]
    store.close()
    yield name
    release(folder)


def record(body="", key=None):
    return lambda store: store.record([NewItem(kind=Kind.message, agent="moss", body=body, dedupe=key)], NOW)


def count(store: SqlStore) -> int:
    return len(store.items(limit=10_000))


def named(name: str) -> str:
    """The server's address for a connection that can be found by that name."""
    return f"{dsn()}{'&' if '?' in dsn() else '?'}application_name={name}"


@contextmanager
def look() -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn(), autocommit=True) as connection:
        yield connection
