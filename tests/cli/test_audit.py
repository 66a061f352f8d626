"""`wakeful audit`: with an engine and without one, in words and in JSON, and with exit codes."""

import json
import sys
from pathlib import Path

import apsw
import pytest

from tests.cli.office import PASSWORD, wakeful
from tests.control.audited import make_busy
from tests.store.postgres_server import dsn
from wakeful.cli import audit as command
from wakeful.cli import progress as shown
from wakeful.store.beside import look_at_folder
from wakeful.store.folder import DataFolder
from wakeful.store.sqlite import open_sqlite


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_busy(tmp_path_factory.mktemp("made") / "wakeful.db").path


@pytest.fixture
def data(made, tmp_path, monkeypatch) -> Path:
    """A data folder that nobody is at work on."""
    monkeypatch.chdir(tmp_path)
    folder = DataFolder(tmp_path / ".wakeful")
    folder.create()
    folder.database.write_bytes(made.read_bytes())
    return folder.path


def spoil(data: Path) -> None:
    connection = apsw.Connection(str(data / "wakeful.db"))
    connection.execute("UPDATE total SET ms = ms + 1 WHERE scope = 'fleet'")
    connection.close()


def test_a_store_that_adds_up_is_said_so_in_one_line(data):
    result = wakeful("audit")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("everything adds up: ")
    assert " events, " in result.output


def test_what_does_not_add_up_is_told_with_what_was_expected_found_and_to_be_done(data):
    spoil(data)
    result = wakeful("audit")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0].startswith("totals: the sums of a day are what a recount gives")
    assert lines[1].startswith("  total fleet ")
    assert lines[2].startswith("    expected ms ") and lines[3].startswith("    found    ")
    assert any(line.startswith("  what to do: ") for line in lines)
    assert "finding" in lines[-1]


def test_json_is_the_answer_and_nothing_else(data):
    spoil(data)
    result = wakeful("audit", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["adds_up"]) == (1, False)
    assert answer["counts"] == {"totals": len(answer["findings"])}
    assert answer["rows"]["event"] > 100


def test_it_reads_beside_a_writer_that_holds_the_folder(data):
    folder = DataFolder(data)
    with folder:
        store = open_sqlite(folder.database)
        try:
            assert wakeful("audit").exit_code == 0
            store.set(
                store.agents()[0].name, {"wakes_per_day": 7}, "operator", store.events(before=10**9, limit=1)[0].at
            )
            assert wakeful("audit").exit_code == 0
        finally:
            store.close()


def test_it_needs_the_folder_for_a_moment_only(data):
    """An engine may start while it reads."""
    with look_at_folder(data) as looked, looked.still():
        first = looked.kept("event", limit=1)
        folder = DataFolder(data)
        folder.lock(patience=0)
        store = open_sqlite(folder.database)
        store.set(store.agents()[0].name, {"wakes_per_day": 7}, "operator", store.events(before=10**9, limit=1)[0].at)
        last = store.events(before=10**9, limit=1)[0].id
        assert looked.last_number("event") == last - 1
        store.close()
        folder.unlock()
    assert first[0]["id"] == 1


def test_where_nothing_is_stored_it_says_so_and_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert wakeful("audit").exit_code == 2
    (tmp_path / ".wakeful").mkdir(mode=0o700)
    result = wakeful("audit")
    assert result.exit_code == 2
    assert "nothing is stored" in result.output
    assert list((tmp_path / ".wakeful").iterdir()) == []


def test_a_file_that_is_not_a_store_is_refused_and_left_as_it_is(data):
    (data / "wakeful.db").write_bytes(b"not a store" * 100)
    result = wakeful("audit")
    assert result.exit_code == 2
    assert "is not a wakeful store" in result.output
    assert (data / "wakeful.db").read_bytes() == b"not a store" * 100


def test_it_is_for_the_operator(data):
    result = wakeful("audit", WAKEFUL_URL="http://127.0.0.1:1", WAKEFUL_TOKEN=PASSWORD)
    assert result.exit_code == 1
    assert "for the operator" in result.output


def test_a_store_in_postgresql_is_looked_at_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = dsn().replace("/postgres?", "/postgres?options=-csearch_path%3Dnowhere_at_all&")
    (tmp_path / "fleet.org").write_text(f"#+STORE: {address}\n* wren\n")
    result = wakeful("audit")
    assert result.exit_code == 2, result.output
    assert "no store" in result.output


def test_long_ones_show_on_a_terminal_what_is_being_looked_at(monkeypatch, capsys):
    monkeypatch.setattr(shown, "PATIENCE", -1.0)
    monkeypatch.setattr(shown, "STEP", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with shown.progress(quiet=False) as tell:
        command._looked_at(tell, "event", 3_000)
    assert "event: 3000 rows" in capsys.readouterr().err
    with shown.progress(quiet=True) as tell:
        command._looked_at(tell, "event", 3_000)
    assert capsys.readouterr().err == ""
