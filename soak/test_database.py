"""The database is restarted in the midst of work, and connections to it are cut: engines wait, nothing that was
accepted is lost, and all goes on within seconds.

RESTARTS=2 SECONDS=20 SEED=7 in the environment change how often, for how long and when.
"""

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import psycopg

from soak.sending import Sender
from soak.standing import TWO, until
from wakeful.core.items import Item, Kind, NewItem, Origin, Ring
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_access import PostgresAccess
from wakeful.store.protocol import Recorded, Store
from wakeful.store.store import SqlStore
from wakeful.testing.postgres import PostgresServer

RESTARTS = int(os.environ.get("RESTARTS", "5"))
SECONDS = float(os.environ.get("SECONDS", "60"))
SEED = int(os.environ.get("SEED", "2026"))
AGENTS = 10
RESUMED = 10.0


def test_engines_go_on_after_the_database_was_restarted_and_nothing_accepted_is_lost(place, server, say):
    here = place(agents=AGENTS, store=server.dsn, more={TWO: server.dsn})
    engines = []
    for node in here.nodes:
        node.up()
        engines.append(node.machine.engine)
    dice, resumed = random.Random(SEED), []
    with Sender(here.nodes, AGENTS, rate=20) as sender:
        for restart in range(1, RESTARTS + 1):
            time.sleep(2 + dice.random() * 5)
            server.kill()
            away = dice.random() * 8
            time.sleep(away)
            server.start()
            back, known, begun = time.monotonic(), len(sender.accepted), len(here.begun())
            accepted = took(lambda: len(sender.accepted), known, back)
            ran = took(lambda: len(here.begun()), begun, back)
            resumed.append(max(accepted, ran))
            say(f"restart {restart}, away {away:.1f} s: accepts after {accepted:.2f} s, runs after {ran:.2f} s")
            say(f"{len(sender.accepted)} accepted, {len(sender.refused)} refused")
    assert [node.machine.engine for node in here.nodes] == engines, "an engine has ended"
    for node in here.nodes:
        node.drain()
    with here.store() as store:
        known_items = {item.id: item.body for item in all_items(store)}
    assert [each for each in sender.accepted if known_items.get(each.id) != each.body] == []
    assert len(sender.accepted) > 10 * RESTARTS
    assert here.check(losses=()) == []
    assert max(resumed) <= RESUMED, resumed


def took(count: Callable[[], int], known: int, since: float) -> float:
    """The seconds until there was more."""
    until(lambda: count() > known, "work to go on")
    return time.monotonic() - since


def all_items(store: SqlStore) -> list[Item]:
    items: list[Item] = []
    while page := store.items(after=items[-1].id if items else 0, limit=1000):
        items += page
    return items


LATE = 10.0
NUDGES = 20


def test_no_wake_waits_for_long_though_every_connection_that_listens_is_cut_each_three_seconds(place, server, say):
    here = place(agents=AGENTS, interval="1h", agent="true", store=server.dsn, more={TWO: server.dsn})
    for node in here.nodes:
        node.up()
    until(lambda: first_beats_are_over(here), "their first beats")
    over = threading.Event()
    cuts: list[int] = []
    cutter = threading.Thread(target=cut_listeners, args=(server, over, cuts), daemon=True)
    cutter.start()
    try:
        recorded = asyncio.run(nudge(server, SECONDS))
    finally:
        over.set()
        cutter.join()
    until(lambda: not unasked(server), "the last of them", 2 * LATE)
    for node in here.nodes:
        node.drain()
    with here.store() as store:
        decided = decisions(store)
    asked = wakes_of_items(server)
    assert len(recorded) > 0.9 * NUDGES * SECONDS
    assert [id for id in recorded if asked.get(id) not in decided] == []
    late = sorted(max(0.0, (decided[asked[id]] - at).total_seconds()) for id, at in recorded.items())
    shown = ", ".join(f"p{part} {1000 * late[int(len(late) * part / 100)]:.0f} ms" for part in (50, 90, 99))
    say(f"{len(recorded)} nudges, {sum(cuts)} connections cut: {shown}, at most {late[-1]:.2f} s")
    assert sum(cuts) >= len(cuts) > 0
    assert late[-1] <= LATE


def first_beats_are_over(here):
    with here.store() as store:
        runs = store.runs()
    return len(runs) >= AGENTS and all(row.state == "ended" for row in runs)


def unasked(server: PostgresServer) -> bool:
    return any(wake is None for wake in wakes_of_items(server).values())


def wakes_of_items(server: PostgresServer) -> dict[int, int | None]:
    """The wake that each item asked for, or that it became a part of."""
    with psycopg.connect(server.dsn) as connection:
        rows = connection.execute(
            "SELECT i.id, coalesce(w.joined, i.asked) FROM item i LEFT JOIN wake w ON w.id = i.asked"
        ).fetchall()
    return dict(rows)


async def nudge(server: PostgresServer, seconds: float) -> dict[int, datetime]:
    """As somebody beside the nodes, who has nothing but the store in common with them; by its hints they are told."""
    store = open_postgres(server.dsn)
    access = PostgresAccess(store)
    recorded: dict[int, datetime] = {}
    began = time.monotonic()
    try:
        for number in range(int(seconds * NUDGES)):
            await asyncio.sleep(max(0.0, began + number / NUDGES - time.monotonic()))
            item = NewItem(
                kind=Kind.message,
                agent=f"agent-{number % AGENTS}",
                sender="rana",
                origin=Origin.operator,
                body=f"nudge {number}",
                ring=Ring.operator,
            )
            at = datetime.now(UTC)
            (answer,) = await access.write(partial(record, item, at))
            recorded[answer.id] = at
    finally:
        access.close()
        store.close()
    return recorded


def record(item: NewItem, at: datetime, store: Store) -> list[Recorded]:
    return store.record([item], at)


def cut_listeners(server: PostgresServer, over: threading.Event, cuts: list[int]) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        while not over.wait(3.0):
            rows = connection.execute(
                """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE pid <> pg_backend_pid() AND (query LIKE 'LISTEN %' OR query LIKE 'SELECT pg_notify%')"""
            ).fetchall()
            cuts.append(len(rows))


def decisions(store: SqlStore) -> dict[int | None, datetime]:
    """When each wake was first decided on; what joined one that waited was decided on before it came."""
    found: dict[int | None, datetime] = {}
    after = 0
    while page := store.events(after=after, limit=1000, kinds=("decided",)):
        after = page[-1].id
        for event in page:
            found.setdefault(event.wake, event.at)
    return found
