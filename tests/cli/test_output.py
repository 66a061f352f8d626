"""The one way to the terminal, and the words that go over it."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.cli.office import EVIL
from wakeful.cli.output import Span, clean, one_line, say_json, say_lines
from wakeful.cli.words import clock, lasting, numbers, until

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
