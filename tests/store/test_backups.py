"""A backup is looked at before it is trusted: ours, whole, and of a schema that this code knows."""

import os
import threading

import apsw
import pytest

from wakeful.core.errors import Mistake
from wakeful.core.items import Kind, NewItem
from wakeful.store.backups import verify
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.contracts.store_case import NOW, a_fleet


@pytest.fixture
def store(tmp_path):
    store = open_sqlite(tmp_path / "wakeful.db", durable=False)
    store.declare(a_fleet("moss", "wren"), NOW)
    store.record([NewItem(kind=Kind.message, agent="moss", body="x" * 500) for _ in range(200)], NOW)
    yield store
    store.close()


@pytest.fixture
def copy(store, tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    store.backup(folder / "copy.db")
    return folder / "copy.db"


def test_a_backup_is_found_good_and_looking_leaves_no_trace(copy):
    before = copy.read_bytes()
    verify(copy)
    assert copy.read_bytes() == before
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_a_backup_is_one_file_that_needs_no_other_beside_it(copy):
    raw = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)
    assert raw.execute("SELECT count(*) FROM item").get == 200
    assert raw.pragma("journal_mode") == "delete"
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    raw.close()


def test_a_backup_can_be_looked_at_where_nothing_may_be_written(copy):
    copy.chmod(0o400)
    copy.parent.chmod(0o500)
    try:
        verify(copy)
    finally:
        copy.parent.chmod(0o700)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(Mistake, match=r"there is no backup .*gone\.db"):
        verify(tmp_path / "gone.db")
    with pytest.raises(Mistake, match="there is no backup"):
        verify(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\x00" * 100])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "copy.db"
    path.write_bytes(content)
    with pytest.raises(Mistake, match=r"copy\.db"):
        verify(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused(tmp_path):
    path = tmp_path / "copy.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE schema (version INTEGER, minimum_reader INTEGER)")
    other.close()
    with pytest.raises(Mistake, match=r"copy\.db is not a wakeful store"):
        verify(path)


def test_a_backup_of_which_any_page_is_damaged_is_refused(copy):
    whole, page = copy.read_bytes(), 4096
    for start in range(page, len(whole), 5 * page):
        damaged = bytearray(whole)
        damaged[start : start + 64] = b"\xff" * 64
        copy.write_bytes(bytes(damaged))
        with pytest.raises(Mistake, match=r"copy\.db is damaged, or no wakeful store: [^*\n]+$"):
            verify(copy)


def test_a_backup_that_was_cut_off_is_refused(copy):
    content = copy.read_bytes()
    copy.write_bytes(content[: len(content) // 2])
    with pytest.raises(Mistake, match=r"copy\.db is damaged"):
        verify(copy)


def test_a_backup_of_a_newer_wakeful_is_refused_by_name(copy):
    raw = apsw.Connection(str(copy))
    raw.execute("UPDATE schema SET version = 99, minimum_reader = 99")
    raw.close()
    with pytest.raises(Mistake, match=r"copy\.db: this store has schema 99"):
        verify(copy)


def test_a_copy_that_somebody_made_of_a_living_file_is_refused(store, tmp_path):
    folder = tmp_path / "by hand"
    folder.mkdir()
    for name in ("wakeful.db", "wakeful.db-wal"):
        (folder / name).write_bytes((tmp_path / name).read_bytes())
    with pytest.raises(Mistake, match="holds changes that are not in"):
        verify(folder / "wakeful.db")


def test_a_backup_under_way_is_seen_by_nobody_and_holds_nobody_up(store, tmp_path):
    """Writers go on; each copy is of one moment, between two commits."""
    stop = threading.Event()
    counts = []

    def copy_again_and_again():
        for number in range(5):
            path = tmp_path / f"{number}.db"
            store.backup(path)
            raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            counts.append(raw.execute("SELECT count(*) FROM item WHERE subject = 'pair'").get)
            raw.close()
        stop.set()

    thread = threading.Thread(target=copy_again_and_again)
    thread.start()
    written = 0
    while not stop.is_set():
        store.record([NewItem(kind=Kind.message, agent="moss", subject="pair") for _ in range(2)], NOW)
        written += 2
    thread.join()
    assert counts == sorted(counts)
    assert all(count % 2 == 0 and count <= written for count in counts)
    assert [name for name in os.listdir(tmp_path) if "unfinished" in name] == []


def test_a_backup_that_finds_no_room_says_so_and_leaves_nothing(store, tmp_path, monkeypatch):
    def no_room(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(Mistake, match=r"cannot write .*copy\.db: No space left on device"):
        store.backup(tmp_path / "copy.db")
    assert [name for name in os.listdir(tmp_path) if "copy" in name] == []
