"""The store in domain verbs: one lock, one truth.

Laws:
- Each verb is one transaction, stated in its docstring; when it returns, the change is durable.
- The store owns the lock, the core the opinion: `decide` and `finish` gather, call the pure function they were
  handed, and write what it says, all under one lock. No verb computes a rule of its own.
- A run begins only in `decide`. `shown` moves only in `finish`, and back in `snooze`. An older epoch is `Stale`.
- `now` is an argument. Verbs that are hot take batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from wakeful.core.agents import Agent, Fleet, Limits
from wakeful.core.events import Event
from wakeful.core.facts import Facts
from wakeful.core.items import Item, NewItem, Observation
from wakeful.core.ledger import Edges
from wakeful.core.lifecycle import Lifecycle
from wakeful.core.orders import Order as Order
from wakeful.core.runs import Ending, Outcome, Run
from wakeful.core.runs import TaskEnd as TaskEnd
from wakeful.core.settlement import Settlement
from wakeful.core.standing import Standing
from wakeful.core.wakes import Pause, Verdict, Wake
from wakeful.store.audited import Audited as Audited
from wakeful.store.listed import AgentRow as AgentRow
from wakeful.store.listed import Attempt as Attempt
from wakeful.store.listed import Backlog as Backlog
from wakeful.store.listed import Forgotten as Forgotten
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
from wakeful.store.readable import Readable as Readable
from wakeful.store.readable import Why as Why
from wakeful.store.waited import Waited as Waited

T = TypeVar("T")

Admit = Callable[[Wake, Facts, Limits], Verdict]
Skip = Callable[[Standing, Agent, datetime], Standing]


class Settle(Protocol):
    def __call__(
        self,
        run: Run,
        ending: Ending,
        standing: Standing,
        agent: Agent,
        now: datetime,
        *,
        began_with: Lifecycle,
    ) -> Settlement: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The answer to one recorded item: its id, and whether it was there before under the same key."""

    id: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to one wake; `joined` is the waiting wake that this request became part of."""

    wake: int
    verdict: Verdict
    run: int | None = None
    joined: int | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What asks for a decision now, in the order in which it should be decided, and when to look again; and whether
    admitted runs wait for somebody to claim them."""

    wakes: tuple[Wake, ...] = ()
    next_at: datetime | None = None
    unclaimed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """What a node hears when it says that it is there."""

    # Of the runs that it named, those that are still its own.
    runs: tuple[int, ...] = ()
    # The earliest instant at which anything asks for a decision; `now` or earlier when something does already.
    next_at: datetime | None = None
    # Up to where the events can be read on from; it moves with every change that is told.
    last_event: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """One run's end, to be settled. Tasks not named in `tasks` share the run's own ending."""

    run: int
    epoch: int
    ending: Ending
    tasks: tuple[TaskEnd, ...] = ()


class Store(Readable, Waited, Audited, Protocol):
    # -- what the operator says ---------------------------------------------------------------------------
    def declare(self, fleet: Fleet, now: datetime, *, boot: bool = False) -> list[str]:
        """Adopt a fleet: new agents get a standing and a first due instant, changed ones a new version, missing
        ones are marked removed; their history stays. With `boot` overdue timers wait for the grace. Declared
        one-offs become waiting wakes, once. Returns the names that changed. One transaction."""

    def set(
        self, agent: str, settings: dict[str, object], by: str, now: datetime, *, expected: int | None = None
    ) -> Agent:
        """Override limits of a live agent; None takes an override back. Waiting wakes of that agent are tried
        again. Where another version of it is `expected` than there is, nothing is done: `Outdated`. One transaction."""

    def pause(self, pause: Pause, now: datetime) -> None:
        """Insert or replace the pause of that scope and owner. One transaction; once it returns, no run begins in
        that scope."""

    def resume(self, scope: str, by: str, now: datetime, *, owner: str | None = None) -> bool:
        """Remove the pauses of that scope (or only those of one owner) and try what waited for it: at
        once, or, of beats, one after the other. Whether there was one. One transaction."""

    def note(self, events: Sequence[Event]) -> None:
        """What no row tells (`core.events.NOTES`): what the operator did, what nobody was let do, what a run has read.
        Within a write it shares the transaction of what it tells. One transaction."""

    # -- what arrives -------------------------------------------------------------------------------------
    def record(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        """Insert items, or find them by their idempotency key; the same key with another body raises `Conflict`
        and nothing of the batch is kept. Tasks that need each other in a circle are a `Mistake`. A task that a run adds
        too far down a chain is blocked, and says so. One transaction."""

    def keyed_items(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Of these idempotency keys those that are taken, each with its item. Called within a write, whose own doings
        it sees. Reads only."""

    def recur(self, now: datetime) -> list[Recorded]:
        """Put the tasks of declared recurrences into their queues whose instant has come, and set their next. One
        transaction."""

    def observe(
        self,
        source: str,
        agent: str,
        observed: Sequence[Observation] | None,
        now: datetime,
        *,
        node: str | None = None,
        tenure: int | None = None,
        why: str = "",
    ) -> Edges:
        """Make the mirrored items of one source equal to what it shows now. None is an outage: its items stay as they
        are, and `why` is told once. New and changed items ring as news; a lasting one that is back opens again. A
        `node` that does not tend the source, or no longer in that `tenure`, raises `Stale`. One transaction."""

    def amend(self, source: str, agent: str, observed: Sequence[Observation], now: datetime) -> Edges:
        """What a run did to things that it was shown, as its own node sees them, whoever tends the source: those of
        them that are open become as they are seen; nothing is opened or closed by it, and what was seen in the tenure
        of whoever tends it is taken no more. One transaction."""

    def tend(
        self, sources: Sequence[tuple[str, str]], node: str, now: datetime, lease: timedelta
    ) -> Mapping[tuple[str, str], int]:
        """Of these (source, agent), those that this node tends from now on: its own, and those that nobody tended or
        whose lease has run out. Each with its tenure, which is another one when it was not this node's in between, and
        after an `amend`. One transaction."""

    def abandon(
        self, sources: Sequence[tuple[str, str]], now: datetime, *, node: str | None = None
    ) -> list[tuple[str, str]]:
        """This node declares these no more: what was mirrored of them is closed, and nobody tends them. Those that
        another node tends are left alone, and returned. One transaction."""

    def mark_read(self, messages: Sequence[int], by: str, now: datetime) -> list[int]:
        """Close messages that need no run (any more), also those that a run under way was shown; those that were open
        are returned. A mirrored item is closed by its source alone: a `Mistake`, and nothing is done. One
        transaction."""

    def snooze(self, items: Sequence[int], until: datetime, by: str, now: datetime) -> list[int]:
        """Take messages and mirrored items from sight until then: shown to no run before it, and ringing when it
        comes as if they were new, silent ones too. A run under way that was shown one no longer settles it. Those
        that were open are returned. One transaction."""

    # -- the one door -------------------------------------------------------------------------------------
    def due(self, now: datetime, *, limit: int = 100) -> Due:
        """Whatever asks for a decision at `now`: due beats, waiting wakes whose time has come or whose slot is
        free, ready tasks, ringing items that nobody asked for yet. Reads only."""

    def ready(self, now: datetime) -> list[Wake]:
        """The tasks that could begin in a slot that is free, best placed first; none while anything else is due, which
        may have to go before them. Called within a write, whose own doings it sees. Reads only."""

    def ask(self, wakes: Sequence[Wake], now: datetime) -> list[int]:
        """Record wakes undecided, for when no engine lives to decide them; they are due at once. One
        transaction."""

    def decide(self, wakes: Sequence[Wake], admit: Admit, now: datetime) -> list[Decision]:
        """Record each wake (or join it to the one that waits already), gather its facts, ask `admit`, write the
        verdict; an admitted wake is charged, takes its slot and opens its run. One transaction for all."""

    def claim(self, node: str, now: datetime, lease: timedelta, *, limit: int = 100) -> list[Order]:
        """Take admitted runs for this node: epoch and lease are set, the inbox to be shown is held. This is the
        recorded start, before any process exists. One transaction."""

    def join(self, node: str, host: str, url: str, now: datetime, lease: timedelta) -> None:
        """An engine begins its work under that name. Another one of the name on another host, seen within its lease
        and not gone, is a `Conflict`. One transaction."""

    def leave(self, node: str, now: datetime) -> None:
        """It has ended its work; runs that it held keep their leases, what it tended is free. One transaction."""

    def renew(self, node: str, runs: Sequence[tuple[int, int]], now: datetime, lease: timedelta) -> Renewed:
        """The node is there: it is seen, and the leases of (run, epoch) pairs are extended. Of a node without runs
        this is one query. One transaction."""

    def orphans(self, now: datetime, *, limit: int = 100) -> list[tuple[int, int]]:
        """(run, epoch) of runs whose lease has run out, held until the commit: whoever asks ends them in the same
        transaction. What somebody else is ending is left out."""

    def keep_output(self, run: int, stream: str, data: bytes) -> None:
        """Add to what is kept of a run's output (or briefing) for those who cannot read its folder. One transaction."""

    def finish(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[Outcome]:
        """End runs: outcome, position, streaks, gates, totals, items, tasks, events and `due_at` at once.
        A run that has ended, or an older epoch, raises `Stale`. One transaction for all."""

    def finish_tasks(self, run: int, epoch: int, ends: Sequence[TaskEnd], now: datetime) -> list[Outcome | None]:
        """Settle tasks of a shift, each by itself, while their run goes on; None for one that this run does not have
        under way (any more). An older epoch raises `Stale`. One transaction."""

    def stop(self, runs: Sequence[int], by: str, now: datetime, *, at_once: bool = False) -> list[int]:
        """Somebody wants these runs ended: one that nobody claimed is void, of one under way it is noted for whoever
        holds it. Those that are open are returned; what has ended is left alone. One transaction."""

    def skip(self, wake: Wake, reason: str, admit: Admit, skip: Skip, now: datetime) -> Decision:
        """A CHECK said that this timer's beat has nothing to do. Where every guard would admit it, the wake waits
        under the name `check` until the standing that `skip` gives is due; else the guard's word stands, as in
        `decide`, and the standing stays. Never begins a run. One transaction."""

    def void(self, run: int, epoch: int, now: datetime) -> None:
        """A run that was vetoed before its agent executed: it is void, its charge is given back, and its wake
        waits to be decided again. One transaction."""

    def expire(self, now: datetime, *, unclaimed_for: timedelta = timedelta(seconds=5)) -> list[int]:
        """Void admitted runs that nobody claimed in time, and lift pauses that have run out. One transaction."""

    # -- tasks and steps ----------------------------------------------------------------------------------
    def change_task(
        self, task: int, change: str, by: str, now: datetime, *, reason: str = "", result: str | None = None
    ) -> Item:
        """An operator's change: cancel, retry, complete (with a result), fail or remove; a `Mistake` where its state
        does not allow it. Terminal states are immutable, except that retry takes up a dead, failed or blocked one with
        its history kept, and that remove takes what has ended away, told whole by its event. A run under way is asked
        to end a task that it no longer holds. One transaction."""

    def change_tasks(
        self,
        tasks: Sequence[int],
        change: str,
        by: str,
        now: datetime,
        *,
        reason: str = "",
        result: str | None = None,
    ) -> list[int]:
        """The same of many: those whose state allows it are changed, and returned. One transaction."""

    def take_task(self, run: int, epoch: int, now: datetime, *, task: int | None = None) -> Item | None:
        """A run that is about something else takes a task for itself: the best placed of its agent's queues, or the one
        that is named; None where there is none that could begin now, or a pause holds it. It is leased to that run, one
        attempt. A run about tasks is a `Mistake`, an older epoch `Stale`. One transaction."""

    def save_step(
        self, run: int, epoch: int, name: str, result: str | None, now: datetime, *, task: int | None = None
    ) -> None:
        """Record the intent (result None), then the result, of a step of the given task or of the held beat.
        A recorded result is never replaced. One transaction."""

    def steps(self, run: int, *, task: int | None = None) -> dict[str, str | None]:
        """The steps recorded so far for that task, or for the beat that the run holds."""

    # -- keeping ------------------------------------------------------------------------------------------
    def forget(
        self,
        before: datetime,
        keys_before: datetime,
        now: datetime,
        *,
        output_before: datetime | None = None,
        limit: int = 500,
    ) -> Forgotten:
        """Remove what ended before `before` (runs, their wakes, closed items, events), idempotency keys of items
        closed before `keys_before`, nodes that left, and output of runs that ended before `output_before`; at most
        `limit` rows of each. What is open, or what a standing, a total of today or the current declarations rest on,
        stays. One transaction."""

    def backup(self, path: Path) -> None:
        """A consistent copy of everything committed, in a new private file, while the store is in use."""

    def close(self) -> None: ...


class Access(Protocol):
    """A store as coroutines reach it. The same verbs; what differs is only who waits for whom."""

    async def write(self, verb: Callable[[Store], T], *, quiet: bool = False) -> T:
        """Call the store under its lock; committed when this returns. Several verbs in one call are one transaction.
        Nobody is told of a `quiet` one."""

    async def read(self, verb: Callable[[Store], T]) -> T:
        """Call reading verbs; sees what is committed."""

    def watch(self, told: Callable[[], None]) -> None:
        """`told` is called on this event loop after every commit, ours or another's; a hint that may be repeated."""

    def tell(self) -> None:
        """Whoever watches here is told, as after a commit."""
