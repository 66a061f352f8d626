"""From an admitted run to its end, except for what the end changes (see `finishing`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from wakeful.core.events import EventKind
from wakeful.core.runs import Run
from wakeful.core.wakes import Cause, Subject
from wakeful.store.declaring import BY_TIME, Declaring
from wakeful.store.dueness import UNCLAIMED_FOR
from wakeful.store.protocol import Order
from wakeful.store.remembering import journal_for, last_words, recorded_steps
from wakeful.store.rows import to_item, to_micros, to_pause, to_run, to_standing, to_wake_of_run
from wakeful.store.session import Row

# The most messages that one run is shown; the rest stays for the next one.
MOST_SHOWN = 100


# The most tasks whose instant has come that are put at their places at once.
MOST_RIPENED = 2000


class _Claimed(NamedTuple):
    """A run that is about to start, with all that is to be known of it before anything is written."""

    row: Row
    agent_row: Row
    items: list[Row]
    tasks: list[Row]
    steps: list[Row]


class Running(Declaring):
    def claim(self, node: str, now: datetime, lease: timedelta, *, limit: int = 100) -> list[Order]:
        with self.session.transaction("claim"):
            orders: dict[int, Order] = {}
            rows = self.session.all("admitted_runs", limit=limit)
            for apart in _apart(rows):
                started = []
                for claimed in self._read_claims(apart, now):
                    if not claimed.items and _needs_items(claimed.row):
                        # A replica took what rang: nobody is paid to look at an empty inbox.
                        self.void_run(claimed.row["id"], claimed.row["epoch"], now)
                    else:
                        started.append(claimed)
                made = [self._order(claimed, now) for claimed in started]
                self._start(started, made, node, now, lease)
                orders.update((order.run.id, order) for order in made)
            return [orders[row["id"]] for row in rows if row["id"] in orders]

    def _read_claims(self, rows: list[Row], now: datetime) -> list[_Claimed]:
        found = iter(self.session.lists(*(asked for row in rows for asked in _asked(row, now))))
        claims = []
        for row in rows:
            (agent_row,), what = next(found), next(found)
            on_task = row["subject"] == Subject.task
            steps = [] if row["subject"] == Subject.inbox else next(found)
            claims.append(_Claimed(row, agent_row, [] if on_task else what, what if on_task else [], steps))
        return claims

    def _order(self, claimed: _Claimed, now: datetime) -> Order:
        row, agent_row = claimed.row, claimed.agent_row
        agent, standing = self.read_agent(agent_row), to_standing(agent_row)
        run = replace(to_run(row), epoch=agent_row["epoch"] + 1, started_at=now)
        return Order(
            run=run,
            agent=agent,
            standing=standing,
            items=tuple(to_item(item) for item in claimed.items),
            tasks=tuple(to_item(task) for task in claimed.tasks),
            wake=to_wake_of_run(row),
            deadline=now + (_timeout(claimed.tasks) or agent.wall_clock(run.subject)),
            beat=agent_row["beat"],
            last=last_words(agent_row),
            steps=recorded_steps(claimed.steps),
            journal=journal_for(self.session, run, agent, standing, now),
        )

    def _start(self, started: list[_Claimed], orders: list[Order], node: str, now: datetime, lease: timedelta) -> None:
        runs = [order.run for order in orders]
        self.session.many("next_epoch", [{"agent": run.agent, "epoch": run.epoch} for run in runs])
        length = lease // timedelta(microseconds=1)
        common = {"node": node, "now": to_micros(now), "lease": length}
        self.session.many("start_run", [{"run": run.id, "epoch": run.epoch, **common} for run in runs])
        shown = [
            {"run": claimed.row["id"], "item": item["id"], "fingerprint": item["fingerprint"]}
            for claimed in started
            for item in claimed.items
        ]
        self.session.many("show_item", shown)
        self.session.many("hold_item", shown)
        for claimed, run in zip(started, runs, strict=True):
            self._tell_start(run, node, claimed.items, claimed.tasks, now)

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

    def void(self, run: int, epoch: int, now: datetime) -> None:
        with self.session.transaction("void"):
            self.void_run(run, epoch, now)

    def expire(self, now: datetime, *, unclaimed_for: timedelta = UNCLAIMED_FOR) -> list[int]:
        with self.session.transaction("expire"):
            before, at = {"before": to_micros(now - unclaimed_for)}, {"now": to_micros(now)}
            runs, pauses = self.session.lists(("unclaimed_runs", before), ("expired_pauses", at))
            for run in runs:
                self.void_run(run["id"], run["epoch"], now)
            self.lift([to_pause(row) for row in pauses], BY_TIME, now)
            self.session.write("ripen_tasks", **at, limit=MOST_RIPENED)
            return [run["id"] for run in runs]


def _asked(row: Row, now: datetime) -> Iterator[tuple[str, Row]]:
    """The reads of one claim, in the order in which they are answered."""
    run = {"run": row["id"]}
    yield "run_agent", run
    if row["subject"] == Subject.task:
        yield "tasks_of_run", run
        yield "task_steps", run
    else:
        inbox = {"agent": row["agent"], "address": row["address"], "now": to_micros(now), "limit": MOST_SHOWN}
        yield "items_to_show", inbox
        if row["subject"] == Subject.beat:
            yield "beat_steps", run


def _timeout(tasks: list[Row]) -> timedelta | None:
    """Of the one task that a run is about; each task of a shift has its own deadline, from when it begins."""
    own = tasks[0]["timeout"] if len(tasks) == 1 else None
    return None if own is None else timedelta(microseconds=own)


def _needs_items(row: Row) -> bool:
    return row["cause"] in (Cause.peer, Cause.news) or (
        row["cause"] == Cause.operator and row["subject"] == Subject.inbox and row["wake_item"] is not None
    )


def _apart(rows: list[Row]) -> list[list[Row]]:
    """Those that share an inbox one after the other: what the first holds is not shown to the next."""
    groups: list[list[Row]] = []
    nexts: dict[str, int] = {}
    for row in rows:
        names = () if row["subject"] == Subject.task else (row["agent"], row["address"])
        at = max((nexts.get(name, 0) for name in names), default=0)
        nexts.update(dict.fromkeys(names, at + 1))
        if at == len(groups):
            groups.append([])
        groups[at].append(row)
    return groups
