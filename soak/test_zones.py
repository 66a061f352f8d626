"""Twelve time zones, seven years, minute by minute: every schedule fires when the wall clock says so."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.core.test_cron import ELAPSED, FIXED, MINUTE, chain, numbers
from wakeful.core.cron import parse_schedule

ZONES = [
    *("UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Havana", "America/St_Johns"),
    *("Africa/Cairo", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Africa/Casablanca"),
]
START, END = datetime(2024, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)


def expected(zone: ZoneInfo, expressions: list[str]) -> dict[str, list[datetime]]:
    """One walk along the wall for all. A reading is new once: when the wall first comes to it or jumps over it."""
    fires: dict[str, list[datetime]] = {expression: [] for expression in expressions}
    fields = {each: [numbers(*pair) for pair in zip(each.split(), (59, 23), strict=False)] for each in expressions}
    elapsed = {each: each.split()[1].startswith("*") for each in expressions}
    before = START - MINUTE * 1440
    latest = before.astimezone(zone).replace(tzinfo=None, fold=0)
    for ahead in range(1, (END - before) // MINUTE):
        moment = before + MINUTE * ahead
        reading = moment.astimezone(zone).replace(tzinfo=None, fold=0)
        new = [latest + MINUTE * each for each in range(1, (reading - latest) // MINUTE + 1)]
        latest = max(latest, reading)
        if moment < START:
            continue
        for expression, (minutes, hours) in fields.items():
            readings = [reading] if elapsed[expression] else new
            if any(each.minute in minutes and each.hour in hours for each in readings):
                fires[expression].append(moment)
    return fires


@pytest.mark.parametrize("name", ZONES)
def test_every_schedule_fires_when_the_wall_clock_says_for_seven_years(name):
    zone = ZoneInfo(name)
    expressions = [*FIXED[:4], *ELAPSED[:1], *ELAPSED[2:5]]
    for expression, fires in expected(zone, expressions).items():
        assert chain(parse_schedule(expression), zone, START, END) == fires, expression
