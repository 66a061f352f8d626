"""One run, told whole: who led to it, what it was shown, what it was about and how far it has come.

Law: what others wrote is told in part, enough to recognise it; whole it stands in the inbox and in the queue.
"""

from __future__ import annotations

from wakeful.control.rows import Row, chain_row, run_row, waiting_row
from wakeful.core.codec import write_time
from wakeful.core.items import Item
from wakeful.store.protocol import RunRow, StepRow, Store

# Items of one run that are told, and steps, and characters of what each says.
MOST_ITEMS = 200
LONGEST = 500


def whole_run(store: Store, row: RunRow) -> Row:
    wake = store.wake(row.wake)
    asked = {**waiting_row(wake), "from": wake.wake.sender, "reason_given": wake.wake.reason} if wake else None
    led = {"by_run": wake.wake.by_run, "from": wake.wake.sender} if wake else {}
    return {
        **run_row(row),
        "wake": asked,
        "items": [_item(item) for item in store.some_items(row.shown[:MOST_ITEMS])],
        "tasks": _tasks(store, row),
        "steps": [_step(step) for step in store.steps_told(row.id, limit=MOST_ITEMS, longest=LONGEST + 1)],
        "chain": {**chain_row(wake.wake), **led} if wake else None,
    }


def _item(item: Item) -> Row:
    return {
        "id": item.id,
        "kind": item.kind.value,
        "from": item.sender,
        "subject": item.subject,
        "body": _part(item.body),
        "type": item.type.value,
        "priority": item.priority.value,
        "state": item.state.value,
        "source": item.source,
    }


def _tasks(store: Store, row: RunRow) -> list[Row]:
    tasks = store.some_items(row.tasks[:MOST_ITEMS])
    tries = store.attempts_of([task.id for task in tasks])
    return [
        {"id": task.id, "title": task.subject, "state": task.state.value, "attempts": len(tries.get(task.id, ()))}
        for task in tasks
    ]


def _step(step: StepRow) -> Row:
    """Its result is JSON, as it was recorded."""
    return {
        "name": step.name,
        "state": "intent" if step.result is None else "done",
        "at": write_time(step.at),
        "result": None if step.result is None else _part(step.result),
        "task": step.task,
    }


def _part(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
