"""Instants as a person writes them: `2026-12-24T18:00Z`, `14:30`, `in 20m`.

Law: a time of day is the nearest one on the agent's own wall clock, of those to come or of those that have been, as the
question wants it; a bare duration is never guessed to be an instant, unless the question is for how long.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.durations import read_duration
from wakeful.core.errors import Mistake
from wakeful.core.wording import quoted
from wakeful.core.zones import instant, wall

_TIME_OF_DAY = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_IN = re.compile(r"in\s+(\S+)", re.IGNORECASE)
_WRITE = ("write 2026-12-24T18:00Z, 14:30 or: in 20m", "write 2026-12-24T18:00Z, 14:30 or 14:30:15")
_BARE = re.compile(r"(?:[0-9]+[smhd])+", re.IGNORECASE)


def read_instant(written: str) -> datetime:
    """With its time zone, and of a year that a calendar can reckon with."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        raise Mistake(f"expected an instant, found {quoted(written)}", "write it as 2026-12-24T18:00Z") from None
    if moment.tzinfo is None:
        raise Mistake(f"{quoted(written)} does not say its time zone", "end it with Z or with +01:00")
    if not 1970 <= moment.year < 9999:
        raise Mistake(f"expected a year from 1970 to 9998, found {quoted(written)}", "mend the year")
    return moment.astimezone(UTC)


def read_moment(written: str, now: datetime, zone: ZoneInfo, *, past: bool = False) -> datetime:
    """Which may lie in the past where it was written as an instant; with `past` a time of day does too."""
    text = written.strip()
    if found := _TIME_OF_DAY.fullmatch(text):
        return _nearest(text, [int(part or 0) for part in found.groups()], now, zone, past)
    if found := _IN.fullmatch(text):
        return now + read_duration(found[1])
    if _BARE.fullmatch(text):
        raise Mistake(f"expected an instant, found the duration {quoted(text)}", f"write: in {text}")
    try:
        return read_instant(text)
    except Mistake:
        if _has_no_zone(text):
            raise
        raise Mistake(f"expected an instant, found {quoted(text)}", _WRITE[past]) from None


def _has_no_zone(text: str) -> bool:
    """An instant but for its zone: the reader's own complaint says so best."""
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def read_later(written: str, now: datetime, zone: ZoneInfo) -> datetime:
    """An instant that is still to come."""
    moment = read_moment(written, now, zone)
    if moment <= now:
        raise Mistake(
            f"{quoted(written)} is {moment.isoformat()}, which lies in the past",
            "write a later instant; to run now, tick the agent",
        )
    return moment


def read_end(written: str, now: datetime, zone: ZoneInfo) -> datetime:
    """Until when: an instant that is still to come, or for how long from now."""
    if _BARE.fullmatch(written.strip()):
        return now + read_duration(written.strip())
    moment = read_moment(written, now, zone)
    if moment <= now:
        raise Mistake(f"{quoted(written)} is {moment.isoformat()}, which lies in the past", "write a later instant")
    return moment


def _nearest(written: str, parts: list[int], now: datetime, zone: ZoneInfo, past: bool) -> datetime:
    hour, minute, second = parts
    if hour > 23 or minute > 59 or second > 59:
        raise Mistake(f"there is no time {written}", "write hours from 00:00 to 23:59")
    today = wall(now, zone).date()
    # The first that is still to come, or the last that was; of a repeated hour the first reading counts, as everywhere.
    for days in range(3):
        day = today + timedelta(days=-days if past else days)
        moment = instant(datetime.combine(day, time(hour, minute, second)), zone)
        if moment <= now if past else moment > now:
            return moment
    raise AssertionError(f"no {written} within two days of {now}")
