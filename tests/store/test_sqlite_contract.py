"""The store's contract over SQLite, and what only its schema can say: the impossible cannot be written."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.store.blank import open_blank
from wakeful.core.admission import admit
from wakeful.core.items import Kind, NewItem, Observation, Ring
from wakeful.core.settlement import settle
from wakeful.core.wakes import Pause
from wakeful.store.protocol import Finish, Store
from wakeful.store.session import Probe
from wakeful.store.sqlite import SqliteSession
from wakeful.testing.contracts.store import StoreContract
from wakeful.testing.contracts.store_case import DONE, LEASE, NOW, a_fleet, an_agent, operator


class TestSqliteStore(StoreContract):
    def make_store(self, tmp_path: Path, probe: Probe | None = None) -> Store:
        return open_blank(tmp_path / "wakeful.db", probe)


# ---- what cannot be written


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[apsw.Connection]:
    """The writing connection of a store that holds one row of everything.

    moss has an open run (2) and a waiting wake (3); wren's run (1) has ended; item 1 is a message, item 2 a task.
    """
    store = open_blank(tmp_path / "wakeful.db")
    store.declare(a_fleet("moss", "wren", "hale"), NOW)
    store.record([NewItem(kind=Kind.message, agent="moss", ring=Ring.news, dedupe="k1")], NOW)
    store.record([NewItem(kind=Kind.task, agent="hale")], NOW)
    store.decide([operator("wren")], admit, NOW)
    (order,) = store.claim("one", NOW, LEASE)
    store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)], settle, NOW)
    store.decide([operator("moss"), operator("moss")], admit, NOW)
    store.claim("one", NOW, LEASE)
    store.pause(Pause(scope="fleet", owner="operator", reason="", since=NOW), NOW)
    session = store.session
    assert isinstance(session, SqliteSession)
    yield session.connection
    store.close()


def rows(raw: apsw.Connection, table: str) -> list[Any]:
    return list(raw.execute(f"SELECT * FROM {table}"))


# What it is called, how it would be written, and what the schema says to that.
IMPOSSIBLE = [
    (
        "a second open run of an agent",
        "UPDATE run SET agent = 'moss', state = 'admitted', outcome = NULL, ended_at = NULL WHERE id = 1",
        "UNIQUE constraint failed: run.agent",
    ),
    ("an outcome without an end", "UPDATE run SET outcome = 'done' WHERE id = 2", "outcome IS NOT NULL"),
    ("an end without an outcome", "UPDATE run SET state = 'ended', ended_at = 1 WHERE id = 2", "outcome IS NOT NULL"),
    ("an ended run without the instant", "UPDATE run SET ended_at = NULL WHERE id = 1", "ended_at IS NOT NULL"),
    ("an outcome that does not exist", "UPDATE run SET outcome = 'great' WHERE id = 1", "outcome IN"),
    ("a running run without a start", "UPDATE run SET started_at = NULL WHERE id = 2", "started_at IS NOT NULL"),
    ("a running run without a node", "UPDATE run SET node = NULL WHERE id = 2", "node IS NOT NULL"),
    ("a running run without an epoch", "UPDATE run SET epoch = 0 WHERE id = 2", "epoch > 0"),
    ("a running run without a lease", "UPDATE run SET lease_until = NULL WHERE id = 2", "lease_until IS NOT NULL"),
    ("a node of no host", "INSERT INTO node (name, url, since, seen_at, lease) VALUES ('n', '', 1, 1, 1)", "node.host"),
    ("a run that nobody wants ended at once", "UPDATE run SET stop_at_once = 1 WHERE id = 2", "stop_by IS NULL"),
    ("a run of nobody", "UPDATE run SET agent = 'nobody' WHERE id = 1", "FOREIGN KEY"),
    ("a run of no wake", "UPDATE run SET wake = 999 WHERE id = 1", "FOREIGN KEY"),
    ("two waiting wakes of one kind", "UPDATE wake SET agent = 'moss', state = 'waiting' WHERE id = 1", "wake_waiting"),
    ("a wake in a state that does not exist", "UPDATE wake SET state = 'asleep'", "state IN"),
    ("a cause that does not exist", "UPDATE wake SET cause = 'boredom'", "cause IN"),
    ("a timer that runs the inbox", "UPDATE wake SET cause = 'timer' WHERE id = 1", "subject = 'beat'"),
    ("a peer that runs the beat", "UPDATE wake SET cause = 'peer', subject = 'beat' WHERE id = 1", "subject = 'inbox'"),
    ("a task's wake that runs the inbox", "UPDATE wake SET cause = 'task' WHERE id = 1", "subject = 'task'"),
    ("a joined wake that joined nothing", "UPDATE wake SET state = 'joined' WHERE id = 1", "joined IS NOT NULL"),
    ("a wake that joined and yet is admitted", "UPDATE wake SET joined = 2 WHERE id = 1", "joined IS NOT NULL"),
    ("a message that is in progress", "UPDATE item SET state = 'in_progress' WHERE id = 1", "kind = 'message'"),
    ("a task that is open", "UPDATE item SET state = 'open' WHERE id = 2", "kind = 'task'"),
    (
        "a task in progress that no run holds",
        "UPDATE item SET state = 'in_progress' WHERE id = 2",
        "held_by IS NOT NULL",
    ),
    ("a task that a run holds while it is pending", "UPDATE item SET held_by = 2 WHERE id = 2", "held_by IS NOT NULL"),
    ("a closed item without the instant", "UPDATE item SET state = 'closed' WHERE id = 1", "closed_at IS NOT NULL"),
    ("an open item with an instant of its end", "UPDATE item SET closed_at = 1 WHERE id = 1", "closed_at IS NOT NULL"),
    (
        "a closed item that a run holds",
        "UPDATE item SET state = 'closed', closed_at = 1, held_by = 2 WHERE id = 1",
        "held_by IS NULL",
    ),
    (
        "a source that nobody tends and that can be read",
        "INSERT INTO source (agent, source) VALUES ('moss', 'folder')",
        "node IS NOT NULL OR outage IS NOT NULL",
    ),
    (
        "a source that is tended for ever",
        "INSERT INTO source (agent, source, node) VALUES ('moss', 'folder', 'one')",
        "lease_until IS NULL",
    ),
    (
        "an outage without a beginning",
        "INSERT INTO source (agent, source, outage) VALUES ('moss', 'folder', 'away')",
        "since IS NULL",
    ),
    (
        "a source of nobody",
        "INSERT INTO source (agent, source, outage, since, told, told_at) VALUES ('nobody', 'x', 'away', 1, 'away', 1)",
        "FOREIGN KEY",
    ),
    ("an item for nobody", "UPDATE item SET agent = NULL WHERE id = 1", "role IS NOT NULL"),
    ("an item for an agent that does not exist", "UPDATE item SET agent = 'nobody' WHERE id = 1", "FOREIGN KEY"),
    ("a ringing item that never rings", "UPDATE item SET ring_at = NULL WHERE id = 1", "ring_at"),
    ("a priority that does not exist", "UPDATE item SET priority = 9 WHERE id = 1", "priority BETWEEN"),
    ("two items of one key", "UPDATE item SET dedupe = 'k1' WHERE id = 2", "UNIQUE constraint failed: item.dedupe"),
    ("a negative streak", "UPDATE standing SET idle_streak = -1 WHERE agent = 'moss'", "idle_streak >= 0"),
    ("negative hits", "UPDATE standing SET hits = -1 WHERE agent = 'moss'", "hits >= 0"),
    ("a standing of nobody", "INSERT INTO standing (agent, state, hits) VALUES ('nobody', 'beat', 0)", "FOREIGN KEY"),
    ("a total below nothing", "INSERT INTO total (scope, day, usd) VALUES ('fleet', '2026-03-02', -1)", "usd >= 0"),
    (
        "two pauses of one owner in one scope",
        "INSERT INTO pause (scope, owner, reason, since) VALUES ('fleet', 'operator', '', 1)",
        "UNIQUE constraint failed: pause",
    ),
    ("a text where a number belongs", "UPDATE standing SET hits = 'many' WHERE agent = 'moss'", "cannot store TEXT"),
    ("an event that is changed", "UPDATE event SET at = 0", "append-only"),
]


@pytest.mark.parametrize(("statement", "words"), [row[1:] for row in IMPOSSIBLE], ids=[row[0] for row in IMPOSSIBLE])
def test_the_impossible_cannot_be_written(raw, statement, words):
    before = {table: rows(raw, table) for table in ("run", "wake", "item", "standing", "total", "pause", "event")}
    assert all(before[table] for table in ("run", "wake", "item", "standing", "pause", "event"))
    with pytest.raises(apsw.ConstraintError) as refused:
        raw.execute(statement)
    assert words in str(refused.value)
    assert {table: rows(raw, table) for table in before} == before


def test_the_rows_that_are_made_impossible_are_those_the_statements_mean(raw):
    assert [(run[0],) for run in raw.execute("SELECT id FROM run WHERE state = 'running' AND agent = 'moss'")] == [(2,)]
    assert list(raw.execute("SELECT state FROM run WHERE id = 1")) == [("ended",)]
    assert list(raw.execute("SELECT count(*) FROM wake WHERE state = 'waiting'")) == [(1,)]
    assert list(raw.execute("SELECT state FROM wake WHERE id = 1")) == [("admitted",)]
    assert list(raw.execute("SELECT kind, state FROM item ORDER BY id")) == [("message", "open"), ("task", "pending")]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2, 'stdin', 0, X'61'", "stream IN"),
        ("2, 'stdout', -1, X'61'", "start >= 0"),
        ("2, 'stdout', 0, X''", "length(data) > 0"),
        ("999, 'stdout', 0, X'61'", "FOREIGN KEY"),
        ("2, 'stdout', 3, X'62'", "UNIQUE"),
    ],
    ids=["of no stream", "before the beginning", "of nothing", "of no run", "in the place of another"],
)
def test_a_piece_of_output_cannot_be(raw, row, words):
    raw.execute("INSERT INTO output (run, stream, start, data) VALUES (2, 'stdout', 3, X'61')")
    with pytest.raises(apsw.ConstraintError, match=re.escape(words)):
        raw.execute(f"INSERT INTO output (run, stream, start, data) VALUES ({row})")


# ---- what only its tables can say


def test_of_declarations_only_those_are_kept_that_somebody_rests_on(tmp_path):
    month = timedelta(days=30)
    store = open_blank(tmp_path / "wakeful.db")
    session = store.session
    assert isinstance(session, SqliteSession)
    raw = session.connection
    for hour in range(6):
        at = NOW + timedelta(hours=hour)
        store.declare(a_fleet(an_agent("moss", max_failures=hour + 1), "wren"), at)
        if hour < 4:
            store.decide([operator("moss", at)], admit, at)
            (order,) = store.claim("one", at, LEASE)
            store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)], settle, at)
    kept = [[1, 2, 3, 4, 5, 6], [4, 5, 6]]
    for now, versions in zip((NOW + month, NOW + 2 * month), kept, strict=True):
        store.forget(now - month, now - month, now)
        assert [
            version for (version,) in raw.execute("SELECT version FROM declaration WHERE agent = 'moss'")
        ] == versions
    assert list(raw.execute("SELECT version FROM declaration WHERE agent = 'wren'")) == [(1,)]
    assert list(raw.execute("PRAGMA foreign_key_check")) == []
    store.close()


def test_a_look_that_finds_what_is_known_writes_nothing(tmp_path):
    store = open_blank(tmp_path / "wakeful.db")
    session = store.session
    assert isinstance(session, SqliteSession)
    store.declare(a_fleet("moss"), NOW)
    seen = [Observation(external_id="a", fingerprint="1")]
    store.tend([("folder", "moss")], "one", NOW, LEASE)
    store.observe("folder", "moss", seen, NOW, node="one")
    before = session.connection.total_changes()
    assert store.observe("folder", "moss", seen, NOW, node="one").same == ("a",)
    assert session.connection.total_changes() == before
    store.observe("folder", "moss", None, NOW, node="one", why="away")
    assert session.connection.total_changes() > before
    before = session.connection.total_changes()
    store.observe("folder", "moss", None, NOW, node="one", why="away")
    assert session.connection.total_changes() == before
    store.close()
