"""Who takes a task: the agents behind a name, or those that have a role, and whether any of them can take it now.

Law: what nobody takes is recorded all the same, and whoever adds it is told; somebody may come who takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.control.base import find
from wakeful.control.rows import QUARANTINE
from wakeful.core.agents import Agent
from wakeful.core.durations import format_duration
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import NewItem
from wakeful.core.tasks import MOST_COMPARED, UTC_ZONE
from wakeful.core.wakes import FLEET, Pause, agent_scope
from wakeful.core.wording import nearest
from wakeful.store.protocol import Store


class Takers:
    """What several tasks of one request need to know of the fleet, each looked up once."""

    def __init__(self, store: Store, now: datetime) -> None:
        self._store = store
        self._now = now
        self._named: dict[str, tuple[Agent, ...]] = {}
        self._of_role: dict[str, tuple[Agent, ...]] = {}
        self._nobody: dict[tuple[str | None, str | None], str | None] = {}
        self._pauses: dict[str, Pause] | None = None

    def named(self, agent: str) -> tuple[Agent, ...]:
        """Whom that name means; nobody of it is Unknown."""
        if agent not in self._named:
            self._named[agent] = tuple(row.agent for row in find(self._store, agent).agents)
        return self._named[agent]

    def of(self, agent: str | None, role: str | None) -> tuple[Agent, ...]:
        """Those that take its tasks at all, now or later."""
        if agent is not None:
            return tuple(each for each in self.named(agent) if each.enabled)
        if role is None:
            return ()
        if role not in self._of_role:
            self._of_role[role] = tuple(self._store.of_role(role))
        return self._of_role[role]

    def zone(self, agent: object) -> ZoneInfo:
        return ZoneInfo(self.named(agent)[0].timezone) if isinstance(agent, str) else UTC_ZONE

    def pause(self, *scopes: str) -> Pause | None:
        """The first of these that is held."""
        if self._pauses is None:
            found = [each for each in self._store.pauses() if each.until is None or each.until > self._now]
            self._pauses = {each.scope: each for each in reversed(found)}
        return next((self._pauses[scope] for scope in scopes if scope in self._pauses), None)

    def held(self, agent: Agent) -> Pause | None:
        return self.pause(FLEET, agent_scope(agent.name), agent_scope(agent.address))

    def nobody(self, agent: str | None, role: str | None) -> str | None:
        """Why nobody takes such a task now; None where somebody does."""
        if (agent, role) not in self._nobody:
            self._nobody[agent, role] = self._why_nobody(agent, role)
        return self._nobody[agent, role]

    def _why_nobody(self, agent: str | None, role: str | None) -> str | None:
        if agent is not None:
            try:
                self.named(agent)
            except Unknown:
                return f"{agent} is no longer in the fleet"
        takers = self.of(agent, role)
        if not takers:
            return f"{agent} is disabled" if agent is not None else f"no agent has the role {role}{self._near(role)}"
        held = [self.held(taker) for taker in takers]
        if not held or held[0] is None or not all(held):
            return None
        whom = "the fleet" if held[0].scope == FLEET else agent or f"everybody who has the role {role}"
        return f"{whom} is {paused_words(held[0])}"

    def _near(self, role: str | None) -> str:
        known = {each for agent in self._store.agents() if agent.enabled for each in agent.roles}
        near = nearest(role or "", sorted(known)) if len(known) <= MOST_COMPARED else None
        return f" (did you mean {near}?)" if near else ""

    def must_bear(self, item: NewItem) -> None:
        """What a run asks of others is bounded by what those have themselves."""
        takers: Sequence[Agent] = self.of(item.agent, item.role) or (Agent(name="-", address="-"),)
        whom = item.agent or f"the role {item.role}"
        retries = min(taker.retries.max_retries for taker in takers)
        longest = min((taker.wall_clock("task") for taker in takers), default=timedelta())
        if item.max_retries is not None and item.max_retries > retries:
            raise Mistake(
                f"a task that a run adds for {whom} may be tried again {retries} times, found {item.max_retries:,}",
                f"leave max_retries out, or write at most {retries}",
            )
        if item.timeout is not None and item.timeout > longest:
            most = format_duration(longest)
            raise Mistake(
                f"a task that a run adds for {whom} may take {most}, found {format_duration(item.timeout)}",
                f"leave the timeout out, or write at most {most}",
            )


def paused_words(pause: Pause) -> str:
    """`paused by operator: on holiday`."""
    said = f": {pause.reason}" if pause.reason else ""
    return f"quarantined{said}" if pause.owner == QUARANTINE else f"paused by {pause.owner}{said}"


def nobody_takes(why: str | None) -> str | None:
    return None if why is None else f"nobody takes it now: {why}"
