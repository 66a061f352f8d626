"""From an admitted run to its end, except for what the end changes (see `finishing`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from wakeful.core.errors import Stale
from wakeful.core.events import EventKind
from wakeful.core.runs import Run
from wakeful.core.wakes import Cause, Subject
from wakeful.store.declaring import Declaring
from wakeful.store.dueness import UNCLAIMED_FOR
from wakeful.store.protocol import Order
from wakeful.store.remembering import journal_for, last_words, recorded_steps
from wakeful.store.rows import to_item, to_micros, to_pause, to_run, to_standing, to_wake
from wakeful.store.session import Row

# The most messages that one run is shown; the rest stays for the next one.
MOST_SHOWN = 100


class Running(Declaring):
    def claim(self, node: str, now: datetime, lease: timedelta, *, limit: int = 100) -> list[Order]:
        with self.session.transaction("claim"):
            self.session.run("put_node", node=node, now=to_micros(now))
            orders = []
            for row in self.session.all("admitted_runs", limit=limit):
                items = self._inbox(row, now)
                if not items and self._needs_items(row):
                    # A replica took what rang: nobody is paid to look at an empty inbox.
                    self.void_run(row["id"], row["epoch"], now)
                else:
                    orders.append(self._start(row, items, node, now, lease))
            return orders

    def _inbox(self, row: Row, now: datetime) -> list[Row]:
        if row["subject"] == Subject.task:
            return []
        return self.session.all(
            "items_to_show", agent=row["agent"], address=row["address"], now=to_micros(now), limit=MOST_SHOWN
        )

    def _needs_items(self, row: Row) -> bool:
        return row["cause"] in (Cause.peer, Cause.news) or (
            row["cause"] == Cause.operator and row["subject"] == Subject.inbox and row["item"] is not None
        )

    def _start(self, row: Row, items: list[Row], node: str, now: datetime, lease: timedelta) -> Order:
        self.session.run("next_epoch", agent=row["agent"])
        until = to_micros(now + lease)
        self.session.run(
            "start_run", run=row["id"], agent=row["agent"], node=node, now=to_micros(now), lease_until=until
        )
        standing = self._row("standing_row", agent=row["agent"])
        agent = self.read_agent(self._row("agent_row", agent=row["agent"]))
        run = replace(to_run(row), epoch=standing["epoch"], started_at=now)
        stands = to_standing(standing)
        journal = journal_for(self.session, run, agent, stands, now)
        for item in items:
            self.session.run("show_item", run=run.id, item=item["id"], fingerprint=item["fingerprint"])
            self.session.run("hold_item", run=run.id, item=item["id"])
        tasks = self.session.all("tasks_of_run", run=run.id) if run.subject is Subject.task else []
        self._tell_start(run, node, items, tasks, now)
        return Order(
            run=run,
            agent=agent,
            standing=stands,
            items=tuple(to_item(item) for item in items),
            tasks=tuple(to_item(task) for task in tasks),
            wake=to_wake(self._row("wake_row", wake=run.wake)),
            deadline=now + agent.wall_clock(run.subject),
            beat=standing["beat"],
            last=last_words(self.session, run.agent),
            steps=recorded_steps(self.session, run, standing["beat"]),
            journal=journal,
        )

    def _tell_start(self, run: Run, node: str, items: list[Row], tasks: list[Row], now: datetime) -> None:
        fields = {
            "cause": run.cause.value,
            "subject": run.subject.value,
            "node": node,
            "epoch": run.epoch,
            "state": run.position.state,
            "hits": run.position.hits,
            "shown": [[item["id"], item["fingerprint"]] for item in items],
            "tasks": [task["id"] for task in tasks],
        }
        self.event(EventKind.started, now, agent=run.agent, wake=run.wake, run=run.id, fields=fields)

    def _row(self, query: str, **parameters: object) -> Row:
        row = self.session.one(query, **parameters)
        if row is None:
            raise Stale(f"{query}: no row for {parameters}")
        return row

    def renew(self, node: str, runs: Sequence[tuple[int, int]], now: datetime, lease: timedelta) -> list[int]:
        until = to_micros(now + lease)
        with self.session.transaction("renew"):
            self.session.run("put_node", node=node, now=to_micros(now))
            return [
                run
                for run, epoch in runs
                if self.session.run("renew_run", run=run, epoch=epoch, node=node, lease_until=until)
            ]

    def void(self, run: int, epoch: int, now: datetime) -> None:
        with self.session.transaction("void"):
            self.void_run(run, epoch, now)

    def expire(self, now: datetime, *, unclaimed_for: timedelta = UNCLAIMED_FOR) -> list[int]:
        with self.session.transaction("expire"):
            runs = self.session.all("unclaimed_runs", before=to_micros(now - unclaimed_for))
            for run in runs:
                self.void_run(run["id"], run["epoch"], now)
            pauses = self.session.all("expired_pauses", now=to_micros(now))
            self.lift([to_pause(row) for row in pauses], "time", now)
            return [run["id"] for run in runs]
