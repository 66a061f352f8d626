"""Numbered migrations: fresh, once, in order, all or nothing; and the fence against code that is too old."""

import subprocess
import sys
from datetime import UTC, datetime

import apsw
import pytest

from wakeful.core.agents import Agent, Fleet
from wakeful.core.errors import Mistake, TooOld
from wakeful.store import migrate
from wakeful.store.named_sql import load_migrations
from wakeful.store.sqlite import open_sqlite

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 60
NEWEST = load_migrations("sqlite")[-1][0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wakeful.db"


def read(path, query):
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def execute(path, script):
    connection = apsw.Connection(str(path))
    connection.execute(script)
    connection.close()
    # What another program changed is not what we wrote.
    path.with_name(f"{path.name}-sums").unlink(missing_ok=True)


def versions(path):
    return read(path, "SELECT version, minimum_reader FROM schema")


def everything(path):
    return read(path, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")


# ---- forward


def test_a_fresh_store_has_the_newest_schema(path):
    open_sqlite(path).close()
    ((version, minimum),) = versions(path)
    assert version == NEWEST
    assert 1 <= minimum <= version


def test_opening_twice_migrates_once_and_keeps_what_is_there(path):
    store = open_sqlite(path)
    store.declare(Fleet(agents=(Agent(name="moss", address="moss"),)), NOW)
    store.close()
    before = everything(path)
    store = open_sqlite(path)
    assert [agent.name for agent in store.agents()] == ["moss"]
    store.close()
    assert everything(path) == before
    assert len(versions(path)) == 1


def test_the_numbers_are_without_gaps_and_each_migration_says_who_may_still_read():
    migrations = load_migrations("sqlite")
    assert [number for number, _ in migrations] == list(range(1, len(migrations) + 1))
    for number, script in migrations:
        assert "-- minimum_reader: " in script, number


def with_migrations(monkeypatch, *more):
    known = [*load_migrations("sqlite"), *more]
    monkeypatch.setattr(migrate, "load_migrations", lambda dialect: known)


def test_an_older_store_gets_only_what_it_lacks_in_order(path, monkeypatch):
    open_sqlite(path).close()
    second = (NEWEST + 1, f"-- minimum_reader: {NEWEST}\nCREATE TABLE shelf (id INTEGER PRIMARY KEY)")
    third = (NEWEST + 2, "ALTER TABLE shelf ADD COLUMN label TEXT")
    with_migrations(monkeypatch, second, third)
    open_sqlite(path).close()
    assert versions(path) == [(NEWEST + 2, NEWEST)]
    assert [row[1] for row in read(path, "PRAGMA table_info(shelf)")] == ["id", "label"]


def test_a_migration_that_fails_leaves_the_store_as_it_was(path, monkeypatch):
    open_sqlite(path).close()
    before = everything(path)
    second = (NEWEST + 1, "CREATE TABLE shelf (id INTEGER PRIMARY KEY)")
    with_migrations(monkeypatch, second, (NEWEST + 2, "CREATE TABLE broken ("))
    with pytest.raises(apsw.SQLError):
        open_sqlite(path)
    assert everything(path) == before
    assert versions(path) == [(NEWEST, 1)]


def test_a_first_migration_that_fails_leaves_no_half_made_store(path, monkeypatch):
    with_migrations(monkeypatch, (NEWEST + 1, "CREATE TABLE broken ("))
    with pytest.raises(apsw.SQLError):
        open_sqlite(path)
    assert everything(path) == []
    monkeypatch.undo()
    open_sqlite(path).close()
    assert versions(path) == [(NEWEST, 1)]


# ---- the fence


def test_code_that_is_too_old_is_refused_by_name_and_changes_nothing(path):
    open_sqlite(path).close()
    execute(path, f"UPDATE schema SET version = {NEWEST + 6}, minimum_reader = {NEWEST + 5}")
    before = path.read_bytes()
    with pytest.raises(TooOld) as refused:
        open_sqlite(path)
    said = str(refused.value)
    assert f"schema {NEWEST + 6}" in said
    assert f"knows schema {NEWEST + 5}" in said
    assert f"this one knows {NEWEST}" in said
    assert "install a newer wakeful" in said
    assert path.read_bytes() == before


def test_a_newer_store_that_still_allows_this_code_is_used_and_keeps_its_version(path):
    open_sqlite(path).close()
    execute(path, f"UPDATE schema SET version = {NEWEST + 6}")
    store = open_sqlite(path)
    store.declare(Fleet(agents=(Agent(name="moss", address="moss"),)), NOW)
    store.close()
    assert versions(path) == [(NEWEST + 6, 1)]


# ---- what is no store


@pytest.mark.parametrize(
    "content",
    [
        b"dear diary\n",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,
        b"x" * 100_000,
        b"SQLite format 3\x00" + b"but not really" * 1_000,
        b"SQLite format 2\x00" + bytes(4_080),
    ],
    ids=["a short text", "a picture", "a long text", "a false header", "an old header"],
)
def test_a_file_that_is_no_database_is_refused_with_its_bytes_untouched(path, content):
    path.write_bytes(content)
    with pytest.raises(Mistake, match=r"wakeful\.db is not a wakeful store") as refused:
        open_sqlite(path)
    assert "data folder" in refused.value.remedy
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == ["wakeful.db"]


def test_a_database_of_another_program_is_refused_with_its_bytes_untouched(path):
    execute(path, "CREATE TABLE photo (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO photo VALUES (1, 'moss')")
    before = path.read_bytes()
    with pytest.raises(Mistake, match="not a wakeful store"):
        open_sqlite(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    open_sqlite(path).close()
    assert versions(path)[0][0] == NEWEST


def test_a_folder_in_its_place_is_a_mistake(path):
    path.mkdir()
    with pytest.raises(Mistake, match=r"wakeful\.db"):
        open_sqlite(path)


# ---- at once

OPENER = """
import sys
from pathlib import Path
from wakeful.store.sqlite import open_sqlite

print("ready", flush=True)
sys.stdin.readline()
store = open_sqlite(Path(sys.argv[1]))
print(store.session.connection.execute("SELECT version FROM schema").fetchall(), flush=True)
store.close()
"""


def test_processes_that_open_a_fresh_store_at_once_migrate_it_once(path):
    command = [sys.executable, "-c", OPENER, str(path)]
    pipe = subprocess.PIPE
    openers = [subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe) for _ in range(3)]
    for opener in openers:
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        opener.stdin.write("go\n")
        opener.stdin.flush()
    ended = [opener.communicate(timeout=PATIENCE) for opener in openers]
    assert [(opener.returncode, errors) for opener, (_, errors) in zip(openers, ended, strict=True)] == [(0, "")] * 3
    assert [said for said, _ in ended] == [f"[({NEWEST},)]\n"] * 3
    assert versions(path) == [(NEWEST, 1)]
    assert read(path, "PRAGMA integrity_check") == [("ok",)]
