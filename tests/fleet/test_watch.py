"""Editing a fleet that is at work: a broken edit keeps the last good version."""

import os

import pytest

from wakeful.fleet import FleetFile
from wakeful.fleet.reading import RACY_NS

GOOD = "#+RUN: true\n* wren\n:PROPERTIES:\n:INTERVAL: 10m\n:LIFECYCLE: day.org\n:END:\n"
DAY = "#+START: a\n* a\n:PROPERTIES:\n:NEXT: a\n:END:\n"


@pytest.fixture
def settled(desk):
    """Writes a file as if it had been there for a while, so that its time stamp can be trusted."""
    clock = [1_700_000_000]

    def write(name, text):
        path = desk.write(name, text)
        clock[0] += 1
        os.utime(path, (clock[0], clock[0]))
        return path

    return write


@pytest.fixture
def file(settled):
    settled("day.org", DAY)
    return FleetFile(settled("fleet.org", GOOD))


def test_a_file_that_did_not_change_is_not_read_again(file, monkeypatch):
    monkeypatch.setattr("wakeful.fleet.watch.load_fleet", None)
    assert not file.refresh()
    assert file.fleet.agents[0].name == "wren"


def test_a_good_edit_is_taken_over(file, settled):
    settled("fleet.org", GOOD.replace("wren", "moss"))
    assert file.refresh()
    assert file.fleet.agents[0].name == "moss"
    assert not file.refresh()


def test_an_edit_of_the_lifecycle_alone_is_taken_over(file, settled):
    settled("day.org", DAY.replace("NEXT: a", "NEXT: a\n:REPEAT: 3"))
    assert file.refresh()
    assert file.fleet.agents[0].lifecycle.states[0].repeat == 3


@pytest.mark.parametrize("broken", ["", GOOD.replace("10m", "10"), GOOD[:40], "\0"])
def test_a_broken_edit_keeps_the_last_good_version_and_says_what_is_wrong(file, settled, broken):
    before = file.fleet
    settled("fleet.org", broken)
    assert not file.refresh()
    assert file.fleet == before
    assert file.broken
    assert file.diagnostics
    settled("fleet.org", GOOD.replace("10m", "20m"))
    assert file.refresh()
    assert not file.broken
    assert file.fleet != before


def test_a_broken_lifecycle_keeps_the_last_good_version(file, settled):
    settled("day.org", DAY.replace("NEXT: a", "NEXT: b"))
    assert not file.refresh()
    assert file.fleet.agents[0].lifecycle.start == "a"
    assert file.diagnostics[0].file.endswith("day.org")


def test_a_removed_file_keeps_the_last_good_version(file):
    file.path.unlink()
    assert not file.refresh()
    assert file.fleet is not None
    assert "no such file" in file.diagnostics[0].reason


def test_a_missing_definition_that_appears_later_is_noticed(settled):
    file = FleetFile(settled("fleet.org", "#+RUN: true\n* wren\n:PROPERTIES:\n:DEF: writer.org\n:END:\n"))
    assert file.broken
    settled("writer.org", "You write.")
    assert file.refresh()
    assert file.fleet.agents[0].definition == "writer.org"


def test_an_edit_without_meaning_is_no_new_fleet(file, settled):
    settled("fleet.org", GOOD + "\nMore prose.\n")
    assert file.changed()
    assert not file.refresh()
    assert not file.changed()


def test_a_file_written_just_before_it_was_read_is_read_again(desk, settled, monkeypatch):
    settled("day.org", DAY)
    path = settled("fleet.org", GOOD)
    written = path.stat().st_mtime_ns
    monkeypatch.setattr("wakeful.fleet.reading.time.time_ns", lambda: written + RACY_NS)
    file = FleetFile(path)
    assert file.changed()
    monkeypatch.setattr("wakeful.fleet.reading.time.time_ns", lambda: written + RACY_NS + 1)
    file.refresh()
    assert not file.changed()


# ---- another store


def moved(text, store):
    return f"#+STORE: {store}\n{text}"


def test_another_store_in_the_file_is_a_warning_as_long_as_it_stands_there_and_an_error_in_the_log_once(
    file, settled, caplog
):
    file.keep_to("sqlite")
    assert file.diagnostics == ()
    settled("fleet.org", moved(GOOD, "postgresql://u:geheim@h/db"))
    file.refresh()
    settled("fleet.org", moved(GOOD, "postgresql://u:geheim@h/db") + "* moss\n")
    file.refresh()
    (told,) = file.diagnostics
    assert "STORE was changed" in str(told) and "warning" in str(told) and not file.broken
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    settled("fleet.org", moved(GOOD, "postgresql://h/other"))
    file.refresh()
    assert len(caplog.records) == 2
    settled("fleet.org", GOOD)
    file.refresh()
    assert file.diagnostics == () and len(caplog.records) == 2
    assert "geheim" not in caplog.text


def test_whoever_is_bound_to_no_store_is_told_nothing_of_it(file, settled):
    settled("fleet.org", moved(GOOD, "postgresql://h/db"))
    file.refresh()
    assert file.diagnostics == () and file.fleet.store == "postgresql://h/db"
