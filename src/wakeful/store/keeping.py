"""What is kept of the past, and for how long.

Laws:
- What is open stays with everything that it rests on; so does whatever counts for today.
- What is left can be lived with: no row rests on another one that is gone, and the events that are left still tell how
  each agent was declared, where it stood and what held it, at any instant that is not forgotten.
- One sweep is bounded, and short enough for others to wait for.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from wakeful.core.events import EventKind
from wakeful.store.base import SqlBase
from wakeful.store.listing import last_event_until
from wakeful.store.protocol import Forgotten
from wakeful.store.rows import to_micros
from wakeful.store.session import Row

# The longest day, wherever it is today: what is counted for it began no longer ago.
TODAY = timedelta(hours=26)


class Keeping(SqlBase):
    def forget(
        self,
        before: datetime,
        keys_before: datetime,
        now: datetime,
        *,
        output_before: datetime | None = None,
        limit: int = 500,
    ) -> Forgotten:
        past = min(before, now - TODAY)
        old, keys = {"before": to_micros(past), "limit": limit}, to_micros(keys_before)
        with self.session.transaction("forget"):
            items = self._forget_items(self.session.all("old_items", **old, keys_before=keys))
            unkeyed = self.session.run("forget_keys", keys_before=keys, limit=limit)
            runs = self.session.all("old_runs", **old)
            self._forget_runs(runs)
            wakes = self.session.all("old_wakes", **old)
            self.session.many("forget_wake", [{"wake": wake["id"]} for wake in wakes])
            events = self._forget_events(old)
            # Two calendars may differ by a day; what a day's total sums is forgotten after the day itself is.
            day = (past - TODAY).date().isoformat()
            totals = self.session.run("forget_totals", day=day, limit=limit)
            self._forget_declarations(runs, events, old["before"])
            printed = self._forget_output(output_before or past, limit)
            self.session.write("forget_nodes", before=old["before"])
            counts = (items, unkeyed, len(runs), len(wakes), len(events), totals, printed)
        return Forgotten(
            runs=len(runs),
            wakes=len(wakes),
            items=items,
            events=len(events),
            more=any(count >= limit for count in counts),
        )

    def _forget_items(self, rows: list[Row]) -> int:
        named = [{"item": row["id"]} for row in rows]
        for query in ("forget_dependencies", "forget_dependents", "forget_showings", "forget_tries", "forget_item"):
            self.session.many(query, named)
        if rows:
            self.session.write("forget_task_steps", tasks=json.dumps([row["id"] for row in rows]))
        return len(rows)

    def _forget_runs(self, rows: list[Row]) -> None:
        named = [{"run": row["id"]} for row in rows]
        for query in ("forget_shown", "forget_output", "forget_run"):
            self.session.many(query, named)

    def _forget_output(self, before: datetime, limit: int) -> int:
        rows = self.session.all("old_output", before=to_micros(before), limit=limit)
        self.session.many("forget_output", rows)
        return len(rows)

    def _forget_events(self, old: Row) -> list[Row]:
        last = last_event_until(self.session, old["before"] - 1)
        rows = self.session.all("old_events", **old, last=last) if last else []
        self.session.many("forget_event", [{"event": row["id"]} for row in rows])
        if rows:
            self.session.run("forget_reckonings", last=rows[-1]["id"])
        return rows

    def _forget_declarations(self, runs: list[Row], events: list[Row], before: int) -> None:
        told = (EventKind.declared, EventKind.set)
        agents = {row["agent"] for row in runs} | {row["agent"] for row in events if row["kind"] in told}
        rows = [{"agent": agent, "before": before} for agent in sorted(agents)]
        self.session.many("forget_declarations", rows)

    def backup(self, path: Path) -> None:
        self.session.backup(path)
