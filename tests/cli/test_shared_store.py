"""From one machine to several: what is stored is copied into PostgreSQL; and the commands that look at it there."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import datetime, timedelta

import psycopg
import pytest

from tests.cli.office import LEASE, PASSWORD, ROOT, Office, now, wakeful
from wakeful import belongings, opening
from wakeful.cli import database
from wakeful.cli.connection import store_of
from wakeful.cli.place import place_of
from wakeful.core.admission import admit
from wakeful.core.wakes import FLEET as FLEET_SCOPE
from wakeful.core.wakes import Cause, Pause, Subject, Wake
from wakeful.store.folder import DataFolder
from wakeful.store.postgres_hints import channel_of
from wakeful.testing.postgres import PostgresServer

# ---- copying


def test_a_data_folder_is_copied_and_its_rows_are_counted(office, address):
    office.end(office.begin(), summary="before the move")
    wakeful("send", "wren", "keep this")
    before = (office.data / "wakeful.db").read_bytes()
    done = wakeful("store", "copy", str(office.data), address)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split() for line in lines if line.startswith(("agent", "item", "run "))] == [
        ["agent", "2", "rows"],
        ["run", "1", "row"],
        ["item", "1", "row"],
    ]
    assert "copied, and compared one by one" in lines[-3] and "#+STORE: ADDRESS" in lines[-2]
    assert PASSWORD not in done.output and "can read the password" in done.stderr
    assert (office.data / "wakeful.db").read_bytes() == before
    office.shares(address)
    assert "keep this" in wakeful("inbox", "wren").stdout
    assert "before the move" in wakeful("runs").stdout


def test_with_json_the_counts_are_told_and_nothing_else(office, address):
    told = json.loads(wakeful("store", "copy", str(office.data), address, "--json").stdout)
    assert told["rows"]["agent"] == 2 and told["from"] == str(office.data / "wakeful.db")
    assert PASSWORD not in json.dumps(told)


def test_a_backup_is_copied_too_wherever_it_came_from(moved, address, tmp_path_factory):
    copy = tmp_path_factory.mktemp("elsewhere") / "copy.db"
    assert wakeful("backup", str(copy)).exit_code == 0
    refused = wakeful("store", "copy", str(copy), address)
    assert refused.exit_code == 2 and "is not empty" in refused.stderr
    with psycopg.connect(address, autocommit=True) as connection:
        name = connection.execute("SELECT current_schema()").fetchone()[0]
        connection.execute(f"DROP SCHEMA {name} CASCADE; CREATE SCHEMA {name}")
    assert wakeful("store", "copy", str(copy), address).exit_code == 0
    assert "before the move" in wakeful("runs").stdout


def test_what_is_in_the_journal_is_copied_as_well(office, address, tmp_path):
    torn = Office(tmp_path / "torn")
    with office.store() as store:
        store.pause(Pause(scope=FLEET_SCOPE, owner="operator", reason="in the journal", since=now()), now())
        # As a machine that lost its power leaves it.
        shutil.copytree(office.folder, torn.folder)
    assert (torn.data / "wakeful.db-wal").stat().st_size > 0
    assert wakeful("store", "copy", str(torn.data), address).exit_code == 0
    office.shares(address)
    assert "in the journal" in wakeful("status").stdout


def test_nothing_is_copied_while_an_engine_holds_the_folder(office, address, monkeypatch):
    lock = DataFolder.lock
    with DataFolder(office.data):
        monkeypatch.setattr(DataFolder, "lock", lambda self, patience=5.0: lock(self, 0.0))
        for named in (office.data, office.data / "wakeful.db"):
            refused = wakeful("store", "copy", str(named), address)
            assert refused.exit_code == 75
            assert "wakeful stop --drain" in refused.stderr


def test_nothing_is_copied_while_a_run_is_under_way(office, address):
    run = office.begin()
    refused = wakeful("store", "copy", str(office.data), address)
    assert refused.exit_code == 1
    assert f"1 run under way in {office.data / 'wakeful.db'}: {run} of wren" in refused.stderr
    office.end(run)
    assert wakeful("store", "copy", str(office.data), address).exit_code == 0


def test_nobody_of_before_is_taken_to_be_at_work_on_the_copy(office, address):
    run = office.begin()
    with office.store() as store:
        store.join("here", "", "http://127.0.0.1:7717", store.run(run).started_at, LEASE)
    assert wakeful("backup", "copy.db").exit_code == 0
    assert wakeful("store", "copy", "copy.db", address).exit_code == 0
    office.shares(address)
    (node,) = json.loads(wakeful("nodes", "--json").stdout)["items"]
    assert (node["name"], node["state"], node["runs"]) == ("here", "left", 1)
    store = opening.open_shared(address)
    try:
        with store.session.transaction("look"):
            assert store.orphans(store.run(run).started_at) == [(run, 1)]
    finally:
        store.close()


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("nowhere", "postgresql://h/d"), 2, "there is no store nowhere"),
        ((".wakeful", "sqlite"), 2, "expected the address of a database"),
        ((".wakeful", f"mysql://u:{PASSWORD}@h/d"), 2, "unknown store"),
    ],
)
def test_what_cannot_be_copied_is_said(office, given, code, said):
    refused = wakeful("store", "copy", *given)
    assert refused.exit_code == code
    assert said in refused.stderr and PASSWORD not in refused.output


def test_inside_a_run_it_is_refused(office):
    inside = {"WAKEFUL_URL": "http://127.0.0.1:1", "WAKEFUL_TOKEN": "t"}
    assert wakeful("store", "copy", ".wakeful", "postgresql://h/d", **inside).exit_code == 1


# ---- without an engine, on a shared store


def test_without_an_engine_the_commands_reach_the_shared_store_and_leave_nothing_here(office, address):
    shutil.rmtree(office.data)
    office.shares(address)
    assert "no node is up: nothing begins by itself" in wakeful("status").stdout
    assert wakeful("nodes").stdout == "no node has been up yet (start one: wakeful up)\n"
    assert not office.data.exists()


def test_what_is_asked_for_is_recorded_and_no_node_that_is_up_is_said(moved):
    asked = wakeful("tick", "wren")
    assert (asked.exit_code, asked.stdout) == (0, "wren waits: no node is up: recorded, decided when one starts\n")
    waited = wakeful("tick", "moss", "--wait")
    assert waited.exit_code == 69
    paused = wakeful("pause", "--reason", "mending")
    assert paused.stdout == "the fleet is paused: mending\nno engine runs here; no node is up\n"
    assert wakeful("resume").stdout == "the fleet goes on\n"
    for local in (["stop"], ["reload"]):
        assert wakeful(*local).exit_code == 69


def test_a_data_folder_alone_leads_to_the_shared_store(moved, address, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert "no engine" in wakeful("status", "--data", str(moved.data)).stdout
    belongings.remember(moved.data, address)
    assert "no node is up" in wakeful("status", "--data", str(moved.data)).stdout


def test_a_restore_is_refused_with_what_to_do_instead(moved):
    assert wakeful("backup", "copy.db").exit_code == 0
    refused = wakeful("restore", "copy.db")
    assert refused.exit_code == 1
    assert "wakeful store copy copy.db postgresql://" in refused.stderr and PASSWORD not in refused.stderr


def test_the_pause_file_of_a_node_that_is_gone_is_lifted_and_told(moved, address):
    with contextlib.closing(opening.open_shared(address)) as store:
        store.join("barn", "its host", "http://127.0.0.1:1", now(), LEASE)
        pause = Pause(scope=FLEET_SCOPE, owner="file@barn", reason="PAUSE is there: deploy", since=now())
        store.pause(pause, now())
        assert wakeful("resume").exit_code == 2
        assert " up since " in wakeful("nodes").stdout
        store.leave("barn", now())
        shown = wakeful("nodes").stdout
        assert "  left " in shown and "0 runs   http://127.0.0.1:1" in shown
    assert wakeful("resume").stdout.splitlines() == [
        "the fleet goes on",
        "lifted with it: the PAUSE file of node barn, which has left: PAUSE is there: deploy",
    ]


def test_a_kill_of_a_run_whose_node_is_gone_says_when_it_ends(moved, address):
    store = opening.open_shared(address)
    try:
        wake = Wake(agent="wren", cause=Cause.operator, subject=Subject.beat, requested_at=now(), sender="operator")
        run = store.decide([wake], admit, now())[0].run
        store.join("barn", "its host", "http://127.0.0.1:1", now(), LEASE)
        store.claim("barn", now(), LEASE)
        assert wakeful("kill", str(run)).stdout == f"run {run} of wren is being ended on barn\n"
        shown = wakeful("status").stdout
        assert "no engine here; 1 node is up (barn)" in shown and "of 15m on barn" in shown
        store.leave("barn", now())
        assert wakeful("kill", str(run)).stdout == (
            f"run {run} of wren is held by barn, which is not up: it will be ended when a node starts\n"
        )
        assert "node barn left" in wakeful("status").stdout
    finally:
        store.close()


def test_nodes_that_are_up_hear_of_what_a_command_has_recorded(moved, address):
    with contextlib.closing(opening.open_shared(address)) as store, psycopg.connect(address, autocommit=True) as node:
        node.execute(f"LISTEN {channel_of(store.session)}")
        assert wakeful("send", "wren", "hello").exit_code == 0
        assert len(list(node.notifies(timeout=5, stop_after=1))) == 1


# ---- a server that is away, or not right


@pytest.fixture(scope="module")
def ended():
    """A server of its own, which is ended and begun at will."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def another(ended):
    if ended.process.poll() is not None:
        ended.start()
    return ended


def test_a_server_that_is_away_is_exit_75_and_an_address_that_cannot_be_right_2(office, another):
    office.shares(another.dsn)
    assert wakeful("status").exit_code == 0
    wrong = another.dsn.replace("/postgres?", "/no_such_database?")
    office.shares(wrong)
    refused = wakeful("status")
    assert (refused.exit_code, "no_such_database" in refused.stderr) == (2, True)
    office.shares(another.dsn)
    another.kill()
    away = wakeful("status")
    assert away.exit_code == 75
    assert "cannot open the store" in away.stderr and "Traceback" not in away.output


def test_an_engine_outlives_its_database_before_its_start_and_after(office, another):
    office.shares(another.dsn)
    another.kill()
    command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, cwd=office.folder, env=environment, stderr=subprocess.PIPE, text=True) as engine:
        for line in engine.stderr:
            if "waiting for the database" in line:
                another.start()
            if '"ready"' in line:
                break
        assert engine.poll() is None
        another.kill()
        away = wakeful("status")
        assert away.exit_code == 75 and "is away" in away.stderr, away.output
        assert wakeful("send", "wren", "hello").exit_code == 75
        another.start()
        while wakeful("send", "wren", "hello").exit_code == 75:
            assert engine.poll() is None
        assert "hello" in wakeful("inbox", "wren").stdout
        engine.send_signal(signal.SIGTERM)
        engine.stderr.read()
    assert engine.returncode == 0


# ---- the doctor


def test_the_doctor_looks_at_the_database(moved):
    looked = wakeful("doctor", "--json")
    found = {row["name"]: row for row in json.loads(looked.stdout)["findings"]}
    assert "PostgreSQL" in found["store"]["said"] and PASSWORD not in looked.output
    assert found["store"]["level"] == "warn" and "fsync = off" in found["store"]["said"]
    for name in ("psycopg", "round trip", "clocks", "hints", "strangers"):
        assert found[name]["level"] == "ok", found[name]


def test_the_doctor_warns_of_clocks_that_are_apart_of_a_long_way_and_of_deaf_nodes(moved, monkeypatch):
    monkeypatch.setattr(database, "APART", -1.0)
    monkeypatch.setattr(database, "SLOW", 0.0)
    monkeypatch.setattr(psycopg.Connection, "notifies", lambda *_, **__: iter(()))
    found = {row["name"]: row for row in json.loads(wakeful("doctor", "--json").stdout)["findings"]}
    for name in ("round trip", "clocks", "hints"):
        assert found[name]["level"] == "warn", found[name]
    assert "NTP" in found["clocks"]["remedy"] and "session mode" in found["hints"]["remedy"]


def test_the_doctor_names_a_transaction_of_others_that_stays_open(moved, monkeypatch):
    monkeypatch.setattr(database, "LONG", 0.0)
    place = place_of(None, None)
    with psycopg.connect(store_of(place), application_name="a dump") as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT count(*) FROM pg_class")
        level, said, *remedy = database.strangers(place)
        assert level == "warn" and f"a dump (process {other.info.backend_pid})" in said and "idle_in" in remedy[0]


@pytest.mark.parametrize(("seconds", "which"), [(-60, "behind"), (60, "ahead of")])
def test_the_doctor_says_which_clock_is_ahead(moved, monkeypatch, seconds, which):
    class Shifted(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(seconds=seconds)

    monkeypatch.setattr(database, "datetime", Shifted)
    level, said, *_ = database.clocks(place_of(None, None))
    assert level == "warn" and which in said


def test_the_doctor_finds_a_database_that_is_away(office, another):
    office.shares(another.dsn)
    another.kill()
    looked = wakeful("doctor", "--json")
    found = {row["name"]: row for row in json.loads(looked.stdout)["findings"]}
    assert looked.exit_code == 1
    assert found["store"]["level"] == "fail"
