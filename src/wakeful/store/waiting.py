"""What open tasks wait for (see `waited`)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wakeful.core.agents import Agent
from wakeful.store.base import SqlBase

_ROLE = "role:"


class Waiting(SqlBase):
    def ahead(self, tasks: Sequence[int]) -> dict[int, int]:
        rows = self.session.reader().all("tasks_ahead", tasks=json.dumps(list(tasks))) if tasks else []
        return {row["id"]: row["ahead"] for row in rows if row["ahead"] is not None}

    def of_role(self, role: str) -> list[Agent]:
        return [self.read_agent(row) for row in self.session.reader().all("agents_of_role", role=role)]

    def untaken(self) -> list[tuple[str | None, str | None, int]]:
        found = [(row["target"], row["tasks"]) for row in self.session.reader().all("untaken_targets")]
        return [
            (None, target.removeprefix(_ROLE), tasks) if target.startswith(_ROLE) else (target, None, tasks)
            for target, tasks in found
        ]
