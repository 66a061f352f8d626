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
from wakeful.store.listed import Backlog as Backlog
from wakeful.store.listed import Found as Found
from wakeful.store.listed import Lane as Lane
from wakeful.store.listed import NodeRow as NodeRow
from wakeful.store.listed import RunRow as RunRow
from wakeful.store.listed import Sought as Sought
from wakeful.store.listed import SourceRow as SourceRow
from wakeful.store.listed import Span as Span
from wakeful.store.listed import StepRow as StepRow
from wakeful.store.listed import Stop as Stop
from wakeful.store.listed import StuckRow as StuckRow
from wakeful.store.listed import TaskFilter as TaskFilter
from wakeful.store.listed import Totals as Totals
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
        self,
        *,
        agent: str | None = None,
        names: Sequence[str] | None = None,
        after: str = "",
        limit: int = 1000,
        now: datetime | None = None,
        brief: bool = False,
    ) -> list[AgentRow]:
        """The live agents by name, each with all that a listing tells, in a few reads however many there are. With
        `names`, only those that are called so, or stand behind an address of that name. With `now`, what is put off
        until later is not counted as unread. A `brief` one tells who they are and where they stand, and nothing of
        their work: it costs the same however much there is of that."""

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

    def backlog(self, now: datetime) -> Backlog:
        """What is open in the whole store, in a few reads however much there is."""

    def sources(self) -> list[SourceRow]: ...
    def mirrored_sources(self) -> list[tuple[str, str]]:
        """Every (source, agent) that has open mirrored items."""

    def keyed_wake(self, subject: str, key: str) -> Wake | None:
        """The first wake about that under that key (`key:…`); within a write also what that has asked for itself."""

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

    def find_runs(
        self,
        *,
        agent: str | None = None,
        outcome: str | None = None,
        cause: str | None = None,
        open: bool | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Found[RunRow]:
        """Those before `before` that ended like that or were begun by that cause, newest first, within a bounded part
        of the past."""

    def find_decided(
        self,
        sought: Sought,
        *,
        agent: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> Found[Event]:
        """The events of such verdicts between two of them, newest first, within a bounded part of the past."""

    def some_items(self, ids: Sequence[int]) -> list[Item]:
        """Those of them that there are, in one read."""

    def steps_told(self, run: int, *, limit: int = 200, longest: int = 1_000) -> list[StepRow]:
        """The steps that are kept of what the run is about, in the order in which they were saved: the newest, and of
        each result no more than so many characters."""

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

    def one_offs(self, agent: str | None = None) -> list[tuple[str, datetime]]:
        """The instants that beats were asked for, of an agent or an address or of all, and that have not come."""

    def wake(self, id: int) -> WakeRow | None: ...
    def is_tainted(self, run: int) -> bool:
        """Whether something from outside was put before that run, is among its tasks, or was read by it since."""

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

    def span(self, since: datetime, until: datetime) -> Span:
        """Where a stretch of time lies among the events and the runs, found by halves."""

    def lanes(self, agents: Sequence[str], span: Span, *, limit: int = 500) -> list[Lane]:
        """What happened to each of these within that span; of runs and of verdicts the newest, so many at most."""

    def pauses_told(self, agents: Sequence[str | None]) -> list[Event]:
        """When each of these agents or addresses was paused and resumed, oldest first; None is the fleet and sources.
        Of each the newest, and not without end."""

    def total(self, scope: str, day: str, measure: str) -> int: ...
    def totals(self, scopes: Sequence[str], first: str, last: str) -> list[Totals]:
        """Of each of these scopes all that was counted from one day to another; of a day without any there is none.
        One read."""

    def pairs(self, address: str, day: str) -> dict[str, int]:
        """How often this address and each other one woke one another on that day, whoever began."""

    def why(self, wake: Wake, now: datetime) -> Why:
        """The facts and limits for a wake that is not recorded: what `explain` is asked with."""
