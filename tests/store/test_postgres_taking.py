"""Runs of several nodes take tasks of one queue at once: each task is one run's, and of one key one is held."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.store.postgres_server import release, store_in
from wakeful.control.auditing.audit import audit
from wakeful.core.admission import admit
from wakeful.core.items import Kind, NewItem, State
from wakeful.core.runs import Ending
from wakeful.store.protocol import Order, TaskEnd, TaskFilter
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import LEASE, MINUTE, NOW, a_fleet, an_agent, tick

NAMES = ("moss", "wren", "hale", "fern")
TASKS = 20


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Callable[[], SqlStore]]:
    opened: list[SqlStore] = []

    def one_more() -> SqlStore:
        opened.append(store_in(tmp_path))
        return opened[-1]

    yield one_more
    for store in opened:
        store.close()
    release(tmp_path)


def at_their_beats(store: SqlStore) -> dict[str, Order]:
    agents = [an_agent(name, roles=("editor",)) for name in NAMES]
    store.declare(a_fleet(*agents, sessions=len(NAMES)), NOW)
    store.decide([tick(name) for name in NAMES], admit, NOW)
    return {order.run.agent: order for order in store.claim("one", NOW, LEASE)}


def take_all(store: SqlStore, order: Order, *, complete: bool = False) -> list[int]:
    taken = []
    while (item := store.take_task(order.run.id, order.run.epoch, NOW)) is not None:
        taken.append(item.id)
        if complete:
            end = TaskEnd(task=item.id, ending=Ending(exit_code=0))
            assert store.finish_tasks(order.run.id, order.run.epoch, [end], NOW) == ["done"]
    return taken


@pytest.mark.parametrize("keyed", [False, True])
def test_four_runs_that_take_at_once_have_each_task_once(nodes, keyed):
    store = nodes()
    orders = at_their_beats(store)
    key = "report" if keyed else None
    store.record([NewItem(kind=Kind.task, role="editor", key=key) for _ in range(TASKS)], NOW)
    stores = [nodes() for _ in NAMES]
    with ThreadPoolExecutor(len(NAMES)) as pool:
        asked = [
            pool.submit(take_all, each, orders[name], complete=keyed) for each, name in zip(stores, NAMES, strict=True)
        ]
        taken = [id for future in asked for id in future.result(60)]
    assert len(taken) == len(set(taken))
    if keyed:
        # Of one key one is held at a time: whoever finds it held gets none, and what is left is next.
        taken += take_all(store, orders["moss"], complete=True)
    assert len(taken) == TASKS
    state = State.completed if keyed else State.in_progress
    assert len(store.tasks(TaskFilter(states=(state,)), limit=TASKS + 1)) == TASKS
    assert audit(store, NOW + MINUTE).adds_up
