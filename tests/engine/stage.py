"""A stage for the real engine: files, store, guardians and clock that outlive it, in time that jumps.

An engine can be taken off without a word (`crash`) and another one put on; whatever the second one knows it has from
the store, the guardians and the files.
"""

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.core.admission import admit
from wakeful.core.agents import Agent
from wakeful.core.orders import Order
from wakeful.core.runs import Ending
from wakeful.core.standing import Standing
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.engine.engine import Engine
from wakeful.fleet.watch import FleetFile
from wakeful.runners.protocol import Checked
from wakeful.sources.drop import Drop
from wakeful.sources.protocol import Declared, Hints
from wakeful.sources.registry import Around, declared
from wakeful.store.inline import Inline
from wakeful.store.protocol import Decision
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.carrier import VirtualCarrier
from wakeful.testing.loop import LoopClock, live, passes
from wakeful.testing.runner import Plan, Script, done

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)

# The day of document 001, word for word.
DAY = """#+START: wake_add
* wake_add
:PROPERTIES:
:KIND: wake
:REPEAT: 3
:NEXT: wake_audit
:END:
* wake_audit
:PROPERTIES:
:KIND: wake
:NEXT: rem
:END:
* rem
:PROPERTIES:
:KIND: rem
:NEXT: wake_plan
:MIN-INTERVAL: 10m
:END:
* wake_plan
:PROPERTIES:
:KIND: wake
:NEXT: wake_add
:END:
"""


def heading(name: str, **keys: str) -> str:
    """One heading with its drawer: an agent, or a state of a day."""
    drawer = "".join(f":{key.upper().replace('_', '-')}: {value}\n" for key, value in keys.items())
    return f"* {name}\n:PROPERTIES:\n{drawer}:END:\n"


def fleet(*agents: str, **keys: str) -> str:
    return "".join(f"#+{key.upper()}: {value}\n" for key, value in {"run": "true", **keys}.items()) + "".join(agents)


def lived(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, lived through in virtual time."""

    @functools.wraps(story)
    def told(*arguments: Any, **named: Any) -> None:
        live(lambda: story(*arguments, **named))

    return told


class Seen(NamedTuple):
    """One execution, as the guardian saw it begin."""

    agent: str
    at: float
    state: str
    hits: int
    cause: str
    subject: str
    run: int


class Counted(Inline):
    """Access that counts, and lets a test do something around each write."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.writes = 0
        self.reads = 0
        self.before: Callable[[int], Awaitable[None]] | None = None
        self.after: Callable[[int], Awaitable[None]] | None = None

    async def write(self, verb: Callable[[Any], Any], *, quiet: bool = False) -> Any:
        self.writes += 1
        number = self.writes
        if self.before is not None:
            await self.before(number)
        value = await super().write(verb, quiet=quiet)
        if self.after is not None:
            await self.after(number)
        return value

    async def read(self, verb: Callable[[Any], Any]) -> Any:
        self.reads += 1
        return await super().read(verb)


def plain(folder: Path) -> SqlStore:
    """The store in the file of that data folder."""
    return open_sqlite(folder / "wakeful.db", durable=False)


class Stage:
    def __init__(self, folder: Path, opened: Callable[[Path], SqlStore] = plain) -> None:
        self.folder = folder
        self.data = folder / ".wakeful"
        self.data.mkdir(parents=True, exist_ok=True)
        self.store = opened(self.data)
        self.clock = LoopClock(START)
        self._edits = 0
        self.seen: list[Seen] = []
        self.asked: list[str] = []
        self.pulled: list[str] = []
        self.script: Script = lambda order: Plan(duration=MINUTE, ending=done())
        self.checks: Callable[[Agent], Any] = lambda agent: Checked(wake=True)
        self.pulls: Callable[[Agent], Any] = lambda agent: ""
        self.before: Callable[[Order], Awaitable[None]] | None = None
        self.after: Callable[[Order], Awaitable[None]] | None = None
        self.carrier = VirtualCarrier(
            lambda order: self.script(order),
            carried=self._saw,
            checks=self._check,
            pulls=self._pull,
            before=lambda order: self._around(self.before, order),
            after=lambda order: self._around(self.after, order),
        )
        self.node, self.host, self.shared = "here", "", False
        self.access = self.new_access()
        self.engine: Engine | None = None
        self.drop: Drop | None = None
        self.hide: Callable[[str], str] = str

    def new_access(self) -> Counted:
        return Counted(self.store)

    # ---- the files

    def write(self, name: str, text: str) -> None:
        """As if somebody had written it a while ago: what was written just now is read twice."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        self._edits += 1
        os.utime(path, (self._edits, self._edits))

    def declare(self, *agents: str, **keys: str) -> None:
        """The fleet file; whoever is up will notice."""
        self.write("fleet.org", fleet(*agents, **keys))

    def canonical(self, **keys: str) -> None:
        """wren, who lives the day of document 001 at ten-minute beats."""
        self.write("lifecycle.org", DAY)
        self.declare(heading("wren", **{"lifecycle": "lifecycle.org", "interval": "10m", **keys}))

    # ---- what the guardians see

    def _saw(self, order: Order, at: float) -> None:
        run = order.run
        where = run.position
        self.seen.append(
            Seen(run.agent, round(at, 3), where.state, where.hits, run.cause.value, run.subject.value, run.id)
        )

    def _check(self, agent: Agent) -> Any:
        self.asked.append(agent.name)
        return self.checks(agent)

    def _pull(self, agent: Agent) -> Any:
        self.pulled.append(agent.name)
        return self.pulls(agent)

    async def _around(self, what: Callable[[Order], Awaitable[None]] | None, order: Order) -> None:
        if what is not None:
            await what(order)

    def all_end(self, ending: Ending, duration: timedelta = MINUTE) -> None:
        self.script = lambda order: Plan(duration=duration, ending=ending)

    def one_after_another(self, *endings: Ending, duration: timedelta = MINUTE) -> None:
        """The endings of the next runs, in order; the last one is for all that follow."""
        left = list(endings)
        self.script = lambda order: Plan(duration=duration, ending=left.pop(0) if len(left) > 1 else left[0])

    # ---- engines

    async def up(self, prepared: Callable[[Counted], None] = lambda access: None) -> Engine:
        """A new engine that knows nothing but what is on the stage; its access is prepared before it starts."""
        engine = self.make()
        prepared(self.access)
        await engine.start()
        return engine

    def make(self) -> Engine:
        """An engine that has yet to start."""
        self.access = self.new_access()
        file = FleetFile(self.folder / "fleet.org")
        where = {"host": self.host or f"host of {self.node}", "url": f"http://{self.node}", "shared": self.shared}
        self.engine = Engine(
            self.access,
            self.carrier,
            file,
            self.clock,
            self.node,
            self.data,
            **where,
            sources=self.sources,
            drop=self.drop,
            hide=self.hide,
        )
        return self.engine

    def sources(self, agents: Sequence[Agent], hints: Hints) -> list[Declared]:
        """As the real ones are; the programs that they ask get what they need to be found."""
        around = Around(root=self.folder, hints=hints, variables={}, environment=lambda agent: {"PATH": os.defpath})
        return declared(agents, around)

    def tasks(self) -> set[asyncio.Task[Any]]:
        """Everybody of the engine's."""
        return asyncio.all_tasks() - {asyncio.current_task()}

    async def crash(self) -> None:
        """Nobody of the engine does anything any more; nothing is told to anybody."""
        engine, self.engine = self.engine, None
        tasks = self.tasks()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if engine is not None:
            await engine._watch.stop()

    async def down(self, *, drain: bool = False) -> None:
        engine, self.engine = self.engine, None
        engine.leave(drain=drain)
        await engine.stop()

    # ---- time

    @property
    def elapsed(self) -> float:
        return round(self.clock.elapsed(), 3)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    async def until(self, seconds: float) -> None:
        """Let time go by until so many seconds after the beginning."""
        await passes(max(seconds - self.clock.elapsed(), 0.0))

    async def hours(self, hours: float) -> None:
        await passes(hours * 3600)

    async def minutes(self, minutes: float) -> None:
        await passes(minutes * 60)

    # ---- what a person asks, and sees

    async def tick(self, name: str, subject: Subject = Subject.beat) -> Decision:
        """An operator's tick, as control passes it on: decided at once, begun by the engine."""
        wake = Wake(agent=name, cause=Cause.operator, subject=subject, requested_at=self.now)
        now = self.now
        decisions: list[Decision] = await self.access.write(lambda store: store.decide([wake], admit, now))
        return decisions[0]

    def standing(self, name: str = "wren") -> Standing:
        standing = self.store.standing(name)
        assert standing is not None
        return standing

    def place(self, name: str = "wren") -> tuple[str, int]:
        position = self.standing(name).position
        return position.state, position.hits

    def beats(self, name: str | None = None) -> list[float]:
        """When that agent, or anybody, was executed, in seconds."""
        return [seen.at for seen in self.seen if name in (None, seen.agent)]

    def waits(self, name: str | None = None) -> list[float]:
        """The seconds from each execution to the next."""
        return [round(later - sooner, 3) for sooner, later in pairwise(self.beats(name))]

    def walk(self, name: str = "wren") -> list[str]:
        """The day as it was lived: `state hits` of each execution."""
        return [f"{seen.state} {seen.hits}" for seen in self.seen if seen.agent == name]

    def outcomes(self, name: str | None = None) -> list[str]:
        return [
            str(event.fields["outcome"])
            for event in self.store.events(limit=100_000)
            if event.kind.value == "ended" and name in (None, event.agent)
        ]

    def waits_for(self, name: str) -> list[str | None]:
        """The guards that the waiting wakes of an agent wait for."""
        return [row.guard for row in self.store.wakes(agent=name, state="waiting")]
