"""What the verbs share: the session, the events, and declarations read once per version."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from wakeful.core.agents import Agent, Limits, override
from wakeful.core.codec import decode
from wakeful.core.errors import Unknown
from wakeful.core.events import EventKind
from wakeful.core.lifecycle import Lifecycle
from wakeful.store.rows import to_micros
from wakeful.store.session import Row, Session

_LIMIT_NAMES = frozenset(field.name for field in fields(Limits))


class SqlBase:
    def __init__(self, session: Session) -> None:
        self.session = session
        # Values, not state: a version's declaration never changes, so a stale entry cannot exist.
        self._agents: dict[str, tuple[int, Agent]] = {}
        self._lifecycles: dict[tuple[str, int], Lifecycle] = {}
        self._handed_out: dict[str, int] = {}

    def event(
        self,
        kind: EventKind,
        at: datetime,
        *,
        agent: str | None = None,
        wake: int | None = None,
        run: int | None = None,
        item: int | None = None,
        fields: dict[str, Any] | None = None,
    ) -> None:
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False) if fields else "{}"
        self.session.write(
            "put_event",
            kind=kind.value,
            at=to_micros(at),
            agent=agent,
            wake=wake,
            run=run,
            item=item,
            fields=text,
        )

    def next_version(self, agent: str, version: int) -> int:
        """One that was never handed out before: what is undone may have been read under its number."""
        self._handed_out[agent] = max(version, self._handed_out.get(agent, 0)) + 1
        return self._handed_out[agent]

    def last_known(self, name: str) -> Agent | None:
        """As it was when it was last read; it may have changed since."""
        known = self._agents.get(name)
        return None if known is None else known[1]

    def known_agent(self, name: str, version: int) -> Agent | None:
        known = self._agents.get(name)
        return known[1] if known is not None and known[0] == version else None

    def forget_agent(self, name: str) -> None:
        self._agents.pop(name, None)

    def read_agent(self, row: Row) -> Agent:
        """The agent of an `agent_row`, with its live settings."""
        known = self.known_agent(row["name"], row["version"])
        if known is not None:
            return known
        agent = decode(Agent, json.loads(row["declaration"]))
        overrides = json.loads(row["overrides"])
        if overrides:
            agent = override(agent, typed(overrides))
        self._agents[agent.name] = (row["version"], agent)
        return agent

    def pinned_lifecycle(self, agent: str, version: int) -> Lifecycle:
        """The lifecycle that a run of that version began with."""
        known = self._lifecycles.get((agent, version))
        if known is None:
            row = self.session.one("pinned_declaration", agent=agent, version=version)
            if row is None:
                raise Unknown(f"{agent} has no version {version}")
            known = decode(Agent, json.loads(row["body"])).lifecycle
            self._lifecycles[(agent, version)] = known
        return known


def typed(overrides: dict[str, Any]) -> dict[str, Any]:
    """Stored overrides as the values that `Limits` and the policies hold."""
    values: dict[str, Any] = {}
    for key, value in overrides.items():
        if key in _LIMIT_NAMES:
            values[key] = getattr(decode(Limits, {key: value}), key)
        else:
            values[key] = timedelta(seconds=value) if key == "retry_base" else value
    return values
