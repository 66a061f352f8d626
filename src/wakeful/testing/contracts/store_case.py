"""What every part of the store's contract stands on: a store in a folder, a fleet, and hands to drive them.

Time is an argument: tests begin at `NOW`, on a Monday noon, and no beat is due before `NOW + HOUR`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Fleet, RetryPolicy
from wakeful.core.cadence import Cadence
from wakeful.core.items import Item, Kind, NewItem, Origin, Ring
from wakeful.core.runs import Ending, Outcome, Result
from wakeful.core.settlement import settle
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Cause, Subject, VerdictKind, Wake
from wakeful.store.protocol import Decision, Finish, Order, RunRow, Store, TaskEnd
from wakeful.store.session import CALL
from wakeful.store.store import SqlStore

T = TypeVar("T")

Probe = Callable[[str, str], None]

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
TODAY = "2026-03-02"
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LEASE = timedelta(minutes=1)

DONE = Ending(exit_code=0)
NO_WORK = Ending(exit_code=0, output="NO-WORK")
FAILED = Ending(exit_code=1)
KILLED = Ending(timed_out=True)
LOST = Ending(lost=True)
BY_US = Ending(signal=15, by="operator")
ENDINGS = {Outcome.done: DONE, Outcome.no_work: NO_WORK, Outcome.failed: FAILED, Outcome.killed: KILLED}

ADMIT, DEFER, REFUSE = VerdictKind.admit, VerdictKind.defer, VerdictKind.refuse


def reported(usd: int = 0, tokens: int = 0, **more: Any) -> Ending:
    """A run that ended well and says what it used."""
    return Ending(exit_code=0, result=Result(usage=Spend(usd=usd, tokens=tokens), **more))


def an_agent(name: str, **changes: Any) -> Agent:
    plain = Agent(
        name=name,
        address=name,
        cadence=Cadence(interval=HOUR),
        retries=RetryPolicy(jitter=0.0),
    )
    return replace(plain, **changes)


def a_fleet(*agents: Agent | str, **changes: Any) -> Fleet:
    named = tuple(an_agent(agent) if isinstance(agent, str) else agent for agent in agents)
    return replace(Fleet(agents=named, grace=HOUR, stagger=timedelta()), **changes)


def timer(agent: str, at: datetime = NOW, **more: Any) -> Wake:
    return Wake(agent=agent, cause=Cause.timer, subject=Subject.beat, requested_at=at, **more)


def tick(agent: str, at: datetime = NOW) -> Wake:
    """An operator's tick: the beat, now."""
    return Wake(agent=agent, cause=Cause.operator, subject=Subject.beat, requested_at=at)


def operator(agent: str, at: datetime = NOW, **more: Any) -> Wake:
    return Wake(agent=agent, cause=Cause.operator, subject=Subject.inbox, requested_at=at, **more)


def peer(agent: str, sender: str, at: datetime = NOW, **more: Any) -> Wake:
    return Wake(agent=agent, cause=Cause.peer, subject=Subject.inbox, requested_at=at, sender=sender, **more)


def news(agent: str, at: datetime = NOW, **more: Any) -> Wake:
    return Wake(agent=agent, cause=Cause.news, subject=Subject.inbox, requested_at=at, **more)


def work(task: int, agent: str | None = None, at: datetime = NOW, **more: Any) -> Wake:
    return Wake(agent=agent, cause=Cause.task, subject=Subject.task, requested_at=at, task=task, **more)


class StoreCase:
    """One store, opened anew for each test; `make_store` is what an implementation gives."""

    store: Store
    folder: Path

    def make_store(self, tmp_path: Path, probe: Probe | None = None) -> Store:
        """Open the store that lives in this folder, with whatever an earlier one has left there.

        `probe` is called as `probe("before", verb)` and `probe("after", verb)` around every commit; what it raises
        goes through to the caller, as if the process had died there.
        """
        raise NotImplementedError

    def set_clock(self, now: datetime, store: Store | None = None) -> None:
        """Let the store's own clock show this until it is set again, where it counts leases by one of its own."""

    def together(self, verb: Callable[[], T]) -> T:
        """Several verbs as one transaction, as `Access.write` has it."""
        assert isinstance(self.store, SqlStore)
        with self.store.session.transaction(CALL):
            return verb()

    @pytest.fixture(autouse=True)
    def _opened(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self.store = self.make_store(tmp_path)
        self.set_clock(NOW)
        yield
        self.store.close()

    def reopen(self) -> None:
        self.store.close()
        self.store = self.make_store(self.folder)
        self.set_clock(NOW)

    # -- to set the scene

    def declare(self, *agents: Agent | str, now: datetime = NOW, boot: bool = False, **fleet: Any) -> list[str]:
        return self.store.declare(a_fleet(*agents, **fleet), now, boot=boot)

    def message(self, agent: str, body: str = "", now: datetime = NOW, **more: Any) -> int:
        item = NewItem(kind=Kind.message, agent=agent, body=body, **more)
        return self.store.record([item], now)[0].id

    def call(self, agent: str, sender: str, now: datetime = NOW, **more: Any) -> int:
        """A message of another agent that rings."""
        return self.message(agent, now=now, sender=sender, origin=Origin.agent, ring=Ring.peer, **more)

    def task(self, agent: str | None = None, now: datetime = NOW, **more: Any) -> int:
        return self.store.record([NewItem(kind=Kind.task, agent=agent, **more)], now)[0].id

    # -- to drive it

    def decide(self, wake: Wake, now: datetime = NOW) -> Decision:
        return self.store.decide([wake], admit, now)[0]

    def ring(self, agent: str, sender: str, now: datetime = NOW, **more: Any) -> Decision:
        """Message and wake, as an agent's wake of another is made: the message first, always."""
        item = self.call(agent, sender, now)
        return self.decide(peer(agent, sender, now, item=item, **more), now)

    def claim(self, now: datetime = NOW, node: str = "one") -> list[Order]:
        return self.store.claim(node, now, LEASE)

    def start(self, wake: Wake, now: datetime = NOW) -> Order:
        """Decide a wake that must be admitted, and claim its run."""
        decision = self.decide(wake, now)
        assert decision.verdict.kind is ADMIT, decision.verdict
        return next(order for order in self.claim(now) if order.run.id == decision.run)

    def end(self, order: Order, ending: Ending = DONE, now: datetime = NOW, *tasks: TaskEnd) -> Outcome:
        end = Finish(run=order.run.id, epoch=order.run.epoch, ending=ending, tasks=tasks)
        return self.store.finish([end], settle, now)[0]

    def serve(self, now: datetime) -> list[Order]:
        """What an engine does at one instant: look for what is due, decide it, claim what was admitted."""
        self.store.expire(now)
        self.store.decide(self.store.due(now).wakes, admit, now)
        return self.claim(now)

    # -- to look

    def due(self, now: datetime = NOW) -> list[Wake]:
        return list(self.store.due(now).wakes)

    def standing(self, agent: str) -> Standing:
        found = self.store.standing(agent)
        assert found is not None
        return found

    def item(self, id: int) -> Item:
        found = self.store.item(id)
        assert found is not None
        return found

    def row(self, run: int | None) -> RunRow:
        found = self.store.run(run or 0)
        assert found is not None
        return found

    def waiting(self, agent: str | None = None) -> list[Wake]:
        return [row.wake for row in self.store.wakes(agent=agent, state="waiting")]

    def wakes_of(self, agent: str) -> int:
        return self.store.total(f"agent:{agent}", TODAY, "wakes")
