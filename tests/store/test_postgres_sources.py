"""Sources between nodes: one of them tends each, by the database's clock, and a look that finds nothing new waits for
nobody and leaves no trace."""

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.postgres_server import connection_of, dsn, release, store_in, tell_time
from tests.store.test_postgres_nodes import Meanwhile, start
from wakeful.core.admission import admit
from wakeful.core.errors import Stale
from wakeful.core.items import Kind, NewItem, Observation
from wakeful.core.ledger import Edges
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_copy import load
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import HOUR, LEASE, NOW, SECOND, a_fleet, an_agent, operator, tick

OVER = NOW + LEASE
FOLDER, BOARD, SHELF = ("folder", "moss"), ("board", "moss"), ("shelf", "wren")
A, B = (Observation(external_id=name, fingerprint="1") for name in "ab")


@pytest.fixture
def open_node(tmp_path: Path) -> Iterator[Callable[..., SqlStore]]:
    """Nodes of one store, whose common clock shows `NOW`."""
    opened: list[SqlStore] = []

    def one_more(probe=None) -> SqlStore:
        opened.append(store_in(tmp_path, probe))
        tell_time(opened[-1], NOW)
        return opened[-1]

    yield one_more
    for store in opened:
        store.close()
    release(tmp_path)


@pytest.fixture
def meanwhile(open_node) -> Iterator[Callable[[str], Meanwhile]]:
    made: list[Meanwhile] = []

    def make(verb: str) -> Meanwhile:
        made.append(Meanwhile(open_node, verb))
        made[-1].one.declare(a_fleet("moss", "wren", *(an_agent(f"fern-{n}", address="fern") for n in (1, 2))), NOW)
        return made[-1]

    yield make
    for each in made:
        each.gate.opened.set()
        each.pool.shutdown()


def nodes_of(store: SqlStore) -> dict[tuple[str, str], str | None]:
    return {(row.source, row.agent): row.node for row in store.sources()}


def test_of_two_who_begin_to_tend_a_source_at_once_one_does(meanwhile):
    scene = meanwhile("tend")
    first = scene.begin(lambda: scene.one.tend([FOLDER, BOARD], "one", NOW, LEASE))
    second = scene.waits(lambda: scene.other.tend([SHELF, BOARD, FOLDER], "two", NOW, LEASE))
    assert [set(mine) for mine in scene.commit(first, second)] == [{FOLDER, BOARD}, {SHELF}]
    assert nodes_of(scene.other) == {FOLDER: "one", BOARD: "one", SHELF: "two"}


def test_of_two_who_take_over_a_source_at_once_one_does(meanwhile):
    scene = meanwhile("tend")
    scene.other.tend([FOLDER], "gone", NOW, LEASE)
    for store in (scene.one, scene.other):
        tell_time(store, OVER)
    first = scene.begin(lambda: scene.one.tend([FOLDER], "one", OVER, LEASE))
    # Whoever is being late may let go of it at any moment: that is not waited for.
    assert not scene.other.tend([FOLDER], "two", OVER, LEASE)
    assert [set(mine) for mine in scene.commit(first)] == [{FOLDER}]
    assert nodes_of(scene.other) == {FOLDER: "one"}


def test_what_is_another_nodes_is_not_waited_for(meanwhile):
    scene = meanwhile("tend")
    scene.other.tend([FOLDER], "one", NOW, LEASE)
    first = scene.begin(lambda: scene.one.tend([FOLDER], "one", NOW, LEASE))
    assert not scene.other.tend([FOLDER], "two", NOW, LEASE)
    assert [set(mine) for mine in scene.commit(first)] == [{FOLDER}]


@pytest.mark.parametrize("wrong", [timedelta(minutes=-5), timedelta(minutes=5)])
def test_a_source_is_tended_by_the_clock_of_the_database(open_node, wrong):
    one, two = open_node(), open_node()
    one.declare(a_fleet("moss"), NOW)
    one.tend([FOLDER], "one", NOW + wrong, LEASE)
    tell_time(two, OVER - SECOND)
    assert not two.tend([FOLDER], "two", OVER + wrong, LEASE)
    assert two.abandon([FOLDER], OVER + wrong, node="two") == [FOLDER]
    tell_time(two, OVER)
    assert set(two.tend([FOLDER], "two", OVER + wrong, LEASE)) == {FOLDER}


def test_who_takes_over_sees_what_the_last_look_of_the_other_left(meanwhile):
    scene = meanwhile("observe")
    scene.other.tend([FOLDER], "one", NOW, LEASE)
    first = scene.begin(lambda: scene.one.observe(*FOLDER, [A], NOW, node="one"))
    tell_time(scene.other, OVER)
    # Nobody takes it over in the middle of a look, and nobody waits for it either.
    assert set(scene.other.tend([FOLDER, BOARD], "two", OVER, LEASE)) == {BOARD}
    assert scene.commit(first) == [Edges(new=("a",))]
    assert set(scene.other.tend([FOLDER], "two", OVER, LEASE)) == {FOLDER}
    assert scene.other.observe(*FOLDER, [A, B], OVER, node="two") == Edges(new=("b",), same=("a",))
    with pytest.raises(Stale):
        scene.one.observe(*FOLDER, [A], OVER, node="one")
    assert [item.external_id for item in scene.one.items(agent="moss", state="open")] == ["a", "b"]


def test_a_look_that_waited_until_another_node_had_taken_over_is_not_taken(meanwhile):
    scene = meanwhile("decide")
    scene.other.tend([FOLDER], "one", NOW, LEASE)
    first = scene.begin(lambda: scene.one.decide([operator("moss")], admit, NOW))
    second = scene.waits(lambda: scene.other.observe(*FOLDER, [A], NOW, node="one"))
    with scene.look() as connection:
        connection.execute("UPDATE source SET node = 'two'")
    scene.gate.opened.set()
    with pytest.raises(Stale, match="two"):
        second.result(10)
    scene.commit(first)
    assert scene.one.items() == []


def test_a_look_that_finds_what_is_known_waits_for_nobody_and_is_no_transaction(meanwhile, open_node):
    scene = meanwhile("decide")
    scene.one.tend([FOLDER], "one", NOW, LEASE)
    scene.one.observe(*FOLDER, [A], NOW, node="one")
    sites: list[tuple[str, str]] = []
    quiet = open_node(lambda *site: sites.append(site))
    first = scene.begin(lambda: scene.one.decide([operator("moss")], admit, NOW))
    assert quiet.observe(*FOLDER, [A], NOW + SECOND, node="one") == Edges(same=("a",))
    assert sites == []
    with quiet.session.transaction("several"):
        assert quiet.observe(*FOLDER, [A], NOW + SECOND, node="one") == Edges(same=("a",))
        row = connection_of(quiet).execute("SELECT pg_current_xact_id_if_assigned() AS id").fetchone()
        assert row["id"] is None
    scene.commit(first)


def test_a_message_to_a_replica_is_put_off_before_or_after_it_is_shown(meanwhile):
    scene = meanwhile("snooze")
    (made,) = scene.one.record([NewItem(kind=Kind.message, agent="fern-1")], NOW)
    scene.one.decide([tick("fern-1")], admit, NOW)
    first = scene.begin(lambda: scene.one.snooze([made.id], NOW + HOUR, "rana", NOW))
    assert scene.other.claim("one", NOW, LEASE) == []
    scene.commit(first)
    (order,) = scene.other.claim("one", NOW, LEASE)
    assert order.items == ()


def test_what_is_put_off_while_a_run_ends_is_put_off_or_settled(meanwhile):
    scene = meanwhile("snooze")
    (made,) = scene.one.record([NewItem(kind=Kind.message, agent="moss")], NOW)
    order = start(scene.one, "moss")
    assert [item.id for item in order.items] == [made.id]
    first = scene.begin(lambda: scene.one.snooze([made.id], NOW + HOUR, "rana", NOW))
    second = scene.waits(lambda: scene.other.stop([order.run.id], "rana", NOW))
    scene.commit(first, second)
    kept = scene.other.item(made.id)
    assert (kept.state, kept.not_before) == ("open", NOW + HOUR)


def test_sources_go_into_a_copy_and_who_tends_them_does_not_move_along(open_node, tmp_path):
    store = open_node()
    store.declare(a_fleet("moss", "wren"), NOW)
    store.tend([FOLDER, SHELF], "one", NOW, LEASE)
    store.observe(*FOLDER, None, NOW, node="one", why="away\x00")
    store.observe(*BOARD, None, NOW, why="no answer")
    store.record([NewItem(kind=Kind.message, agent="moss", metadata='{"\x00": 1}', reply_to=9)], NOW)
    path = tmp_path / "copy.db"
    store.backup(path)
    lite = open_sqlite(Path(shutil.copy(path, tmp_path / "lite.db")), durable=False)
    schema = f"{connection_of(store).execute('SELECT current_schema() AS s').fetchone()['s']}_copy"
    again = open_postgres(dsn(), schema=schema)
    try:
        assert load(path, connection_of(again), moves=True)["source"] == 3
        assert (lite.sources(), lite.items()) == (store.sources(), store.items())
        assert again.items() == store.items()
        assert nodes_of(again) == {FOLDER: None, BOARD: None}
        assert [row.outage for row in again.sources()] == ["no answer", "away\x00"]
    finally:
        lite.close()
        connection_of(again).execute(f"DROP SCHEMA {schema} CASCADE".encode())
        again.close()
