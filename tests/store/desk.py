"""A store behind its writer, with a gate before every commit of a group."""

import asyncio
import threading
from concurrent.futures import Future
from datetime import UTC, datetime

from tests.store.blank import open_blank
from wakeful.core.agents import Agent, Fleet
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.store.protocol import Recorded
from wakeful.store.writer import Writer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 30


class DiskFull(Exception):
    pass


class Gate:
    """A probe that counts the commits of groups, can hold one up, and can make one fail."""

    def __init__(self) -> None:
        self.commits = 0
        self.fails = False
        self.look = lambda: None
        self.reached = threading.Event()
        self._opened = threading.Event()
        self._opened.set()

    def __call__(self, moment, site):
        if site != "group" or moment != "before":
            return
        self.commits += 1
        self.reached.set()
        assert self._opened.wait(PATIENCE)
        self.look()
        if self.fails:
            raise DiskFull("no space left on device")

    def close(self):
        self._opened.clear()
        self.reached.clear()

    def open(self):
        self._opened.set()


class Desk:
    def __init__(self, path) -> None:
        self.gate = Gate()
        self.store = open_blank(path, self.gate)
        agents = (Agent(name="moss", address="moss"), Agent(name="wren", address="wren"))
        self.store.declare(Fleet(agents=agents), NOW)
        self.writer = Writer(self.store)

    def record(self, key, body="") -> Future[list[Recorded]]:
        return self.writer.submit(record(key, body))

    def hold_a_commit(self) -> Future[list[Recorded]]:
        """A first call whose commit is under way, and stays so until the gate opens."""
        self.gate.close()
        held = self.record("held")
        assert self.gate.reached.wait(PATIENCE)
        return held

    def keys(self) -> list[str]:
        return [item.subject for item in self.store.items(limit=2_000)]


def record(key, body=""):
    item = NewItem(kind=Kind.message, agent="moss", origin=Origin.operator, subject=key, body=body, dedupe=key)
    return lambda store: store.record([item], NOW)


async def turn() -> None:
    """Whatever is ready to go on has done so when this returns."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(done.set)
    await done.wait()
