"""Several nodes on one store at once: what is bounded is never exceeded, and nothing is lost between them."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.store.postgres_server import connection_of, release, store_in
from wakeful.core.admission import admit
from wakeful.core.agents import Limits
from wakeful.core.items import Kind, NewItem, Origin, Ring
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.core.wakes import Pause, VerdictKind
from wakeful.store import postgres
from wakeful.store.postgres_session import Connection, Crowded, PostgresSession
from wakeful.store.protocol import Finish, Order
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import (
    DONE,
    HOUR,
    LEASE,
    NOW,
    SECOND,
    TODAY,
    a_fleet,
    an_agent,
    operator,
    peer,
    reported,
    tick,
    work,
)

PATIENCE = 60
NODES = 4


@pytest.fixture
def open_node(tmp_path: Path) -> Iterator[Callable[..., SqlStore]]:
    opened: list[SqlStore] = []

    def one_more(probe=None) -> SqlStore:
        opened.append(store_in(tmp_path, probe))
        return opened[-1]

    yield one_more
    for store in opened:
        store.close()
    release(tmp_path)


class Witness:
    """What was seen from outside: a run counts from when its claim has returned until its end is about to be told."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: dict[str, set[int]] = defaultdict(set)
        self.most = 0
        self.overlaps: list[str] = []
        self.started = 0

    def begins(self, order: Order) -> None:
        with self.lock:
            self.open[order.agent.name].add(order.run.id)
            self.started += 1
            if len(self.open[order.agent.name]) > 1:
                self.overlaps.append(order.agent.name)
            self.most = max(self.most, sum(map(len, self.open.values())))

    def ends(self, order: Order) -> None:
        with self.lock:
            self.open[order.agent.name].discard(order.run.id)


def together(*works: Callable[[], object]) -> list[object]:
    """All at once, each on a thread of its own; the first error is raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(PATIENCE) for future in [pool.submit(work) for work in works]]


def told(store: SqlStore, order: Order, now: datetime, ending: Ending = DONE) -> None:
    store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=ending)], settle, now)


def a_node(store: SqlStore, name: str, witness: Witness, names: list[str], rounds: int) -> Callable[[], None]:
    """Asks for runs of anybody, claims what there is, holds some of it over the next rounds, and ends it."""
    dice = Random(name)

    def lives() -> None:
        held: list[Order] = []
        for turn in range(rounds):
            now = NOW + turn * SECOND
            one, other = dice.sample(names, 2)
            call = NewItem(kind=Kind.message, agent=one, sender=other, origin=Origin.agent, ring=Ring.peer)
            (item,) = store.record([call], now)
            wakes = [*store.due(now, limit=4).wakes, peer(one, other, now, item=item.id), tick(dice.choice(names), now)]
            store.decide(wakes, admit, now)
            for order in store.claim(name, now, LEASE, limit=2):
                witness.begins(order)
                held.append(order)
            while held and dice.random() < 0.8:
                order = held.pop(0)
                witness.ends(order)
                told(store, order, now)
        for order in held:
            witness.ends(order)
            told(store, order, NOW + HOUR)

    return lives


def drain(store: SqlStore, witness: Witness, now: datetime) -> None:
    """Whatever still waits gets its turn, and ends."""
    while wakes := store.due(now).wakes:
        store.decide(wakes, admit, now)
        for order in store.claim("last", now, LEASE):
            witness.begins(order)
            witness.ends(order)
            told(store, order, now)


def test_four_nodes_never_exceed_what_is_bounded(open_node):
    names = [f"a{n}" for n in range(8)]
    limits = Limits(cooldown=timedelta(), wakes_per_day=5, wakes_per_pair=3, burst=10_000)
    stores = [open_node() for _ in range(NODES)]
    stores[0].declare(a_fleet(*(an_agent(name, limits=limits) for name in names), sessions=3), NOW)
    witness = Witness()
    together(*(a_node(store, f"node {n}", witness, names, 25) for n, store in enumerate(stores)))
    assert witness.overlaps == []
    assert witness.most <= 3
    store = stores[0]
    drain(store, witness, NOW + 2 * HOUR)
    assert store.wakes(state="waiting") == []
    assert witness.started > 15
    # Recounted from the rows, not from the sums that the guards read.
    rows = connection_of(store).execute("SELECT agent, pair, charged, state FROM run").fetchall()
    charged = Counter(row["agent"] for row in rows if row["charged"] and row["state"] != "void")
    assert max(charged.values()) <= 5
    assert charged == {name: n for name in names if (n := store.total(f"agent:{name}", TODAY, "wakes"))}
    assert max(Counter(row["pair"] for row in rows if row["charged"] and row["state"] != "void").values()) <= 3
    epochs = Counter((run.agent, run.epoch) for run in store.runs(limit=10_000) if run.epoch)
    assert max(epochs.values()) == 1
    assert (store.runs(open=True), slots_taken(store)) == ([], set())


def slots_taken(store: SqlStore) -> set[int]:
    return {row["run"] for row in connection_of(store).execute("SELECT run FROM slot WHERE run IS NOT NULL")}


class Gate:
    """A probe that holds up one commit, of one verb, until it is opened."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, moment: str, site: str) -> None:
        if (moment, site) == ("before", self.verb) and not self.reached.is_set():
            self.reached.set()
            assert self.opened.wait(PATIENCE)


class Meanwhile:
    """One node is about to commit, and has not; another works beside it."""

    def __init__(self, open_node: Callable[..., SqlStore], verb: str) -> None:
        self.gate = Gate(verb)
        self.one, self.other = open_node(self.gate), open_node()
        self.pool = ThreadPoolExecutor(2)

    def begin(self, work: Callable[[], object]) -> Future[Any]:
        """Until it stands before its commit."""
        future = self.pool.submit(work)
        while not self.gate.reached.wait(0.05):
            if future.done():
                future.result()
        return future

    def waits(self, work: Callable[[], object]) -> Future[Any]:
        """Until it waits for a lock, which it must."""
        waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
        # Before it has work: a connection is one thread's at a time.
        other = connection_of(self.other).info.backend_pid
        future = self.pool.submit(work)
        with self.look() as connection:
            while connection.execute(waiting, (other,)).fetchone()["n"] == 0:
                assert not future.done(), f"it waited for nobody: {future.result()}"
        return future

    @contextmanager
    def look(self) -> Iterator[Connection]:
        session = self.other.session
        assert isinstance(session, PostgresSession)
        connection = session.place.connect()
        try:
            yield connection
        finally:
            connection.close()

    def commit(self, *futures: Future[Any]) -> list[Any]:
        self.gate.opened.set()
        return [future.result(PATIENCE) for future in futures]


@pytest.fixture
def meanwhile(open_node) -> Iterator[Callable[[str], Meanwhile]]:
    made: list[Meanwhile] = []

    def make(verb: str) -> Meanwhile:
        made.append(Meanwhile(open_node, verb))
        return made[-1]

    yield make
    for each in made:
        each.gate.opened.set()
        each.pool.shutdown()


def start(store: SqlStore, agent: str) -> Order:
    store.decide([operator(agent)], admit, NOW)
    return next(order for order in store.claim("one", NOW, LEASE) if order.agent.name == agent)


def test_nodes_that_work_for_different_agents_do_not_wait_for_each_other(meanwhile):
    scene = meanwhile("finish")
    scene.one.declare(a_fleet("moss", "wren", "hale"), NOW)
    orders = [start(scene.one, name) for name in ("moss", "wren")]
    ending = reported(usd=7)
    first = scene.begin(lambda: told(scene.one, orders[0], NOW, ending))
    told(scene.other, orders[1], NOW, ending)
    assert start(scene.other, "hale").agent.name == "hale"
    assert scene.other.total("fleet", TODAY, "usd") == 7
    scene.commit(first)
    assert scene.other.total("fleet", TODAY, "usd") == 14


def test_the_last_slot_is_one_nodes_and_the_other_is_told_so_at_once(meanwhile):
    scene = meanwhile("decide")
    scene.one.declare(a_fleet("moss", "wren", sessions=1), NOW)
    first = scene.begin(lambda: scene.one.decide([operator("moss")], admit, NOW))
    (second,) = scene.other.decide([operator("wren")], admit, NOW)
    assert (second.verdict.kind, second.verdict.guard) == (VerdictKind.defer, "slots")
    (((admitted,),)) = scene.commit(first)
    assert admitted.run is not None
    (order,) = scene.other.claim("two", NOW, LEASE)
    told(scene.other, order, NOW)
    assert [wake.id for wake in scene.other.due(NOW).wakes] == [second.wake]


def test_one_agent_is_decided_on_by_one_node_at_a_time(meanwhile):
    scene = meanwhile("decide")
    scene.one.declare(a_fleet("moss"), NOW)
    first = scene.begin(lambda: scene.one.decide([operator("moss")], admit, NOW))
    second = scene.waits(lambda: scene.other.decide([tick("moss")], admit, NOW))
    (one,), (other,) = scene.commit(first, second)
    assert (one.verdict.kind, other.verdict.guard) == (VerdictKind.admit, "busy")


def test_a_pair_that_wakes_each_other_on_two_nodes_is_counted_as_one(meanwhile):
    scene = meanwhile("decide")
    limits = Limits(wakes_per_pair=1, cooldown=timedelta())
    scene.one.declare(a_fleet(*(an_agent(name, limits=limits) for name in ("moss", "wren"))), NOW)
    calls = [
        NewItem(kind=Kind.message, agent=a, sender=b, origin=Origin.agent, ring=Ring.peer)
        for a, b in (("moss", "wren"), ("wren", "moss"))
    ]
    one, other = (item.id for item in scene.one.record(calls, NOW))
    first = scene.begin(lambda: scene.one.decide([peer("moss", "wren", item=one)], admit, NOW))
    second = scene.waits(lambda: scene.other.decide([peer("wren", "moss", item=other)], admit, NOW))
    _, (refused,) = scene.commit(first, second)
    assert refused.verdict.guard == "wakes_per_pair"


def test_the_fleets_money_is_spent_once(meanwhile):
    scene = meanwhile("decide")
    limits = Limits(fleet_usd_per_day=1000)
    scene.one.declare(a_fleet(*(an_agent(name, limits=limits) for name in ("moss", "wren"))), NOW)
    for name in ("moss", "wren"):
        told(scene.other, start(scene.other, name), NOW, reported(usd=300))
    later = NOW + HOUR
    wakes = scene.one.due(later).wakes
    assert len(wakes) == 2
    first = scene.begin(lambda: scene.one.decide(wakes[:1], admit, later))
    second = scene.waits(lambda: scene.other.decide(wakes[1:], admit, later))
    (one,), (other,) = scene.commit(first, second)
    assert (one.verdict.kind, other.verdict.guard) == (VerdictKind.admit, "spend")


def test_a_pause_returns_when_no_decision_is_under_way(meanwhile):
    scene = meanwhile("decide")
    scene.one.declare(a_fleet("moss"), NOW)
    pause = Pause(scope="fleet", owner="operator", reason="", since=NOW)
    first = scene.begin(lambda: scene.one.decide([operator("moss")], admit, NOW))
    second = scene.waits(lambda: scene.other.pause(pause, NOW))
    scene.commit(first, second)
    assert [run.state for run in scene.other.runs()] == ["void"]
    assert scene.one.claim("one", NOW, LEASE) == []


def test_two_nodes_never_claim_one_run(meanwhile):
    scene = meanwhile("claim")
    scene.one.declare(a_fleet("moss", "wren"), NOW)
    scene.one.decide([operator("moss"), operator("wren")], admit, NOW)
    first = scene.begin(lambda: scene.one.claim("one", NOW, LEASE, limit=1))
    theirs = scene.other.claim("two", NOW, LEASE)
    (mine,) = scene.commit(first)
    assert [[order.agent.name for order in orders] for orders in (mine, theirs)] == [["moss"], ["wren"]]


def test_replicas_that_two_nodes_claim_are_not_shown_the_same_message(meanwhile):
    scene = meanwhile("claim")
    replicas = [an_agent(f"moss-{n}", address="moss") for n in (1, 2)]
    scene.one.declare(a_fleet(*replicas), NOW)
    scene.one.record([NewItem(kind=Kind.message, agent="moss")], NOW)
    scene.one.decide([tick("moss-1"), tick("moss-2")], admit, NOW)
    first = scene.begin(lambda: scene.one.claim("one", NOW, LEASE, limit=1))
    assert scene.other.claim("two", NOW, LEASE) == []
    (mine,) = scene.commit(first)
    (theirs,) = scene.other.claim("two", NOW, LEASE)
    assert [len(order.items) for order in (*mine, theirs)] == [1, 0]


def test_a_task_that_ends_while_another_is_made_to_depend_on_it_holds_nobody_up(meanwhile):
    scene = meanwhile("finish")
    scene.one.declare(a_fleet("moss"), NOW)
    (needed,) = scene.one.record([NewItem(kind=Kind.task, agent="moss")], NOW)
    scene.one.decide([work(needed.id, "moss")], admit, NOW)
    (order,) = scene.one.claim("one", NOW, LEASE)
    first = scene.begin(lambda: told(scene.one, order, NOW))
    after = NewItem(kind=Kind.task, agent="moss", depends_on=(needed.id,))
    second = scene.waits(lambda: scene.other.record([after], NOW))
    _, (recorded,) = scene.commit(first, second)
    assert recorded.id in [wake.task for wake in scene.other.due(NOW).wakes]


def test_fewer_slots_than_runs_are_open_are_not_given_twice(meanwhile):
    scene = meanwhile("decide")
    names = ("moss", "wren", "hale", "desk", "fern")
    scene.one.declare(a_fleet(*names, sessions=3), NOW)
    orders = [start(scene.other, name) for name in names[:3]]
    scene.one.declare(a_fleet(*names, sessions=2), NOW)
    for order in orders[:2]:
        told(scene.other, order, NOW)
    first = scene.begin(lambda: scene.one.decide([operator("desk")], admit, NOW))
    second = scene.waits(lambda: scene.other.decide([operator("fern")], admit, NOW))
    (one,), (other,) = scene.commit(first, second)
    assert (one.verdict.kind, other.verdict.guard) == (VerdictKind.admit, "slots")


def test_events_are_read_on_from_a_place_without_missing_one(meanwhile):
    scene = meanwhile("decide")
    scene.one.declare(a_fleet("moss", "wren"), NOW)
    last = scene.other.events()[-1].id
    first = scene.begin(lambda: scene.one.decide([operator("moss")], admit, NOW))
    scene.other.decide([operator("wren")], admit, NOW)
    # What is committed has a higher id than what is about to be: whoever read it now would never see the other.
    assert scene.other.events(after=last) == []
    scene.commit(first)
    assert sorted(event.agent for event in scene.other.events(after=last)) == ["moss", "wren"]


def test_who_holds_something_does_not_wait_but_begins_again(meanwhile, monkeypatch):
    scene = meanwhile("decide")
    scene.one.declare(a_fleet("moss", "wren"), NOW)
    first = scene.begin(lambda: scene.one.decide([operator("moss")], admit, NOW))
    with pytest.raises(Crowded), scene.other.session.transaction("group"):
        scene.other.decide([operator("wren")], admit, NOW)
        scene.other.decide([tick("moss")], admit, NOW)
    assert scene.other.wakes() == []
    turns: list[int] = []

    def aside(turn: int) -> None:
        turns.append(turn)
        scene.commit(first)

    monkeypatch.setattr(postgres, "step_aside", aside)
    writer = postgres.PostgresWriter(scene.other)
    try:
        futures = writer.submit(
            lambda store: [store.decide([operator("wren")], admit, NOW), store.decide([tick("moss")], admit, NOW)]
        )
        (wren,), (moss,) = futures.result(PATIENCE)
    finally:
        writer.close()
    assert turns
    assert (wren.verdict.kind, moss.verdict.guard) == (VerdictKind.admit, "busy")
