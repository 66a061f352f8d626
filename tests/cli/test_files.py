"""Commands that write files: init, token, backup, restore."""

import os
import shutil
import stat
import subprocess

import pytest

from tests.cli.office import TOKEN, spawned, wakeful
from wakeful.core.peers import peer_token
from wakeful.fleet.load import load_fleet
from wakeful.store.folder import DataFolder


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# ---- init


def test_init_writes_a_fleet_that_passes_its_check_and_says_what_comes_next(nowhere):
    result = wakeful("init")
    assert result.exit_code == 0
    assert result.stdout.endswith("next: wakeful up\n")
    assert wakeful("check").stdout == "ok: fleet.org: 1 agent, 0 states\n"
    assert load_fleet("fleet.org").fleet.agents[0].target == "agents/hello.sh"


def test_the_agent_of_init_runs_without_a_model_and_rests_now_and_then(nowhere):
    wakeful("init")
    environment = {**os.environ, "WAKEFUL_AGENT": "hello", "WAKEFUL_CAUSE": "timer"}
    said = [
        subprocess.run(
            [nowhere / "agents" / "hello.sh"],
            input="a\nbriefing\n",
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for _ in range(3)
    ]
    assert said[0] == "beat 1 of hello, by timer, with 2 lines of briefing\n"
    assert said[2].startswith("NO-WORK: ")


def test_init_in_another_folder_says_how_to_get_there(nowhere):
    result = wakeful("init", "desk")
    assert result.stdout.endswith("next: cd desk && wakeful up\n")
    assert (nowhere / "desk" / "fleet.org").exists()


@pytest.mark.parametrize("name", ["fleet.org", "fleet.yml", "agents/hello.sh"])
def test_init_touches_nothing_that_is_there(nowhere, name):
    (nowhere / "agents").mkdir()
    (nowhere / name).write_text("mine")
    result = wakeful("init")
    assert result.exit_code == 1
    assert f"{name} is there already" in result.stderr
    assert [path.name for path in nowhere.rglob("*") if path.is_file()] == [os.path.basename(name)]
    assert (nowhere / name).read_text() == "mine"


# ---- token


def test_the_token_is_made_once_is_private_and_is_all_that_is_printed(office):
    first = wakeful("token")
    assert first.exit_code == 0 and first.stderr == ""
    assert len(first.stdout.strip()) == 64
    assert wakeful("token").stdout == first.stdout == (office.data / "token").read_text()
    assert mode(office.data / "token") == 0o600
    assert sorted(path.name for path in office.data.iterdir()) == ["lock", "token", "wakeful.db"]


def test_a_token_that_is_there_is_printed(office):
    (office.data / "token").write_text(TOKEN + "\n")
    assert wakeful("token").stdout == TOKEN + "\n"


def test_the_token_of_peers_is_printed_alone_and_goes_with_the_operators(office):
    (office.data / "token").write_text(TOKEN + "\n")
    assert wakeful("token", "--peer").stdout == peer_token(TOKEN) + "\n"
    assert wakeful("token", "--peer", "--rotate").stdout != peer_token(TOKEN) + "\n"


def test_a_token_that_is_a_link_is_not_followed(office):
    (office.folder / "other").write_text("somebody else's")
    (office.data / "token").symlink_to(office.folder / "other")
    result = wakeful("token")
    assert result.exit_code == 2 and result.stdout == ""


# ---- backup and restore


def test_a_backup_is_restored_and_what_was_there_is_kept(office):
    wakeful("send", "wren", "before the backup")
    assert wakeful("backup", "copy.db").exit_code == 0
    wakeful("send", "wren", "after the backup")
    result = wakeful("restore", "copy.db")
    assert result.exit_code == 0, result.output
    shown = wakeful("inbox", "wren").stdout
    assert "before the backup" in shown and "after the backup" not in shown
    (kept,) = office.data.glob("wakeful-*.db")
    assert kept.name in result.stdout
    assert mode(kept) == mode(office.data / "wakeful.db") == 0o600
    assert wakeful("restore", str(kept)).exit_code == 0
    assert "after the backup" in wakeful("inbox", "wren").stdout


def test_a_backup_replaces_nothing(office):
    (office.folder / "copy.db").write_text("mine")
    result = wakeful("backup", "copy.db")
    assert result.exit_code == 2
    assert (office.folder / "copy.db").read_text() == "mine"


def test_with_an_engine_the_backup_is_the_engines(served, office):
    result = wakeful("backup", "copy.db")
    assert result.exit_code == 0, result.output
    assert served.tokens and (office.folder / "copy.db").stat().st_size > 0


def test_what_is_no_backup_replaces_nothing(office):
    before = (office.data / "wakeful.db").read_bytes()
    (office.folder / "notes.txt").write_text("no database")
    for name, said in (("notes.txt", "is damaged, or no wakeful store"), ("nowhere.db", "there is no file")):
        result = wakeful("restore", name)
        assert result.exit_code == 2
        assert said in result.stderr
    assert (office.data / "wakeful.db").read_bytes() == before
    assert not list(office.data.glob("*restor*"))


def test_a_file_with_its_journal_beside_it_is_not_restored_without_the_journal(office):
    wakeful("backup", "copy.db")
    (office.folder / "copy.db-wal").write_bytes(b"what was not folded in")
    result = wakeful("restore", "copy.db")
    assert result.exit_code == 2
    assert "holds changes that are not in" in result.stderr


def test_a_copy_that_was_torn_on_its_way_replaces_nothing(office, monkeypatch):
    wakeful("backup", "copy.db")
    before = (office.data / "wakeful.db").read_bytes()
    monkeypatch.setattr(shutil, "copyfileobj", lambda source, target, length: target.write(source.read(10_000)))
    assert wakeful("restore", "copy.db").exit_code == 2
    assert (office.data / "wakeful.db").read_bytes() == before


def test_a_restore_waits_for_the_folder_and_then_says_who_has_it(office, monkeypatch):
    wakeful("backup", "copy.db")
    lock = DataFolder.lock
    with DataFolder(office.data):
        monkeypatch.setattr(DataFolder, "lock", lambda self, patience=5.0: lock(self, 0.0))
        result = wakeful("restore", "copy.db")
    assert result.exit_code == 75
    assert "wakeful stop" in result.stderr


def test_a_damaged_store_is_kept_with_its_journal_and_the_journal_never_meets_the_backup(office):
    wakeful("backup", "copy.db")
    (office.data / "wakeful.db").write_bytes(b"torn" * 1_000)
    (office.data / "wakeful.db-wal").write_bytes(b"journal of what was torn")
    result = spawned("restore", "copy.db", folder=office.folder)
    assert result.returncode == 0, result.stderr
    assert not (office.data / "wakeful.db-wal").exists()
    (kept,) = office.data.glob("wakeful-*.db")
    assert kept.read_bytes().startswith(b"torn")
    assert (office.data / f"{kept.name}-wal").read_bytes() == b"journal of what was torn"
    assert wakeful("status").exit_code == 0
