"""What a Python handler asks in the course of its run, over the line to its worker.

Law: it may ask what a run's token may ask, and nothing else; the answer is given after the store has taken what was
told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.control.callers import Caller
from wakeful.core.errors import Mistake, Stale, WakefulError

if TYPE_CHECKING:
    from wakeful.control.control import Control


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
        told = {name: request[name] for name in ("body", "subject", "type", "priority", "key") if name in request}
        return await control.send(caller, agent=request["to"], **told)
    if verb == "wake":
        return await control.wake(caller, agent=request["agent"], reason=request.get("reason"), key=request.get("key"))
    raise Mistake(f"a handler cannot ask for {verb!r}", "use run.step, run.send or run.wake")


async def _save_step(control: Control, caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    run, epoch = caller.run or 0, caller.epoch or 0
    name, result, task = request["name"], request.get("result"), request.get("task")
    now = control.clock()
    await control.access.write(lambda store: store.save_step(run, epoch, name, result, now, task=task))
    return {}
