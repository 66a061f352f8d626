"""What every operation stands on: the store, the clock, who asks, and whom a name means.

Laws:
- Whoever asks is judged before anything is read. An operation is the operator's alone unless `OPERATIONS` opens it to
  runs; a run that has ended may ask nothing.
- A name means an agent, or the replicas behind an address; anything else is unknown, and is told the nearest one.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from wakeful.control.callers import Beside, Caller, Forbidden
from wakeful.control.noting import Denial, Denials, note_act
from wakeful.control.operations import OPERATIONS
from wakeful.control.redacting import AS_IT_IS, Redact, redacted
from wakeful.control.rows import Row
from wakeful.control.tainted import from_outside, taint, whose_briefing
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.tasks import unknown_agent
from wakeful.core.wording import quoted
from wakeful.store.protocol import Access, AgentRow, NodeRow, RunRow, Store

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound="type[Base]")
Word = TypeVar("Word", bound=StrEnum)

# A list is never longer than this, however many are asked for.
LONGEST_LIST = 1_000
NEWEST = 2**62
# How long a pause waits for the runs that it ended: TERM, ten seconds, KILL, and the record of it.
PATIENCE = timedelta(seconds=12)
# How long the word of another node is waited for: it has a hint of ours, and usually decides within milliseconds.
HEARING = timedelta(seconds=2)
# Seconds between two looks: of a command, which hears of no commits but its own, and of others, whom a hint may miss.
LOOK_AGAIN, LOOK_AFTER_ALL = 0.05, 0.5

_PAGE = 500


class Base:
    def __init__(
        self,
        access: Access,
        *,
        runs: Path,
        clock: Callable[[], datetime],
        beside: Beside | None = None,
        node: str | None = None,
        fleet_file: Path | None = None,
        shared: bool = False,
        patience: timedelta = PATIENCE,
        hearing: timedelta = HEARING,
        recalling: bool = False,
        redact: Redact = AS_IT_IS,
    ) -> None:
        """`runs` is the folder of the runs' own folders; without an engine `beside` us nothing is decided here. `node`
        is the name of this place. On a `shared` store other nodes may be at work. Whoever hears of every commit may be
        `recalling` whom a name meant, until the next one. `redact` takes out what is secret here."""
        self.access = access
        self.folder = runs
        self.clock = clock
        self.beside = beside
        self.node = node
        self.fleet_file = fleet_file
        self.shared = shared
        self.patience = patience
        self.hearing = hearing
        self.redact = redact
        self.denials = Denials(access, clock, redact)
        self._bells: set[asyncio.Event] = set()
        self._listening = False
        self._recalling = recalling
        self._recalled: dict[str, Target] = {}

    async def denied(self, denial: Denial) -> None:
        """Somebody was not let do what they asked for: the events tell of it, of many at once with their number."""
        await self.denials.note(denial)

    async def acted(self, caller: Caller, operation: str, **told: object) -> None:
        """The operator did what the store has no part in, and what is not undone where it cannot be noted."""

        def write(store: Store) -> None:
            note_act(store, caller, operation, self.clock(), agent=None, item=None, **told)

        try:
            await self.access.write(write)
        except Exception as error:
            log.warning("%s could not be noted: %s", operation, error)

    async def caller_of_run(self, run: int, epoch: int, since: datetime | None = None) -> Caller | None:
        """Who asks with the token of that run: None when it is not open in exactly that epoch, or was begun at another
        instant than `since`: in a store that was restored another run may have its numbers."""
        row = await self.access.read(lambda store: store.run(run))
        if row is None or not _is_open(row, epoch) or since not in (None, row.started_at):
            return None
        return Caller(name=row.agent, run=run, epoch=epoch)

    async def _taint(self, caller: Caller, operation: str, answer: Row) -> None:
        """A run that is told what is from outside is known for it before it is told."""
        run, item, other, now = caller.run or 0, from_outside(answer), whose_briefing(answer), self.clock()
        if item is None and other in (None, run):
            return

        def is_news(store: Store) -> bool:
            return (item is not None or store.is_tainted(other or 0)) and not store.is_tainted(run)

        if await self.access.read(is_news):
            await self.access.write(lambda store: taint(store, caller, operation, now, item=item, run=other))

    async def judge(self, caller: Caller, name: str, agent: str | None = None) -> None:
        """For what was said so that nobody understands it: whether this caller could have asked for it at all. Raises
        `Forbidden`, of which the events then tell."""
        if caller.is_operator:
            return
        try:
            _must_be_for_runs(caller, name)
            if agent is not None and OPERATIONS[name].own:
                with suppress(Unknown):
                    must_be_own(caller, await self._whom(agent), "what is kept")
        except Forbidden as error:
            await self._note_refusal(caller, name, error)
            raise

    async def _note_refusal(self, caller: Caller, name: str, error: Forbidden) -> None:
        if not error.noted:
            error.noted = True
            told = {"operation": name, "reason": str(error)}
            await self.denied(Denial(why="forbidden", agent=caller.name, run=caller.run, told=told))

    async def wait_for_change(self) -> None:
        """Until something was committed, by us or by somebody else; a hint, which may come for nothing."""
        with self._bell() as bell:
            await bell.wait()

    def node_state(self, row: NodeRow) -> str:
        """Of our own place we know better than the store: it is up if its engine is beside us, and only then."""
        up = self.beside is not None if row.name == self.node else self.shared and row.alive
        return "up" if up else "lost" if row.left_at is None else "left"

    def nodes_up(self, store: Store) -> list[str]:
        """Who decides what is recorded now; an engine that is leaving does not."""
        leaving = self.node if self.beside is not None and self.beside.leaving else None
        rows = store.nodes(self.clock())
        return [row.name for row in rows if self.node_state(row) == "up" and row.name != leaving]

    async def _until(self, found: Callable[[], Awaitable[T | None]], most: timedelta) -> T | None:
        """Asks again after each commit that is heard of, and now and then; None when time is up."""
        rest = LOOK_AGAIN if self.beside is None else LOOK_AFTER_ALL
        deadline = asyncio.get_running_loop().time() + most.total_seconds()
        with self._bell() as bell:
            while True:
                bell.clear()
                answer = await found()
                left = deadline - asyncio.get_running_loop().time()
                if answer is not None or left <= 0:
                    return answer
                with suppress(TimeoutError):
                    await asyncio.wait_for(bell.wait(), min(left, rest))

    async def _whom(self, name: str) -> Target:
        """Whom a name means: looked up once between two commits, however many ask at the same time."""
        known = self._recalled.get(name)
        if known is None:
            if self._recalling:
                self._listen()
            recalled = self._recalled
            known = await self.access.read(lambda store: find(store, name))
            # What was heard of meanwhile may have changed it.
            if self._recalling and recalled is self._recalled and len(recalled) < LONGEST_LIST:
                recalled[name] = known
        return known

    def _listen(self) -> None:
        if not self._listening:
            # Nobody can stop watching, so one of us does it for all.
            self.access.watch(self._ring)
            self._listening = True

    @contextmanager
    def _bell(self) -> Iterator[asyncio.Event]:
        """Is set by every commit."""
        self._listen()
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    def _ring(self) -> None:
        self._recalled = {}
        for bell in self._bells:
            bell.set()


def _is_open(row: RunRow, epoch: int | None) -> bool:
    return row.state == "running" and (epoch is None or row.epoch == epoch)


# ---- who may


Method = Callable[Concatenate[Any, Caller, P], Coroutine[Any, Any, Row]]


def judged(control: C) -> C:
    """Puts the question whether its caller may before every operation."""
    for name in OPERATIONS:
        setattr(control, name, _judged(name, getattr(control, name)))
    return control


def _judged(name: str, method: Method[P]) -> Method[P]:
    @functools.wraps(method)
    async def ask(self: Any, caller: Caller, /, *arguments: P.args, **parameters: P.kwargs) -> Row:
        try:
            if not caller.is_operator:
                _must_be_for_runs(caller, name)
                await self.access.read(lambda store: _must_be_open(store, caller))
            told = parameters if self.redact is AS_IT_IS else redacted(parameters, self.redact)
            answer = await method(self, caller, *arguments, **told)
            if caller.run is not None:
                await self._taint(caller, name, answer)
            return answer
        except Forbidden as error:
            await self._note_refusal(caller, name, error)
            raise

    return ask


def _must_be_for_runs(caller: Caller, name: str) -> None:
    if not OPERATIONS[name].by_runs:
        raise Forbidden(f"{caller.name} may not ask for {name} in the course of a run: only the operator may")


def _must_be_open(store: Store, caller: Caller) -> None:
    row = store.run(caller.run or 0)
    if row is None or row.agent != caller.name or not _is_open(row, caller.epoch):
        raise Forbidden(f"run {caller.run} of {caller.name} is not under way: what it may ask for ended with it")


def must_be_own(caller: Caller, target: Target, what: str) -> None:
    if not caller.is_operator and caller.name not in {row.agent.name for row in target.agents}:
        raise Forbidden(f"{caller.name} may see {what} of {caller.name}, not of {target.name}")


# ---- whom a name means


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a name means: one agent, or the replicas behind an address."""

    name: str
    agents: tuple[AgentRow, ...]

    @property
    def first(self) -> AgentRow:
        return self.agents[0]

    @property
    def is_address(self) -> bool:
        return self.first.agent.name != self.name

    @property
    def names(self) -> frozenset[str]:
        """Under which anything may be addressed to it."""
        return frozenset(name for row in self.agents for name in (row.agent.name, row.agent.address))


def find(store: Store, name: str) -> Target:
    """Whom a name means, without a look at their work; asked before almost everything, it costs one query."""
    return _find(store, name, brief=True)


def find_at_work(store: Store, name: str, now: datetime | None = None) -> Target:
    """With all that is told of them. With `now`, what is put off until later does not count as unread."""
    return _find(store, name, now=now)


def _find(store: Store, name: str, **told: Any) -> Target:
    own = store.overview(agent=name, **told)
    if own:
        return Target(name, (own[0],))
    replicas = _replicas(store, name, **told)
    if not replicas:
        raise unknown_agent(name, (known for agent in store.agents() for known in (agent.name, agent.address)))
    return Target(name, replicas)


def find_one(store: Store, name: str, now: datetime | None = None) -> AgentRow:
    """For what each replica has for itself: a place in the day, a forecast."""
    target = find_at_work(store, name, now)
    if target.is_address:
        names = ", ".join(row.agent.name for row in target.agents)
        raise Mistake(f"{name} is the address of {len(target.agents)} replicas", f"name one of them: {names}")
    return target.first


def _replicas(store: Store, address: str, **told: Any) -> tuple[AgentRow, ...]:
    first = store.agent(f"{address}-1")
    if first is None or first.address != address:
        return ()
    found: list[AgentRow] = []
    after = f"{address}-"
    while page := store.overview(after=after, limit=_PAGE, **told):
        found += [row for row in page if row.agent.address == address]
        after = page[-1].agent.name
        if not after.startswith(f"{address}-"):
            break
    # moss-2 before moss-10.
    return tuple(sorted(found, key=lambda row: (len(row.agent.name), row.agent.name)))


# ---- what is given


def bounded(limit: int, most: int = LONGEST_LIST) -> int:
    if limit < 1:
        raise Mistake(f"expected how many to list, found {limit}", f"write a number from 1 to {most}")
    return min(limit, most)


def must_not_be_more(what: str, given: Sequence[str] | None, most: int) -> None:
    if given is not None and len(given) > most:
        raise Mistake(f"expected at most {most} {what}, found {len(given)}", "ask for the others by themselves")


def numbered(what: str, **given: int | None) -> None:
    """Where a page begins or ends: after 0 is from the first on."""
    for name, number in given.items():
        if number is not None and not storable(number) and (name, number) != ("after", 0):
            raise Mistake(f"expected the number of a {what} as {name}, found {number!r:.40}", "leave it out")


def storable(number: object) -> bool:
    """Whether a row could have that number; a caller may write any."""
    return type(number) is int and 0 < number < 2**63


def chosen(word: str, known: type[Word], what: str) -> Word:
    """One of a closed vocabulary."""
    try:
        return known(word)
    except ValueError:
        raise Mistake(f"unknown {what} {quoted(str(word))}", f"use one of {', '.join(known)}") from None
