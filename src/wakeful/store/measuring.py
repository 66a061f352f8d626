"""How much is open, for those who watch from afar.

Law: counted where an index has it. Of tasks, of which there may be millions, none is read.
"""

from __future__ import annotations

import json
from datetime import datetime

from wakeful.core.items import Kind
from wakeful.store.base import SqlBase
from wakeful.store.listed import Backlog
from wakeful.store.listing import LAST_NAME
from wakeful.store.rows import from_micros, to_micros
from wakeful.store.session import Row


class Measuring(SqlBase):
    def backlog(self, now: datetime) -> Backlog:
        reader = self.session.reader()
        messages = _counts(reader.one("open_messages"))
        tasks = _counts(reader.one("task_counts", first="", last=LAST_NAME))
        waiting = [reader.one(name, now=to_micros(now)) for name in ("oldest_message", "oldest_task")]
        since = [row["since"] for row in waiting if row is not None and row["since"] is not None]
        return Backlog(
            open={(name, Kind.message.value): count for name, count in messages.items()}
            | {(name, Kind.task.value): count for name, count in tasks.items()},
            oldest=from_micros(min(since)) if since else None,
        )


def _counts(row: Row | None) -> dict[str, int]:
    return json.loads(row["counts"]) or {} if row else {}
