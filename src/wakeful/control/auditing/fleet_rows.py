"""The fleet as it was declared and set, where its agents stand, and what holds them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from wakeful.control.auditing.findings import FLEET, PAUSES, REST, STANDINGS, Findings, moment, moment_or_none
from wakeful.control.auditing.history import TODAY, History
from wakeful.control.auditing.lives import Life, with_settings
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.wake_rows import WakeRows
from wakeful.core.agents import Agent
from wakeful.core.budgets import MEMORY
from wakeful.core.codec import decode, read_time, write_time
from wakeful.core.recurrences import Recurrence
from wakeful.core.standing import Spend

Row = dict[str, Any]


class FleetRows:
    def __init__(self, history: History, runs: RunRows, wakes: WakeRows, findings: Findings) -> None:
        self.history = history
        self.runs = runs
        self.wakes = wakes
        self.findings = findings
        self.agents: dict[str, Row] = {}
        self.beats: dict[str, int] = {}
        # The tasks that recur, by the declaration of the fleet.
        self.recurring: set[str] = set()

    def read(self) -> None:
        self.agents = {row["name"]: row for row in self.history.pages.of("agent")}
        for name in self.history.lives.of.keys() - self.agents.keys():
            self.findings.add(FLEET, f"agent {name}", "a row for an agent that was declared", "no such row")
        for name, row in self.agents.items():
            life = self.history.lives.get(name)
            if life is None:
                self.findings.add(FLEET, f"agent {name}", "an event that declared it", "no event does")
                continue
            with self.findings.readable(FLEET, f"agent {name}"):
                self._agent(row, life)
        self._declarations()
        self._fleet()
        self._addresses()
        self._roles()
        self._standings()
        self._one_offs()
        self._pauses()
        self._recurrences()

    # -- declared ---------------------------------------------------------------------------------------------
    def _agent(self, row: Row, life: Life) -> None:
        named, hold = f"agent {row['name']}", self.findings.hold
        hold(FLEET, named, "version", life.version, row["version"])
        hold(FLEET, named, "address", life.agent.address, row["address"])
        hold(FLEET, named, "enabled", life.agent.enabled, bool(row["enabled"]))
        expected, found = moment_or_none(life.removed_at), moment_or_none(row["removed_at"])
        hold(FLEET, named, "removed at", expected, found)
        stands = with_settings(row["declaration"], json.loads(row["overrides"]))
        if stands != life.agent:
            told = f"the declaration and settings that event {life.declared_by} tells"
            self.findings.add(FLEET, named, told, "another declaration, or other settings")

    def _declarations(self) -> None:
        found: set[tuple[str, int]] = set()
        bodies = self.history.lives.bodies
        for row in self.history.pages.of("declaration"):
            key = (row["agent"], row["version"])
            named = f"declaration {key[0]}/{key[1]}"
            found.add(key)
            told = bodies.get(key)
            if told is None:
                if self.history.covers(row["declared_at"]):
                    self.findings.add(FLEET, named, "an event that declared it", "no event does")
            else:
                with self.findings.readable(FLEET, named):
                    self._declaration(row, named, *told)
        for key, (_, event, at) in bodies.items():
            agent_row = self.agents.get(key[0])
            current = agent_row is not None and agent_row["version"] == key[1]
            if key not in found and (current or not self._taken(key, at)):
                named = f"declaration {key[0]}/{key[1]}"
                self.findings.add(FLEET, named, f"a row for what event {event} declared", "no such row")
        for agent, version in sorted(self.runs.versions - found):
            named = f"declaration {agent}/{version}"
            if (agent, version) not in bodies:
                self.findings.add(FLEET, named, "a row for a version that a run began with", "no such row")

    def _taken(self, key: tuple[str, int], at: int) -> bool:
        """Whether retention may have taken it: it is old, and no run that is left began with it or before it."""
        oldest = self.runs.oldest.get(key[0])
        old = moment(at) < self.history.now - TODAY
        return self.history.late and old and (oldest is None or key[1] < oldest)

    def _declaration(self, row: Row, named: str, body: str, event: int, at: int) -> None:
        if not _same(row["body"], body):
            self.findings.add(FLEET, (named, f"event {event}"), "what its event tells", "another declaration")
        told, found = moment_or_none(at), moment_or_none(row["declared_at"])
        self.findings.hold(FLEET, (named, f"event {event}"), "declared at", told, found)

    def _live(self) -> list[Agent]:
        lives = self.history.lives.of.values()
        return [life.agent for life in lives if life.removed_at is None]

    def _fleet(self) -> None:
        rows = list(self.history.pages.of("fleet"))
        if not rows:
            if self.agents:
                self.findings.add(FLEET, "fleet 1", "what holds for the fleet as a whole", "no such row")
            return
        fleet = rows[0]
        with self.findings.readable(FLEET, "fleet 1"):
            self.recurring = set(json.loads(fleet["recurrences"]))
        for agent in self._live():
            limits = agent.limits
            expected = (limits.fleet_timezone, limits.sessions, limits.workers)
            found = (fleet["timezone"], fleet["sessions"], fleet["workers"])
            rows_named = ("fleet 1", f"agent {agent.name}")
            if not self.findings.hold(FLEET, rows_named, "time zone, sessions and workers", expected, found):
                break

    def _addresses(self) -> None:
        timerless = self.history.lives.timerless
        found = {row["name"]: row["timerless"] for row in self.history.pages.of("address")}
        for name in sorted(timerless.keys() | found.keys()):
            if name not in found:
                self.findings.add(FLEET, f"address {name}", "a row for whatever can be written to", "no such row")
            elif name in timerless and not (self.history.late and len(self._behind(name)) > 1):
                self.findings.hold(FLEET, f"address {name}", "without a timer,", timerless[name], found[name])

    def _behind(self, address: str) -> list[str]:
        lives = self.history.lives.of.values()
        return [life.agent.name for life in lives if address in (life.agent.name, life.agent.address)]

    def _roles(self) -> None:
        expected = {(role, agent.name) for agent in self._live() if agent.enabled for role in agent.roles}
        found = {(row["role"], row["agent"]) for row in self.history.pages.of("role")}
        for role, agent in sorted(expected - found):
            self.findings.add(FLEET, f"role {role}/{agent}", f"that {agent} has the role {role}", "no such row")
        for role, agent in sorted(found - expected):
            self.findings.add(FLEET, f"role {role}/{agent}", f"that {agent} has no role {role}", "a row")

    def _one_offs(self) -> None:
        """Each declared instant that was still to come when it was declared has its wake."""
        first: dict[tuple[str, str], int] = {}
        for (name, _), (body, event, _) in self.history.lives.bodies.items():
            for moment_ in decode(Agent, json.loads(body)).one_offs if "one_offs" in body else ():
                key = (name, write_time(moment_))
                first[key] = min(event, first.get(key, event))
        at_of = {life.agent.name: life for life in self.history.lives.of.values()}
        for (name, slot), event in first.items():
            life = at_of.get(name)
            declared = life is not None and life.timed and read_time(slot) in life.agent.one_offs
            late = self.history.late and event < self.history.start
            if declared and not late and (name, slot) not in self.wakes.slots and read_time(slot) > self.history.now:
                named = (f"agent {name}", f"event {event}")
                self.findings.add(FLEET, named, f"a wake that waits for {slot}", "no such wake")

    # -- where they stand -------------------------------------------------------------------------------------
    def _standings(self) -> None:
        found = {row["agent"]: row for row in self.history.pages.of("standing")}
        self.beats = {name: row["beat"] for name, row in found.items()}
        timers = {
            row["agent"]: run
            for run, row in self.runs.open.items()
            if row["cause"] == "timer" and row["wake"] not in self.wakes.one_offs
        }
        for name, life in sorted(self.history.lives.of.items()):
            row = found.pop(name, None)
            if row is None:
                self.findings.add(STANDINGS, f"standing {name}", "where it stands", "no such row")
                continue
            with self.findings.readable(STANDINGS, f"standing {name}"):
                self._standing(row, life, f"standing {name}")
            asked = int(name in self.wakes.timers or name in timers)
            wakes = f"wake {self.wakes.timers[name]}" if name in self.wakes.timers else f"agent {name}"
            what = "asked for a beat that waits or runs,"
            self.findings.hold(STANDINGS, (f"standing {name}", wakes), what, asked, row["asked"])
        for name in found:
            self.findings.add(STANDINGS, f"standing {name}", "an agent that was declared", "no event declared it")

    def _standing(self, row: Row, life: Life, named: str) -> None:
        hold = self.findings.hold
        if life.sure_place:
            place = (life.position.state, life.position.hits)
            hold(STANDINGS, named, "position", place, (row["state"], row["hits"]))
        if life.sure_idle:
            hold(STANDINGS, named, "idle streak", life.idle, row["idle_streak"])
        if life.sure_failures:
            hold(STANDINGS, named, "failure streak", life.failures, row["failure_streak"])
        if life.sure_due:
            hold(STANDINGS, named, "next beat at", life.due, moment_or_none(row["due_at"]))
        if life.last_ended_at is not None or not self.history.late:
            last = (life.last_outcome, moment_or_none(life.last_ended_at))
            hold(STANDINGS, named, "last outcome", last, (row["last_outcome"], moment_or_none(row["last_ended_at"])))
        if life.epoch:
            hold(STANDINGS, named, "epoch", life.epoch, row["epoch"])
        before = self.runs.beats.get(row["agent"], None if self.history.late else 0)
        if before is not None:
            hold(STANDINGS, named, "beats settled", before + life.beats, row["beat"])
        gates = {state: read_time(text) for state, text in json.loads(row["gates"]).items()}
        told = gates if life.sure_gates else {state: at for state, at in gates.items() if state in life.gates}
        hold(STANDINGS, named, "gates", _times(life.gates), _times(told))
        costs = [Spend(**cost) for cost in json.loads(row["costs"])]
        if not life.sure_costs and len(life.costs) < MEMORY:
            costs = costs[len(costs) - len(life.costs) :] if life.costs else []
        hold(STANDINGS, named, "costs of its last runs", life.costs, costs)

    def _pauses(self) -> None:
        standing = self.history.counts.pauses.items()
        told = {key: (said["since"], _text(until), said["reason"]) for key, (until, _, said) in standing}
        found = {
            (row["scope"], row["owner"]): (
                _text(moment(row["since"])),
                _text(moment_or_none(row["until"])),
                row["reason"],
            )
            for row in self.history.pages.of("pause")
        }
        for key in sorted(told.keys() | found.keys()):
            named = f"pause of {key[0]} by {key[1]}"
            if key not in found:
                event = f"event {self.history.counts.pauses[key][1]}"
                self.findings.add(PAUSES, (named, event), "a row while nothing has lifted it", "no such row")
            elif key not in told:
                self.findings.add(PAUSES, named, "an event that began it and none that lifted it", "no such event")
            else:
                self.findings.hold(PAUSES, named, "since, until, and for the reason", told[key], found[key])

    def _recurrences(self) -> None:
        """Those that were declared with the fleet, each with an instant ahead."""
        found = set()
        for row in self.history.pages.of("recurrence"):
            found.add(row["name"])
            named, at = f"recurrence {row['name']}", moment(row["next_at"])
            with self.findings.readable(REST, named):
                declared = decode(Recurrence, json.loads(row["declaration"]))
                following = declared.after(at - timedelta(microseconds=1))
                self.findings.hold(REST, named, "next at an instant of its schedule,", following, at)
        for name in sorted(found ^ self.recurring):
            expected, instead = ("a row", "no such row") if name in self.recurring else ("no row", "there is one")
            self.findings.add(FLEET, f"recurrence {name}", f"{expected}, as the fleet was declared", instead)


def _same(kept: str, told: str) -> bool:
    """What is told has the live settings of then, what is kept of a declaration has not."""
    if kept == told:
        return True
    one, other = decode(Agent, json.loads(kept)), decode(Agent, json.loads(told))
    plain = other.declared
    if plain is None:
        return one == other
    bare = {"limits": plain.limits, "retries": plain.retries, "max_failures": plain.max_failures}
    return all(getattr(one, key) in (value, getattr(other, key)) for key, value in bare.items()) and (
        one.lifecycle == other.lifecycle and one.cadence == other.cadence and one.roles == other.roles
    )


def _text(at: datetime | None) -> str:
    return "for ever" if at is None else write_time(at)


def _times(gates: dict[str, Any]) -> dict[str, str]:
    return {state: write_time(at) for state, at in sorted(gates.items())}
