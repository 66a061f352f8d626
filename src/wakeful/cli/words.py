"""Times, durations and states in plain words. `now` is an argument; times are shown in the reader's own zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

DAY = 86_400


def read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def lasting(duration: timedelta | float) -> str:
    """The two largest units: `45s`, `2m 13s`, `1h 5m`, `3d 2h`."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    whole = max(int(seconds), 0)
    parts = []
    for unit, size in (("d", DAY), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, whole = divmod(whole, size)
        parts.append((amount, unit))
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    first, *rest = parts[:2]
    written = [f"{first[0]}{first[1]}", *(f"{amount}{unit}" for amount, unit in rest if amount)]
    return " ".join(written)


def clock(text: str | None, now: datetime) -> str:
    """`14:05` today, `Tue 14:05` within the week, else with the date."""
    if text is None:
        return "-"
    at, here = read_time(text).astimezone(), now.astimezone()
    if at.date() == here.date():
        return f"{at:%H:%M}" if abs(at - here) >= timedelta(minutes=2) else f"{at:%H:%M:%S}"
    if abs(at - here) < timedelta(days=6):
        return f"{at:%a %H:%M}"
    return f"{at:%Y-%m-%d %H:%M}"


def until(text: str, now: datetime) -> str:
    """`in 4m`, or `now` when it has come."""
    left = ceil((read_time(text) - now).total_seconds())
    return f"in {lasting(left)}" if left > 0 else "now"


def ago(text: str, now: datetime) -> str:
    return f"{lasting(now - read_time(text))} ago"


def numbers(found: dict[str, object]) -> str:
    """`used 5, limit 5`."""
    return ", ".join(f"{name} {_number(value)}" for name, value in found.items())


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def up_words(names: list[str]) -> str:
    """`2 nodes are up (barn-x9k2, desk-ab12)`."""
    if not names:
        return "no node is up"
    shown = ", ".join([*names[:5], "…"] if len(names) > 5 else names)
    return f"{counted(len(names), 'node')} {'is' if len(names) == 1 else 'are'} up ({shown})"
