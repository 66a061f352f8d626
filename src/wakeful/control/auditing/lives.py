"""Where each agent must stand: the fold of declarations, starts and outcomes.

Laws:
- An outcome moves its subject and nothing else; what an `ended` event says of the standing is held against the one
  before it, and the last of them against the row.
- Events do not tell whether a failure counted: the streak may stand, or grow by one.
- What happened before the history begins is not known, and not judged until an event tells it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.control.auditing.findings import FLEET, LIMITS, STANDINGS, Findings, shown
from wakeful.core.agents import Agent, Limits, override
from wakeful.core.budgets import MEMORY
from wakeful.core.cadence import next_beat, resume_beat
from wakeful.core.codec import decode, read_time
from wakeful.core.lifecycle import Kind, Lifecycle, Position, advance, begin, resolve
from wakeful.core.standing import Spend

Row = dict[str, Any]

GOOD = ("done", "no_work")
_LIMIT_NAMES = frozenset(limit.name for limit in fields(Limits))


@dataclass(slots=True, kw_only=True)
class Life:
    """One agent. What is not `sure` was told before the history begins."""

    agent: Agent
    version: int
    declared_by: int
    body: str
    position: Position
    settings: dict[str, Any] = field(default_factory=dict)
    removed_at: int | None = None
    idle: int = 0
    failures: int = 0
    due: datetime | None = None
    gates: dict[str, datetime] = field(default_factory=dict)
    costs: list[Spend] = field(default_factory=list)
    last_outcome: str | None = None
    last_ended_at: int | None = None
    last_ended_run: int | None = None
    # How many beats have been settled, and how many runs started, since the history begins.
    beats: int = 0
    epoch: int | None = None
    sure_place: bool = True
    sure_idle: bool = True
    sure_failures: bool = True
    sure_due: bool = True
    sure_costs: bool = True
    sure_gates: bool = True
    _resolved: tuple[Position, Agent, Position] | None = None

    @property
    def timed(self) -> bool:
        return self.agent.enabled and self.removed_at is None

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.agent.timezone)

    def place(self) -> Position:
        """As the agent is declared now."""
        known = self._resolved
        if known is None or known[0] is not self.position or known[1] is not self.agent:
            known = self._resolved = (self.position, self.agent, resolve(self.position, self.agent.lifecycle))
        return known[2]


class Lives:
    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.of: dict[str, Life] = {}
        self.late = False
        # Before the history begins: there is nothing to hold what is told against.
        self.believing = False
        # By agent and version: the event that told it, and when.
        self.bodies: dict[tuple[str, int], tuple[str, int, int]] = {}
        # Whatever can be written to: 1 where no timer ever shows the inbox.
        self.timerless: dict[str, int] = {}
        self._lifecycles: dict[tuple[str, int], Lifecycle] = {}
        # Declarations whose events are gone, as their rows have them.
        self.kept: dict[tuple[str, int], str] = {}

    def get(self, name: str | None) -> Life | None:
        return self.of.get(name or "")

    def unsure(self) -> None:
        """From here on the history is whole; of what lies before only the last words were told."""
        self.late = True
        for life in self.of.values():
            self._unsure(life)

    def _unsure(self, life: Life) -> None:
        life.sure_idle = life.sure_due = life.sure_costs = life.sure_gates = False
        life.sure_place = life.sure_failures = life.last_ended_at is not None
        life.epoch = None

    def lifecycle(self, agent: str, version: int) -> Lifecycle | None:
        key = (agent, version)
        known = self._lifecycles.get(key)
        if known is None:
            body = self.bodies[key][0] if key in self.bodies else self.kept.get(key)
            if body is None:
                return None
            known = self._lifecycles[key] = decode(Agent, json.loads(body)).lifecycle
        return known

    # -- what was declared ------------------------------------------------------------------------------------
    def declared(self, event: Row, told: Row) -> None:
        name, at = event["agent"] or "", event["moment"]
        agent = decode(Agent, json.loads(told["body"]))
        before = self.of.get(name)
        self._version(event, told, before)
        silent = int(agent.cadence.base is None and agent.cadence.schedule is None)
        self.timerless |= {name: silent, agent.address: silent}
        due = read_time(told["due_at"]) if told.get("due_at") else None
        if before is None:
            self.of[name] = Life(
                agent=agent,
                version=told["version"],
                declared_by=event["id"],
                body=told["body"],
                position=begin(agent.lifecycle),
                due=due if agent.enabled else None,
                epoch=0,
            )
            if self.late and told["version"] > 1:
                # It was there before, and what was told of it then is gone.
                self._unsure(self.of[name])
            return
        same = (
            not self.believing and before.sure_due and before.due is not None and before.agent.cadence == agent.cadence
        )
        if same and agent.enabled and due != before.due:
            self.findings.add(
                STANDINGS,
                (f"event {event['id']}", f"agent {name}"),
                f"that {name}, whose cadence stayed, is due at {shown(before.due)}",
                f"declared at {shown(at)} as due at {shown(due)}",
            )
        before.agent, before.version, before.declared_by = agent, told["version"], event["id"]
        before.body, before.removed_at = told["body"], None
        before.due, before.sure_due = due if agent.enabled else None, "due_at" in told or not agent.enabled

    def set(self, event: Row, told: Row) -> None:
        name = event["agent"] or ""
        agent = decode(Agent, json.loads(told["body"]))
        life = self.of.get(name)
        self._version(event, told, life)
        if life is None:
            life = self.of[name] = Life(agent=agent, version=0, declared_by=0, body="", position=begin(agent.lifecycle))
            self._unsure(life)
            self.timerless |= {name: int(agent.cadence.base is None and agent.cadence.schedule is None)}
        life.agent, life.version, life.declared_by, life.body = agent, told["version"], event["id"], told["body"]
        merged = life.settings | told.get("settings", {})
        life.settings = {key: value for key, value in merged.items() if value is not None}

    def _version(self, event: Row, told: Row, before: Life | None) -> None:
        name, version = event["agent"] or "", told["version"]
        if before is not None and version <= before.version and not self.believing:
            expected = f"a version of {name} after {before.version}"
            self.findings.add(FLEET, f"event {event['id']}", expected, f"version {version}")
        self.bodies[name, version] = (told["body"], event["id"], event["at"])

    def removed(self, event: Row) -> None:
        life = self.of.get(event["agent"] or "")
        if life is not None:
            life.removed_at, life.due, life.sure_due = event["at"], None, True

    def booted(self, event: Row, told: Row) -> None:
        grace, at = timedelta(seconds=told["grace"]), event["moment"]
        for life in self.of.values():
            if life.due is not None:
                life.due = resume_beat(life.due, life.agent.cadence, at, grace, life.zone, life.idle)

    def skipped(self, event: Row, told: Row) -> None:
        """A CHECK held a beat back."""
        life = self.of.get(event["agent"] or "")
        if life is None:
            return
        verdict = told["verdict"]
        idle = verdict["numbers"]["idle_streak"]
        due = read_time(verdict["until"]) if verdict.get("until") else None
        rows = (f"event {event['id']}", f"agent {event['agent']}")
        if life.sure_idle:
            self.findings.hold(STANDINGS, rows, "after a CHECK the idle streak", life.idle + 1, idle)
        expected = next_beat(life.agent.cadence, idle, event["moment"], life.zone)
        self.findings.hold(STANDINGS, rows, "after a CHECK the next beat at", expected, due)
        life.idle, life.due, life.sure_idle, life.sure_due = idle, due, True, True

    # -- what came of it --------------------------------------------------------------------------------------
    def last_words(self, event: Row, told: Row) -> None:
        """Before the history begins: believed, for there is nothing to hold it against."""
        life = self.of.get(event["agent"] or "")
        if life is not None:
            self._move(life, event, told)

    def ended(self, event: Row, told: Row, quarantined: bool) -> None:
        life = self.of.get(event["agent"] or "")
        if life is None:
            return
        rows = (f"event {event['id']}", f"run {event['run']}", f"agent {event['agent']}")
        if told["subject"] == "beat":
            self._hold_beat(life, event, told, rows, quarantined)
        else:
            self._hold_other(life, event, told, rows)
        self._move(life, event, told)

    def _hold_beat(self, life: Life, event: Row, told: Row, rows: tuple[str, ...], quarantined: bool) -> None:
        at, outcome, hold = event["moment"], told["outcome"], self.findings.hold
        began = self.lifecycle(event["agent"], told["version"])
        here = Position(*told["position"])
        state = began.state(here.state) if began is not None else None
        if began is not None:
            stands = resolve(advance(here, began, outcome), life.agent.lifecycle)
            hold(STANDINGS, rows, "position after the beat", [stands.state, stands.hits], list(told["stands"]))
        rests = state is not None and state.kind is Kind.rem
        idle = life.idle if rests or outcome not in GOOD else 0 if outcome == "done" else life.idle + 1
        if life.sure_idle or (outcome == "done" and not rests):
            hold(STANDINGS, rows, "idle streak after the beat", idle, told["idle_streak"])
        failures = [0] if outcome in GOOD else [life.failures, life.failures + 1]
        if (life.sure_failures or outcome in GOOD) and told["failure_streak"] not in failures:
            wanted = " or ".join(map(str, failures))
            hold(STANDINGS, rows, "failure streak after the beat", wanted, told["failure_streak"])
        grew = life.sure_failures and told["failure_streak"] == life.failures + 1
        if grew and told["failure_streak"] >= life.agent.max_failures and not quarantined:
            expected = f"{event['agent']} held after {told['failure_streak']} failures in a row"
            self.findings.add(LIMITS, rows, f"{expected}, the limit is {life.agent.max_failures}", "no pause")
        rest = told["idle_streak"] if outcome in GOOD else 0
        due, found = next_beat(life.agent.cadence, rest, at, life.zone), _due(told)
        # What was lost with its node is tried again at once, where nothing failed before.
        lost = outcome == "killed" and (life.failures == 0 or not life.sure_failures) and found == at
        if not lost:
            hold(STANDINGS, rows, "next beat at", due, found)

    def _hold_other(self, life: Life, event: Row, told: Row, rows: tuple[str, ...]) -> None:
        hold, done = self.findings.hold, told["outcome"] == "done"
        if life.sure_place:
            place = [life.position.state, life.position.hits]
            hold(STANDINGS, rows, f"position unmoved by a run about its {told['subject']}", place, list(told["stands"]))
        if life.sure_failures:
            hold(STANDINGS, rows, "failure streak unmoved", life.failures, told["failure_streak"])
        if life.sure_idle or done:
            hold(STANDINGS, rows, "idle streak", 0 if done else life.idle, told["idle_streak"])
        if life.sure_due:
            due = life.due
            soon = next_beat(life.agent.cadence, 0, event["moment"], life.zone) if done else None
            if soon is not None and due is not None:
                due = min(due, soon)
            hold(STANDINGS, rows, "next beat at", due, _due(told))

    def _move(self, life: Life, event: Row, told: Row) -> None:
        at = event["moment"]
        if told["subject"] == "beat":
            if told["outcome"] == "done":
                life.gates[told["position"][0]] = at
            known = {state.name for state in life.agent.lifecycle.states}
            life.gates = {name: when for name, when in life.gates.items() if name in known}
            life.beats += told["outcome"] in GOOD
        life.position = Position(*told["stands"])
        life.idle, life.failures = told["idle_streak"], told["failure_streak"]
        life.due = _due(told) if life.timed else None
        spend = told["spend"]
        if not spend["estimated"]:
            life.costs = [*life.costs, Spend(**spend["spend"])][-MEMORY:]
        life.last_outcome, life.last_ended_at, life.last_ended_run = told["outcome"], event["at"], event["run"]
        life.sure_place = life.sure_idle = life.sure_failures = life.sure_due = True


def _due(told: Row) -> datetime | None:
    return read_time(told["due_at"]) if told.get("due_at") else None


def typed(settings: dict[str, Any]) -> dict[str, Any]:
    """Stored settings as the values that limits and policies hold."""
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key in _LIMIT_NAMES:
            values[key] = getattr(decode(Limits, {key: value}), key)
        else:
            values[key] = timedelta(seconds=value) if key == "retry_base" else value
    return values


def with_settings(body: str, settings: dict[str, Any]) -> Agent:
    agent = decode(Agent, json.loads(body))
    return override(agent, typed(settings)) if settings else agent
