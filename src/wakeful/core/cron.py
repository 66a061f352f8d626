"""Cron schedules as instants.

Laws:
- A fixed local time fires once: a skipped one at the end of the gap, a repeated one the first time.
- A schedule whose hour is a wildcard (`*`, `*/2`) follows elapsed time: it fires whenever the wall clock
  matches, twice in a repeated hour and not in a skipped one.
- No instant fires twice.

cronsim searches the plain calendar here, without zones. Zones are ours: its own handling misses instants
where an offset changes by half an hour, and answers with the past inside a repeated hour.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from wakeful.core.errors import Mistake
from wakeful.core.zones import SECOND, instant, reach, wall

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = {
    "minute": "0-59, such as 30 or */15",
    "hour": "0-23, such as 9 or */2",
    "day-of-month": "1-31, such as 1,15 or L for the last",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, such as MON-FRI",
}
LONGEST_TEXT = 200
ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)
HORIZON = timedelta(days=5 * 366)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Five cron fields; make one with `parse_schedule`."""

    expression: str

    def after(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """The first instant strictly after `moment`."""
        follows_elapsed_time = self.expression.split()[1].startswith("*")
        return self._matching(moment, zone) if follows_elapsed_time else self._fixed(moment, zone)

    def last(self, moment: datetime, zone: ZoneInfo) -> datetime | None:
        """The latest instant not after `moment`, if there is one within about five years."""
        found, ceiling = self.after(moment - HORIZON, zone), moment
        if found > moment:
            return None
        while ceiling - found > SECOND:
            middle = found + (ceiling - found) / 2
            later = self.after(middle, zone)
            if later <= moment:
                found = later
            else:
                ceiling = middle
        return found

    def _fixed(self, moment: datetime, zone: ZoneInfo) -> datetime:
        # A reading ahead of the wall clock may be past already: it came by before the hour was repeated.
        readings = self._readings(wall(moment, zone))
        return next(found for reading in readings if (found := instant(reading, zone)) > moment)

    def _matching(self, moment: datetime, zone: ZoneInfo) -> datetime:
        reading = next(self._readings(wall(moment, zone)))
        while wall(moment, zone) != reading:
            moment = reach(moment, reading, zone)
            reading = next(self._readings(wall(moment, zone) - SECOND))
        return moment

    def _readings(self, reading: datetime) -> Iterator[datetime]:
        """Every later reading of a clock that never changes."""
        yield from CronSim(self.expression, reading.replace(fold=0))
        raise Mistake(f"the schedule {self.expression!r} never fires", "mend its day and month")


def parse_schedule(text: str) -> Schedule:
    written = " ".join(text.split())
    if len(written) > LONGEST_TEXT:
        raise Mistake(f"a schedule of {len(written)} characters is too long", f"write at most {LONGEST_TEXT}")
    if written.startswith("@") and written.lower() not in MACROS:
        raise Mistake(f"unknown schedule {written!r}", f"use {', '.join(MACROS)} or five fields")
    fields = MACROS.get(written.lower(), written).split()
    if len(fields) != len(FIELDS):
        reason = f"a schedule has five fields, found {len(fields)} in {text!r}"
        remedy = "leave out the seconds" if len(fields) == 6 else "write minute, hour, day, month and weekday"
        raise Mistake(reason, f"{remedy}, such as 30 9 * * *")
    schedule = Schedule(" ".join(fields))
    if complaint := _complaint(schedule):
        raise Mistake(*_blame(fields, complaint))
    return schedule


def _complaint(schedule: Schedule) -> str:
    """What cronsim says against it, such as `Bad hour`."""
    try:
        next(schedule._readings(ANY_DAY))
    except CronSimError as error:
        return str(error)
    return ""


def _blame(fields: list[str], complaint: str) -> tuple[str, str]:
    name = complaint.removeprefix("Bad ")
    minute, hour, day, month, weekday = fields
    if name == "day-of-month" and not _complaint(Schedule(f"{minute} {hour} {day} * {weekday}")):
        return f"month {month} has no day {day}: the schedule would never fire", "mend its day or its month"
    found = dict(zip(FIELDS, fields, strict=True)).get(name, "")
    return f"the {name} of the schedule cannot be {found!r}", f"write {FIELDS.get(name, 'five fields')}"
