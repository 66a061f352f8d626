"""The pages of every table, for an audit (see `audited`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wakeful.store.base import SqlBase
from wakeful.store.session import Row

# Of each table the query that pages through it, the columns of its key, and what comes before every key.
TABLES: dict[str, tuple[str, tuple[str, ...], tuple[Any, ...]]] = {
    "address": ("kept_address", ("name",), ("",)),
    "fleet": ("kept_fleet", ("id",), (0,)),
    "agent": ("kept_agent", ("name",), ("",)),
    "declaration": ("kept_declaration", ("agent", "version"), ("", 0)),
    "role": ("kept_role", ("role", "agent"), ("", "")),
    "standing": ("kept_standing", ("agent",), ("",)),
    "item": ("kept_item", ("id",), (0,)),
    "dependency": ("kept_dependency", ("needs", "item"), (0, 0)),
    "wake": ("kept_wake", ("id",), (0,)),
    "run": ("kept_run", ("id",), (0,)),
    "run_item": ("kept_run_item", ("run", "item"), (0, 0)),
    "attempt": ("kept_attempt", ("item", "run"), (0, 0)),
    "recurrence": ("kept_recurrence", ("name",), ("",)),
    "step": ("kept_step", ("subject", "name"), ("", "")),
    "pause": ("kept_pause", ("scope", "owner"), ("", "")),
    "total": ("kept_total", ("scope", "day"), ("", "")),
    "node": ("kept_node", ("name",), ("",)),
    "source": ("kept_source", ("agent", "source"), ("", "")),
    "output": ("kept_output", ("run", "stream"), (0, "")),
    "event": ("kept_event", ("id",), (0,)),
    "reckoning": ("kept_reckoning", ("event",), (0,)),
    "slot": ("kept_slot", ("pool", "number"), ("", 0)),
}


class Auditing(SqlBase):
    @contextmanager
    def still(self) -> Iterator[None]:
        with self.session.reader().snapshot():
            yield

    def kept(self, table: str, *, after: Row | None = None, limit: int = 1000) -> list[Row]:
        query, key, first = TABLES[table]
        start = first if after is None else tuple(after[column] for column in key)
        given = dict(zip(("after", "beyond"), start, strict=False))
        return self.session.reader().all(query, **given, limit=limit)

    def last_number(self, table: str) -> int | None:
        row = self.session.reader().one("kept_numbers", table=table)
        return None if row is None else int(row["seq"])

    def gaps_until(self, table: str) -> int:
        row = self.session.reader().one("kept_numbers", table=table)
        return 0 if row is None else int(row["gaps"])
