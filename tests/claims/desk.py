"""The documents' stories told to a real store: a clock that is set by hand, and verbs in their own words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Fleet, Limits, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.items import Kind, NewItem, Observation, Origin, Priority, ring_of
from wakeful.core.runs import Ending, Outcome
from wakeful.core.settlement import settle
from wakeful.core.standing import Standing
from wakeful.core.wakes import Cause, Subject, Verdict, Wake
from wakeful.store.folder import DataFolder
from wakeful.store.protocol import Decision, Finish, Order, TaskEnd
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
LEASE = timedelta(hours=24)
ROUNDS = 50

DONE = Ending(exit_code=0, output="written")
NO_WORK = Ending(exit_code=0, output="NO-WORK")
FAILED = Ending(exit_code=1)
KILLED = Ending(timed_out=True)
LOST = Ending(lost=True)


def agent(name: str, *, every: timedelta | None = 30 * MINUTE, limits: Limits | None = None, **more) -> Agent:
    cadence = Cadence(interval=every)
    return Agent(
        name=name,
        address=name,
        runner=Runner.process,
        target="true",
        cadence=cadence,
        limits=limits or Limits(),
        **more,
    )


def in_a_file(folder: Path) -> SqlStore:
    return open_sqlite(DataFolder(folder).database, durable=False)


# Of a story that is about the file; all others are told to both stores.
on_sqlite = pytest.mark.parametrize("desk", ["sqlite"], indirect=True)


class Desk:
    """`opener` opens the store of a folder, whichever database it is in."""

    def __init__(self, folder: Path, opener: Callable[[Path], SqlStore] = in_a_file) -> None:
        self.folder = DataFolder(folder)
        self._opener = opener
        self.now = NOON
        self._open()

    # ---- time and place

    def _open(self) -> None:
        self.folder.lock(patience=0)
        self.store = self._opener(self.folder.path)

    def close(self) -> None:
        self.store.close()
        self.folder.unlock()

    def later(self, wait: timedelta) -> None:
        self.now += wait

    def until(self, moment: datetime | None) -> None:
        assert moment is not None and moment >= self.now
        self.now = moment

    def restart(self) -> None:
        """Everything that is not on disk is gone."""
        self.close()
        self._open()

    def declare(self, *agents: Agent, **fleet) -> None:
        self.store.declare(Fleet(agents=agents, **fleet), self.now)

    def standing(self, name: str) -> Standing:
        standing = self.store.standing(name)
        assert standing is not None
        return standing

    # ---- what arrives

    def message(
        self, to: str, sender: str = "stas", priority: str = "normal", *, by_run: int | None = None, **more
    ) -> int:
        """message_agent: one message in the inbox."""
        level = Priority(priority)
        ring = ring_of(Origin.agent, level)
        item = NewItem(
            kind=Kind.message,
            agent=to,
            sender=sender,
            origin=Origin.agent,
            body=f"from {sender}",
            priority=level,
            ring=ring,
            by_run=by_run,
            **more,
        )
        return self.store.record([item], self.now)[0].id

    def wake(self, to: str, sender: str = "stas", *, by_run: int | None = None) -> Decision:
        """wake_agent: the same message, and a wake for it."""
        item = self.message(to, sender, "urgent", by_run=by_run)
        wake = Wake(
            agent=to,
            cause=Cause.peer,
            subject=Subject.inbox,
            requested_at=self.now,
            sender=sender,
            reason="blocker",
            item=item,
            by_run=by_run,
        )
        return self.decide(wake)[0]

    def task(self, title: str = "task", *, to: str | None = "moss", **more) -> int:
        new = NewItem(kind=Kind.task, agent=to, subject=title, **more)
        return self.store.record([new], self.now)[0].id

    def show(self, name: str, source: str = "folder", **fingerprints: str) -> None:
        """A mirrored list as it is now: id and fingerprint of everything pending."""
        seen = [Observation(external_id=id, fingerprint=mark) for id, mark in fingerprints.items()]
        self.store.observe(source, name, seen, self.now)

    # ---- what is decided and done

    def decide(self, *wakes: Wake) -> list[Decision]:
        return self.store.decide(wakes, admit, self.now)

    def ask(self, cause: Cause, name: str, subject: Subject = Subject.beat) -> Decision:
        return self.decide(Wake(agent=name, cause=cause, subject=subject, requested_at=self.now))[0]

    def tick(self) -> list[Decision]:
        """Decide whatever asks for a decision now, until nothing does."""
        self.store.expire(self.now)
        decisions: list[Decision] = []
        for _ in range(ROUNDS):
            wakes = self.store.due(self.now).wakes
            if not wakes:
                return decisions
            decisions += self.decide(*wakes)
        raise AssertionError(f"{ROUNDS} rounds at one instant, and still due: {wakes}")

    def claim(self) -> list[Order]:
        return self.store.claim("here", self.now, LEASE)

    def begin(self) -> list[Order]:
        """One look of the engine: decide what is due, and start what was admitted."""
        self.tick()
        return self.claim()

    def end(self, order: Order, ending: Ending = DONE, tasks: Sequence[TaskEnd] = ()) -> Outcome:
        took = replace(ending, elapsed=self.now - (order.run.started_at or self.now))
        finish = Finish(run=order.run.id, epoch=order.run.epoch, ending=took, tasks=tuple(tasks))
        return self.store.finish([finish], settle, self.now)[0]

    def finish_all(self, ending: Ending = DONE) -> list[Order]:
        orders = self.begin()
        for order in orders:
            self.end(order, ending)
        return orders

    def verdicts(self, name: str) -> list[tuple[str, str | None]]:
        """(state, guard) of every wake of an agent, oldest first."""
        return [(row.state, row.guard) for row in self.store.wakes(agent=name)]


def why_not(decision: Decision) -> tuple[str, str | None]:
    verdict: Verdict = decision.verdict
    return verdict.kind.value, verdict.guard
