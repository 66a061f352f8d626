"""Instants as a person writes them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from wakeful.core.errors import Mistake
from wakeful.core.moments import read_moment

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ZONE = ZoneInfo("UTC")


def test_a_time_of_day_is_the_next_one_or_where_the_past_is_asked_for_the_last_one():
    assert read_moment("11:30", NOON, ZONE) == NOON + timedelta(hours=23, minutes=30)
    assert read_moment("11:30", NOON, ZONE, past=True) == NOON - timedelta(minutes=30)
    assert read_moment("12:30", NOON, ZONE, past=True) == NOON - timedelta(hours=23, minutes=30)


def test_the_seconds_that_every_listing_prints_are_understood():
    assert read_moment("11:59:58", NOON, ZONE, past=True) == NOON - timedelta(seconds=2)


@pytest.mark.parametrize("written", ["24:00", "12:60", "12:00:60", "noon"])
def test_what_is_no_time_is_refused_with_what_to_write(written):
    with pytest.raises(Mistake, match="write"):
        read_moment(written, NOON, ZONE, past=True)
