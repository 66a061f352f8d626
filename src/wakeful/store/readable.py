"""What may be read of a store. Reading never blocks and is never blocked; it sees what is committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from wakeful.core.agents import Agent, Limits
from wakeful.core.events import Event
from wakeful.core.facts import Facts
from wakeful.core.items import Item
from wakeful.core.recurrences import Recurrence
from wakeful.core.standing import Standing
from wakeful.core.wakes import Pause, Wake
from wakeful.store.listed import AgentRow as AgentRow
from wakeful.store.listed import Attempt as Attempt
from wakeful.store.listed import NodeRow as NodeRow
from wakeful.store.listed import RunRow as RunRow
from wakeful.store.listed import SourceRow as SourceRow
from wakeful.store.listed import Stop as Stop
from wakeful.store.listed import StuckRow as StuckRow
from wakeful.store.listed import TaskFilter as TaskFilter
from wakeful.store.listed import WakeRow as WakeRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The facts that a wake of now would be decided on."""

    wake: Wake
    facts: Facts
    limits: Limits
    pauses: tuple[Pause, ...] = field(default_factory=tuple)


class Readable(Protocol):
    def overview(
        self, *, agent: str | None = None, after: str = "", limit: int = 1000, now: datetime | None = None
    ) -> list[AgentRow]:
        """The live agents by name, each with all that a listing tells, in a few reads however many there are. With
        `now`, what is put off until later is not counted as unread."""

    def nodes(self, now: datetime) -> list[NodeRow]:
        """Every node that is known, by name."""

    def output(self, run: int, stream: str, offset: int, limit: int) -> tuple[bytes, int]:
        """A piece of what `keep_output` was given, and how much there is; an `offset` below 0 counts from the end."""

    def stopping(self, node: str) -> list[Stop]:
        """The runs of that node which somebody wants ended."""

    def agents(self, *, removed: bool = False) -> list[Agent]: ...
    def agent(self, name: str) -> Agent | None: ...
    def standing(self, agent: str) -> Standing | None: ...
    def pauses(self) -> list[Pause]: ...
    def item(self, id: int) -> Item | None: ...
    def items(
        self,
        *,
        agent: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        sender: str | None = None,
        type: str | None = None,
        priority: str | None = None,
        thread: int | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Item]:
        """Oldest first after `after`; with `before`, the newest ones before it, newest first. `priority` is the least
        one. `limit` counts what is found; an agent's open messages are found without passing its past."""

    def stuck(self, *, agent: str | None = None, limit: int = 100) -> list[StuckRow]:
        """Messages and mirrored items that are open although a run that saw them has ended, the longest first; not
        those that are snoozed, held by a run, or to be shown again at once."""

    def sources(self) -> list[SourceRow]: ...
    def mirrored_sources(self) -> list[tuple[str, str]]:
        """Every (source, agent) that has open mirrored items."""

    def keyed_wake(self, agent: str, subject: str, key: str) -> int | None:
        """The first wake under that key (`key:…`); within a write also what that has asked for itself."""

    def lineage(self, root: int, *, limit: int = 1000) -> list[WakeRow]:
        """The wakes that came of one, itself first, by id; what each run cost is in its row."""

    def shown_in(self, items: Sequence[int]) -> dict[int, int]:
        """Of each of these items that was ever shown, the newest run that was shown it."""

    def attempts(self, task: int) -> list[Attempt]: ...
    def attempts_of(self, tasks: Sequence[int]) -> dict[int, list[Attempt]]:
        """The tries of each of these that has any, in one read."""

    def tasks(self, filter: TaskFilter, *, after: int = 0, before: int | None = None, limit: int = 100) -> list[Item]:
        """Oldest first after `after`; with `before`, the newest ones before it, newest first. `limit` counts what is
        found."""

    def count_tasks(self, filter: TaskFilter) -> dict[str, int]:
        """How many there are in each state."""

    def keyed_task(self, dedupe: str) -> Item | None:
        """The task that was recorded under that idempotency key."""

    def dependencies(self, task: int) -> list[tuple[int, str]]:
        """What it depends on, each with its state."""

    def recurrences(self) -> list[tuple[Recurrence, datetime]]:
        """What is declared to recur, by name, each with its next instant."""

    def run(self, id: int) -> RunRow | None: ...
    def runs(
        self,
        *,
        agent: str | None = None,
        open: bool | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        """Oldest first after `after`; with `before`, the newest ones before it, newest first."""

    def wakes(
        self,
        *,
        agent: str | None = None,
        state: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[WakeRow]:
        """Oldest first after `after`; with `before`, the newest ones before it, newest first."""

    def wake(self, id: int) -> WakeRow | None: ...
    def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        agent: str | None = None,
        kinds: tuple[str, ...] = (),
        limit: int = 1000,
    ) -> list[Event]:
        """Oldest first after `after`; with `before`, the newest ones before it, newest first."""

    def events_until(self, at: datetime) -> int:
        """The id of the last event that was written at or before `at`; 0 when there is none."""

    def total(self, scope: str, day: str, measure: str) -> int: ...
    def pairs(self, address: str, day: str) -> dict[str, int]:
        """How often this address and each other one woke one another on that day, whoever began."""

    def why(self, wake: Wake, now: datetime) -> Why:
        """The facts and limits for a wake that is not recorded: what `explain` is asked with."""
