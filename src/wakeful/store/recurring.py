"""Tasks that recur: declared with the fleet, put into their queues when their instant has come.

Laws:
- Each instant gives at most one task, whoever looks and however often: its key names the schedule and the instant.
- Each recurs by itself: one that cannot is told of and goes on with its next instant, and the others have theirs.
- Missed instants give one task together, and the next instant is always ahead of now.
- An instant that is passed over, because an earlier task is still open, is told by an event.
- A schedule that is declared as it was keeps its next instant; a changed one gets its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import datetime

from wakeful.core.codec import decode, write_time
from wakeful.core.errors import Busy, Unknown, WakefulError
from wakeful.core.events import EventKind
from wakeful.core.items import State
from wakeful.core.recurrences import Overlap, Recurrence
from wakeful.store.protocol import Recorded
from wakeful.store.recording import Recording
from wakeful.store.rows import dump, from_micros, to_micros
from wakeful.store.session import Row

log = logging.getLogger("wakeful.store")


class Recurring(Recording):
    def recur(self, now: datetime) -> list[Recorded]:
        with self.session.transaction("recur"):
            rows = self.session.all("due_recurrences", now=to_micros(now))
            return [made for row in rows for made in self._recur_one(row, now)]

    def _recur_one(self, row: Row, now: datetime) -> list[Recorded]:
        declared = _read(row)
        at = declared.last(from_micros(row["next_at"]), now)
        self.session.write("set_next", name=declared.name, next_at=to_micros(declared.after(now)))
        before = (
            self.session.one("open_of_source", source=declared.source) if declared.overlap is Overlap.skip else None
        )
        if before is not None:
            told = {"source": declared.source, "instant": write_time(at), "overlap": declared.overlap.value}
            self.event(EventKind.passed_over, now, agent=declared.agent, item=before["id"], fields=told)
            if before["state"] == State.blocked:
                # It ends by nobody's doing but a person's, and the schedule is silent until then.
                log.warning("%s does not recur at %s: task %d of it is blocked", declared.name, at, before["id"])
            return []
        task = declared.task(at)
        # Of an instant that was made up for before, whatever the task was called then.
        known = self.session.one("keyed_task", dedupe=task.dedupe)
        if known is not None:
            return [Recorded(id=known["id"], duplicate=True)]
        try:
            with self.session.transaction("recur_one"):
                return self.record_all([task], now)
        except Busy:
            raise
        except WakefulError as error:
            log.error("%s does not recur at %s: %s", declared.name, at, error)
            return []

    def adopt_recurrences(self, declared: Sequence[Recurrence], now: datetime) -> None:
        known = {row["name"]: row for row in self.session.all("recurrence_rows")}
        for recurrence in declared:
            if recurrence.agent is not None and self.session.one("address_row", name=recurrence.agent) is None:
                raise Unknown(f"no agent is called {recurrence.agent}, whose task {recurrence.name} is to be")
            row, following = known.pop(recurrence.name, None), recurrence.after(now)
            if row is not None and _timing(_read(row)) == _timing(recurrence):
                # A clock that was set back never puts it off beyond its next instant.
                following = min(from_micros(row["next_at"]), following)
            next_at, body = to_micros(following), dump(recurrence)
            if row is None or (row["declaration"], row["next_at"]) != (body, next_at):
                self.session.write("put_recurrence", name=recurrence.name, declaration=body, next_at=next_at)
        for name in known:
            self.session.write("forget_recurrence", name=name)

    def recurrences(self) -> list[tuple[Recurrence, datetime]]:
        rows = self.session.reader().all("recurrence_rows")
        return [(_read(row), from_micros(row["next_at"])) for row in rows]


def _read(row: Row) -> Recurrence:
    return decode(Recurrence, json.loads(row["declaration"]))


def _timing(recurrence: Recurrence) -> tuple[str, str]:
    return recurrence.schedule.expression, recurrence.timezone
