"""The verbs as several nodes call them at once: each first holds what its facts rest on.

Laws:
- What is decided for an agent rests on rows of its address, of whoever asked, and of all who could answer instead:
  whoever decides, claims or ends there holds those addresses until the commit. Nobody holds the whole fleet.
- A run takes a slot as a row. One that somebody else is taking is not free; one that is taken is one run's.
- Who changes what all others rest on (a declaration, a pause, the past) has the house alone for as long as that takes.
  So nothing begins in a scope once its pause has returned.
- Who reads the events on from a place misses none: those that may still come before it are waited out.
- The fleet's own money, where it is bounded, is looked at by one at a time; where it is not, nobody waits for it.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from wakeful.core.agents import Agent, Fleet
from wakeful.core.events import Event, EventKind
from wakeful.core.items import Item, NewItem, Observation
from wakeful.core.ledger import Edges
from wakeful.core.runs import Outcome
from wakeful.core.wakes import Pause, Wake
from wakeful.store.dueness import UNCLAIMED_FOR
from wakeful.store.postgres_deciding import PostgresDeciding, bounded
from wakeful.store.postgres_session import Crowded, PostgresSession
from wakeful.store.postgres_text import tabled, written
from wakeful.store.protocol import Admit, Decision, Finish, Forgotten, Order, Recorded, Renewed, Settle, Skip, TaskEnd
from wakeful.store.rows import to_micros
from wakeful.store.session import Row

T = TypeVar("T")

TRIES = 20

# Changes of a task after which others may go on.
COUNTING = frozenset({"retry", "complete", "remove"})


def step_aside(turn: int) -> None:
    """Not all at once, and longer each time, but never for long."""
    time.sleep(random.uniform(0, min(0.002 * 2**turn, 0.1)))


class PostgresStore(PostgresDeciding):
    def __init__(self, session: PostgresSession) -> None:
        super().__init__(session)
        # Versions that this transaction handed out: another node may give the same numbers to something else.
        self._versioned: set[str] = set()
        session.undone = self._undone

    def next_version(self, agent: str, version: int) -> int:
        self._versioned.add(agent)
        return super().next_version(agent, version)

    def _undone(self) -> None:
        for agent in self._versioned:
            self._agents.pop(agent, None)
            for pinned in [key for key in self._lifecycles if key[0] == agent]:
                del self._lifecycles[pinned]
        self._versioned.clear()

    def _together(self, site: str, verb: Callable[[], T], **concerned: Any) -> T:
        """Among others: with the addresses that are concerned."""

        def work() -> T:
            with self.session.transaction(site):
                self.session.enter()
                if concerned:
                    self._hold(**concerned)
                return self._inside(verb)

        return self._again(work)

    def _alone(self, site: str, verb: Callable[[], T]) -> T:
        def work() -> T:
            with self.session.transaction(site):
                self.session.alone()
                return self._inside(verb)

        return self._again(work)

    def _inside(self, verb: Callable[[], T]) -> T:
        # Locks are not written rows: the verb's own part need not be undone apart from them.
        self.session.untouched = True
        try:
            return verb()
        finally:
            self.session.untouched = False

    def _again(self, work: Callable[[], T]) -> T:
        """Whoever began the transaction begins it again."""
        for turn in range(TRIES):
            try:
                return work()
            except Crowded:
                if self.session.depth or turn == TRIES - 1:
                    raise
            step_aside(turn)
        raise AssertionError("unreachable")

    def _hold(
        self,
        names: Sequence[str | None] = (),
        roles: Sequence[str | None] = (),
        runs: Sequence[int | None] = (),
        items: Sequence[int | None] = (),
    ) -> None:
        given = {"names": names, "roles": roles, "runs": runs, "items": items}
        whose = {key: _listed(values) for key, values in given.items()}
        # Most often it is one kind, and a shorter question.
        kinds = [key for key, values in whose.items() if values]
        short = {"names": "addresses_of_names", "runs": "addresses_of_runs"}
        self.session.hold(short.get(kinds[0], "addresses") if len(kinds) == 1 else "addresses", **whose)

    def event(
        self,
        kind: EventKind,
        at: datetime,
        *,
        agent: str | None = None,
        wake: int | None = None,
        run: int | None = None,
        item: int | None = None,
        fields: dict[str, Any] | None = None,
    ) -> None:
        told = {"kind": kind.value, "at": to_micros(at), "agent": agent, "wake": wake, "run": run, "item": item}
        # A text within the text: what PostgreSQL cannot hold stays as JSON writes it.
        text = json.dumps(fields, separators=(",", ":")) if fields else "{}"
        self.session.tell({**told, "fields": text})

    # -- what the operator says ---------------------------------------------------------------------------
    def declare(self, fleet: Fleet, now: datetime, *, boot: bool = False) -> list[str]:
        def verb() -> list[str]:
            changed = super(PostgresStore, self).declare(fleet, now, boot=boot)
            self.number_slots()
            return changed

        return self._alone("declare", verb)

    def number_slots(self) -> None:
        for query in ("forget_slots", "number_slots"):
            self.session.write(query)

    def set(
        self, agent: str, settings: dict[str, Any], by: str, now: datetime, *, expected: int | None = None
    ) -> Agent:
        return self._alone("set", lambda: super(PostgresStore, self).set(agent, settings, by, now, expected=expected))

    def pause(self, pause: Pause, now: datetime) -> None:
        self._alone("pause", lambda: super(PostgresStore, self).pause(pause, now))

    def resume(self, scope: str, by: str, now: datetime, *, owner: str | None = None) -> bool:
        return self._alone("resume", lambda: super(PostgresStore, self).resume(scope, by, now, owner=owner))

    def forget(
        self,
        before: datetime,
        keys_before: datetime,
        now: datetime,
        *,
        output_before: datetime | None = None,
        limit: int = 500,
    ) -> Forgotten:
        verb = super().forget
        return self._alone("forget", lambda: verb(before, keys_before, now, output_before=output_before, limit=limit))

    def note(self, events: Sequence[Event]) -> None:
        verb = super().note
        self._again(lambda: verb(events))

    # -- what arrives -------------------------------------------------------------------------------------
    def record(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        verb = super().record
        if any(item.depends_on or item.needs for item in items):
            return self._together("record", lambda: verb(items, now))
        return self._again(lambda: verb(items, now))

    def insert_items(self, query: str, items: list[NewItem], rows: list[Row]) -> list[Recorded]:
        """In one statement; another node may record the same at the same time."""
        made = self.session.all(query, rows=tabled([_filled(row) for row in rows]))
        keyed = {row["dedupe"]: row["id"] for row in made if row["dedupe"] is not None}
        keyless = iter([row["id"] for row in made if row["dedupe"] is None])
        recorded = []
        for item in items:
            id = next(keyless) if item.dedupe is None else keyed.pop(item.dedupe, None)
            recorded.append(self.known(item) if id is None else Recorded(id=id))
        return recorded

    def items_known_by(self, keys: Sequence[str]) -> list[Row]:
        return super().items_known_by([written(key) for key in keys])

    def hold_keys(self, keys: Collection[str], *, shared: bool = False) -> None:
        if keys:
            self.session.hold_keys(sorted(keys), shared=shared)

    def recur(self, now: datetime) -> list[Recorded]:
        verb = super().recur
        return self._again(lambda: verb(now))

    def mirror(
        self,
        source: str,
        agent: str,
        observed: Sequence[Observation] | None,
        now: datetime,
        node: str | None,
        tenure: int | None,
        why: str,
    ) -> Edges:
        verb = super().mirror
        return self._together("observe", lambda: verb(source, agent, observed, now, node, tenure, why), names=[agent])

    def amend(self, source: str, agent: str, observed: Sequence[Observation], now: datetime) -> Edges:
        verb = super().amend
        return self._together("amend", lambda: verb(source, agent, observed, now), names=[agent])

    def tend(
        self, sources: Sequence[tuple[str, str]], node: str, now: datetime, lease: timedelta
    ) -> dict[tuple[str, str], int]:
        verb = super().tend
        return self._again(lambda: verb(sources, node, now, lease))

    def abandon(
        self, sources: Sequence[tuple[str, str]], now: datetime, *, node: str | None = None
    ) -> list[tuple[str, str]]:
        verb = super().abandon
        return self._together("abandon", lambda: verb(sources, now, node=node), names=[agent for _, agent in sources])

    def mark_read(self, messages: Sequence[int], by: str, now: datetime) -> list[int]:
        verb = super().mark_read
        return self._together("mark_read", lambda: verb(messages, by, now), items=messages)

    def snooze(self, items: Sequence[int], until: datetime, by: str, now: datetime) -> list[int]:
        verb = super().snooze
        return self._together("snooze", lambda: verb(items, until, by, now), items=items)

    # -- the one door -------------------------------------------------------------------------------------
    def ask(self, wakes: Sequence[Wake], now: datetime) -> list[int]:
        verb = super().ask
        return self._together("ask", lambda: verb(wakes, now), **_concerned(wakes))

    def decide(self, wakes: Sequence[Wake], admit: Admit, now: datetime) -> list[Decision]:
        verb = super().decide
        return self._together("decide", lambda: verb(wakes, admit, now), **_concerned(wakes))

    def skip(self, wake: Wake, reason: str, admit: Admit, skip: Skip, now: datetime) -> Decision:
        verb = super().skip
        return self._together("skip", lambda: verb(wake, reason, admit, skip, now), **_concerned([wake]))

    # -- runs ---------------------------------------------------------------------------------------------
    def claim(self, node: str, now: datetime, lease: timedelta, *, limit: int = 100) -> list[Order]:
        verb = super().claim
        return self._together("claim", lambda: self._laden(verb(node, now, lease, limit=limit)))

    def _laden(self, value: T) -> T:
        """What was found without waiting is held all the same."""
        self.session.laden = True
        return value

    def renew(self, node: str, runs: Sequence[tuple[int, int]], now: datetime, lease: timedelta) -> Renewed:
        verb = super().renew
        return self._again(lambda: verb(node, runs, now, lease))

    def renew_node(self, **asked: Any) -> Row:
        return super().renew_node(**asked, log=self.session.log)

    def orphans(self, now: datetime, *, limit: int = 100) -> list[tuple[int, int]]:
        verb = super().orphans
        return self._together("orphans", lambda: self._laden(verb(now, limit=limit)))

    def finish(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[Outcome]:
        verb = super().finish
        return self._together("finish", lambda: verb(ends, settle, now), runs=[end.run for end in ends])

    def finish_tasks(self, run: int, epoch: int, ends: Sequence[TaskEnd], now: datetime) -> list[Outcome | None]:
        verb = super().finish_tasks
        return self._together("finish_tasks", lambda: verb(run, epoch, ends, now), runs=[run])

    def stop(self, runs: Sequence[int], by: str, now: datetime, *, at_once: bool = False) -> list[int]:
        verb = super().stop
        return self._together("stop", lambda: verb(runs, by, now, at_once=at_once), runs=runs)

    def void(self, run: int, epoch: int, now: datetime) -> None:
        verb = super().void
        self._together("void", lambda: verb(run, epoch, now), runs=[run])

    def expire(self, now: datetime, *, unclaimed_for: timedelta = UNCLAIMED_FOR) -> list[int]:
        verb = super().expire
        return self._together("expire", lambda: self._laden(verb(now, unclaimed_for=unclaimed_for)))

    def money_back(self, row: Row, agent: Agent, usd: int, tokens: int, now: datetime) -> None:
        if (usd < 0 or tokens < 0) and bounded(agent.limits):
            # Who is refused for want of this money either sees it back, or is seen waiting for it.
            self.session.purse()
        super().money_back(row, agent, usd, tokens, now)

    # -- tasks and steps ----------------------------------------------------------------------------------
    def change_task(
        self, task: int, change: str, by: str, now: datetime, *, reason: str = "", result: str | None = None
    ) -> Item:
        verb = partial(super().change_task, reason=reason, result=result)
        return self._changing(change, "change_task", lambda: verb(task, change, by, now), [task])

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
        verb = partial(super().change_tasks, reason=reason, result=result)
        return self._changing(change, "change_tasks", lambda: verb(tasks, change, by, now), tasks)

    def _changing(self, change: str, site: str, verb: Callable[[], T], tasks: Sequence[int]) -> T:
        """What counts anew what a task waits for must not be overtaken by the end of that, or by a new need of it."""
        return self._alone(site, verb) if change in COUNTING else self._together(site, verb, items=tasks)

    def take_task(self, run: int, epoch: int, now: datetime, *, task: int | None = None) -> Item | None:
        verb = super().take_task
        return self._together("take_task", lambda: verb(run, epoch, now, task=task), runs=[run])

    def save_step(
        self, run: int, epoch: int, name: str, result: str | None, now: datetime, *, task: int | None = None
    ) -> None:
        verb = super().save_step
        self._together("save_step", lambda: verb(run, epoch, name, result, now, task=task), runs=[run])


def _concerned(wakes: Sequence[Wake]) -> dict[str, Sequence[Any]]:
    """Who may answer, who asked and shares in the pair, and the task that it is about."""
    return {
        "names": [name for wake in wakes for name in (wake.agent, wake.sender)],
        "roles": [wake.role for wake in wakes],
        "runs": [wake.by_run for wake in wakes],
        "items": [wake.task for wake in wakes],
    }


def _filled(row: Row) -> Row:
    """What is not said is NULL."""
    return {key: value for key, value in row.items() if value is not None}


def _listed(values: Sequence[Any]) -> list[Any]:
    return sorted({value for value in values if value is not None})
