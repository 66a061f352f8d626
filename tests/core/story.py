"""A history written event by event, as the store writes it, and the wakes that are asked of it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful.core.agents import Agent, Limits
from wakeful.core.budgets import Bill
from wakeful.core.cadence import Cadence
from wakeful.core.codec import encode
from wakeful.core.events import Event, EventKind
from wakeful.core.facts import Facts
from wakeful.core.hindsight import Hindsight, facts_at
from wakeful.core.standing import Spend
from wakeful.core.wakes import ADMIT, Cause, Pause, Subject, Verdict, VerdictKind, Wake

DAWN = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
NOON = DAWN + timedelta(hours=12)
MIDNIGHT = DAWN + timedelta(days=1)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOURLY = Cadence(interval=HOUR)
LONG_AGO = "2026-03-01T00:00:00.000000Z"
SUBJECTS = {Cause.timer: Subject.beat, Cause.task: Subject.task}


def agent(name: str = "moss", **changes: Any) -> Agent:
    limits = Limits(**changes.pop("limits", {}))
    return Agent(name=name, address=changes.pop("address", name), cadence=HOURLY, limits=limits, **changes)


def wake(cause: Cause = Cause.timer, name: str | None = "moss", at: datetime = NOON, **changes: Any) -> Wake:
    asked = Wake(agent=name, cause=cause, subject=SUBJECTS.get(cause, Subject.inbox), requested_at=at)
    return replace(asked, **changes)


def peer(name: str = "moss", sender: str = "wren", **changes: Any) -> Wake:
    return wake(Cause.peer, name, sender=sender, **changes)


class Story:
    def __init__(self, *agents: Agent) -> None:
        self.events: list[Event] = []
        self.wakes = self.runs = 0
        for declared in agents:
            self.declare(declared)

    def tell(self, kind: EventKind, at: datetime, name: str | None = None, **parts: Any) -> None:
        numbers = {key: parts.pop(key, None) for key in ("wake", "run", "item")}
        event = Event(id=len(self.events) + 1, kind=kind, at=at, agent=name, fields=parts, **numbers)
        self.events.append(event)

    def declare(self, declared: Agent, at: datetime = DAWN, due: str | None = LONG_AGO) -> None:
        body, version = json.dumps(encode(declared)), len(self.events) + 1
        self.tell(EventKind.declared, at, declared.name, version=version, body=body, due_at=due)

    def set(self, changed: Agent, at: datetime, **settings: Any) -> None:
        body, version = json.dumps(encode(changed)), len(self.events) + 1
        settings = {key: encode(value) for key, value in settings.items()}
        self.tell(EventKind.set, at, changed.name, version=version, body=body, by="operator", settings=settings)

    def pause(self, scope: str, at: datetime, until: datetime | None = None, owner: str = "operator") -> None:
        pause = Pause(scope=scope, owner=owner, reason="a look", since=at, until=until)
        self.tell(EventKind.paused, at, None, **encode(pause))

    def decide(self, asked: Wake, at: datetime, verdict: Verdict = ADMIT, **parts: Any) -> int:
        """Returns the run that it became, or the wake that waits or was refused."""
        admitted, name = verdict.kind is VerdictKind.admit, parts.pop("answers", asked.agent)
        if not asked.id:
            self.wakes += 1
        self.runs += admitted
        known = {
            "cause": asked.cause.value,
            "subject": asked.subject.value,
            "from": asked.sender,
            "to": asked.agent if asked.agent != name else None,
            "role": asked.role,
            "source": asked.source,
            "by_run": asked.by_run,
            "depth": asked.depth or None,
            "slot": asked.slot or None,
            "requested_at": encode(asked.requested_at),
            "charged": admitted and asked.cause is Cause.peer,
            "verdict": encode(replace(verdict, trip=None)),
            "facts": encode(parts.pop("facts", Facts(now=at))),
            **parts,
        }
        told = {key: value for key, value in known.items() if value is not None}
        run = self.runs if admitted else None
        number = asked.id or self.wakes
        self.tell(EventKind.decided, at, name, wake=number, run=run, item=asked.item or asked.task, **told)
        return run or number

    def end(self, run: int, name: str, at: datetime, **parts: Any) -> None:
        bill = Bill(spend=parts.pop("spend", Spend()), estimated=parts.pop("estimated", False))
        known = {
            "subject": "beat",
            "outcome": "done",
            "position": ["beat", 0],
            "stands": ["beat", 0],
            "idle_streak": 0,
            "failure_streak": 0,
            "due_at": LONG_AGO,
            "spend": encode(bill),
            "ms": 0,
            "day": "2026-03-02",
        }
        self.tell(EventKind.ended, at, name, run=run, **(known | parts))

    def lived(self, asked: Wake, at: datetime, **ended: Any) -> int:
        """Admitted and ended, a minute later."""
        run = self.decide(asked, at)
        self.end(run, asked.agent or "", at + MINUTE, subject=asked.subject.value, **ended)
        return run

    def at(self, asked: Wake, at: datetime = NOON) -> Hindsight:
        return facts_at([event for event in self.events if event.at <= at], asked, at)
