"""Whose a task is: what a run may see of the queue, and whose keys it uses.

Laws:
- A run sees the tasks that its agent or a replica of it added, and those that are addressed to its agent or to one of
  its roles. Anything else it may not ask for (403, told in the events), and it does not learn whether it exists.
- The keys of a run are those of its address: whichever replica tries again finds what was added before. A run about
  tasks of one role uses that role's keys, for the same reason.
"""

from __future__ import annotations

from wakeful.control.base import Target, find, storable
from wakeful.control.callers import Caller
from wakeful.core.errors import Forbidden, Unknown
from wakeful.core.items import Item, Kind, Origin
from wakeful.core.wakes import Subject
from wakeful.store.protocol import Store


def found_task(store: Store, task: int) -> Item:
    item = store.item(task) if storable(task) else None
    if item is None or item.kind is not Kind.task:
        raise Unknown(f"no task {task}")
    return item


def seen_task(store: Store, caller: Caller, task: int) -> Item:
    if caller.is_operator:
        return found_task(store, task)
    item = store.item(task) if storable(task) else None
    if item is None or not may_see(store, caller, item):
        detail = f"{caller.name} may see its own tasks, and {task} is none of them"
        raise Forbidden(detail, "name one that you added, or that is for you or a role of yours")
    return item


def may_see(store: Store, caller: Caller, item: Item) -> bool:
    return caller.is_operator or is_seen(store, find(store, caller.name), item)


def is_seen(store: Store, target: Target, item: Item) -> bool:
    """By the one agent that `target` is."""
    agent = target.first.agent
    mine = item.agent in target.names or item.role in agent.roles
    return item.kind is Kind.task and (mine or added_by(store, agent.name, item))


def added_by(store: Store, agent: str, item: Item) -> bool:
    if item.origin is not Origin.agent or item.sender is None:
        return False
    if item.sender == agent:
        return True
    own, sender = store.agent(agent), store.agent(item.sender)
    return own is not None and sender is not None and own.address == sender.address


def keys_of(store: Store, caller: Caller) -> str:
    """Under which its idempotency keys are kept. A name has no blank, so no agent's keys are a role's."""
    if caller.run is None:
        return caller.name
    row, agent = store.run(caller.run), store.agent(caller.name)
    about = row.tasks if row is not None and row.subject is Subject.task else ()
    items = [store.item(task) for task in about]
    roles = {None if item is None else item.role for item in items}
    role = roles.pop() if len(roles) == 1 else None
    return f"role {role}" if role is not None else agent.address if agent is not None else caller.name
