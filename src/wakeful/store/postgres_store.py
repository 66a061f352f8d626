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
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from wakeful.core.agents import Agent, Fleet
from wakeful.core.events import EventKind
from wakeful.core.items import Item, NewItem, Observation
from wakeful.core.ledger import Edges
from wakeful.core.runs import Outcome
from wakeful.core.wakes import Pause, Wake
from wakeful.store.dueness import UNCLAIMED_FOR
from wakeful.store.facts import Gathered, slot_limit
from wakeful.store.postgres_session import Crowded, PostgresSession
from wakeful.store.protocol import Admit, Decision, Finish, Forgotten, Order, Recorded, Settle, Skip, TaskEnd
from wakeful.store.session import Reading, Row
from wakeful.store.store import SqlStore

T = TypeVar("T")

TRIES = 20


def step_aside(turn: int) -> None:
    """Not all at once, and longer each time, but never for long."""
    time.sleep(random.uniform(0, min(0.002 * 2**turn, 0.1)))


class PostgresStore(SqlStore):
    session: PostgresSession

    def __init__(self, session: PostgresSession) -> None:
        super().__init__(session)

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
        lists = {"names": names, "roles": roles, "runs": runs, "items": items}
        self.session.hold(**{key: _listed(values) for key, values in lists.items()})

    def event(self, kind: EventKind, at: datetime, **told: Any) -> None:
        self.session.enter_log()
        super().event(kind, at, **told)

    # -- what the operator says ---------------------------------------------------------------------------
    def declare(self, fleet: Fleet, now: datetime, *, boot: bool = False) -> list[str]:
        def verb() -> list[str]:
            changed = super(PostgresStore, self).declare(fleet, now, boot=boot)
            self.number_slots()
            return changed

        return self._alone("declare", verb)

    def number_slots(self) -> None:
        for query in ("forget_slots", "number_slots"):
            self.session.execute(query, {})

    def set(self, agent: str, settings: dict[str, Any], by: str, now: datetime) -> Agent:
        return self._alone("set", lambda: super(PostgresStore, self).set(agent, settings, by, now))

    def pause(self, pause: Pause, now: datetime) -> None:
        self._alone("pause", lambda: super(PostgresStore, self).pause(pause, now))

    def resume(self, scope: str, by: str, now: datetime, *, owner: str | None = None) -> bool:
        return self._alone("resume", lambda: super(PostgresStore, self).resume(scope, by, now, owner=owner))

    def forget(self, before: datetime, keys_before: datetime, now: datetime, *, limit: int = 500) -> Forgotten:
        verb = super().forget
        return self._alone("forget", lambda: verb(before, keys_before, now, limit=limit))

    # -- what arrives -------------------------------------------------------------------------------------
    def record(self, items: Sequence[NewItem], now: datetime) -> list[Recorded]:
        verb = super().record
        if any(item.depends_on for item in items):
            return self._together("record", lambda: verb(items, now))
        return self._again(lambda: verb(items, now))

    def observe(self, source: str, agent: str, observed: Sequence[Observation] | None, now: datetime) -> Edges:
        verb = super().observe
        return self._together("observe", lambda: verb(source, agent, observed, now), names=[agent])

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

    def gather(self, session: Reading, wake: Wake, row: Row, now: datetime) -> Gathered:
        """Where a decision rests on the facts, a slot that is told to be free is one that we have."""
        if session is not self.session:
            return super().gather(session, wake, row, now)
        limits = self.read_agent(row).limits
        if limits.fleet_usd_per_day is not None or limits.fleet_tokens_per_day is not None:
            self.session.purse()
        gathered = super().gather(session, wake, row, now)
        limit, facts = slot_limit(limits, wake.pool), gathered.facts
        if facts.slots_taken >= limit or facts.open_run is not None or facts.moot is not None:
            return gathered
        taken = self._taken(wake.pool.value, limit)
        return gathered if taken < limit else replace(gathered, facts=replace(facts, slots_taken=taken))

    def _taken(self, pool: str, limit: int) -> int:
        slot = self.session.execute("take_slot", {"pool": pool, "slots": limit}).fetchone()
        if slot is None:
            return limit
        if not slot["crowded"]:
            return 0
        # The fleet has fewer slots than it had, and runs are still open in those that are gone: one at a time.
        self.session.purse()
        counted = self.session.execute("count_pool", {"pool": pool}).fetchone()
        return limit if counted is None else int(counted["taken"])

    def _admit(self, id: int, wake: Wake, gathered: Gathered, charge: bool, now: datetime) -> int | None:
        run = super()._admit(id, wake, gathered, charge, now)
        if run is None:
            raise Crowded(f"the slot for wake {id} was taken by another")
        return run

    # -- runs ---------------------------------------------------------------------------------------------
    def claim(self, node: str, now: datetime, lease: timedelta, *, limit: int = 100) -> list[Order]:
        verb = super().claim
        return self._together("claim", lambda: self._laden(verb(node, now, lease, limit=limit)))

    def _laden(self, value: T) -> T:
        """What was found without waiting is held all the same."""
        self.session.laden = True
        return value

    def renew(self, node: str, runs: Sequence[tuple[int, int]], now: datetime, lease: timedelta) -> list[int]:
        verb = super().renew
        return self._again(lambda: verb(node, sorted(runs), now, lease))

    def finish(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[Outcome]:
        verb = super().finish
        return self._together("finish", lambda: verb(ends, settle, now), runs=[end.run for end in ends])

    def finish_task(self, run: int, epoch: int, end: TaskEnd, now: datetime) -> Outcome:
        verb = super().finish_task
        return self._together("finish_task", lambda: verb(run, epoch, end, now), runs=[run])

    def stop(self, runs: Sequence[int], by: str, now: datetime, *, at_once: bool = False) -> list[int]:
        verb = super().stop
        return self._together("stop", lambda: verb(runs, by, now, at_once=at_once), runs=runs)

    def void(self, run: int, epoch: int, now: datetime) -> None:
        verb = super().void
        self._together("void", lambda: verb(run, epoch, now), runs=[run])

    def expire(self, now: datetime, *, unclaimed_for: timedelta = UNCLAIMED_FOR) -> list[int]:
        verb = super().expire
        return self._together("expire", lambda: self._laden(verb(now, unclaimed_for=unclaimed_for)))

    def money_back(self, row: Row, usd: int, tokens: int, now: datetime) -> None:
        if usd < 0 or tokens < 0:
            limits = self.read_agent(self._row("agent_row", agent=row["agent"])).limits
            if limits.fleet_usd_per_day is not None or limits.fleet_tokens_per_day is not None:
                # Who is refused for want of this money either sees it back, or is seen waiting for it.
                self.session.purse()
        super().money_back(row, usd, tokens, now)

    # -- tasks and steps ----------------------------------------------------------------------------------
    def change_task(self, task: int, change: str, by: str, now: datetime, *, reason: str = "") -> Item:
        verb = super().change_task
        return self._together("change_task", lambda: verb(task, change, by, now, reason=reason), items=[task])

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


def _listed(values: Sequence[Any]) -> str:
    return json.dumps(sorted({value for value in values if value is not None}))
