"""`wakeful runs` and `wakeful decisions`: the past by what it says, page by page."""

import json

import pytest

from tests.cli.office import wakeful
from wakeful.cli.output import say_older


def test_runs_and_decisions_are_looked_for_by_their_words(office):
    run = office.begin("wren")
    wakeful("pause", "moss", "--reason", "geese on the lawn")
    wakeful("tick", "moss")

    def found(*words):
        return json.loads(wakeful(*words, "--json").stdout)["items"]

    assert [row["id"] for row in found("runs", "--cause", "operator")] == [run]
    assert found("runs", "--outcome", "failed") == []
    assert [row["run_id"] for row in found("decisions", "--verdict", "admit")] == [run]
    assert found("decisions", "--cause", "peer") == []
    assert found("decisions", "--since", "2020-01-01T00:00Z", "--until", "2020-01-02T00:00Z") == []
    assert len(found("decisions", "wren", "--text", "WREN")) == 1


def test_a_guard_that_there_is_not_is_told_with_those_there_are(office):
    result = wakeful("decisions", "--guard", "coldown")
    assert result.exit_code == 2 and "cooldown" in result.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"agent": None, "limit": 20, "before": None}, "older: wakeful runs --before 7\n"),
        (
            {"agent": "wren", "open": True, "cause": None, "text": "two words", "limit": 20, "before": 9},
            "older: wakeful runs wren --open --text 'two words' --before 7\n",
        ),
    ],
)
def test_the_next_page_is_asked_for_by_the_same_words(given, told, capsys):
    say_older("runs", {"next": 7}, given)
    say_older("runs", {"next": None}, given)
    assert capsys.readouterr().out == told
