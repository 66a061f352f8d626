"""What is done with tasks costs the same before a short queue and a long one, beside few that went well and many."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.test_query_plans import ACTS, growth
from wakeful.core.admission import admit
from wakeful.core.agents import Runner
from wakeful.core.cadence import Cadence
from wakeful.core.items import Kind, NewItem, Past, State
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish, Order, TaskFilter
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import DONE, LEASE, NOW, a_fleet, an_agent, operator, timer


def look_for_tasks(store: SqlStore) -> None:
    """What did not go well, what is open and what is under way, from either end; and how many there are."""
    for states in (("dead_letter",), ("blocked", "failed"), ("cancelled",), ("in_progress",), ("pending", "blocked")):
        assert store.tasks(TaskFilter(states=states), limit=3)
        assert store.tasks(TaskFilter(states=states), before=1 << 62, limit=3)
        store.tasks(TaskFilter(states=states, agents=("moss",), tag="none"), limit=3)
        store.count_tasks(TaskFilter(states=states))
    assert store.tasks(TaskFilter(), limit=3)
    assert store.tasks(TaskFilter(), before=1 << 62, limit=3)


@pytest.fixture
def worked_off(tmp_path: Path) -> Iterator[dict[str, SqlStore]]:
    """Two stores with a few tasks that are open or went wrong, and few or many that went well."""
    opened = {name: open_sqlite(tmp_path / f"{name}.db", durable=False) for name in ("small", "full")}
    past = [Past(state=state) for state in (State.dead_letter, State.cancelled, State.completed)]
    for store, length in zip(opened.values(), (500, 20_000), strict=True):
        store.declare(a_fleet(an_agent("moss", cadence=Cadence()), an_agent("wren", cadence=Cadence())), NOW)
        dead, *_ = store.record([NewItem(kind=Kind.task, agent="moss", past=past[n % 2]) for n in range(8)], NOW)
        for start in range(0, length, 500):
            batch = [NewItem(kind=Kind.task, agent="moss", past=past[2], dedupe=f"{start + n}") for n in range(500)]
            store.record(batch, NOW)
        store.record([NewItem(kind=Kind.task, agent="moss", depends_on=(dead.id,)) for _ in range(4)], NOW)
        store.record([NewItem(kind=Kind.task, agent=agent, key="k") for agent in ("wren", "moss", "moss")], NOW)
        store.decide(store.due(NOW).wakes, admit, NOW)
        store.claim("one", NOW, LEASE)
    yield opened
    for store in opened.values():
        store.close()


def test_no_act_takes_more_steps_beside_forty_times_as_many_tasks_that_went_well(worked_off):
    open_task = TaskFilter(states=("pending",))
    acts: dict[str, Callable[[SqlStore], object]] = {
        "look for tasks": look_for_tasks,
        "by key": lambda store: store.keyed_task("77"),
        "record what is known": lambda store: store.record(
            [NewItem(kind=Kind.task, agent="moss", past=Past(state=State.completed), dedupe=f"{n}") for n in range(9)],
            NOW,
        ),
        "change": lambda store: [
            store.change_tasks([store.tasks(open_task)[0].id], change, "rana", NOW) for change in ("fail", "retry")
        ],
        "recur": lambda store: store.recur(NOW),
        "due": lambda store: store.due(NOW),
    }
    assert growth(worked_off, acts) == {}


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[dict[str, SqlStore]]:
    """Two stores whose only agent is busy, with a short and a long queue of tasks behind it."""
    opened = {name: open_sqlite(tmp_path / f"{name}.db", durable=False) for name in ("small", "full")}
    for store, length in zip(opened.values(), (20, 800), strict=True):
        store.declare(a_fleet("moss", an_agent("wren", roles=("editor",))), NOW)
        store.decide([operator("moss"), operator("wren")], admit, NOW)
        store.claim("one", NOW, LEASE)
        store.record([NewItem(kind=Kind.task, agent="moss") for _ in range(length)], NOW)
        store.record([NewItem(kind=Kind.task, role="editor", key="book") for _ in range(length)], NOW)
        store.record([NewItem(kind=Kind.task, role="nobody") for _ in range(length)], NOW)
        for _ in range(3):
            store.decide(store.due(NOW).wakes, admit, NOW)
    yield opened
    for store in opened.values():
        store.close()


def test_no_act_takes_more_steps_before_a_queue_forty_times_the_length(queues):
    acts: dict[str, Callable[[SqlStore], object]] = {
        "due": lambda store: store.due(NOW),
        "record": lambda store: store.record([NewItem(kind=Kind.task, agent="moss")], NOW),
        "why": lambda store: store.why(timer("moss"), NOW),
        "expire": lambda store: store.expire(NOW),
        "renew": ACTS["renew"],
        "a page of a queue": lambda store: store.tasks(TaskFilter(states=("pending",), agents=("moss",)), limit=3),
        "the end of a queue": lambda store: store.tasks(
            TaskFilter(states=("pending",), role="editor"), before=1 << 62, limit=3
        ),
    }
    assert growth(queues, acts) == {}


@pytest.fixture
def of_one_key(tmp_path: Path) -> Iterator[dict[str, SqlStore]]:
    """Two stores whose only agent is idle, with a short and a long queue of one causal key before it."""
    opened = {name: open_sqlite(tmp_path / f"{name}.db", durable=False) for name in ("small", "full")}
    for store, length in zip(opened.values(), (100, 4000), strict=True):
        store.declare(a_fleet(an_agent("moss", cadence=Cadence(), runner=Runner.handler)), NOW)
        store.record([NewItem(kind=Kind.task, agent="moss", key="book") for _ in range(length)], NOW)
    yield opened
    for store in opened.values():
        store.close()


def test_no_act_takes_more_steps_before_a_queue_of_one_key_forty_times_the_length(of_one_key):
    held: dict[SqlStore, Order] = {}

    def begin(store: SqlStore) -> None:
        store.decide(store.due(NOW).wakes, admit, NOW)
        (held[store],) = store.claim("one", NOW, LEASE)
        assert len(held[store].tasks) == 1

    def end(store: SqlStore) -> None:
        run = held[store].run
        store.finish([Finish(run=run.id, epoch=run.epoch, ending=DONE)], settle, NOW)

    acts: dict[str, Callable[[SqlStore], object]] = {
        "due": lambda store: store.due(NOW),
        "begin": begin,
        "end": end,
        "the next": begin,
        "record": lambda store: store.record([NewItem(kind=Kind.task, agent="moss", key="book")], NOW),
        "next instant": lambda store: store.due(NOW),
    }
    assert growth(of_one_key, acts) == {}
