"""A task that a run takes for itself in the course of something else: a beat, or its inbox.

Laws:
- What is taken is leased to that run in its epoch, as a task of a shift is: one attempt, settled by itself, and renewed
  and lost with the run. The run's own subject stays what it is; no run begins here.
- A run takes what could begin now, from the queues of its own agent, best placed first, and each task once. A task that
  a wake of its own waits for may be taken too; that wake then finds that it is moot. A one-off has its own run.
- Nothing is taken while the fleet, the agent or the task's source is paused.
"""

from __future__ import annotations

from datetime import datetime

from wakeful.core.agents import Agent
from wakeful.core.errors import Mistake
from wakeful.core.events import EventKind
from wakeful.core.items import Item
from wakeful.core.wakes import FLEET, ONE_OFF, Subject, agent_scope
from wakeful.store.base import SqlBase
from wakeful.store.dueness import SIGHT
from wakeful.store.finishing import still_open
from wakeful.store.recording import role_target
from wakeful.store.rows import to_item, to_micros, to_pause
from wakeful.store.session import Row

# Of each queue: so many one-offs or tasks that another node is taking may stand before the first that can be had.
_MORE = 16
_QUEUES = ("ready_tasks", "later_tasks", "asked_in_queue")


class Taking(SqlBase):
    def take_task(self, run: int, epoch: int, now: datetime, *, task: int | None = None) -> Item | None:
        with self.session.transaction("take_task"):
            rows, agents = self.session.lists(("run_with_wake", {"run": run}), ("run_agent", {"run": run}))
            row, agent = still_open(rows, run, epoch), self.read_agent(agents[0])
            if row["subject"] == Subject.task:
                raise Mistake(f"run {run} is about tasks of its own", "do those: another run takes what comes next")
            if self._held_back(agent, now):
                return None
            targets = {agent.name, agent.address, *map(role_target, agent.roles)}
            tried = {tried["item"] for tried in self.session.all("tried_in_run", run=run)}
            wanted = self._waiting_in(sorted(targets), now, len(tried) + _MORE) if task is None else [task]
            taken = (self._take(row, id, targets, now) for id in wanted if id not in tried)
            return next((item for item in taken if item is not None), None)

    def _held_back(self, agent: Agent, now: datetime) -> bool:
        scopes = (FLEET, agent_scope(agent.name), agent_scope(agent.address))
        pauses = (to_pause(row) for row in self.session.all("pause_rows"))
        return any(pause.scope in scopes and (pause.until is None or pause.until > now) for pause in pauses)

    def _waiting_in(self, targets: list[str], now: datetime, limit: int) -> list[int]:
        """What these queues have, best placed first."""
        common = {"limit": limit, "sight": SIGHT, "now": to_micros(now)}
        asked = [(query, {"target": target, **common}) for target in targets for query in _QUEUES]
        rows = [row for rows in self.session.lists(*asked) for row in rows]
        return [row["id"] for row in sorted(rows, key=lambda row: (row["place"], row["id"]))]

    def _take(self, run: Row, task: int, targets: set[str], now: datetime) -> Item | None:
        found = self.session.one("task_to_take", task=task, now=to_micros(now))
        if found is None or found["target"] not in targets or found["source"] == ONE_OFF:
            return None
        if not self.session.run("take_task", task=task, run=run["id"], wake=run["wake"]):
            # Another node was quicker.
            return None
        self.session.write("put_attempt", task=task, run=run["id"], now=to_micros(now))
        if found["asked"] is not None:
            self.session.write("decide_soon", wake=found["asked"], now=to_micros(now))
        told = {"from": found["state"], "epoch": run["epoch"]}
        self.event(
            EventKind.task_taken, now, agent=run["agent"], wake=run["wake"], run=run["id"], item=task, fields=told
        )
        row = self.session.one("item_row", item=task)
        assert row is not None
        return to_item(row)
