"""Several nodes at one queue: each instant of a schedule gives one task, and of one key one task is under way."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.postgres_server import release, store_in
from tests.store.test_postgres_nodes import Meanwhile
from wakeful.core.admission import admit
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.items import Kind, NewItem
from wakeful.core.recurrences import Overlap, Recurrence
from wakeful.core.wakes import VerdictKind
from wakeful.store.protocol import TaskFilter
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import HOUR, LEASE, MINUTE, NOW, a_fleet, an_agent, work

EVERY_MINUTE = Recurrence(
    name="sweeping", title="sweep", schedule=parse_schedule("* * * * *"), agent="moss", overlap=Overlap.queue
)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Callable[..., SqlStore]]:
    opened: list[SqlStore] = []

    def one_more(probe=None) -> SqlStore:
        opened.append(store_in(tmp_path, probe))
        return opened[-1]

    yield one_more
    for store in opened:
        store.close()
    release(tmp_path)


@pytest.fixture
def meanwhile(nodes) -> Iterator[Callable[[str], Meanwhile]]:
    made: list[Meanwhile] = []

    def make(verb: str) -> Meanwhile:
        made.append(Meanwhile(nodes, verb))
        return made[-1]

    yield make
    for each in made:
        each.gate.opened.set()
        each.pool.shutdown()


def test_four_nodes_that_look_at_once_add_each_instant_once(nodes):
    stores = [nodes() for _ in range(4)]
    recurring = tuple(replace(EVERY_MINUTE, name=f"s{n}") for n in range(5))
    stores[0].declare(a_fleet(an_agent("moss", cadence=Cadence()), recurrences=recurring), NOW)

    def look(store: SqlStore) -> int:
        return sum(len(store.recur(NOW + n * MINUTE)) for n in range(1, 21))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(look, stores)) <= 20 * len(recurring)
    found = stores[0].tasks(TaskFilter(), limit=1000)
    assert len({task.dedupe for task in found}) == len(found)
    # Nobody's clock is ahead of the last instant: what one node passed over, another had added.
    assert {task.source: task.created_at for task in found} == {f"schedule:s{n}": NOW + 20 * MINUTE for n in range(5)}
    assert {at for _, at in stores[0].recurrences()} == {NOW + 21 * MINUTE}


def test_who_looks_while_another_adds_waits_and_adds_nothing(meanwhile):
    scene = meanwhile("recur")
    scene.one.declare(a_fleet("moss", recurrences=(EVERY_MINUTE,)), NOW)
    first = scene.begin(lambda: scene.one.recur(NOW + MINUTE))
    second = scene.waits(lambda: scene.other.recur(NOW + MINUTE))
    mine, theirs = scene.commit(first, second)
    assert (len(mine), theirs) == (1, [])


def test_two_of_one_key_that_two_nodes_find_free_are_begun_one_after_the_other(meanwhile):
    scene = meanwhile("decide")
    moss, wren = (an_agent(name, cadence=Cadence()) for name in ("moss", "wren"))
    scene.one.declare(a_fleet(moss, wren), NOW)
    older, newer = (
        made.id
        for made in scene.one.record([NewItem(kind=Kind.task, agent=name, key="k") for name in ("moss", "wren")], NOW)
    )
    scene.one.change_task(older, "fail", "rana", NOW)
    # The newer one is about to begin when the older one is taken up again.
    first = scene.begin(lambda: scene.one.decide([work(newer, "wren")], admit, NOW))
    scene.other.change_task(older, "retry", "rana", NOW)
    second = scene.waits(lambda: scene.other.decide([work(older, "moss")], admit, NOW))
    (begun,), (put_off,) = scene.commit(first, second)
    assert (begun.verdict.kind, put_off.verdict.kind, put_off.run) == (VerdictKind.admit, VerdictKind.refuse, None)
    assert f"comes after task {newer}" in put_off.verdict.reason
    held = [task.id for order in scene.other.claim("two", NOW, LEASE) for task in order.tasks]
    assert held == [newer]
    assert scene.other.due(NOW + HOUR).wakes == ()


def test_the_same_batch_from_two_nodes_is_recorded_once(meanwhile):
    scene = meanwhile("record")
    scene.one.declare(a_fleet("moss"), NOW)
    batch = [
        NewItem(kind=Kind.task, agent="moss", dedupe=f"k{n}", needs=(f"k{n - 1}",) if n else ()) for n in range(20)
    ]
    first = scene.begin(lambda: scene.one.record(batch, NOW))
    second = scene.waits(lambda: scene.other.record(batch, NOW))
    mine, theirs = scene.commit(first, second)
    assert [made.id for made in mine] == [made.id for made in theirs]
    assert {made.duplicate for made in theirs} == {True}
    assert [scene.one.item(made.id).waits_for for made in mine] == [0] + [1] * 19
