"""The days to come, from the command line: what the engine does in them, on a copy, and what that rests on."""

import json
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from tests.cli.office import wakeful


def told(*words):
    result = wakeful("simulate", *words, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    return answer, {row["agent"]: row for row in answer["items"]}


def drawer(name, **keys):
    lines = "".join(f":{key.upper().replace('_', '-')}: {value}\n" for key, value in keys.items())
    return f"* {name}\n:PROPERTIES:\n{lines}:END:\n"


@pytest.fixture
def fleet(nowhere):
    def written(*agents, **keys):
        head = "".join(f"#+{key.upper()}: {value}\n" for key, value in {"run": "false", **keys}.items())
        (nowhere / "fleet.org").write_text(head + "".join(agents))
        return nowhere

    return written


def test_a_timer_rings_as_often_as_it_would(fleet):
    fleet(drawer("wren", interval="10m"), drawer("moss", schedule="0 */6 * * *"))
    answer, rows = told("--days", "1", "--takes", "1s")
    assert 140 <= rows["wren"]["runs"] <= 144
    # It begins now, which may be just before such an hour or after.
    assert rows["moss"]["runs"] in (3, 4)
    assert answer["runs"] == rows["wren"]["runs"] + rows["moss"]["runs"]
    assert rows["wren"]["outcomes"] == {"done": rows["wren"]["runs"]}


def test_a_budget_is_told_with_when_it_is_used_up(fleet):
    fleet(drawer("wren", interval="10m", reserve="0.05", budget_usd="1"), timezone="UTC")
    answer, rows = told("--days", "3")
    assert answer["usd_per_day"] == {"least": 1.0, "most": 1.0}
    assert rows["wren"]["deferred"]["spend"] >= 2 and "spend" in rows["wren"]["first_held_at"]
    shown = wakeful("simulate", "--days", "3").stdout
    assert "spend " in shown and "a day $1.00 to $1.00" in shown


def test_quiet_hours_and_slots_hold_back_as_they_do(fleet):
    fleet(
        drawer("wren", interval="10m", quiet_hours="00:00-12:00"),
        drawer("moss", interval="10m"),
        drawer("finn", interval="10m"),
        sessions="1",
    )
    _, rows = told("--days", "2", "--takes", "8m")
    assert rows["wren"]["deferred"]["quiet_hours"] >= 2
    assert rows["moss"]["deferred"]["slots"] > 10
    assert rows["moss"]["wait_p95_seconds"] > 60


def test_the_same_seed_draws_the_same_days_from_the_same_instant(office, monkeypatch):
    for number in range(6):
        office.end(office.begin("wren"), exit_code=number % 2)
    instant = datetime.now(UTC)
    monkeypatch.setattr("wakeful.cli.simulate.datetime", Mock(now=lambda zone: instant))
    first, again = (told("--days", "0.3", "--seed", "7") for _ in range(2))
    assert first == again
    others = [told("--days", "0.3", "--seed", str(seed))[1]["wren"]["outcomes"] for seed in range(5)]
    assert any(other != first[1]["wren"]["outcomes"] for other in others)


def stored():
    """Everything that happened, but for the copy that was asked for."""
    return [event for event in json.loads(wakeful("events", "--json").stdout)["items"] if event["kind"] != "acted"]


def test_runs_are_drawn_from_what_the_agent_did_before_and_nothing_that_is_stored_changes(office):
    for number in range(6):
        office.end(office.begin("wren"), exit_code=number % 2)
    before = stored()
    answer, rows = told("--days", "0.3")
    assert answer["continued"]
    assert set(rows["wren"]["outcomes"]) == {"done", "failed"}
    # Who has no past is done each time.
    assert set(rows["moss"]["outcomes"]) == {"done"}
    assert stored() == before
    assert not told("--days", "0.1", "--blank")[0]["continued"]


def test_who_always_fails_is_quarantined_and_told_when(office):
    office.end(office.begin("wren"), exit_code=1)
    _, rows = told("--days", "0.3")
    assert rows["wren"]["outcomes"] == {"failed": rows["wren"]["runs"]} and rows["wren"]["runs"] <= 6
    assert rows["wren"]["quarantined_at"]
    shown = wakeful("simulate", "--days", "0.3")
    assert "QUARANTINED" in shown.stdout and shown.stderr == ""


def test_a_pause_holds_there_too(office):
    wakeful("pause", "wren", "--reason", "lunch")
    _, rows = told("--days", "0.5")
    assert "wren" not in rows or rows["wren"]["runs"] == 0
    assert rows["moss"]["runs"] > 20


def test_with_an_engine_the_copy_is_asked_of_it(served):
    assert told("--days", "0.1")[0]["continued"]
    assert served.tokens


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--takes", "10"], "--takes: "),
        (["--days", "0"], "days"),
        (["--fleet", "nowhere.org"], "there is no fleet file"),
    ],
)
def test_a_mistake_is_told(fleet, words, reason):
    fleet(drawer("wren", interval="1h"))
    result = wakeful("simulate", *words)
    assert (result.exit_code, reason in result.stderr) == (2, True), result.output


def test_a_fleet_that_cannot_be_used_is_told(fleet):
    fleet("* wren\n:PROPERTIES:\n:INTERVAL: 10\n:END:\n")
    assert wakeful("simulate").exit_code == 2
