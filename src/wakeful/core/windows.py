"""Windows of wall-clock time: quiet hours, and the calendar gates of a lifecycle; and the calendar day.

Law: a moment is inside a recurring window when the wall clock of the zone says so, its start included,
its end not. An overnight window belongs to the day on which it starts. One-off windows are plain instants.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from wakeful.core.errors import Mistake
from wakeful.core.zones import reach, wall

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY = timedelta(days=1)
WHOLE_DAY = 24 * 60
# Windows may cover all time; nobody is told to wait longer than this before asking again.
LONGEST_WAIT = timedelta(days=8)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

_HOURS = re.compile(r"(?:(?P<days>[a-z,-]+) )?(?P<start>\d\d?:\d\d)-(?P<end>\d\d?:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Recurring (`start_minute`, `end_minute`, `days`) or one-off (`start`, `end`)."""

    start_minute: int | None = None
    end_minute: int | None = None
    days: tuple[int, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    label: str = ""

    def occurrences(self, reading: datetime, days: range) -> list[tuple[datetime, datetime]]:
        """The readings between which the window lies, for those days counted from the one of `reading`."""
        if self.start_minute is None or self.end_minute is None:
            return []
        midnight = datetime.combine(reading, time())
        starts = timedelta(minutes=self.start_minute)
        ends = timedelta(minutes=self.end_minute, days=self.end_minute <= self.start_minute)
        dates = (midnight + DAY * ahead for ahead in days)
        chosen = (date for date in dates if not self.days or date.weekday() in self.days)
        return [(date + starts, date + ends) for date in chosen]


def inside_until(windows: tuple[Window, ...], now: datetime, zone: ZoneInfo) -> datetime | None:
    """None when `now` is in no window, else when none applies any more, at most eight days ahead."""
    moment, bound = now, now + LONGEST_WAIT
    while moment < bound and (ends := [end for each in windows if (end := _end(each, moment, zone))]):
        moment = max(ends)
    return min(moment, bound) if moment > now else None


def never_outside(windows: tuple[Window, ...]) -> bool:
    """Whether they leave no minute of any week; one-off ones end some day."""
    recurring = tuple(window for window in windows if window.start is None)
    week = datetime(2024, 1, 1, tzinfo=UTC)
    return bool(recurring) and inside_until(recurring, week, ZoneInfo("UTC")) == week + LONGEST_WAIT


def opens_at(windows: tuple[Window, ...], now: datetime, zone: ZoneInfo) -> datetime:
    """The first instant from `now` on that lies inside a window; `NEVER` when all of them are over."""
    moment = now
    while moment < NEVER and not any(_end(window, moment, zone) for window in windows):
        moment = min((_start(window, moment, zone) for window in windows), default=NEVER)
    return moment


def _end(window: Window, moment: datetime, zone: ZoneInfo) -> datetime | None:
    """Until when the moment is surely inside: the window's end, or a change of offset on the way."""
    if window.start is not None and window.end is not None:
        return window.end if window.start <= moment < window.end else None
    reading = wall(moment, zone)
    for start, end in window.occurrences(reading, range(-1, 1)):
        if start <= reading < end:
            return reach(moment, end, zone)
    return None


def _start(window: Window, moment: datetime, zone: ZoneInfo) -> datetime:
    """Until when the moment is surely outside: the window's next start, or a change of offset on the way."""
    if window.start is not None:
        return window.start if window.start > moment else NEVER
    reading = wall(moment, zone)
    later = [start for start, _ in window.occurrences(reading, range(8)) if start > reading]
    return reach(moment, min(later), zone) if later else NEVER


def day_of(now: datetime, zone: ZoneInfo) -> str:
    return wall(now, zone).date().isoformat()


def next_day(now: datetime, zone: ZoneInfo) -> datetime:
    """When the calendar day changes: at midnight, or where midnight or the whole day is skipped, after it."""
    today = wall(now, zone).date()
    moment = now
    while wall(moment, zone).date() <= today:
        moment = reach(moment, datetime.combine(today + DAY, time()), zone)
    return moment


def spread(name: str, within: timedelta) -> timedelta:
    """A delay in [0, within) that is the same for a name on every machine and in every year."""
    share = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
    return timedelta(microseconds=within // timedelta.resolution * share >> 64)


def parse_window(text: str) -> Window:
    """`23:00-07:00`, `Mon-Fri 22:00-06:00`, `Sat,Sun 00:00-24:00`, `2026-12-24T18:00Z/2026-12-27T08:00Z`."""
    if "/" in text:
        return _parse_one_off(text)
    found = _HOURS.fullmatch(re.sub(r"\s*([-,])\s*", r"\1", " ".join(text.lower().split())))
    if not found:
        raise Mistake(
            f"expected a window of time, found {text!r}",
            "write 23:00-07:00, Mon-Fri 22:00-06:00 or 2026-12-24T18:00Z/2026-12-27T08:00Z",
        )
    start, end = _minute(found["start"]), _minute(found["end"])
    if start == WHOLE_DAY:
        raise Mistake(f"the window {text!r} starts at 24:00", "write 00:00 and the next day")
    if start == end:
        raise Mistake(f"the window {text!r} has no width", "write 00:00-24:00 for the whole day")
    return Window(start_minute=start, end_minute=end, days=_days(found["days"] or ""))


def _parse_one_off(text: str) -> Window:
    try:
        start, end = (datetime.fromisoformat(part.strip()) for part in text.split("/"))
    except ValueError:
        raise Mistake(
            f"expected two instants, found {text!r}", "write them as 2026-12-24T18:00Z/2026-12-27T08:00Z"
        ) from None
    if start.tzinfo is None or end.tzinfo is None:
        raise Mistake(f"the window {text!r} does not say its time zone", "end each instant with Z or +01:00")
    if start.year <= 1970 or end.year >= NEVER.year:
        raise Mistake(f"the window {text!r} lies before 1970 or after 9998", "mend the year")
    if start >= end:
        raise Mistake(f"the window {text!r} ends before it has started", "put the earlier instant first")
    return Window(start=start.astimezone(UTC), end=end.astimezone(UTC))


def _minute(written: str) -> int:
    hour, minute = (int(part) for part in written.split(":"))
    if minute > 59 or hour * 60 + minute > WHOLE_DAY:
        raise Mistake(f"there is no time {written}", "write hours from 00:00 to 24:00")
    return hour * 60 + minute


def _days(written: str) -> tuple[int, ...]:
    chosen: set[int] = set()
    for part in written.split(",") if written else ():
        first, _, last = part.partition("-")
        begin, finish = _day(first), _day(last or first)
        chosen.update((begin + step) % 7 for step in range((finish - begin) % 7 + 1))
    return tuple(sorted(chosen))


def _day(name: str) -> int:
    for number, day in enumerate(DAYS):
        if name in (day, day[:3]):
            return number
    raise Mistake(f"unknown day {name!r}", "write Mon, Tue, Wed, Thu, Fri, Sat or Sun")
