"""Quiet hours that never end: nothing of such an agent would begin by itself."""

import pytest


@pytest.fixture
def told(desk, said):
    def told(hours, *more):
        loaded = desk.org(
            "\n".join(["* moss", ":PROPERTIES:", ":RUN: true", f":QUIET-HOURS: {hours}", *more, ":END:", ""])
        )
        assert loaded.fleet is not None
        return said(loaded)

    return told


@pytest.mark.parametrize(
    "hours",
    ["00:00-24:00", "07:00-22:00, 22:00-07:00", "Mon-Fri 00:00-24:00, Sat,Sun 00:00-24:00", "20:00-08:00, 05:00-21:00"],
)
def test_quiet_hours_of_the_whole_week_are_a_warning(told, hours):
    (line,) = told(hours)
    assert "4:15: warning: the quiet hours of moss leave no minute of the week: nothing of it begins by itself" in line
    assert line.endswith("(leave it an hour, or say ENABLED: no)")


@pytest.mark.parametrize(
    "hours",
    ["00:01-24:00", "07:00-22:00, 22:01-07:00", "Mon-Sat 00:00-24:00", "2026-01-01T00:00Z/2099-01-01T00:00Z"],
)
def test_one_minute_of_the_week_is_enough(told, hours):
    assert told(hours) == []


def test_it_is_said_once_of_all_replicas_and_never_of_who_is_disabled(told):
    assert len(told("00:00-24:00", ":REPLICAS: 3")) == 1
    assert told("00:00-24:00", ":ENABLED: no") == []
