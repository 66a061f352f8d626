"""What is looked for in the past by what it says: newest first, and never through all of it at once.

Law: a search looks at a bounded part of the past. What it has not found there it says where to go on from, so that a
page may be short, or empty, and not be the last one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from wakeful.core.events import Event
from wakeful.core.items import Item
from wakeful.store.base import SqlBase
from wakeful.store.inboxes import items_of
from wakeful.store.listed import Found, RunRow, Sought, StepRow
from wakeful.store.listing import LAST_ID, ids_of
from wakeful.store.rows import from_micros, to_events, to_run_row
from wakeful.store.session import Row
from wakeful.store.steps import beat_subject, task_subject

# How much of the past one search looks at.
WITHIN = 5_000


class Searching(SqlBase):
    def find_runs(
        self,
        *,
        agent: str | None = None,
        outcome: str | None = None,
        cause: str | None = None,
        open: bool | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Found[RunRow]:
        reader = self.session.reader()
        asked: Row = {"agent": agent, "before": LAST_ID if before is None else before, "within": WITHIN}
        like = {"outcome": outcome, "cause": cause, "open": None if open is None else int(open), "limit": limit}
        ids = ids_of(reader.all("runs_like" if agent is None else "agent_runs_like", **asked, **like))
        rows = [to_run_row(row) for row in reader.all("run_rows", ids=json.dumps(ids))] if ids else []
        if len(ids) == limit:
            return Found(rows=tuple(rows), next=ids[-1])
        first = reader.one("first_run_within" if agent is None else "first_agent_run_within", **asked)
        return Found(rows=tuple(rows), next=_onwards(first))

    def find_decided(
        self,
        sought: Sought,
        *,
        agent: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> Found[Event]:
        reader = self.session.reader()
        end = LAST_ID if before is None else before
        asked: Row = {"agent": agent, "after": after, "before": end, "within": WITHIN}
        like = {
            "verdict": sought.verdict,
            "guard": sought.guard,
            "cause": sought.cause,
            "text": sought.text,
            "limit": limit,
        }
        rows = reader.all("decided_like" if agent is None else "agent_decided_like", **asked, **like)
        events = tuple(to_events(rows))
        if len(rows) == limit:
            return Found(rows=events, next=rows[-1]["id"])
        first = reader.one("first_decided_within" if agent is None else "first_agent_decided_within", **asked)
        return Found(rows=events, next=_onwards(first))

    def some_items(self, ids: Sequence[int]) -> list[Item]:
        return list(items_of(self.session.reader(), list(ids)).values())

    def steps_told(self, run: int, *, limit: int = 200, longest: int = 1_000) -> list[StepRow]:
        reader = self.session.reader()
        row = reader.one("run_with_wake", run=run)
        if row is None:
            return []
        tasks = ids_of(reader.all("tried_in", run=run))
        subjects: dict[str, int | None] = {}
        if row["subject"] == "beat":
            subjects[beat_subject(row["agent"], row["beat"])] = None
        subjects |= {task_subject(task): task for task in tasks}
        found = reader.all("steps_of", subjects=json.dumps(list(subjects)), limit=limit, longest=longest)
        return [
            StepRow(
                task=subjects[each["subject"]],
                name=each["name"],
                result=each["result"],
                at=from_micros(each["saved_at"]),
            )
            for each in reversed(found)
        ]


def _onwards(row: Row | None) -> int | None:
    """From where the search goes on, if there was more than it looks at."""
    return int(row["first"]) if row is not None and row["looked"] == WITHIN else None
