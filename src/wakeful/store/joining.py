"""Nodes: the engines at work on one store, the leases of what they hold, and what their holders left behind.

Laws:
- Where several nodes share a store, leases are counted by the database's clock alone; `now` is the caller's.
- A renewal extends what is still the caller's own, and nothing else. Of a node without runs it is one query.
- An orphan is one asker's until the commit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from wakeful.core.errors import Conflict, Unknown
from wakeful.store.base import SqlBase
from wakeful.store.protocol import NodeRow, Renewed
from wakeful.store.rows import moment_or_none, to_micros, to_node_row
from wakeful.store.session import Row

_MICROSECOND = timedelta(microseconds=1)


class Joining(SqlBase):
    def join(self, node: str, host: str, url: str, now: datetime, lease: timedelta) -> None:
        with self.session.transaction("join"):
            if not self.session.run(
                "join_node", node=node, host=host, url=url, now=to_micros(now), lease=lease // _MICROSECOND
            ):
                row = self.session.one("node_host", node=node)
                where = row["host"] if row else "another host"
                raise Conflict(
                    f"another engine called {node} is up on {where}: "
                    "if this data folder was copied from there, remove the file `node` in it and start again"
                )

    def leave(self, node: str, now: datetime) -> None:
        with self.session.transaction("leave"):
            self.session.run("leave_node", node=node, now=to_micros(now))
            for query in ("leave_sources", "leave_outages"):
                self.session.write(query, node=node)

    def renew(self, node: str, runs: Sequence[tuple[int, int]], now: datetime, lease: timedelta) -> Renewed:
        asked = {"node": node, "now": to_micros(now), "lease": lease // _MICROSECOND}
        with self.session.transaction("renew"):
            # First of all: what this node has just renewed does not ask for anybody.
            held = self.session.all("renew_runs", **asked, runs=json.dumps(list(runs))) if runs else []
            row = self.renew_node(**asked)
        mine = {row["id"] for row in held}
        return Renewed(
            runs=tuple(run for run, _ in runs if run in mine),
            next_at=moment_or_none(row["next_at"]),
            last_event=row["last_event"],
        )

    def renew_node(self, **asked: Any) -> Row:
        row = self.session.one("renew_node", **asked)
        if row is None:
            raise Unknown(f"no node {asked['node']} has joined this store")
        return row

    def orphans(self, now: datetime, *, limit: int = 100) -> list[tuple[int, int]]:
        with self.session.transaction("orphans"):
            rows = self.session.all("orphaned_runs", now=to_micros(now), limit=limit)
            return [(row["id"], row["epoch"]) for row in rows]

    def nodes(self, now: datetime) -> list[NodeRow]:
        return [to_node_row(row) for row in self.session.reader().all("node_rows", now=to_micros(now))]
