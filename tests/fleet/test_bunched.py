"""A fleet file is told where its beats bunch."""

from datetime import UTC, datetime

import pytest

from wakeful.fleet.load import load_fleet
from wakeful.fleet.watch import FleetFile

NOW = datetime(2026, 3, 2, 8, 30, 20, tzinfo=UTC)


def agents(count, *lines):
    drawer = "\n".join(lines)
    return "\n".join(f"* agent-{number}\n:PROPERTIES:\n{drawer}\n:END:" for number in range(count)) + "\n"


@pytest.fixture
def told(tmp_path):
    def told(text, name="fleet.org"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        loaded = load_fleet(path, now=NOW)
        assert loaded.fleet is not None
        return [str(diagnostic).removeprefix(str(path)) for diagnostic in loaded.diagnostics]

    return told


def test_a_schedule_that_more_agents_share_than_may_run_is_a_warning_with_who_when_and_what_to_do(told):
    text = "#+RUN: true\n#+TIMEZONE: Europe/Berlin\n" + agents(3, ":SCHEDULE: 0 * * * *")
    assert told(text) == [
        ":5:2: warning: 3 agents are due in the same minute (Mon 10:00 Europe/Berlin, 168 times in 7d): "
        "agent-0, agent-1, agent-2; SESSIONS is 2, so 1 of them waits "
        "(give some of them another minute, or write SESSIONS: 3)"
    ]
    assert told(f"#+SESSIONS: 3\n{text}") == []


def test_a_schedule_of_the_fleet_is_told_where_it_stands_and_many_agents_are_not_all_named(told):
    (line,) = told("#+RUN: true\n#+SCHEDULE: 0 9 * * 1\n" + agents(40, ":ENABLED: yes"))
    assert line.startswith(":2:3: warning: 40 agents are due in the same minute (Mon 09:00 UTC): agent-0, agent-1, ")
    assert "agent-5 and 34 more; SESSIONS is 2, so 38 of them wait (" in line


def test_equal_offsets_are_told_by_their_distance_from_the_start(told):
    text = "#+RUN: true\n" + agents(3, ":INTERVAL: 1h", ":OFFSET: 5m")
    assert told(text) == [
        ":5:2: warning: 3 agents are due in the same minute (6m after the first start, 24 times in 1d): "
        "agent-0, agent-1, agent-2; SESSIONS is 2, so 1 of them waits "
        "(give some of them another OFFSET, or none, or write SESSIONS: 3)"
    ]


def test_agents_that_are_spread_by_themselves_bring_no_warning(told):
    assert told("#+RUN: true\n" + agents(200, ":INTERVAL: 10m")) == []


def test_the_offsets_of_a_pulse_file_are_told_too(told):
    names = "".join(f"  agent-{number}: {{pulse_offset_minutes: 10}}\n" for number in range(3))
    (line,) = told(f"run: 'true'\npulse_interval_minutes: 30\nagents:\n{names}", "fleet.yml")
    assert line.startswith(
        ":4:13: warning: 3 agents are due in the same minute (11m after the first start, 48 times in 1d)"
    )


def test_only_the_fullest_minutes_are_told(told):
    text = "#+RUN: true\n#+SESSIONS: 1\n"
    for minute in range(9):
        text += "".join(f"* a{minute}-{each}\n:PROPERTIES:\n:SCHEDULE: {minute} * * * *\n:END:\n" for each in "ab")
    assert len(told(text)) == 3


def test_a_fleet_at_work_shows_it_too(tmp_path):
    path = tmp_path / "fleet.org"
    path.write_text("#+RUN: true\n" + agents(3, ":SCHEDULE: 0 * * * *"), encoding="utf-8")
    (diagnostic,) = FleetFile(path).diagnostics
    assert "3 agents are due in the same minute" in diagnostic.reason


def test_who_declares_a_value_is_worth_reading_the_file_again(tmp_path):
    path = tmp_path / "fleet.org"
    path.write_text("#+RUN: true\n#+COOLDOWN: 5m\n* wren\n", encoding="utf-8")
    file = FleetFile(path)
    path.write_text("#+RUN: true\n* wren\n:PROPERTIES:\n:COOLDOWN: 5m\n:END:\n", encoding="utf-8")
    assert file.refresh() and file.fleet.agent("wren").origins == (("cooldown", "agent"),)
    path.write_text("#+RUN: true\n# a remark\n* wren\n:PROPERTIES:\n:COOLDOWN: 5m\n:END:\n", encoding="utf-8")
    assert file.changed() and not file.refresh()
