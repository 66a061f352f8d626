"""What a Python handler asks in the course of its run, over the line to its worker.

Law: it may ask what a run's token may ask, and nothing else; the answer is given after the store has taken what was
told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.control.callers import Caller
from wakeful.control.checkpoints import step_name, written_result
from wakeful.core.errors import Mistake, Stale, WakefulError
from wakeful.core.redacting import redacted_json

if TYPE_CHECKING:
    from wakeful.control.control import Control

_SENT = ("body", "subject", "type", "priority", "key", "reply_to", "metadata")
_WOKEN = ("reason", "body", "key")


async def answer(control: Control, run: int, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request, or `error` and its `kind`."""
    try:
        row = await control.access.read(lambda store: store.run(run))
        if row is None or row.state != "running":
            raise Stale(f"run {run} is not under way")
        return await _answer(control, Caller(name=row.agent, run=run, epoch=row.epoch), request)
    except WakefulError as error:
        return {"error": str(error), "kind": type(error).__name__}


async def _answer(control: Control, caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    verb = request.get("verb")
    if verb == "step":
        return await _save_step(control, caller, request)
    if verb == "send":
        return await control.send(caller, agent=request["to"], **_said(request, _SENT))
    if verb == "wake":
        return await control.wake(caller, agent=request["agent"], **_said(request, _WOKEN))
    if verb == "mark_read":
        return await control.mark_read(caller, agent=caller.name, messages=request["messages"])
    if verb == "snooze":
        until = str(request["until"])
        return await control.snooze(caller, agent=caller.name, messages=request["messages"], until=until)
    known = "run.step, run.send, run.wake, run.mark_read or run.snooze"
    raise Mistake(f"a handler cannot ask for {verb!r}", f"use {known}")


def _said(request: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: request[name] for name in names if name in request}


async def _save_step(control: Control, caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    run, epoch = caller.run or 0, caller.epoch or 0
    name, result, task = control.redact.name(step_name(request["name"])), request.get("result"), request.get("task")
    if result is not None:
        result = redacted_json(written_result(result, name), control.redact)
    now = control.clock()
    await control.access.write(lambda store: store.save_step(run, epoch, name, result, now, task=task))
    found = await control.access.read(lambda store: store.steps(run, task=task))
    # A process of the same run may have recorded it before.
    return {"recorded": found.get(name)}
