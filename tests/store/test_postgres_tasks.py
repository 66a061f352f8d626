"""Several nodes at one queue: each instant of a schedule gives one task, and of one key one task is under way."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.postgres_server import connection_of, release, store_in
from tests.store.test_postgres_nodes import PATIENCE, Meanwhile
from tests.store.test_postgres_plans import rows_read
from wakeful.core.admission import admit
from wakeful.core.agents import Runner
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.errors import Unknown
from wakeful.core.items import Kind, NewItem
from wakeful.core.recurrences import Overlap, Recurrence
from wakeful.core.settlement import settle
from wakeful.core.wakes import VerdictKind
from wakeful.store.protocol import Finish, TaskFilter
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import DONE, HOUR, LEASE, MINUTE, NOW, a_fleet, an_agent, work

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
    older = scene.one.record([NewItem(kind=Kind.task, agent="moss", key="later the same")], NOW)[0].id
    newer = scene.one.record([NewItem(kind=Kind.task, agent="wren", key="k")], NOW)[0].id
    # The newer one is about to begin when an older one of its key is seen for the first time.
    first = scene.begin(lambda: scene.one.decide([work(newer, "wren")], admit, NOW))
    connection_of(scene.other).execute("UPDATE item SET key = 'k' WHERE id = $1", (older,))
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


def three_tasks(store: SqlStore) -> list[int]:
    """Two, and one that needs both."""
    store.declare(a_fleet(*(an_agent(name, cadence=Cadence()) for name in ("moss", "wren", "finch"))), NOW)
    needs = [store.record([NewItem(kind=Kind.task, agent=name)], NOW)[0].id for name in ("moss", "wren")]
    (last,) = store.record([NewItem(kind=Kind.task, agent="finch", depends_on=tuple(needs))], NOW)
    return [*needs, last.id]


def test_what_needs_two_goes_on_when_one_is_completed_while_the_other_is_taken_up_again(meanwhile):
    scene = meanwhile("change_task")
    a, b, last = three_tasks(scene.other)
    scene.other.change_task(a, "fail", "rana", NOW)
    first = scene.begin(lambda: scene.one.change_task(b, "complete", "rana", NOW))
    second = scene.waits(lambda: scene.other.change_task(a, "retry", "rana", NOW))
    scene.commit(first, second)
    assert (scene.other.item(last).state, scene.other.item(last).waits_for) == ("pending", 1)
    scene.other.change_task(a, "complete", "rana", NOW)
    assert [wake.task for wake in scene.other.due(NOW).wakes] == [last]


def test_what_needs_two_is_blocked_when_one_is_cancelled_while_the_other_is_taken_up_again(meanwhile):
    scene = meanwhile("change_task")
    a, b, last = three_tasks(scene.other)
    scene.other.change_task(a, "fail", "rana", NOW)
    first = scene.begin(lambda: scene.one.change_task(a, "retry", "rana", NOW))
    second = scene.waits(lambda: scene.other.change_task(b, "cancel", "rana", NOW))
    scene.commit(first, second)
    assert scene.other.item(last).error == f"depends on task {b}, which is cancelled"


def test_a_task_that_is_removed_while_another_is_made_to_need_it_is_gone_for_that(meanwhile):
    scene = meanwhile("change_task")
    a, *_ = three_tasks(scene.other)
    scene.other.change_task(a, "complete", "rana", NOW)
    first = scene.begin(lambda: scene.one.change_task(a, "remove", "rana", NOW))
    second = scene.waits(lambda: scene.other.record([NewItem(kind=Kind.task, agent="moss", depends_on=(a,))], NOW))
    scene.gate.opened.set()
    assert first.result().id == a
    with pytest.raises(Unknown, match=f"no task {a}"):
        second.result()


def test_two_shifts_of_one_role_that_are_filled_at_once_share_no_task(meanwhile):
    scene = meanwhile("decide")
    moss, wren = (an_agent(name, cadence=Cadence(), roles=("editor",), runner=Runner.handler) for name in ("m", "w"))
    scene.one.declare(a_fleet(moss, wren), NOW)
    own = [scene.one.record([NewItem(kind=Kind.task, agent=name)], NOW)[0].id for name in ("m", "w")]
    shared = [made.id for made in scene.one.record([NewItem(kind=Kind.task, role="editor")] * 5, NOW)]
    first = scene.begin(lambda: scene.one.decide([work(own[0], "m")], admit, NOW))
    second = scene.pool.submit(lambda: scene.other.decide([work(own[1], "w")], admit, NOW))
    # It waits for nobody: what the other is taking is left to it.
    (beside,) = second.result(PATIENCE)
    scene.commit(first)
    assert beside.run is not None
    orders = scene.other.claim("two", NOW, LEASE)
    held = [task.id for order in orders for task in order.tasks]
    assert len(orders) == 2
    assert len(held) == len(set(held))
    assert {*own} < {*held} <= {*own, *shared}
    assert {task.id for task in scene.other.tasks(TaskFilter(states=("in_progress",)))} == {*held}


def three_of_a_key(store: SqlStore) -> list[int]:
    names = ("moss", "wren", "finch")
    store.declare(a_fleet(*(an_agent(name, cadence=Cadence()) for name in names)), NOW)
    return [store.record([NewItem(kind=Kind.task, agent=name, key="k")], NOW)[0].id for name in names]


def test_the_last_of_a_key_goes_on_when_both_before_it_are_cancelled_at_once(meanwhile):
    scene = meanwhile("change_task")
    first, second, last = three_of_a_key(scene.other)
    one = scene.begin(lambda: scene.one.change_task(first, "cancel", "rana", NOW))
    other = scene.pool.submit(lambda: scene.other.change_task(second, "cancel", "rana", NOW))
    wait([other], timeout=0.1)
    scene.commit(one, other)
    assert [wake.task for wake in scene.other.due(NOW).wakes] == [last]


def test_what_is_added_to_a_key_while_its_only_task_is_closed_goes_on(meanwhile):
    scene = meanwhile("change_task")
    first, *others = three_of_a_key(scene.other)
    for task in others:
        scene.other.change_task(task, "cancel", "rana", NOW)
    one = scene.begin(lambda: scene.one.change_task(first, "cancel", "rana", NOW))
    added = NewItem(kind=Kind.task, agent="wren", key="k")
    _, (made,) = scene.commit(one, scene.waits(lambda: scene.other.record([added], NOW)))
    assert [wake.task for wake in scene.other.due(NOW).wakes] == [made.id]


def test_a_long_queue_of_one_key_is_looked_at_by_its_head(tmp_path):
    read = {}
    for length in (100, 3000):
        (tmp_path / str(length)).mkdir()
        store = store_in(tmp_path / str(length))
        try:
            store.declare(a_fleet(an_agent("moss", cadence=Cadence(), runner=Runner.handler)), NOW)
            for _ in range(length // 100):
                store.record([NewItem(kind=Kind.task, agent="moss", key="k")] * 100, NOW)
            connection_of(store).execute("VACUUM ANALYZE")
            read[length] = rows_read(store, begin_and_end)[0]
        finally:
            store.close()
            release(tmp_path / str(length))
    assert 0 < read[3000] < 2 * read[100] + 200, read


def begin_and_end(store: SqlStore) -> None:
    for n in range(3):
        at = NOW + n * LEASE
        store.decide(store.due(at).wakes, admit, at)
        (order,) = store.claim("one", at, LEASE)
        assert len(order.tasks) == 1
        store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)], settle, at)


def test_an_agents_own_queue_that_is_empty_costs_nothing_beside_a_long_one_of_its_role(tmp_path):
    """All queues together are not walked to find none of one."""
    read = {}
    for length in (300, 3000):
        (tmp_path / str(length)).mkdir()
        store = store_in(tmp_path / str(length))
        try:
            moss = an_agent("moss", cadence=Cadence(), roles=("editor",), runner=Runner.handler)
            store.declare(a_fleet(moss), NOW)
            for _ in range(length // 100):
                store.record([NewItem(kind=Kind.task, role="editor")] * 100, NOW)
            connection_of(store).execute("VACUUM ANALYZE")
            read[length] = rows_read(store, shifts)[0]
        finally:
            store.close()
            release(tmp_path / str(length))
    assert 0 < read[3000] < 2 * read[300], read


def shifts(store: SqlStore) -> None:
    """Often enough for a plan that is kept for any value."""
    for n in range(8):
        at = NOW + n * LEASE
        store.decide(store.due(at).wakes, admit, at)
        (order,) = store.claim("one", at, LEASE)
        store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)], settle, at)
