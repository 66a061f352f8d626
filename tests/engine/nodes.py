"""Several stages on one store: nodes that meet nowhere else, each with files, guardians and an engine of its own.

Laws of this small world:
- A commit of one node's reaches the others as a hint, unless they are deaf. The lease clock is the virtual one.
- A node can crash alone: of all who are at work only its own are taken off. Its guardians live on.
- A store can be away for a node (every call is `Busy`), or a node frozen: its calls get through when it thaws.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakSet

from tests.engine.stage import MINUTE, Counted, Stage, heading
from tests.store.postgres_server import tell_time
from wakeful.core.errors import Busy
from wakeful.engine.engine import Engine
from wakeful.store.store import SqlStore
from wakeful.testing.loop import passes
from wakeful.testing.runner import done

WHOSE: ContextVar[str] = ContextVar("whose", default="")
AWAY = "the database is away: connection refused"


class Shared(Counted):
    """Access of one node among others."""

    def __init__(self, store: SqlStore, node: "Node") -> None:
        super().__init__(store)
        self.node = node
        # What was called, and when, in seconds.
        self.calls: list[tuple[float, str]] = []

    async def _reached(self, what: str, number: int = 0) -> None:
        node = self.node
        self.calls.append((node.elapsed, what))
        if node.away:
            raise Busy(f"{AWAY}\n\tIs the server running?")
        await node.thawed.wait()
        node.company.set_lease_clock(self.store)

    async def write(self, verb: Callable[[Any], Any], *, quiet: bool = False) -> Any:
        await self._reached("write")
        value = await super().write(verb, quiet=quiet)
        if not quiet:
            self.node.company.hint(self.node)
        return value

    async def read(self, verb: Callable[[Any], Any]) -> Any:
        await self._reached("read")
        return await super().read(verb)


class Node(Stage):
    def __init__(self, company: "Company", name: str, folder: Path, store: SqlStore) -> None:
        self.company = company
        self.away, self.deaf = False, False
        self.thawed = asyncio.Event()
        self.thawed.set()
        super().__init__(folder, lambda _: store)
        self.node, self.shared = name, True

    def new_access(self) -> Counted:
        return Shared(self.store, self)

    async def up(self, prepared: Callable[[Any], None] = lambda access: None) -> Engine:
        self.company.tell_tasks_apart()
        before = WHOSE.set(self.node)
        try:
            return await super().up(prepared)
        finally:
            WHOSE.reset(before)

    def tasks(self) -> set[asyncio.Task[Any]]:
        return {task for task in self.company.owned.get(self.node, ()) if not task.done()}

    async def begin(self, *names: str) -> None:
        """Those agents are under way, here."""
        with self.company.unheard():
            for name in names:
                assert (await self.tick(name)).run
            await passes(0.5)
        assert {run.agent for run in self.store.runs(open=True) if run.node == self.node} >= set(names)

    # ---- what may happen to it

    def freeze(self) -> None:
        self.thawed.clear()

    def thaw(self) -> None:
        self.thawed.set()

    # ---- what is seen

    @property
    def holding(self) -> list[int]:
        return [conducted.run for conducted in self.engine.conductor.open]

    def lives(self) -> list[tuple[str, float, float]]:
        """Agent, beginning and end of each run that executed here, as its guardian had it."""
        return [
            (
                each.order.run.agent,
                each.started.total_seconds(),
                min(each.ended or each.ends, each.ends).total_seconds(),
            )
            for each in self.carrier.runner.guardians.values()
        ]


class Company:
    """The nodes, and the store that they share."""

    def __init__(self, folder: Path, opened: Callable[[Path], SqlStore], keeper: str) -> None:
        self._folder = folder
        self._opened = opened
        self._keeper = keeper
        self.nodes: list[Node] = []
        self.owned: dict[str, WeakSet[asyncio.Task[Any]]] = {}

    def add(self, name: str) -> Node:
        store = self.nodes[0].store if self.nodes and self._keeper == "sqlite" else self._opened(self._folder)
        self.nodes.append(Node(self, name, self._folder / name, store))
        self.nodes[-1].clock = self.nodes[0].clock
        return self.nodes[-1]

    def declare(self, *agents: str, **keys: str) -> None:
        for node in self.nodes:
            node.declare(*agents, **keys)

    async def up(self) -> None:
        """All of them, and each has had its first turn."""
        for node in self.nodes:
            await node.up()
        await passes(1)

    async def at_work(self, names: Sequence[str], length: timedelta = 5 * MINUTE) -> None:
        """These agents are under way on the first of the nodes, since 10 s and for so long; no timer comes near."""
        agents = [heading(name, interval="2h") for name in names]
        self.declare(*agents, sessions="4", grace="2h", stagger="0s")
        for node in self.nodes:
            node.all_end(done(), duration=length)
        await self.up()
        await self.nodes[0].until(10)
        await self.nodes[0].begin(*names)

    @contextmanager
    def unheard(self) -> Iterator[None]:
        """What one of them does meanwhile no other hears of: whoever asks for a run is the one that begins it."""
        for node in self.nodes:
            node.deaf = True
        yield
        for node in self.nodes:
            node.deaf = False

    def tell_tasks_apart(self) -> None:
        def owned_task(loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
            task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **named)
            self.owned.setdefault(WHOSE.get(), WeakSet()).add(task)
            return task

        asyncio.get_running_loop().set_task_factory(owned_task)

    def set_lease_clock(self, store: SqlStore) -> None:
        """On SQLite it is the `now` of each call; the database's own is made to show the virtual one."""
        if self._keeper == "postgres":
            tell_time(store, self.nodes[0].clock.now())

    def hint(self, sender: Node) -> None:
        for node in self.nodes:
            if node is not sender and not node.deaf:
                asyncio.get_running_loop().call_soon(node.access.tell)

    # ---- what all of them saw

    def overlaps(self) -> list[str]:
        """Two runs of one agent at once, on whichever nodes."""
        lives = sorted(life for node in self.nodes for life in node.lives())
        return [
            f"{agent} from {start} to {end}, and again from {again}"
            for (agent, start, end), (other, again, _) in pairwise(lives)
            if agent == other and again < end
        ]

    def most_at_once(self) -> int:
        lives = [life for node in self.nodes for life in node.lives()]
        changes = sorted([(end, -1) for _, _, end in lives] + [(start, 1) for _, start, _ in lives])
        most = now = 0
        for _, change in changes:
            now += change
            most = max(most, now)
        return most

    def close(self) -> None:
        for store in {id(node.store): node.store for node in self.nodes}.values():
            store.close()
