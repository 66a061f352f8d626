"""A disk that is full or fails: who meets it is told, nothing that was accepted is lost, and it goes on by itself."""

import os
import shutil
from datetime import UTC, datetime
from functools import partial
from operator import le
from random import Random

import apsw
import pytest

from wakeful.control.auditing.audit import audit
from wakeful.core.agents import Agent, Fleet
from wakeful.core.errors import Busy, Mistake, Sick
from wakeful.core.items import Kind, NewItem
from wakeful.store.beside import look_at_folder
from wakeful.store.sqlite import SqliteSession, open_sqlite
from wakeful.testing.disk import Disk

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
WRITES = 200


@pytest.fixture(scope="module")
def disk():
    return Disk("test-sick")


@pytest.fixture
def blank(tmp_path):
    folder = tmp_path / "blank"
    folder.mkdir()
    store = open_sqlite(folder / "wakeful.db")
    store.declare(Fleet(agents=(Agent(name="moss", address="moss"),)), NOW)
    store.close()
    return folder


def letters(word, number, size):
    return [
        NewItem(kind=Kind.message, agent="moss", sender="operator", subject=f"{word} {each}", body=f"{each} " * size)
        for each in range(number)
    ]


class Desk:
    """Sends letters to a store on that disk, and knows which were accepted."""

    def __init__(self, folder, disk):
        self.path = folder / "wakeful.db"
        self.accepted = {}
        self.store = open_sqlite(self.path, disk=disk.name if disk else None)

    def send(self, word, number=1, size=200):
        sent = letters(word, number, size)
        for item, recorded in zip(sent, self.store.record(sent, NOW), strict=True):
            self.accepted[recorded.id] = item.subject

    def must_have_kept_all(self):
        self.store.close()
        kept = read(self.path, self.accepted)
        assert kept == self.accepted
        with look_at_folder(self.path.parent) as store:
            assert audit(store, NOW).adds_up


def connection_of(store):
    session = store.session
    assert isinstance(session, SqliteSession)
    return session.connection


def read(path, ids):
    store = open_sqlite(path)
    try:
        assert connection_of(store).pragma("integrity_check") == "ok"
        items = {id: store.item(id) for id in ids}
        return {id: item and item.subject for id, item in items.items()}
    finally:
        store.close()


@pytest.fixture
def desk(blank, disk):
    disk.heal()
    desk = Desk(blank, disk)
    yield desk
    disk.heal()
    desk.store.close()


def test_a_disk_that_is_full_at_any_of_the_first_writes_refuses_and_loses_nothing(desk, disk):
    for number in range(1, WRITES + 1):
        disk.watch()
        disk.full = partial(le, number)
        with pytest.raises(Sick, match="full"):
            desk.send(f"lost {number}", 80, 2_000)
        disk.heal()
        desk.send(f"kept {number}")
    desk.must_have_kept_all()
    assert len(desk.accepted) == WRITES


def test_a_disk_that_cannot_sync_is_not_believed_and_the_connection_is_another_one(desk, disk):
    for number in range(20):
        before = connection_of(desk.store)
        disk.watch()
        disk.failing = partial(le, 1)
        for again in range(number % 3 + 1):
            with pytest.raises(Sick):
                desk.send(f"lost {number} {again}")
        disk.heal()
        desk.send(f"kept {number}")
        assert connection_of(desk.store) is not before
    desk.must_have_kept_all()


def test_what_is_read_meanwhile_is_what_was_accepted(desk, disk):
    desk.send("kept")
    disk.full = partial(le, 0)
    with pytest.raises(Sick):
        desk.send("lost")
    (id,) = desk.accepted
    assert desk.store.item(id).subject == "kept 0"


def test_a_foreign_lock_is_waited_for_and_then_told_and_all_goes_on_when_it_is_lifted(desk, monkeypatch):
    connection_of(desk.store).set_busy_timeout(20)
    foreign = apsw.Connection(str(desk.path))
    foreign.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="locked by another process"):
        desk.send("lost")
    foreign.execute("ROLLBACK")
    foreign.close()
    desk.send("kept")
    desk.must_have_kept_all()


@pytest.mark.parametrize("name", ["wakeful.db", "wakeful.db-wal"])
def test_a_file_that_is_taken_away_under_us_is_noticed_before_anything_is_accepted(desk, name):
    desk.send("kept")
    file = desk.path.with_name(name)
    file.rename(aside := file.with_name("aside"))
    with pytest.raises(Sick, match=rf"{name} was taken away while it was in use: put it back"):
        desk.send("lost")
    aside.rename(file)
    desk.send("kept too")
    desk.must_have_kept_all()


def test_a_file_that_is_replaced_under_us_is_noticed_too(desk, blank):
    desk.send("kept")
    shutil.copyfile(desk.path, blank / "copy")
    desk.path.rename(blank / "ours")
    (blank / "copy").rename(desk.path)
    with pytest.raises(Sick, match="was replaced while it was in use"):
        desk.send("lost")
    (blank / "ours").replace(desk.path)
    desk.send("kept too")
    desk.must_have_kept_all()


# ---- damage


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A store as it was left by a stop, and as a killed process leaves it: with the log beside it."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "stopped").mkdir()
    desk = Desk(folder / "stopped", None)
    desk.store.declare(Fleet(agents=(Agent(name="moss", address="moss"),)), NOW)
    desk.send("early", 300)
    desk.store.close()
    shutil.copytree(folder / "stopped", folder / "working")
    again = Desk(folder / "working", None)
    again.accepted = dict(desk.accepted)
    for number in range(20):
        again.send(f"late {number}")
    shutil.copytree(folder / "working", folder / "killed")
    again.store.close()
    return {"stopped": (folder / "stopped", desk.accepted), "killed": (folder / "killed", again.accepted)}


def flipped(path, dice):
    content = bytearray(path.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def cut(path, dice):
    os.truncate(path, dice.randrange(path.stat().st_size))


@pytest.mark.parametrize(
    "state, name", [("stopped", "wakeful.db"), ("killed", "wakeful.db"), ("killed", "wakeful.db-wal")]
)
@pytest.mark.parametrize("damage, times", [(flipped, 70), (cut, 10)])
def test_a_damaged_file_is_refused_by_name_or_read_right_and_never_made_anew(
    state, name, damage, times, archive, tmp_path
):
    original, accepted = archive[state]
    dice, refused = Random(f"{state} {name}"), 0
    for number in range(times):
        folder = tmp_path / str(number)
        shutil.copytree(original, folder)
        damage(folder / name, dice)
        before = (folder / "wakeful.db").stat()
        try:
            assert read(folder / "wakeful.db", accepted) == accepted
        except Mistake as mistake:
            refused += 1
            assert str(folder / "wakeful.db") in str(mistake)
            after = (folder / "wakeful.db").stat()
            assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
                before.st_ino,
                before.st_size,
                before.st_mtime_ns,
            )
        shutil.rmtree(folder)
    assert refused >= times * (0.3 if state == "killed" else 1.0)


def test_a_file_that_is_gone_is_not_made_anew(archive, tmp_path):
    shutil.copytree(archive["stopped"][0], tmp_path / "store")
    (tmp_path / "store" / "wakeful.db").unlink()
    with pytest.raises(Mistake, match=r"wakeful\.db is gone"):
        open_sqlite(tmp_path / "store" / "wakeful.db")
    assert not (tmp_path / "store" / "wakeful.db").exists()


def test_a_log_that_is_gone_is_missed(archive, tmp_path):
    shutil.copytree(archive["killed"][0], tmp_path / "store")
    (tmp_path / "store" / "wakeful.db-wal").unlink()
    with pytest.raises(Mistake, match=r"wakeful\.db-wal is damaged"):
        open_sqlite(tmp_path / "store" / "wakeful.db")


def test_a_store_that_is_copied_without_its_sums_gets_new_ones(archive, tmp_path):
    path = tmp_path / "wakeful.db"
    shutil.copyfile(archive["stopped"][0] / "wakeful.db", path)
    assert read(path, archive["stopped"][1]) == archive["stopped"][1]
    flipped(path, Random(1))
    with pytest.raises(Mistake, match="damaged"):
        open_sqlite(path)


def test_what_another_program_put_into_the_file_after_a_kill_is_taken_up_and_from_then_on_compared(archive, tmp_path):
    shutil.copytree(archive["killed"][0], tmp_path / "store")
    path = tmp_path / "store" / "wakeful.db"
    foreign = apsw.Connection(str(path))
    foreign.execute("SELECT count(*) FROM item").fetchall()
    foreign.close()
    assert not path.with_name("wakeful.db-wal").exists()
    assert read(path, archive["killed"][1]) == archive["killed"][1]
    flipped(path, Random(2))
    with pytest.raises(Mistake, match="damaged"):
        open_sqlite(path)


@pytest.mark.parametrize("left", [b"", bytes(32) + b"\1\2\3\4" * 9], ids=["empty", "headless"])
def test_sums_whose_writer_was_killed_when_it_began_them_are_begun_anew(archive, tmp_path, left):
    shutil.copytree(archive["stopped"][0], tmp_path / "store")
    path = tmp_path / "store" / "wakeful.db"
    path.with_name("wakeful.db-sums").write_bytes(left)
    assert read(path, archive["stopped"][1]) == archive["stopped"][1]
    flipped(path, Random(3))
    with pytest.raises(Mistake, match="damaged"):
        open_sqlite(path)
