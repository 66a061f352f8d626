"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.durations import format_duration, parse_duration
from wakeful.core.errors import Mistake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45s", timedelta(seconds=45)),
        ("10m", timedelta(minutes=10)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("1h30m", timedelta(minutes=90)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        (" 10M ", timedelta(minutes=10)),
        ("90m", timedelta(minutes=90)),
    ],
)
def test_a_duration_is_read_with_its_units(text, expected):
    assert parse_duration(text) == expected


def test_a_bare_number_is_refused_with_both_readings_offered():
    with pytest.raises(Mistake) as mistake:
        parse_duration("10")
    assert mistake.value.remedy == "write 10m for minutes or 10s for seconds"


@pytest.mark.parametrize("text", ["", "0s", "0", "-5m", "-5", "1.5h", "10min", "10 m", "m", "5m1h", "1m1m", "1h30"])
def test_what_is_not_a_duration_is_refused_with_a_remedy(text):
    with pytest.raises(Mistake) as mistake:
        parse_duration(text)
    assert repr(text) in mistake.value.reason
    assert mistake.value.remedy


@pytest.mark.parametrize("text", ["9" * 30 + "s", "9" * 5000 + "s", "4000d", "٣m"])
def test_an_absurd_duration_is_a_mistake_and_not_a_crash(text):
    with pytest.raises(Mistake):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(45, "45s"), (60, "1m"), (90, "1m30s"), (5400, "1h30m"), (86_400, "1d"), (0, "0s")],
)
def test_a_duration_is_written_in_its_shortest_form(seconds, expected):
    assert format_duration(timedelta(seconds=seconds)) == expected


def test_a_negative_duration_is_written_with_its_sign():
    assert format_duration(timedelta(seconds=-90)) == "-1m30s"


@given(st.integers(min_value=1, max_value=3_650 * 86_400))
def test_whole_seconds_survive_writing_and_reading(seconds):
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration


@given(st.text())
def test_any_text_is_either_a_duration_above_zero_or_a_mistake(text):
    try:
        assert parse_duration(text) > timedelta()
    except Mistake as mistake:
        assert mistake.remedy
