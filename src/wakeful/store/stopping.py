"""A run that somebody wants ended: void while nobody has it, else noted for whoever holds it. So with a task of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from wakeful.core.events import EventKind
from wakeful.store.protocol import Stop
from wakeful.store.session import Row
from wakeful.store.voiding import Voiding


class Stopping(Voiding):
    def stop(self, runs: Sequence[int], by: str, now: datetime, *, at_once: bool = False) -> list[int]:
        with self.session.transaction("stop"):
            found = [self.session.one("run_with_wake", run=run) for run in dict.fromkeys(runs)]
            held = [row for row in found if row is not None and row["ended_at"] is None]
            for row in held:
                self._stop_one(row, by, now, at_once)
            return [row["id"] for row in held]

    def _stop_one(self, row: Row, by: str, now: datetime, at_once: bool) -> None:
        claimed = row["state"] == "running"
        if claimed and not self.session.run("stop_run", run=row["id"], by=by, at_once=int(at_once)):
            return
        fields = {"by": by, "at_once": at_once, "epoch": row["epoch"]}
        self.event(EventKind.stopped, now, agent=row["agent"], wake=row["wake"], run=row["id"], fields=fields)
        if not claimed:
            self.void_run(row["id"], row["epoch"], now)

    def stopping(self, node: str) -> list[Stop]:
        runs, tasks = self.session.reader().lists(("stopping_runs", {"node": node}), ("stopping_tasks", {"node": node}))
        return [
            *(
                Stop(run=row["id"], epoch=row["epoch"], by=row["stop_by"], at_once=bool(row["stop_at_once"]))
                for row in runs
            ),
            *(
                Stop(run=row["run"], epoch=row["epoch"], by=row["stop_by"], at_once=False, task=row["item"])
                for row in tasks
            ),
        ]
