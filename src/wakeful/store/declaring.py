"""What the operator says: the fleet, live settings, pauses."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.core.agents import Agent, Fleet, override
from wakeful.core.cadence import changed_beat, first_beat, resume_beat
from wakeful.core.codec import decode, encode, write_time
from wakeful.core.errors import Outdated, Unknown
from wakeful.core.events import EventKind
from wakeful.core.lifecycle import begin
from wakeful.core.wakes import FLEET, RANKS, Cause, Pause, agent_scope
from wakeful.core.windows import spread
from wakeful.store.base import typed
from wakeful.store.recurring import Recurring
from wakeful.store.rows import dump, from_micros, micros_or_none, to_micros, to_pause
from wakeful.store.session import Row
from wakeful.store.voiding import Voiding

# Who lifts a pause that has run out.
BY_TIME = "time"
# When a pause is lifted, what was asked for is tried at once; overdue beats are let go one after another, so far apart
# and over no longer than this.
RESUME_STEP, RESUME_SPREAD = timedelta(milliseconds=600), timedelta(seconds=60)


class Declaring(Recurring, Voiding):
    def declare(self, fleet: Fleet, now: datetime, *, boot: bool = False) -> list[str]:
        with self.session.transaction("declare"):
            known = {row["name"]: row for row in self.session.all("known_agents")}
            recurrences = json.dumps([recurrence.name for recurrence in fleet.recurrences])
            house = {"timezone": fleet.timezone, "sessions": fleet.sessions, "workers": fleet.workers}
            self.session.write("put_fleet", **house, recurrences=recurrences)
            if boot:
                self._hold_overdue(known, fleet, now)
                self.event(EventKind.booted, now, fields={"grace": fleet.grace.total_seconds()})
            changed = []
            for index, declared in enumerate(fleet.agents):
                agent = _under(fleet, declared)
                body = dump(agent)
                row = known.pop(agent.name, None)
                if row and row["declaration"] == body and row["removed_at"] is None:
                    continue
                if row and row["removed_at"] is None and decode(Agent, json.loads(row["declaration"])) == agent:
                    self._retell(agent, body, row)
                    continue
                self._adopt(agent, body, row, fleet, index, now)
                changed.append(agent.name)
            for name, row in known.items():
                if row["removed_at"] is None:
                    self._remove(name, row["address"], now)
                    changed.append(name)
            self.adopt_recurrences(fleet.recurrences, now)
            return changed

    def _hold_overdue(self, known: dict[str, Row], fleet: Fleet, now: datetime) -> None:
        """After a start nothing that is timed runs before the grace is over; nothing waits longer for it either."""
        for row in self.session.all("timer_standings"):
            agent = self.read_agent(known[row["agent"]])
            zone, was = ZoneInfo(agent.timezone), from_micros(row["due_at"])
            due = resume_beat(was, agent.cadence, now, fleet.grace, zone, row["idle_streak"])
            if to_micros(due) != row["due_at"]:
                self.session.write("set_due", agent=row["agent"], due_at=to_micros(due))
                self.session.write("check_again", agent=row["agent"], at=to_micros(due))
        self.session.write("hold_timers", until=to_micros(now + fleet.grace))

    def _retell(self, agent: Agent, body: str, row: Row) -> None:
        """Only who declares a limit has changed: it is told anew, and nothing rests on it."""
        named = {"name": agent.name, "version": row["version"], "declaration": body}
        self.session.write("put_agent", **named, address=agent.address, enabled=int(agent.enabled))
        self.forget_agent(agent.name)

    def _adopt(self, agent: Agent, body: str, row: Row | None, fleet: Fleet, index: int, now: datetime) -> None:
        version = self.next_version(agent.name, row["version"] if row else 0)
        timerless = int(agent.cadence.base is None and agent.cadence.schedule is None)
        for name in {agent.name, agent.address}:
            self.session.write("put_address", name=name, timerless=timerless)
        named = {"name": agent.name, "version": version, "declaration": body}
        self.session.write("put_agent", **named, address=agent.address, enabled=int(agent.enabled))
        self.session.write("put_declaration", **named, now=to_micros(now))
        if row is not None:
            self._let_go(agent, row, now)
        if agent.enabled:
            for role in sorted(set(agent.roles)):
                self.session.write("put_role", role=role, agent=agent.name)
        due = self._time(agent, row, fleet, index, now)
        self._one_offs(agent, row, now)
        self._retry_roles(set(agent.roles), now)
        overrides = json.loads(row["overrides"]) if row else {}
        # As it holds from now on: live settings outlive the declaration that they were made for.
        holds = dump(override(agent, typed(overrides))) if overrides else body
        fields = {"version": version, "body": holds, "due_at": encode(due)}
        self.event(EventKind.declared, now, agent=agent.name, fields=fields)

    def _let_go(self, agent: Agent, row: Row, now: datetime) -> None:
        """What hung on the old declaration: its roles, and whoever waited for what may have changed."""
        self._forget_roles(agent.name, now)
        if agent.enabled and (row["removed_at"] is not None or not row["enabled"]):
            self.session.write("ring_again", agent=agent.name, address=agent.address)
        self._retry_all(agent.name, agent.address, now)

    def _forget_roles(self, name: str, now: datetime) -> None:
        self._retry_roles({row["role"] for row in self.session.all("roles_of", agent=name)}, now)
        self.session.write("forget_roles", agent=name)

    def _one_offs(self, agent: Agent, before: Row | None, now: datetime) -> None:
        """Each declared instant waits as a wake, once. What is withdrawn does not fire. Of the past, only what was
        added to a known agent while we were away is caught up."""
        known = self.read_agent(before).one_offs if before else agent.one_offs
        declared = {write_time(moment): moment for moment in agent.one_offs if moment > now or moment not in known}
        kept = {write_time(moment) for moment in agent.one_offs}
        for row in self.session.all("declared_one_offs", agent=agent.name) if before else []:
            if row["slot"] not in kept:
                self.session.write("withdraw_one_off", wake=row["id"], now=to_micros(now))
                fields = {"cause": "timer", "subject": "beat", "charged": False, "withdrawn": row["slot"]}
                self.event(EventKind.decided, now, agent=agent.name, wake=row["id"], fields=fields)
        for slot, moment in declared.items():
            self.session.write(
                "put_one_off",
                agent=agent.name,
                slot=slot,
                at=to_micros(moment),
                rank=RANKS[Cause.timer],
                now=to_micros(now),
            )

    def _time(self, agent: Agent, row: Row | None, fleet: Fleet, index: int, now: datetime) -> datetime | None:
        """A new agent gets its first beat; a changed one keeps its beat, or a sooner one if it now has one."""
        zone = ZoneInfo(agent.timezone)
        standing = self.session.one("standing_row", agent=agent.name) if row else None
        position = begin(agent.lifecycle)
        due: datetime | None
        if not agent.enabled:
            due = None
        elif standing is None or standing["due_at"] is None:
            count = len(fleet.agents)
            due = first_beat(agent.cadence, now, fleet.grace, index, count, zone, fleet.stagger)
        else:
            due = from_micros(standing["due_at"])
            before = self.read_agent(row).cadence if row else agent.cadence
            if before != agent.cadence:
                idle, count = standing["idle_streak"], len(fleet.agents)
                due = changed_beat(
                    before, agent.cadence, due, idle, now, fleet.grace, index, count, zone, fleet.stagger
                )
        self.session.write(
            "put_standing",
            agent=agent.name,
            state=position.state,
            hits=position.hits,
            due_at=micros_or_none(due),
        )
        return due

    def _remove(self, name: str, address: str, now: datetime) -> None:
        self.session.write("remove_agent", agent=name, now=to_micros(now))
        self._forget_roles(name, now)
        self.session.write("set_due", agent=name, due_at=None)
        self._retry_all(name, address, now)
        self.event(EventKind.removed, now, agent=name)

    def _retry_all(self, name: str, address: str, now: datetime) -> None:
        self.session.write("retry_agent_wakes", agent=name, address=address, now=to_micros(now))

    def _retry_roles(self, roles: set[str], now: datetime) -> None:
        """Who waits for a role that this agent had or has may have waited for it alone."""
        for role in sorted(roles):
            self.session.write("retry_role_wakes", role=role, now=to_micros(now))

    def set(
        self, agent: str, settings: dict[str, Any], by: str, now: datetime, *, expected: int | None = None
    ) -> Agent:
        with self.session.transaction("set"):
            row = self.session.one("agent_row", agent=agent)
            if row is None:
                raise Unknown(f"no agent is called {agent}")
            if expected is not None and row["version"] != expected:
                raise Outdated(f"{agent} is at version {row['version']}, not {expected}: somebody has changed it")
            overrides = json.loads(row["overrides"])
            for key, value in settings.items():
                if value is None:
                    overrides.pop(key, None)
                else:
                    overrides[key] = encode(value)
            changed = override(decode(Agent, json.loads(row["declaration"])), typed(overrides))
            version = self.next_version(agent, row["version"])
            self.session.write("set_overrides", agent=agent, overrides=json.dumps(overrides), version=version)
            body = dump(changed)
            self.session.write("put_declaration", name=agent, version=version, declaration=body, now=to_micros(now))
            self._retry_all(agent, row["address"], now)
            self._retry_roles(set(changed.roles), now)
            fields = {"by": by, "settings": encode(settings), "version": version, "body": body}
            self.event(EventKind.set, now, agent=agent, fields=fields)
            return changed

    def pause(self, pause: Pause, now: datetime) -> None:
        with self.session.transaction("pause"):
            self.put_pause(pause, now)
            for run in self.session.all("unclaimed_runs", before=to_micros(now)):
                held = {FLEET, agent_scope(run["agent"]), agent_scope(run["address"]), f"source:{run['source']}"}
                if pause.scope in held:
                    self.void_run(run["id"], run["epoch"], now)

    def resume(self, scope: str, by: str, now: datetime, *, owner: str | None = None) -> bool:
        with self.session.transaction("resume"):
            pauses = self.session.all("pauses_of", scope=scope, owner=owner)
            self.lift([to_pause(row) for row in pauses], by, now)
            return bool(pauses)

    def lift(self, pauses: list[Pause], by: str, now: datetime) -> None:
        for pause in pauses:
            self.session.write("delete_pause", scope=pause.scope, owner=pause.owner)
            name = pause.scope.partition(":")[2] if pause.scope.startswith("agent:") else None
            agent = None if name is None else self.session.one("agent_row", agent=name)
            if agent is not None:
                self.wake_waiting(self.read_agent(agent), now)
            fields = {"scope": pause.scope, "owner": pause.owner, "by": by}
            self.event(EventKind.resumed, now, agent=name, fields=fields)
        if pauses:
            self._retry_paused(now, asked=by != BY_TIME)

    def _retry_paused(self, now: datetime, *, asked: bool) -> None:
        """A pause that ran out by itself ends for each as it was foretold."""
        waiting = self.session.all("paused_wakes", now=to_micros(now))
        beats = sum(wake["cause"] == Cause.timer for wake in waiting)
        within = min(beats * RESUME_STEP, RESUME_SPREAD) if asked else RESUME_SPREAD
        for wake in waiting:
            spreads = wake["cause"] == Cause.timer or not asked
            later = now + spread(str(wake["agent"]), within) if spreads else now
            self.session.write("retry_wake", wake=wake["id"], at=to_micros(later))

    def put_pause(self, pause: Pause, now: datetime) -> None:
        self.session.write(
            "put_pause",
            scope=pause.scope,
            owner=pause.owner,
            reason=pause.reason,
            since=to_micros(pause.since),
            until=micros_or_none(pause.until),
        )
        name = pause.scope.partition(":")[2] if pause.scope.startswith("agent:") else None
        self.event(EventKind.paused, now, agent=name, fields=encode(pause))


def _under(fleet: Fleet, agent: Agent) -> Agent:
    """What holds for the fleet as a whole is said once, and copied to every agent's limits."""
    limits = replace(agent.limits, sessions=fleet.sessions, workers=fleet.workers, fleet_timezone=fleet.timezone)
    return replace(agent, limits=limits)
