"""The checkers' own calendar: days, windows and schedules, worked out afresh from `zoneinfo`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from wakeful.core.windows import Window

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def reading(moment: datetime, zone: str) -> datetime:
    """What a clock on the wall of that zone shows."""
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def day_label(moment: datetime, zone: str) -> str:
    return reading(moment, zone).date().isoformat()


def within(window: Window, moment: datetime, zone: str) -> bool:
    if window.start is not None and window.end is not None:
        return window.start <= moment < window.end
    assert window.start_minute is not None and window.end_minute is not None
    shown = reading(moment, zone)
    minute = shown.hour * 60 + shown.minute
    today = not window.days or shown.weekday() in window.days
    if window.start_minute < window.end_minute:
        return today and window.start_minute <= minute < window.end_minute
    yesterday = not window.days or (shown.weekday() - 1) % 7 in window.days
    return (today and minute >= window.start_minute) or (yesterday and minute < window.end_minute)


def quiet(windows: tuple[Window, ...], moment: datetime, zone: str) -> bool:
    return any(within(window, moment, zone) for window in windows)


@cache
def _numbers(text: str, most: int) -> frozenset[int]:
    """One field of a schedule: `*`, `*/n`, `a`, `a,b`, `a-b`, `a-b/n`."""
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = (f"0-{most}" if span == "*" else span).partition("-")
        found.update(range(int(low), int(high or low) + 1, int(step or 1)))
    return frozenset(found)


def fires_after(expression: str, moment: datetime, zone: str) -> datetime:
    """The first instant after `moment` of a schedule that names only minutes and hours."""
    minute, hour, *rest = expression.split()
    assert rest == ["*", "*", "*"], f"the checkers know no days in schedules: {expression}"
    minutes, hours = _numbers(minute, 59), _numbers(hour, 23)
    if hour.startswith("*"):
        return _matching(minutes, hours, moment, zone)
    first = reading(moment, zone).date() - DAY
    instants = (_instant(first + DAY * ahead, at, zone) for ahead in range(5) for at in _times(minutes, hours))
    return min(instant for instant in instants if instant > moment)


def _times(minutes: frozenset[int], hours: frozenset[int]) -> list[time]:
    return [time(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)]


def _matching(minutes: frozenset[int], hours: frozenset[int], moment: datetime, zone: str) -> datetime:
    instant = moment.replace(second=0, microsecond=0)
    while True:
        instant += MINUTE
        shown = reading(instant, zone)
        if shown.minute in minutes and shown.hour in hours:
            return instant


def _instant(day: date, at: time, zone: str) -> datetime:
    """A fixed time of day; a repeated one the first time, a skipped one at the end of the gap."""
    wanted = datetime.combine(day, at)
    instant = wanted.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    if reading(instant, zone) == wanted:
        return instant
    instant = wanted.replace(tzinfo=ZoneInfo(zone), fold=1).astimezone(UTC)
    while reading(instant, zone) < wanted:
        instant += MINUTE
    return instant
