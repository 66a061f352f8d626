"""What a run may still ask for once something from outside was put before it.

Law: whoever reads what a stranger wrote may be doing the stranger's will. Such a run keeps the right to wake others,
and to give them tasks, only where its agent's GRANT says so; what it sends is kept, and rings for nobody.
"""

from __future__ import annotations

from wakeful.control.callers import Caller, Forbidden
from wakeful.core.items import Origin
from wakeful.store.protocol import Store

WAKE, TASK = "wake", "task"
SILENCED = "something from outside was put before this run: the message waits for the next run, and rings for nobody"

_DOING = {WAKE: "wake others", TASK: "give tasks to others"}


def may(store: Store, caller: Caller, right: str) -> bool:
    """Whether a run has that right. The operator always has."""
    row = None if caller.run is None else store.run(caller.run)
    if row is None:
        return True
    agent = store.agent(row.agent)
    if agent is not None and right in agent.grants:
        return True
    found = (store.item(item) for item in (*row.shown, *row.tasks))
    return not any(item is not None and item.origin is Origin.external for item in found)


def must_have(store: Store, caller: Caller, right: str) -> None:
    if not may(store, caller, right):
        raise Forbidden(
            f"{caller.name} may not {_DOING[right]} in this run: something from outside was put before it "
            f"(send a message of normal priority; the operator can allow it with GRANT: {right})"
        )
