"""A fleet on a real store, an engine that is moved by hand, and everything asked through Control."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from tests.store.postgres_server import tell_time
from wakeful.control.callers import OPERATOR, Caller, Claim, leave_to_others
from wakeful.control.control import Control
from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Fleet, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.store.inline import Inline
from wakeful.store.protocol import Decision, Finish, Order
from wakeful.store.store import SqlStore

T = TypeVar("T")

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
LEASE = timedelta(hours=24)
NODE_LEASE = timedelta(seconds=20)
DONE, FAILED = Ending(exit_code=0), Ending(exit_code=1)


def an_agent(name: str, *, every: timedelta | None = HOUR, **more: Any) -> Agent:
    plain = Agent(name=name, address=name, runner=Runner.process, target="true", cadence=Cadence(interval=every))
    return replace(plain, **more)


def replicas(address: str, count: int, **more: Any) -> list[Agent]:
    return [an_agent(f"{address}-{number}", address=address, **more) for number in range(1, count + 1)]


class Engine:
    """What Control may ask of the engine beside it."""

    leaving = False

    def __init__(self) -> None:
        self.left: list[bool] = []
        self.settled: Callable[[], None] = lambda: None

    async def taking(self, write: Callable[[Claim], Awaitable[T]]) -> T:
        return await write(leave_to_others)

    def health(self) -> dict[str, object]:
        return {"ready": True, "title": "night desk", "diagnostics": ["fleet.org:1:1: mend it"]}

    async def reload(self) -> dict[str, object]:
        return {"changed": ["wren"], "diagnostics": []}

    def leave(self, *, drain: bool) -> None:
        self.left.append(drain)

    async def starts_settled(self) -> None:
        self.settled()


class Desk:
    shared = False

    def __init__(self, folder: Path, store: SqlStore) -> None:
        self.now = NOON
        self.folder = folder
        self.store = store
        # What happens elsewhere after each commit of ours.
        self.hint: Callable[[], None] = lambda: None
        self.access = Inline(self.store, hint=lambda: self.hint())
        self.engine = Engine()
        self.runs = folder / "runs"
        self.control = self.make(self.engine)
        self.runner = asyncio.Runner()

    def make(self, engine: Engine | None, **more: Any) -> Control:
        given = {"runs": self.runs, "clock": lambda: self.now, "beside": engine, "node": "here", **more}
        given.setdefault("shared", self.shared)
        return Control(self.access, **given)

    def close(self) -> None:
        self.runner.close()
        self.store.close()

    def engine_stops(self) -> None:
        self.control = self.make(None)

    def engine_starts(self) -> None:
        self.control = self.make(self.engine)

    def declare(self, *agents: Agent | str, **fleet: Any) -> None:
        """No beat is due before an hour has gone by."""
        named = tuple(an_agent(each) if isinstance(each, str) else each for each in agents)
        whole = Fleet(agents=named, grace=HOUR, stagger=timedelta(), **fleet)
        self.store.declare(whole, self.now)

    # ---- asking

    def ask(self, operation: str, caller: Caller = OPERATOR, **parameters: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.runner.run(getattr(self.control, operation)(caller, **parameters))
        return answer

    # ---- what an engine would do

    def decide(self, *wakes: Wake) -> list[Decision]:
        return self.store.decide(wakes, admit, self.now)

    def due(self) -> list[Decision]:
        self.store.expire(self.now)
        return self.decide(*self.store.due(self.now).wakes)

    def claim(self, node: str = "here") -> list[Order]:
        return self.store.claim(node, self.now, LEASE)

    def begin(self, name: str, node: str = "here") -> Order:
        """A run of that agent, under way."""
        self.decide(Wake(agent=name, cause=Cause.operator, subject=Subject.beat, requested_at=self.now))
        return next(order for order in self.claim(node) if order.run.agent == name)

    def end(self, order: Order, ending: Ending = DONE) -> None:
        finish = Finish(run=order.run.id, epoch=order.run.epoch, ending=ending)
        self.store.finish([finish], settle, self.now)

    def later(self, wait: timedelta) -> None:
        self.now += wait

    def printed(self, run: int, data: bytes, stream: str = "stdout") -> None:
        folder = self.runs / str(run)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / stream).write_bytes(data)


class SharedDesk(Desk):
    """The same on a store that other nodes use too; its own clock goes with ours."""

    shared = True

    def __init__(self, folder: Path, store: SqlStore) -> None:
        super().__init__(folder, store)
        tell_time(store, self.now)

    def later(self, wait: timedelta) -> None:
        super().later(wait)
        tell_time(self.store, self.now)

    def join(self, *nodes: str) -> None:
        for node in nodes:
            self.store.join(node, f"the host of {node}", f"http://{node}:7717", self.now, NODE_LEASE)


def caller_of(order: Order) -> Caller:
    return Caller(name=order.run.agent, run=order.run.id, epoch=order.run.epoch)
