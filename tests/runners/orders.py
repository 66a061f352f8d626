"""Orders to brief and to run, with everything that a test does not care about filled in."""

from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful.core.agents import Agent
from wakeful.core.items import Item, Kind, MessageType, Origin, Priority, Ring, State
from wakeful.core.lifecycle import Position
from wakeful.core.orders import Order
from wakeful.core.runs import Run
from wakeful.core.standing import Standing
from wakeful.core.wakes import Cause, Subject, Wake

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def an_agent(**more: Any) -> Agent:
    return Agent(**{"name": "wren", "address": "wren", **more})


def an_item(number: int = 7, **more: Any) -> Item:
    return Item(
        **{
            "id": number,
            "kind": Kind.message,
            "state": State.open,
            "agent": "wren",
            "role": None,
            "sender": "moss",
            "origin": Origin.agent,
            "subject": "the draft",
            "body": "please read it",
            "type": MessageType.info,
            "priority": Priority.normal,
            "ring": Ring.silent,
            "fingerprint": "1",
            "shown": None,
            "unanswered": 0,
            "attempts": 0,
            "max_retries": None,
            "key": None,
            "source": None,
            "external_id": None,
            "not_before": None,
            "result": None,
            "error": None,
            "created_at": NOW - timedelta(hours=1),
            "closed_at": None,
            **more,
        }
    )


def an_order(subject: Subject = Subject.inbox, **more: Any) -> Order:
    agent = more.pop("agent", None) or an_agent()
    position = more.pop("position", Position("beat"))
    cause = more.pop("cause", Cause.peer)
    reason, sender = more.pop("reason", None), more.pop("sender", None)
    wake = Wake(agent=agent.name, cause=cause, subject=subject, requested_at=NOW, id=41, reason=reason, sender=sender)
    run = Run(
        id=42,
        agent=agent.name,
        wake=41,
        cause=cause,
        subject=subject,
        version=3,
        position=position,
        attempt=more.pop("attempt", 1),
    )
    standing = more.pop("standing", None) or Standing(agent=agent.name, position=position)
    deadline = NOW + timedelta(minutes=15)
    return Order(**{"run": run, "agent": agent, "standing": standing, "wake": wake, "deadline": deadline, **more})
