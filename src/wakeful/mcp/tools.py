"""The tools of a fleet: what each is told, does and answers, and what a model should know before it calls it.

Laws:
- A tool is an operation of control, or two; what it answers is what they answer, so that one description serves all.
- All four annotations are said of every tool; its description is in `words`.
- A wake that is refused is an answer with its verdict, here as everywhere. A call that cannot be honoured is an error
  that says what to do.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from wakeful.control.answers import ANSWERS, WakeStats, WholeAgent
from wakeful.mcp import arguments as told
from wakeful.mcp.arguments import Arguments

Answer = dict[str, Any]


class Refusal(Exception):
    """What was asked for cannot be had: its text says why, and what to do."""


class Asker(Protocol):
    async def whose(self) -> str | None:
        """The agent in whose run this is; None for the operator."""

    async def ask(self, operation: str, /, **parameters: Any) -> Answer:
        """What control answers; a `Refusal` where it does not."""


Call = Callable[[Asker, Any], Awaitable[Answer]]


class Standing(WholeAgent):
    """Where an agent stands, and what is left of its wakes today."""

    wakes: WakeStats


class LoadedStep(TypedDict):
    """`recorded` says whether there is a result; `begun`, that somebody set out to take the step."""

    name: str
    recorded: bool
    begun: bool
    result: Any
    task: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    title: str
    takes: type[Arguments]
    gives: Any
    call: Call
    reads_only: bool = False
    destructive: bool = False
    idempotent: bool = False


async def _message(asker: Asker, given: told.MessageAgent) -> Answer:
    said = given.said()
    return await asker.ask("send", agent=said.pop("to"), body=said.pop("message"), **said)


async def _wake(asker: Asker, given: told.WakeAgent) -> Answer:
    said = given.said()
    return await asker.ask("wake", agent=said.pop("to"), body=said.pop("message"), **said)


async def _inbox(asker: Asker, given: told.ReadInbox) -> Answer:
    said = given.said()
    return await asker.ask("inbox", agent=await _of(asker, said.pop("agent", None)), **said)


async def _add(asker: Asker, given: told.AddTask) -> Answer:
    return await asker.ask("add_task", **given.said())


async def _claim(asker: Asker, given: told.ClaimTask) -> Answer:
    return await asker.ask("claim_task", **given.said())


async def _complete(asker: Asker, given: told.CompleteTask) -> Answer:
    if given.error is not None:
        if given.result is not None:
            raise Refusal("a task has a result or an error, not both (leave one of them out)")
        return await asker.ask("fail_task", task=given.task, reason=given.error)
    result = given.result
    text = result if result is None or isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return await asker.ask("complete_task", task=given.task, result=text)


async def _agents(asker: Asker, given: told.ListAgents) -> Answer:
    return await asker.ask("agents", **given.said())


async def _standing(asker: Asker, given: told.MyStanding) -> Answer:
    agent = await _of(asker, given.agent)
    return {**await asker.ask("agent", agent=agent), "wakes": await asker.ask("wake_stats", agent=agent)}


async def _save(asker: Asker, given: told.SaveStep) -> Answer:
    return await asker.ask("save_step", **given.said())


async def _load(asker: Asker, given: told.LoadStep) -> Answer:
    found = await asker.ask("steps", **({} if given.task is None else {"task": given.task}))
    row = next((row for row in found["items"] if row["name"] == given.name), None)
    return {
        "name": given.name,
        "recorded": row is not None and row["recorded"],
        "begun": row is not None,
        "result": None if row is None else row.get("result"),
        "task": found["task"],
    }


async def _of(asker: Asker, named: str | None) -> str:
    """A run is told of its own agent; whether it may see another is for control to say."""
    agent = named or await asker.whose()
    if agent is None:
        raise Refusal("of which agent? (this is the operator, and not a run: name one as `agent`; see list_agents)")
    return agent


TOOLS: dict[str, Tool] = {
    "message_agent": Tool(
        title="Leave a message for an agent",
        takes=told.MessageAgent,
        gives=ANSWERS["send"],
        call=_message,
    ),
    "wake_agent": Tool(
        title="Wake an agent now",
        takes=told.WakeAgent,
        gives=ANSWERS["wake"],
        call=_wake,
    ),
    "read_inbox": Tool(
        title="Read your messages",
        takes=told.ReadInbox,
        gives=ANSWERS["inbox"],
        call=_inbox,
        reads_only=True,
        idempotent=True,
    ),
    "add_task": Tool(
        title="Add a task to a queue",
        takes=told.AddTask,
        gives=ANSWERS["add_task"],
        call=_add,
    ),
    "claim_task": Tool(
        title="Take a task of yours",
        takes=told.ClaimTask,
        gives=ANSWERS["claim_task"],
        call=_claim,
    ),
    "complete_task": Tool(
        title="Say how a task ended",
        takes=told.CompleteTask,
        gives=ANSWERS["complete_task"],
        call=_complete,
        destructive=True,
        idempotent=False,
    ),
    "list_agents": Tool(
        title="List the agents of the fleet",
        takes=told.ListAgents,
        gives=ANSWERS["agents"],
        call=_agents,
        reads_only=True,
        idempotent=True,
    ),
    "my_standing": Tool(
        title="Where you stand",
        takes=told.MyStanding,
        gives=Standing,
        call=_standing,
        reads_only=True,
        idempotent=True,
    ),
    "save_step": Tool(
        title="Record a step",
        takes=told.SaveStep,
        gives=ANSWERS["save_step"],
        call=_save,
        idempotent=True,
    ),
    "load_step": Tool(
        title="Look for a recorded step",
        takes=told.LoadStep,
        gives=LoadedStep,
        call=_load,
        reads_only=True,
        idempotent=True,
    ),
}
