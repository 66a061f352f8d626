"""What the world itself saw, kept apart from the store.

Laws:
- Every call of the store takes its `now` from here, so that each call has an instant and an order of its own, and
  every event can be traced to the call that wrote it.
- What a call returned is written only once it has returned: what a crash swallowed is `lost`, neither accepted nor
  refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple, Protocol

from wakeful.core.agents import Fleet
from wakeful.core.events import Event
from wakeful.core.items import NewItem, Observation
from wakeful.core.orders import Order
from wakeful.core.runs import Ending
from wakeful.core.wakes import Pause
from wakeful.store.protocol import Decision, TaskEnd


class Clock(Protocol):
    @property
    def elapsed(self) -> timedelta: ...
    @property
    def wall(self) -> datetime: ...
    def now(self) -> datetime: ...


class Call(NamedTuple):
    """One call of the store: its place in the order of calls, what the wall showed, and what had elapsed."""

    order: int
    verb: str
    at: datetime
    elapsed: timedelta


@dataclass(slots=True, kw_only=True)
class Execution:
    """One run as its virtual agent lived it. `seen` are the fingerprints of the items in its briefing."""

    order: Order
    claimed: Call
    # None as long as there is no process: what was claimed may be lost before.
    started: timedelta | None
    seen: dict[int, str]
    ended: timedelta | None = None
    # The exit record of its guardian, where it left one.
    exit: Ending | None = None
    # The run's own end as it was told to the store, and the ends of the tasks of its shift.
    told: Ending | None = None
    tasks: dict[int, TaskEnd] = field(default_factory=dict)
    settled: Call | None = None

    @property
    def run(self) -> int:
        return self.order.run.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    id: int
    item: NewItem
    call: Call
    duplicate: bool


@dataclass(slots=True, kw_only=True)
class Observed:
    """What a source was told to show; None was an outage. `partial` tells of these things and of no others."""

    source: str
    agent: str
    things: tuple[Observation, ...] | None
    call: Call
    committed: bool = False
    partial: bool = False


@dataclass(slots=True, kw_only=True)
class Held:
    """A pause that was asked for; `returned` stays False when a crash kept the answer."""

    pause: Pause
    call: Call
    returned: bool = False


@dataclass(slots=True, kw_only=True)
class Released:
    scope: str
    owner: str | None
    call: Call


@dataclass(slots=True, kw_only=True)
class Declared:
    """`committed` is known even when the answer was lost: the fault knows on which side of the commit it came."""

    fleet: Fleet
    call: Call
    boot: bool
    committed: bool = False


@dataclass(slots=True, kw_only=True)
class Setting:
    agent: str
    settings: dict[str, object]
    call: Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An explicit request for a wake, and the answer that its caller was told."""

    operation: str
    decision: Decision


class Witness:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: dict[datetime, Call] = {}
        self.executions: dict[int, Execution] = {}
        self.accepted: list[Accepted] = []
        self.lost: list[NewItem] = []
        self.observed: list[Observed] = []
        self.held: list[Held] = []
        self.released: list[Released] = []
        self.declared: list[Declared] = []
        self.settings: list[Setting] = []
        self.asked: list[Asked] = []
        # What callers were told is recorded: the words, by the id that they were given.
        self.acknowledged: dict[int, str] = {}
        # When requests were left for an engine that did not live.
        self.left: set[datetime] = set()
        self.complaints: list[str] = []
        # The events as they were when the drain began: whatever comes later must leave them alone.
        self.early_events: list[Event] = []
        # When the faults stopped; how long a lease is; and what is on each shelf at the end, by source.
        self.drained: timedelta | None = None
        self.lease = timedelta()
        self.shelves: dict[str, dict[str, str]] = {}
        self._digest = blake2b(digest_size=16)

    def call(self, verb: str, at: datetime | None = None) -> Call:
        """`at` is what the caller's clock showed, where it was read before."""
        at = self.clock.now() if at is None else at
        call = Call(order=len(self.calls), verb=verb, at=at, elapsed=self.clock.elapsed)
        self.calls[at] = call
        self.note(verb, at)
        return call

    def complain(self, what: str) -> None:
        """Something that the driver itself must not see, such as an endless turn."""
        self.complaints.append(what)

    def note(self, *parts: object) -> None:
        """Part of the trace: two worlds of one seed must agree on every note, in order."""
        self._digest.update("|".join(map(str, parts)).encode() + b"\n")

    @property
    def trace(self) -> str:
        return self._digest.hexdigest()
