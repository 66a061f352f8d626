"""What a node keeps in its data folder: its name, where its store is, and the folders of its runs."""

import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from tests.cli.office import FLEET, ROOT, wakeful
from wakeful import app, belongings
from wakeful.belongings import SQLITE, store_address

ADDRESS = "postgresql://wakeful:geheim@db.example.org:5433/fleet?options=-csearch_path%3Dnight"
STORED = FLEET.replace("#+RUN: true\n", f"#+RUN: true\n#+STORE: {ADDRESS}\n")
BROKEN = "* late\n:PROPERTIES:\n:INTERVALL: 3m\n:END:\n"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# ---- its name


def test_a_node_is_named_once_after_its_host_and_by_four_signs_of_chance(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "desk")
    name = belongings.node_name(tmp_path / "a")
    assert re.fullmatch(r"desk-[a-z0-9]{4}", name)
    assert belongings.node_name(tmp_path / "a") == name == belongings.known_node(tmp_path / "a")
    assert len({belongings.node_name(tmp_path / str(number)) for number in range(20)}) == 20
    assert mode(tmp_path / "a" / "node") == 0o600


def test_a_folder_that_has_a_name_keeps_it(tmp_path):
    (tmp_path / "node").write_text("desk\n")
    assert belongings.node_name(tmp_path) == "desk"


def test_a_folder_is_not_named_by_whoever_only_looks(tmp_path):
    assert belongings.known_node(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_two_places_are_two_hosts_also_with_the_same_name(tmp_path, monkeypatch):
    here = belongings.host(tmp_path / "a")
    assert here == belongings.host(tmp_path / "a") and str(tmp_path / "a") in here
    assert here != belongings.host(tmp_path / "b")
    monkeypatch.setattr(belongings, "_BOOT_ID", tmp_path / "boot")
    (tmp_path / "boot").write_text("another boot\n")
    assert "another boot" in belongings.host(tmp_path / "a") != here
    (tmp_path / "boot").unlink()
    assert str(tmp_path / "a") in belongings.host(tmp_path / "a")


# ---- where its store is


@pytest.fixture
def fleet(tmp_path):
    path = tmp_path / "fleet.org"
    path.write_text(STORED)
    return path


def test_the_fleet_file_says_which_store_and_the_folder_remembers_it(tmp_path, fleet):
    data = tmp_path / ".wakeful"
    assert store_address(data, fleet) == ADDRESS
    assert store_address(data, None) == SQLITE
    belongings.remember(data, ADDRESS)
    assert store_address(data, None) == ADDRESS
    assert mode(data / "store") == 0o600


def test_a_fleet_file_that_names_another_store_wins_over_what_was_remembered(tmp_path, fleet):
    data = tmp_path / ".wakeful"
    belongings.remember(data, "postgresql://elsewhere/fleet")
    assert store_address(data, fleet) == ADDRESS
    fleet.write_text(FLEET)
    assert store_address(data, fleet) == SQLITE


def test_a_broken_fleet_file_has_no_say(tmp_path, fleet):
    data = tmp_path / ".wakeful"
    fleet.write_text(STORED + BROKEN)
    assert store_address(data, fleet) == SQLITE
    belongings.remember(data, ADDRESS)
    for broken in (STORED + BROKEN, FLEET + BROKEN):
        fleet.write_text(broken)
        assert store_address(data, fleet) == ADDRESS


def test_what_was_remembered_is_forgotten_with_the_return_to_the_file(tmp_path):
    belongings.remember(tmp_path, ADDRESS)
    belongings.remember(tmp_path, SQLITE)
    assert belongings.remembered(tmp_path) is None and list(tmp_path.iterdir()) == []


def test_a_fleet_of_the_working_folder_has_no_say_over_the_data_folder_of_another(tmp_path, fleet):
    another = tmp_path / "another"
    assert store_address(another, fleet, named=False) == ADDRESS
    another.mkdir()
    (another / "wakeful.db").touch()
    assert store_address(another, fleet, named=False) == SQLITE
    assert store_address(another, fleet, named=True) == ADDRESS
    belongings.remember(another, "postgresql://elsewhere/fleet")
    assert store_address(another, fleet, named=False) == "postgresql://elsewhere/fleet"
    own = tmp_path / ".wakeful"
    own.mkdir()
    (own / "wakeful.db").touch()
    assert store_address(own, fleet, named=False) == ADDRESS


def test_in_yaml_too(tmp_path):
    (tmp_path / "fleet.yml").write_text(f"store: {ADDRESS}\nrun: 'true'\nagents:\n  wren:\n    interval: 10m\n")
    assert store_address(tmp_path / ".wakeful", tmp_path / "fleet.yml") == ADDRESS


def test_a_fleet_that_does_not_speak_of_a_store_is_not_read_for_it(tmp_path, fleet, monkeypatch):
    fleet.write_text(FLEET)
    monkeypatch.setattr("wakeful.fleet.load.load_fleet", None)
    assert store_address(tmp_path / ".wakeful", fleet) == SQLITE


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (ADDRESS, "postgresql://db.example.org:5433/fleet"),
        ("postgresql://u:p@/db?host=%2Frun%2Fpg&password=geheim", "postgresql:///run/pg/db"),
        ("postgresql://u:ge@heim@h/db", "postgresql://h/db"),
        ("postgresql://?service=night&password=geheim", "the service night"),
        ("postgresql://u:geheim@[h/db", "postgresql://…"),
        ("sqlite", "sqlite"),
    ],
)
def test_what_is_shown_of_an_address_holds_no_password(address, shown):
    assert belongings.named(address) == shown
    assert "heim" not in shown


# ---- folders of its runs


def folder_of(data, run, started=None):
    folder = data / "runs" / str(run)
    folder.mkdir(parents=True)
    (folder / "stdout").write_text(f"run {run}")
    if started is not None:
        (folder / "started").touch()
        os.utime(folder / "started", (started, started))
    return folder


def test_folders_of_runs_that_the_store_has_not_begun_yet_are_set_aside(tmp_path):
    for run in (1, 7, 8, 30):
        folder_of(tmp_path, run)
    (tmp_path / "runs" / "notes").mkdir()
    aside = belongings.set_aside(tmp_path, 7, None)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"1", "7", "notes"}
    assert {path.name for path in aside.iterdir()} == {"8", "30"}
    assert (aside / "30" / "stdout").read_text() == "run 30" and mode(aside) == 0o700
    assert belongings.set_aside(tmp_path, 7, None) is None


def test_after_a_change_of_the_store_only_folders_of_its_own_runs_stay(tmp_path):
    for run in (1, 2):
        folder_of(tmp_path, run, started=1_000.0 + run)
    seen = {}

    def known(run, started):
        seen[run] = started
        return run == 2

    belongings.set_aside(tmp_path, 9, known)
    assert seen == {1: 1_001.0, 2: 1_002.0}
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["2"]


def test_there_is_nothing_to_set_aside_where_nothing_ran(tmp_path):
    assert belongings.set_aside(tmp_path, 0, None) is None
    assert list(tmp_path.iterdir()) == []


def test_a_run_and_its_folder_are_the_same_by_node_and_start(office):
    run = office.begin()
    office.end(run)
    with office.store() as store:
        started = store.run(run).started_at.timestamp()
        for node, at, stays in (
            ("here", started, True),
            ("here", None, True),
            ("other", started, False),
            ("here", started - 600, False),
        ):
            folder = folder_of(office.data, run, started=at)
            app._set_aside(office.data, store, node, moved=True)
            assert folder.exists() is stays
            belongings.set_aside(office.data, 0, None)


def test_folders_of_runs_that_a_restored_store_does_not_know_yet_are_not_in_the_way(office):
    wakeful("backup", "copy.db")
    run = office.begin()
    office.end(run)
    folder_of(office.data, run, started=datetime.now(UTC).timestamp())
    assert wakeful("restore", "copy.db").exit_code == 0
    with office.store() as store:
        app._set_aside(office.data, store, "here", moved=False)
    assert list((office.data / "runs").iterdir()) == []


# ---- without the driver


def test_without_psycopg_it_is_said_what_to_install(office):
    (office.folder / "fleet.org").write_text(STORED)
    block = "import sys; sys.modules['psycopg'] = None; from wakeful.cli import main; main(['status'])"
    ended = run_python(block)
    assert ended.returncode == 2
    assert ended.stderr == (
        "a store in PostgreSQL needs psycopg, which is not installed (pip install 'wakeful[postgres]')\n"
    )


def test_who_has_no_shared_store_imports_nothing_of_it(office):
    script = "import sys; from wakeful.cli import main\ntry: main(['status'])\nexcept SystemExit: pass\n"
    ended = run_python(script + "assert not {'psycopg', 'ruamel'} & set(sys.modules), 'imported'")
    assert ended.returncode == 0, ended.stderr


def run_python(script):
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
