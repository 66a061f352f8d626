"""What is noted beside what is done: the operator's acts that no other event tells, and what nobody was let do.

Laws:
- An act is noted in the transaction of what it did, or right after it where the store has no part in it.
- The first denial is told at once. Those that follow within a minute from the same address, for the same reason, are
  one event with their number: a flood writes a line a minute. So do all of those that come from more addresses than
  are told apart. Of a run each thing that it was not let do is told by itself.
- What is told of a denial holds no secret that this place knows.
- Nobody is let in because a denial could not be written, nor kept waiting for a store that is in trouble.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from wakeful.control.callers import Caller
from wakeful.core.events import Event, EventKind
from wakeful.core.wording import UNSTORABLE
from wakeful.store.protocol import Access, Store

log = logging.getLogger(__name__)

MINUTE = 60.0
# How many addresses and reasons are told apart; and how many things that runs may not do, of all runs.
MOST_APART = 64
MOST_OF_RUNS = 1024
# How long an answer waits for what tells of it.
PATIENCE = 0.5
LONGEST = 200
OTHERS = "others"


def note_act(
    store: Store,
    caller: Caller,
    operation: str,
    now: datetime,
    *,
    agent: str | None = None,
    item: int | None = None,
    **told: object,
) -> None:
    """For what leaves no other event: within the write that does it. What an agent does in a run is told of the run."""
    if caller.is_operator:
        store.note([_act(caller, operation, now, agent, item, told)])


def _act(
    caller: Caller, operation: str, now: datetime, agent: str | None, item: int | None, told: dict[str, object]
) -> Event:
    fields = {"by": caller.name, "operation": operation, **told}
    return Event(kind=EventKind.acted, at=now, agent=agent, item=item, fields=fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """`why` is one word; the rest is what is known of who asked, and for what."""

    why: str
    address: str = ""
    agent: str | None = None
    run: int | None = None
    told: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        # Of a run there is a bounded number of things to ask; a stranger has any number of paths.
        what = () if self.run is None else (self.told.get("operation"), self.told.get("method"), self.told.get("path"))
        return (self.why, self.address, self.agent, self.run, *what)

    def event(self, now: datetime, count: int, redact: Callable[[str], str] = str) -> Event:
        # What was asked for is a stranger's to choose.
        told = {name: UNSTORABLE.sub("\ufffd", redact(value)[:LONGEST]) for name, value in self.told.items() if value}
        fields = {"why": self.why, "count": count, **({"address": self.address} if self.address else {}), **told}
        return Event(kind=EventKind.denied, at=now, agent=self.agent, run=self.run, fields=fields)


class Denials:
    def __init__(self, access: Access, clock: Callable[[], datetime], redact: Callable[[str], str] = str) -> None:
        self._access = access
        self._redact = redact
        self._clock = clock
        # Those that were told within the last minute: the newest since, and how many.
        self._since: dict[tuple[object, ...], tuple[Denial, int]] = {}
        self._writing: set[asyncio.Task[None]] = set()

    async def note(self, denial: Denial) -> None:
        if denial.key not in self._since and self._is_full(denial):
            denial = replace(denial, address=OTHERS, agent=None, run=None)
        if denial.key in self._since:
            self._since[denial.key] = (denial, self._since[denial.key][1] + 1)
            return
        self._hold(denial)
        await asyncio.wait({self._begin([self._told(denial, 1)])}, timeout=PATIENCE)

    def _is_full(self, denial: Denial) -> bool:
        """Strangers leave the runs their room, and runs the strangers theirs."""
        ours = denial.run is not None
        alike = sum((held.run is not None) == ours for held, _ in self._since.values() if held.address != OTHERS)
        return alike >= (MOST_OF_RUNS if ours else MOST_APART)

    async def flush(self) -> None:
        """Tells what has not been told yet; for who is about to leave."""
        late = [self._told(denial, count) for denial, count in self._since.values() if count]
        self._since.clear()
        if late:
            self._begin(late)
        if self._writing:
            await asyncio.wait(self._writing, timeout=PATIENCE)

    def _hold(self, denial: Denial) -> None:
        self._since[denial.key] = (denial, 0)
        asyncio.get_running_loop().call_later(MINUTE, self._lapse, denial.key)

    def _lapse(self, key: tuple[object, ...]) -> None:
        denial, count = self._since.pop(key, (None, 0))
        if denial is not None and count:
            self._hold(denial)
            self._begin([self._told(denial, count)])

    def _told(self, denial: Denial, count: int) -> Event:
        return denial.event(self._clock(), count, self._redact)

    def _begin(self, events: list[Event]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._write(events))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def _write(self, events: list[Event]) -> None:
        try:
            await self._access.write(lambda store: store.note(events))
        except Exception as error:
            log.warning("a denied request could not be noted: %s", error)
