"""The one way to the terminal, and the words that go over it."""

import json
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.cli.office import EVIL, ROOT
from wakeful.cli.output import Span, clean, one_line, say_json, say_lines
from wakeful.cli.words import clock, lasting, numbers, spent_words, told_of, until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;evil\x07title", "]0;eviltitle"),
        ("\x9b2Jcleared", "2Jcleared"),
        ("10%\r20%\r\ndone", "10%\n20%\ndone"),
        ("a\x00b\x08c\x7fd", "abcd"),
        ("safe \u202eexe.txt", "safe exe.txt"),
        ("é ✓ 漢", "é ✓ 漢"),
    ],
)
def test_text_is_shown_without_what_a_terminal_would_obey(written, shown):
    assert clean(written) == shown


@given(some.text())
def test_no_text_at_all_keeps_a_control_character_but_newline_and_tab(text):
    assert all(char in "\n\t" or (char >= " " and not "\x7f" <= char <= "\x9f") for char in clean(text))
    assert "\n" not in one_line(text) and len(one_line(text, 10)) <= 10


def test_json_is_ascii(capsys):
    say_json({"text": EVIL + "é\u2028"})
    printed = capsys.readouterr().out
    assert printed.isascii() and "\x1b" not in printed
    assert json.loads(printed)["text"] == EVIL + "é\u2028"


def test_into_a_pipe_nothing_is_coloured(capsys):
    say_lines([[Span("wren", "bold red"), Span(f" {EVIL}", "")]])
    assert capsys.readouterr().out.startswith("wren ]0;evil red")


def test_on_a_terminal_our_own_colours_stay_and_the_agents_do_not(capsys, monkeypatch):
    monkeypatch.setattr("wakeful.cli.output.has_colours", lambda: True)
    say_lines([[Span("wren\x1b[5m", "bold red")]])
    assert capsys.readouterr().out == "\x1b[31m\x1b[1mwren\x1b[0m\n"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0s"), (59.9, "59s"), (133, "2m 13s"), (240, "4m"), (3_900, "1h 5m"), (3_601, "1h"), (266_400, "3d 2h")],
)
def test_durations_are_told_in_their_two_largest_units(seconds, words):
    assert lasting(timedelta(seconds=seconds)) == lasting(seconds) == words


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (NOON + timedelta(minutes=125), "14:05"),
        (NOON + timedelta(seconds=30), "12:00:30"),
        (NOON + timedelta(days=1), "Tue 12:00"),
        (NOON + timedelta(days=30), "2026-04-01 12:00"),
    ],
)
def test_instants_are_told_as_far_as_they_are_away(at, words):
    assert clock(at.isoformat(), NOON) == words
    assert clock(None, NOON) == "-"


def test_what_comes_is_told_as_a_wait():
    assert until((NOON + timedelta(minutes=20, seconds=-0.3)).isoformat(), NOON) == "in 20m"
    assert until(NOON.isoformat(), NOON) == until("2026-03-01T00:00:00Z", NOON) == "now"


def test_numbers_are_told_by_their_names():
    assert numbers({"used": 5, "limit": 5.0, "scope": "fleet"}) == "used 5, limit 5, scope fleet"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"seconds": 1.72114, "limit": 300.0}, "seconds 1.72, limit 300"),
        ({"seconds": 12345.6}, "seconds 12346"),
        ({"unit": "fleet_usd", "spent": 0.9, "limit": 1.0}, "unit fleet_usd, spent $0.90, limit $1.00"),
        ({"unit": "tokens", "spent": 900_000}, "unit tokens, spent 900000"),
    ],
)
def test_numbers_are_as_exact_as_a_person_wants_them(found, words):
    assert numbers(found) == words


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (
            {"usd": 0.42, "tokens": 12_000, "of_usd": 5.0, "of_tokens": None},
            "spent today $0.42 of $5.00, 12,000 tokens",
        ),
        ({"usd": 0.0, "tokens": 0, "of_usd": None, "of_tokens": 9_000}, "spent today $0.00, 0 of 9,000 tokens"),
        ({"usd": 0.0, "tokens": 0, "of_usd": None, "of_tokens": None}, ""),
        (None, ""),
    ],
)
def test_what_was_spent_is_told_where_there_is_something_to_tell(spent, words):
    assert spent_words(spent) == words


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"outcome": "failed", "summary": "{}", "reason": "exit code 3"}, "exit code 3; {}"),
        ({"outcome": "killed", "summary": "", "reason": "ended by operator"}, "ended by operator"),
        ({"outcome": "done", "summary": "ok", "reason": "it used $2.00"}, "ok; it used $2.00"),
        ({"outcome": "failed", "summary": "same", "reason": "same"}, "same"),
        ({"outcome": None, "summary": "", "reason": ""}, ""),
    ],
)
def test_of_a_run_that_did_not_end_well_the_reason_stands_first(run, words):
    assert told_of(run) == words


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_streams_are_closed_does_its_work(office, closed):
    command = f"exec {shlex.quote(sys.executable)} -m wakeful status {closed}"
    ended = subprocess.run(
        ["sh", "-c", command],
        cwd=office.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
