"""The store: its verbs are gathered from their own modules; what reads one thing is here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from wakeful.core.agents import Agent
from wakeful.core.errors import Unknown
from wakeful.core.items import Item
from wakeful.core.standing import Standing
from wakeful.core.wakes import Pause, Wake
from wakeful.store.auditing import Auditing
from wakeful.store.deciding import Deciding, candidates
from wakeful.store.dueness import Dueness
from wakeful.store.handling import Handling
from wakeful.store.inboxes import Inboxes
from wakeful.store.joining import Joining
from wakeful.store.keeping import Keeping
from wakeful.store.lanes import Lanes
from wakeful.store.listing import Listing
from wakeful.store.measuring import Measuring
from wakeful.store.mirroring import Mirroring
from wakeful.store.noting import Noting
from wakeful.store.opinions import target_of
from wakeful.store.protocol import Attempt, RunRow, Totals, Why
from wakeful.store.publishing import Publishing
from wakeful.store.queues import Queues
from wakeful.store.rows import to_attempt, to_item, to_pause, to_run_row, to_standing
from wakeful.store.searching import Searching
from wakeful.store.stopping import Stopping
from wakeful.store.taking import Taking
from wakeful.store.tasking import Tasking
from wakeful.store.waiting import Waiting


class SqlStore(
    Mirroring,
    Handling,
    Inboxes,
    Queues,
    Dueness,
    Listing,
    Lanes,
    Searching,
    Measuring,
    Deciding,
    Joining,
    Stopping,
    Noting,
    Publishing,
    Taking,
    Tasking,
    Keeping,
    Auditing,
    Waiting,
):
    """The whole protocol over one session. Reads go through the session's readers and see what is committed."""

    def agents(self, *, removed: bool = False) -> list[Agent]:
        rows = self.session.reader().all("live_agents", removed=int(removed))
        return [self.read_agent(row) for row in rows]

    def agent(self, name: str) -> Agent | None:
        row = self.session.reader().one("agent_row", agent=name)
        return None if row is None else self.read_agent(row)

    def standing(self, agent: str) -> Standing | None:
        row = self.session.reader().one("standing_row", agent=agent)
        return None if row is None else to_standing(row)

    def pauses(self) -> list[Pause]:
        return [to_pause(row) for row in self.session.reader().all("pause_rows")]

    def item(self, id: int) -> Item | None:
        row = self.session.reader().one("item_row", item=id)
        return None if row is None else to_item(row)

    def attempts(self, task: int) -> list[Attempt]:
        return [to_attempt(row) for row in self.session.reader().all("task_attempts", item=task)]

    def run(self, id: int) -> RunRow | None:
        rows = self.session.reader().all("run_rows", ids=json.dumps([id]))
        return to_run_row(rows[0]) if rows else None

    def total(self, scope: str, day: str, measure: str) -> int:
        row = self.session.reader().one("total_row", scope=scope, day=day)
        return 0 if row is None else int(row[measure])

    def totals(self, scopes: Sequence[str], first: str, last: str) -> list[Totals]:
        asked = json.dumps(list(dict.fromkeys(scopes)))
        return [Totals(**row) for row in self.session.reader().all("totals", scopes=asked, first=first, last=last)]

    def pairs(self, address: str, day: str) -> dict[str, int]:
        begin, end = f"pair:{address}|", f"|{address}"
        found = {}
        for row in self.session.reader().all("pair_rows", day=day, begin=begin, end=end):
            scope = row["scope"]
            other = scope.removeprefix(begin) if scope.startswith(begin) else scope[len("pair:") : -len(end)]
            found[other] = int(row["wakes"])
        return dict(sorted(found.items()))

    def why(self, wake: Wake, now: datetime) -> Why:
        reader = self.session.reader()
        rows = candidates(reader, wake)
        if not rows:
            raise Unknown(f"no agent answers to {target_of(wake)}")
        gathered = self.gather(reader, wake, rows[0], now)
        pauses = tuple(to_pause(row) for row in reader.all("pause_rows"))
        return Why(wake=wake, facts=gathered.facts, limits=gathered.agent.limits, pauses=pauses)

    def close(self) -> None:
        self.session.close()
