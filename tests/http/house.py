"""The real control on a real store, for the real server: a fleet, and hands to drive its runs."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from tests.http.served import Served
from tests.store.blank import open_blank
from wakeful.control.callers import Claim, leave_to_others
from wakeful.control.control import Control
from wakeful.core.admission import admit
from wakeful.core.agents import Agent
from wakeful.core.codec import write_time
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish
from wakeful.store.writer import Writer
from wakeful.testing.contracts.store_case import DONE, LEASE, NOW, a_fleet, tick

T = TypeVar("T")


class Beside:
    leaving = False

    async def taking(self, write: Callable[[Claim], Awaitable[T]]) -> T:
        return await write(leave_to_others)

    def health(self) -> dict[str, object]:
        loop = {"ready": True, "why_not": "", "heartbeat_age": 0.2, "turns": 12, "holding": []}
        return {"node": "here", "since": write_time(NOW), **loop, "title": "night desk", "diagnostics": []}

    async def reload(self) -> dict[str, object]:
        return {"changed": [], "diagnostics": []}

    def leave(self, *, drain: bool) -> None: ...

    async def starts_settled(self) -> None: ...


class House:
    """A fleet of two, its store and its server. Time stands still unless somebody moves it."""

    def __init__(self, folder: Path, *agents: Agent | str) -> None:
        self.now, self.folder = NOW, folder
        self.runs = folder / "runs"
        self.writer = Writer(open_blank(folder / "wakeful.db"))
        self.writer.submit(lambda store: store.declare(a_fleet(*(agents or ("wren", "moss"))), NOW)).result()
        self.served: Served = None

    def control(self) -> Control:
        given: dict[str, Any] = {"runs": self.runs, "clock": lambda: self.now, "beside": Beside(), "node": "here"}
        # Nobody here ends a run that is asked to end.
        return Control(self.writer, patience=timedelta(milliseconds=50), **given)

    def begin(self, agent: str) -> tuple[int, int]:
        """A run under way, and its epoch."""
        run = self.writer.submit(lambda store: store.decide([tick(agent)], admit, self.now)[0].run).result()
        return run, self.claim()[run]

    def claim(self) -> dict[int, int]:
        """What was admitted is under way: the epoch of each run."""
        orders = self.writer.submit(lambda store: store.claim("here", self.now, LEASE)).result()
        for order in orders:
            (self.runs / str(order.run.id)).mkdir(parents=True)
        return {order.run.id: order.run.epoch for order in orders}

    def end(self, run: int, epoch: int, ending: Ending = DONE) -> None:
        ended = Finish(run=run, epoch=epoch, ending=ending)
        self.writer.submit(lambda store: store.finish([ended], settle, self.now)).result()

    def ask(self, *said: Any, **more: Any) -> Any:
        return self.served.ask(*said, **more)
