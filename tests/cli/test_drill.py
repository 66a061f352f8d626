"""A drill on one's own fleet: worlds in which everything goes wrong, judged; and what is told when a promise broke."""

import json

import pytest

from tests.cli.office import wakeful
from wakeful.core.guards import GUARDS

FLEET = """\
#+RUN: false
#+SESSIONS: 1
* wren
:PROPERTIES:
:INTERVAL: 20m
:BUDGET-USD: 1
:RESERVE: 0.10
:END:
* moss
:PROPERTIES:
:SCHEDULE: */30 * * * *
:QUIET-HOURS: 22:00-06:00
:COOLDOWN: 10m
:END:
"""


@pytest.fixture
def desk(nowhere):
    (nowhere / "fleet.org").write_text(FLEET)
    return nowhere


def test_a_fleet_is_led_through_what_can_go_wrong_and_nothing_of_it_is_touched(desk):
    result = wakeful("drill", "--worlds", "2")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("2 worlds of a day on three nodes: ")
    assert "nothing was lost, repeated or run twice at once" in result.stdout
    assert [path.name for path in desk.iterdir()] == ["fleet.org"]


def test_it_is_told_as_json_with_what_was_done_to_it(desk):
    answer = json.loads(wakeful("drill", "--worlds", "1", "--first", "5", "--json").stdout)
    assert (answer["worlds"], answer["violations"], answer["left_out"]) == (1, [], [])
    assert answer["runs"] > 10 and answer["troubles"]["engines killed"] > 0


def test_an_engine_that_breaks_a_promise_is_found(desk, monkeypatch):
    """It forgets that its slots are few."""
    monkeypatch.setattr("wakeful.core.admission.GUARDS", [guard for guard in GUARDS if guard.name != "slots"])
    result = wakeful("drill", "--worlds", "2")
    assert result.exit_code == 1, result.output
    assert "world " in result.stdout and "please report" in result.stdout


def test_recurring_tasks_are_left_out_and_that_is_said(desk):
    task = "* a-round\n:PROPERTIES:\n:TASK: Look around\n:SCHEDULE: @hourly\n:AGENT: wren\n:END:\n"
    (desk / "fleet.org").write_text(FLEET + task)
    answer = json.loads(wakeful("drill", "--worlds", "1", "--json").stdout)
    assert (answer["left_out"], answer["violations"]) == (["recurring tasks"], [])


def test_without_a_fleet_there_is_nothing_to_drill(nowhere):
    assert wakeful("drill").exit_code == 2
