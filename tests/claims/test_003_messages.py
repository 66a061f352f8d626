"""Document 003's two tools as an agent uses them: what they need, what they leave behind, and what they answer."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claims.desk import agent
from tests.claims.test_001_engine import House
from tests.control.desk import Engine
from tests.engine.stage import heading
from wakeful.control.callers import OPERATOR, Caller
from wakeful.control.control import Control
from wakeful.core.agents import Limits
from wakeful.core.errors import Mistake
from wakeful.core.wakes import Cause, WakeReason
from wakeful.engine.clock import SystemClock
from wakeful.runners.briefing import write_briefing
from wakeful.store.inline import Inline
from wakeful.testing.contracts.runner_case import real


def asked(desk, order, verb, **given):
    """In the course of a run, with its token."""
    control = Control(Inline(desk.store), runs=desk.folder.path, clock=lambda: desk.now, beside=Engine(), node="here")
    caller = Caller(name=order.run.agent, run=order.run.id, epoch=order.run.epoch)
    return asyncio.run(getattr(control, verb)(caller, **given))


def session(desk, name):
    desk.ask(Cause.operator, name)
    return next(order for order in desk.claim() if order.run.agent == name)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[House]:
    with House(tmp_path).open() as house:
        yield house


@real
async def test_a_woken_agent_gets_a_fresh_session_and_both_it_and_its_token_end_with_the_run(yard):
    yard.write("session.sh", 'echo "$$ ${SEEN:-fresh}" >> "$WAKEFUL_ROOT/sessions"\nexport SEEN=before\nsleep 300 &\n')
    await yard.up(heading("finn", run='sh "$WAKEFUL_ROOT/session.sh"', interval="none"))
    control = Control(yard.access, runs=yard.data, clock=SystemClock().now, beside=yard.engine, node="here")
    for body in ("the build is red", "it is red again"):
        reply = await control.wake(OPERATOR, agent="finn", body=body)
        run = await yard.over(reply["run_id"])
        assert (run.subject, run.outcome) == ("inbox", "done")
        assert await control.caller_of_run(run.id, run.epoch) is None
    await yard.down()
    sessions = [line.split() for line in (yard.root / "sessions").read_text().splitlines()]
    assert [word for _, word in sessions] == ["fresh", "fresh"] and len({pid for pid, _ in sessions}) == 2
    for pid, _ in sessions:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.parametrize("reason", [None, "", "urgent", "I would like to talk", "Blocker"])
def test_a_wake_needs_one_of_three_reasons_and_a_message(desk, reason):
    assert sorted(WakeReason) == ["blocker", "critical_finding", "user_request"]
    desk.declare(agent("yuki"), agent("finn"))
    order = session(desk, "yuki")
    with pytest.raises(Mistake, match="blocker, critical_finding, user_request"):
        asked(desk, order, "wake", agent="finn", reason=reason, body="the build is red")
    with pytest.raises(Mistake, match="message_agent"):
        asked(desk, order, "wake", agent="finn", reason="blocker")
    assert desk.store.wakes(agent="finn") == [] and desk.store.items(agent="finn") == []
    assert asked(desk, order, "wake", agent="finn", reason="blocker", body="it is red")["verdict"] == "admit"


def test_every_run_is_told_to_prefer_message_agent_for_what_can_wait(desk):
    desk.declare(agent("yuki"), agent("finn", limits=Limits(wakes_per_run=2)))
    for name, left in (("yuki", 3), ("finn", 2)):
        text, _ = write_briefing(session(desk, name), "You are an agent.")
        (line,) = [line for line in text.splitlines() if "message_agent" in line]
        assert "Prefer" in line and "for whatever can wait" in line and f"this run has {left} of those" in line


def test_wake_agent_leaves_its_message_with_priority_urgent(desk):
    desk.declare(agent("yuki"), agent("finn"))
    reply = asked(desk, session(desk, "yuki"), "wake", agent="finn", reason="blocker", body="Auth middleware broken")
    message = desk.store.item(reply["message_id"])
    assert (message.priority, message.sender, message.body) == ("urgent", "yuki", "Auth middleware broken")
    (order,) = desk.claim()
    assert [item.id for item in order.items] == [message.id]


def test_layer_1_the_caller_is_told_to_use_message_agent_and_its_message_is_kept(desk):
    crew = ("finn", "yang", "chieko", "stas")
    desk.declare(agent("yuki"), *(agent(name) for name in crew), sessions=9)
    order = session(desk, "yuki")
    replies = [asked(desk, order, "wake", agent=name, reason="blocker", body="help") for name in crew]
    assert [reply["verdict"] for reply in replies] == ["admit", "admit", "admit", "refuse"]
    last = replies[3]
    assert (last["guard"], last["numbers"]) == ("wakes_per_run", {"used": 3, "limit": 3})
    assert "use message_agent" in last["advice"] and "your message is kept" in last["advice"]
    assert desk.store.item(last["message_id"]).state == "open"
    # What it was told to use is free, and not limited.
    for _ in range(5):
        assert asked(desk, order, "send", agent="stas", body="when you have time")["wake"] is None
