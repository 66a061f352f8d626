"""Wall clocks and instants.

Law: between two changes of its offset a zone's wall clock runs straight. Whoever searches the wall clock
goes from change to change (`reach`) and looks again at each one; repeated hours, skipped hours and skipped
days need no further rule.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
# No zone changes its offset twice within a week.
STRIDE = timedelta(days=7)


def wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """What the clock on the wall reads: naive, with its fold."""
    return moment.astimezone(zone).replace(tzinfo=None)


def instant(reading: datetime, zone: ZoneInfo) -> datetime:
    """When the wall clock first reads this; a skipped reading counts at the end of the gap."""
    moment = reading.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if wall(moment, zone) == reading:
        return moment
    before = reading.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return change(before, moment, zone) or moment


def reach(moment: datetime, reading: datetime, zone: ZoneInfo) -> datetime:
    """When the wall clock, running straight, comes to a later `reading`, or a change of offset before."""
    ahead = moment + (reading - wall(moment, zone))
    return change(moment, ahead, zone) or ahead


def change(after: datetime, until: datetime, zone: ZoneInfo) -> datetime | None:
    """The first change of offset in (after, until], if any."""
    offset = after.astimezone(zone).utcoffset()
    low = after
    while low < until:
        high = min(low + STRIDE, until)
        if high.astimezone(zone).utcoffset() != offset:
            return _bisect(low, high, zone)
        low = high
    return None


def _bisect(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    offset = low.astimezone(zone).utcoffset()
    before, after = int(low.timestamp()), int(high.timestamp())
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return datetime.fromtimestamp(after, UTC)
