"""The data folder: private, and written by one process at a time."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest

from wakeful.core.errors import Busy, Mistake, Sick
from wakeful.store.folder import DataFolder
from wakeful.store.sqlite import open_sqlite

PATIENCE = 30

HOLDER = """
import sys
from pathlib import Path
from wakeful.store.folder import DataFolder

folder = DataFolder(Path(sys.argv[1]))
folder.lock(patience=float(sys.argv[2]))
print("locked", flush=True)
sys.stdin.read()
"""


def start(path, patience=5.0):
    command = [sys.executable, "-c", HOLDER, str(path), str(patience)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


@contextmanager
def held_by_another_process(path):
    process = start(path)
    try:
        assert process.stdout.readline() == "locked\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# ---- one writing process


def test_a_second_process_is_told_busy_after_its_patience(tmp_path):
    with held_by_another_process(tmp_path / "data"), pytest.raises(Busy, match="in use by another wakeful process"):
        DataFolder(tmp_path / "data").lock(patience=0.1)


def test_a_process_that_is_told_busy_is_told_so_as_an_error(tmp_path):
    with DataFolder(tmp_path / "data"):
        second = start(tmp_path / "data", patience=0.05)
        _, errors = second.communicate(timeout=PATIENCE)
    assert second.returncode == 1
    assert "Busy" in errors


def test_a_process_waits_for_the_lock_as_long_as_its_patience_allows(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.lock()
    second = start(tmp_path / "data", patience=PATIENCE)
    folder.unlock()
    assert second.stdout.readline() == "locked\n"
    second.communicate("", timeout=PATIENCE)
    assert second.returncode == 0


def test_the_lock_dies_with_a_holder_that_is_killed(tmp_path):
    with held_by_another_process(tmp_path / "data") as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait(PATIENCE)
        DataFolder(tmp_path / "data").lock(patience=0)


def test_the_lock_is_not_inherited_by_the_processes_that_its_holder_starts(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.lock()
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    folder.unlock()
    try:
        DataFolder(tmp_path / "data").lock(patience=0)
    finally:
        child.communicate(b"", timeout=PATIENCE)


def test_leaving_the_folder_unlocks_it_and_it_can_be_locked_again(tmp_path):
    folder = DataFolder(tmp_path / "data")
    with folder, pytest.raises(Busy):
        DataFolder(tmp_path / "data").lock(patience=0)
    with folder, pytest.raises(Busy):
        DataFolder(tmp_path / "data").lock(patience=0)


def test_a_refused_lock_leaves_no_open_file_behind(tmp_path):
    with DataFolder(tmp_path / "data"):
        before = len(os.listdir("/dev/fd"))
        for _ in range(3):
            with pytest.raises(Busy):
                DataFolder(tmp_path / "data").lock(patience=0)
        assert len(os.listdir("/dev/fd")) == before


def test_the_lock_file_names_its_holder_for_people(tmp_path):
    with DataFolder(tmp_path / "data") as folder:
        assert (folder.path / "lock").read_text() == f"{os.getpid()}\n"


# ---- private to its owner


@pytest.fixture
def loose_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_folder_and_what_is_in_it_are_its_owners_alone(tmp_path, loose_umask):
    with DataFolder(tmp_path / "data") as folder:
        store = open_sqlite(folder.database)
        assert mode(folder.path) == 0o700
        beside = {path.name: mode(path) for path in folder.path.iterdir()}
        store.close()
    assert {"lock", "wakeful.db", "wakeful.db-wal", "wakeful.db-shm"} <= beside.keys()
    assert set(beside.values()) == {0o600}


def test_a_folder_that_others_could_read_is_closed_to_them(tmp_path):
    (tmp_path / "data").mkdir(mode=0o755)
    with DataFolder(tmp_path / "data") as folder:
        assert mode(folder.path) == 0o700


def test_folders_above_it_are_made_too(tmp_path):
    with DataFolder(tmp_path / "a" / "b" / "data") as folder:
        assert folder.path.is_dir()


# ---- folders that cannot be used


def test_a_file_in_its_place_is_a_mistake_that_names_it(tmp_path):
    (tmp_path / "data").write_text("mine")
    with pytest.raises(Mistake, match="data folder"):
        DataFolder(tmp_path / "data").lock()
    assert (tmp_path / "data").read_text() == "mine"


def test_a_lock_that_is_a_link_to_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(Mistake, match="lock"):
        DataFolder(tmp_path / "data").lock()
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_database_that_is_a_link_to_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "wakeful.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(Mistake, match=r"wakeful\.db"):
        open_sqlite(tmp_path / "wakeful.db")
    assert not (tmp_path / "elsewhere.db").exists()


def test_its_parts_are_private_by_themselves_and_what_is_looser_is_closed(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.create()
    (folder.path / "runs").mkdir(mode=0o755)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (folder.path / "work").symlink_to(elsewhere)
    folder.close_off()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.path.iterdir()}
    assert modes == {"runs": 0o700, "memory": 0o700, "workers": 0o700, "checks": 0o700, "work": 0o755}
    (folder.path / "memory").rmdir()
    (folder.path / "memory").write_text("no folder")
    with pytest.raises(Mistake, match="memory"):
        folder.close_off()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("step", ["open", "pwrite"])
def test_a_disk_that_does_not_take_the_lock_is_sick_and_no_mistake_of_the_caller(tmp_path, monkeypatch, step, number):
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    folder = DataFolder(tmp_path / "data")
    with monkeypatch.context() as broken:
        broken.setattr(os, step, refuse)
        with pytest.raises(Sick, match=re.escape(os.strerror(number))):
            folder.lock(0)
    # Nothing is held, and all is well when the disk is.
    folder.lock(0)
    folder.unlock()
