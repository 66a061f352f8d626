"""Leases between nodes: one clock, which is the database's, and one who ends what its holder left behind."""

import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.store.postgres_server import connection_of, dsn, release, store_in, tell_time
from tests.store.test_postgres_nodes import Meanwhile, start, together
from wakeful.core.admission import admit
from wakeful.core.errors import Conflict, Stale
from wakeful.core.runs import Outcome
from wakeful.core.settlement import settle
from wakeful.core.wakes import Pause
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_copy import load
from wakeful.store.postgres_session import Crowded
from wakeful.store.postgres_wire import Wire
from wakeful.store.protocol import Finish, Order
from wakeful.store.rows import from_micros, to_micros
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import LEASE, LOST, MINUTE, NOW, SECOND, a_fleet, an_agent, operator

OVER = NOW + LEASE
WRONG = [timedelta(minutes=-5), timedelta(minutes=5)]


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
        for name in ("one", "two"):
            made[-1].other.join(name, name, "", NOW, LEASE)
        return made[-1]

    yield make
    for each in made:
        each.gate.opened.set()
        each.pool.shutdown()


def lease_of(store: SqlStore, run: int) -> datetime:
    row = connection_of(store).execute("SELECT lease_until AS at FROM run WHERE id = $1", (run,)).fetchone()
    return from_micros(row["at"])


def pair(order: Order) -> tuple[int, int]:
    return order.run.id, order.run.epoch


def bury(store: SqlStore, now: datetime = OVER) -> list[Outcome]:
    """Whatever is an orphan is ended, in one transaction."""
    with store.session.transaction("bury"):
        ends = [Finish(run=run, epoch=epoch, ending=LOST) for run, epoch in store.orphans(now)]
        return store.finish(ends, settle, now) if ends else []


# ---- one clock


@pytest.mark.parametrize("wrong", WRONG, ids=["slow", "fast"])
def test_a_node_whose_clock_is_wrong_neither_shortens_nor_lengthens_a_lease(open_node, wrong):
    one, other = open_node(), open_node()
    one.declare(a_fleet("moss"), NOW)
    one.join("one", "attic", "", NOW + wrong, LEASE)
    one.decide([operator("moss", NOW + wrong)], admit, NOW + wrong)
    (order,) = one.claim("one", NOW + wrong, LEASE)
    assert lease_of(other, order.run.id) == OVER
    for store in (one, other):
        tell_time(store, NOW + SECOND)
    assert one.renew("one", [pair(order)], NOW + SECOND + wrong, LEASE).runs == (order.run.id,)
    assert lease_of(other, order.run.id) == OVER + SECOND
    (row,) = other.nodes(NOW + wrong)
    assert (row.since, row.seen_at, row.alive) == (NOW, NOW + SECOND, True)
    for store in (one, other):
        tell_time(store, OVER + SECOND - timedelta(microseconds=1))
        assert store.orphans(OVER + 10 * MINUTE) == []
        tell_time(store, OVER + SECOND)
        assert store.orphans(NOW - 10 * MINUTE) == [pair(order)]
    assert [row.alive for row in other.nodes(NOW - 10 * MINUTE)] == [False]


@pytest.mark.parametrize("wrong", [*WRONG, timedelta()], ids=["slow", "fast", "right"])
def test_a_sleeper_wakes_by_its_own_clock_when_a_lease_ends_by_the_other(open_node, wrong):
    store = open_node()
    store.declare(a_fleet("moss", "wren"), NOW)
    store.join("two", "cellar", "", NOW, LEASE)
    assert store.due(NOW + wrong).next_at == NOW + timedelta(hours=1)
    store.decide([operator("wren")], admit, NOW)
    assert len(store.claim("one", NOW, 9 * LEASE)) == 1
    start(store, "moss")
    later = NOW + 20 * SECOND
    tell_time(store, later)
    assert store.due(later + wrong).next_at == OVER + wrong
    assert store.renew("two", [], later + wrong, LEASE).next_at == OVER + wrong
    for moment in (OVER, OVER + MINUTE):
        tell_time(store, moment)
        assert store.due(moment + wrong).next_at == moment + wrong
        assert store.renew("two", [], moment + wrong, LEASE).next_at == OVER + wrong
    bury(store)
    assert store.due(OVER + wrong).wakes or store.due(OVER + wrong).next_at > OVER + wrong


def test_the_clock_is_the_servers_unless_a_session_was_told_otherwise(open_node):
    told, plain = open_node(), open_node()
    own = connection_of(plain)
    instant = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS at"
    clock = "SELECT lease_clock() AS at"
    own.execute("RESET wakeful.now")
    before, shown, after = (own.execute(query.encode()).fetchone()["at"] for query in (instant, clock, instant))
    assert before <= shown <= after
    # What was set for one transaction is over with it.
    own.execute("BEGIN")
    own.execute("SET LOCAL wakeful.now = '7'")
    assert own.execute(clock.encode()).fetchone() == {"at": 7}
    own.execute("COMMIT")
    assert own.execute(clock.encode()).fetchone()["at"] >= after
    assert connection_of(told).execute(clock.encode()).fetchone() == {"at": to_micros(NOW)}


# ---- one query


def test_a_node_without_runs_asks_one_query_and_with_many_one_more(open_node, monkeypatch):
    store = open_node()
    names = [f"a{n}" for n in range(9)]
    store.declare(a_fleet(*names, sessions=9), NOW)
    store.join("one", "attic", "", NOW, LEASE)
    orders = [start(store, name) for name in names]
    asked: list[str] = []
    send, say = Wire.send, Wire.say
    monkeypatch.setattr(
        Wire, "send", lambda wire, query, given: (asked.append(query.name), send(wire, query, given))[1]
    )
    monkeypatch.setattr(Wire, "say", lambda wire, words: (asked.append(words.decode()), say(wire, words))[1])
    store.renew("one", [], NOW, LEASE)
    assert asked == ["BEGIN", "renew_node", "COMMIT"]
    asked.clear()
    assert len(store.renew("one", [pair(order) for order in orders], NOW, LEASE).runs) == 9
    assert asked == ["BEGIN", "renew_runs", "renew_node", "COMMIT"]


# ---- who is first


def test_of_two_who_find_an_orphan_at_once_one_ends_it_and_the_other_waits_for_nobody(meanwhile):
    scene = meanwhile("bury")
    scene.one.declare(a_fleet("moss", "wren"), NOW)
    orders = [start(scene.one, name) for name in ("moss", "wren")]
    for store in (scene.one, scene.other):
        tell_time(store, OVER)
    first = scene.begin(lambda: bury(scene.one))
    assert scene.other.orphans(OVER) == []
    assert bury(scene.other) == []
    (ended,) = scene.commit(first)
    assert ended == [Outcome.killed, Outcome.killed]
    assert scene.other.orphans(OVER) == []
    for order in orders:
        with pytest.raises(Stale):
            scene.other.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=LOST)], settle, OVER)


def test_what_its_finder_dropped_is_found_by_the_next(meanwhile):
    scene = meanwhile("orphans")
    scene.one.declare(a_fleet("moss"), NOW)
    order = start(scene.one, "moss")
    for store in (scene.one, scene.other):
        tell_time(store, OVER)
    first = scene.begin(lambda: scene.one.orphans(OVER))
    assert scene.other.orphans(OVER) == []
    scene.commit(first)
    assert bury(scene.other) == [Outcome.killed]
    assert scene.one.run(order.run.id).outcome is Outcome.killed


def test_a_renewal_that_was_first_leaves_nothing_to_find(meanwhile):
    scene = meanwhile("renew")
    scene.one.declare(a_fleet("moss"), NOW)
    order = start(scene.one, "moss")
    for store in (scene.one, scene.other):
        tell_time(store, OVER)
    first = scene.begin(lambda: scene.one.renew("one", [pair(order)], OVER, LEASE))
    assert scene.other.orphans(OVER) == []
    (renewed,) = scene.commit(first)
    assert renewed.runs == (order.run.id,)
    assert scene.other.orphans(OVER) == []


@pytest.mark.parametrize("ends", [True, False], ids=["ends it", "lets it go"])
def test_a_renewal_waits_for_whoever_has_found_the_run_and_hears_what_became_of_it(meanwhile, ends):
    scene = meanwhile("bury" if ends else "orphans")
    scene.one.declare(a_fleet("moss"), NOW)
    order = start(scene.one, "moss")
    for store in (scene.one, scene.other):
        tell_time(store, OVER)
    first = scene.begin(lambda: bury(scene.one) if ends else scene.one.orphans(OVER))
    second = scene.waits(lambda: scene.other.renew("one", [pair(order)], OVER, LEASE))
    _, renewed = scene.commit(first, second)
    assert renewed.runs == (() if ends else (order.run.id,))
    assert scene.other.orphans(OVER) == []


def test_of_a_renewal_and_a_finder_exactly_one_has_the_run(open_node):
    holder, finder = open_node(), open_node()
    names = [f"a{n}" for n in range(25)]
    holder.declare(a_fleet(*names, sessions=25), NOW)
    holder.join("one", "attic", "", NOW, LEASE)
    for name in names:
        for store in (holder, finder):
            tell_time(store, NOW)
        order = start(holder, name)
        for store in (holder, finder):
            tell_time(store, OVER)
        ready = threading.Barrier(2)

        def renew(ready=ready, order=order) -> bool:
            ready.wait()
            return bool(holder.renew("one", [pair(order)], OVER, LEASE).runs)

        def find(ready=ready) -> bool:
            ready.wait()
            return bury(finder) != []

        renewed, buried = together(renew, find)
        assert renewed is not buried


def test_many_who_sweep_at_once_end_each_orphan_once(open_node):
    names = [f"a{n}" for n in range(24)]
    stores = [open_node() for _ in range(3)]
    replicas = [an_agent(f"moss-{n}", address="moss") for n in range(3)]
    stores[0].declare(a_fleet(*names, *replicas, sessions=99), NOW)
    for name in (*names, *(agent.name for agent in replicas)):
        start(stores[0], name)
    for store in stores:
        tell_time(store, OVER)
    buried: list[int] = []

    def sweep(store: SqlStore) -> None:
        while store.runs(open=True):
            with store.session.transaction("bury"):
                found = store.orphans(OVER, limit=2)
                ends = [Finish(run=run, epoch=epoch, ending=LOST) for run, epoch in found]
                if ends:
                    store.finish(ends, settle, OVER)
            buried.extend(run for run, _ in found)

    together(*(lambda store=store: sweep(store) for store in stores))
    assert sorted(buried) == [run.id for run in stores[0].runs(limit=100)]
    assert {run.outcome for run in stores[0].runs(limit=100)} == {Outcome.killed}


def test_an_orphan_whose_agent_another_decides_on_is_left_for_the_next_look(meanwhile):
    scene = meanwhile("decide")
    scene.other.declare(a_fleet("moss", "wren"), NOW)
    orders = [start(scene.other, name) for name in ("moss", "wren")]
    for store in (scene.one, scene.other):
        tell_time(store, OVER)
    first = scene.begin(lambda: scene.one.decide([operator("moss", OVER)], admit, OVER))
    assert scene.other.orphans(OVER) == [pair(orders[1])]
    scene.commit(first)
    assert scene.other.orphans(OVER) == [pair(order) for order in orders]


def test_whoever_has_found_an_orphan_waits_for_nobody_but_begins_again(meanwhile):
    scene = meanwhile("decide")
    scene.other.declare(a_fleet("moss", "wren"), NOW)
    order = start(scene.other, "moss")
    for store in (scene.one, scene.other):
        tell_time(store, OVER)
    first = scene.begin(lambda: scene.one.decide([operator("wren", OVER)], admit, OVER))
    with pytest.raises(Crowded), scene.other.session.transaction("bury"):
        assert scene.other.orphans(OVER) == [pair(order)]
        scene.other.decide([operator("wren", OVER)], admit, OVER)
    scene.commit(first)


def test_no_renewal_waits_for_whoever_has_the_house_alone(meanwhile):
    scene = meanwhile("pause")
    scene.one.declare(a_fleet("moss"), NOW)
    order = start(scene.one, "moss")
    pause = Pause(scope="fleet", owner="operator", reason="", since=NOW)
    first = scene.begin(lambda: scene.one.pause(pause, NOW))
    assert scene.other.renew("one", [pair(order)], NOW, LEASE).runs == (order.run.id,)
    scene.other.keep_output(order.run.id, "stdout", b"still here")
    scene.commit(first)


def test_of_two_hosts_that_join_under_one_name_at_once_one_is_refused(meanwhile):
    scene = meanwhile("join")
    first = scene.begin(lambda: scene.one.join("three", "attic", "", NOW, LEASE))
    second = scene.waits(lambda: scene.other.join("three", "cellar", "", NOW, LEASE))
    scene.commit(first)
    with pytest.raises(Conflict, match="up on attic"):
        second.result(10)
    assert [(row.name, row.host) for row in scene.other.nodes(NOW) if row.name == "three"] == [("three", "attic")]


# ---- copies


def test_output_and_nodes_go_into_a_copy_and_come_back_from_it(open_node, tmp_path):
    store = open_node()
    store.declare(a_fleet("moss", "wren"), NOW)
    store.join("one", "attic\x00", "http://x", NOW, LEASE)
    store.join("two", "cellar", "", NOW, LEASE)
    store.leave("two", NOW)
    runs = [start(store, name).run.id for name in ("moss", "wren")]
    said = bytes(range(256)) * 300 + b"\\x41\\N\\."
    for run in runs:
        for stream in ("stdout", "briefing", "stderr"):
            for piece in (said, stream.encode(), b"\\"):
                store.keep_output(run, stream, piece)
    # Whatever order the pieces lie in: these are written anew, and come last.
    connection_of(store).execute("UPDATE output SET data = data WHERE start = 0")
    path = tmp_path / "copy.db"
    store.backup(path)
    lite = open_sqlite(Path(shutil.copy(path, tmp_path / "lite.db")), durable=False)
    schema = f"{connection_of(store).execute('SELECT current_schema() AS s').fetchone()['s']}_copy"
    again = open_postgres(dsn(), schema=schema)
    try:
        assert load(path, connection_of(again))["output"] == 18
        tell_time(again, NOW)
        for other in (lite, again):
            assert other.nodes(NOW) == store.nodes(NOW)
            for run in runs:
                for stream in ("stdout", "briefing", "stderr"):
                    whole = said + stream.encode() + b"\\"
                    assert other.output(run, stream, 0, 1 << 20) == (whole, len(whole))
    finally:
        lite.close()
        connection_of(again).execute(f"DROP SCHEMA {schema} CASCADE".encode())
        again.close()
