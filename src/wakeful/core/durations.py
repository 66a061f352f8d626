"""Durations as people write them: `45s`, `10m`, `2h`, `1d`, and joined, largest first: `1h30m`.

Law: a number without a unit is never guessed. `parse_duration(format_duration(d)) == d` for whole seconds.
"""

import re
from datetime import timedelta

from wakeful.core.errors import Mistake
from wakeful.core.wording import quoted

UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
LONGEST = timedelta(days=3_650)

_WHOLE = re.compile(r"(?:[0-9]{1,18}[a-z]+)+")
_PART = re.compile(r"([0-9]+)([a-z]+)")


def parse_duration(text: str) -> timedelta:
    written = text.strip().lower()
    if re.fullmatch(r"[-+]?[0-9]+", written):
        number = written.lstrip("+-0") or "10"
        raise Mistake(
            f"expected a duration with a unit, found {text!r}",
            f"write {number}m for minutes or {number}s for seconds",
        )
    if not _WHOLE.fullmatch(written):
        raise Mistake(f"expected a duration, found {text!r}", "write it as 45s, 10m, 2h, 1d or 1h30m")
    parts = _PART.findall(written)
    for _, unit in parts:
        if unit not in UNITS:
            raise Mistake(f"unknown unit {unit!r} in the duration {text!r}", "write it as 45s, 10m, 2h or 1d")
    units = [unit for _, unit in parts]
    if units != [unit for unit in UNITS if unit in units]:
        raise Mistake(
            f"the units of the duration {text!r} are out of order or repeated",
            "write each unit once, largest first, such as 1d2h30m",
        )
    seconds = sum(int(amount) * UNITS[unit] for amount, unit in parts)
    if seconds == 0:
        raise Mistake(f"expected a duration above zero, found {text!r}", "write at least 1s")
    if seconds > LONGEST.total_seconds():
        raise Mistake(f"the duration {text!r} is longer than {LONGEST.days}d", "write a shorter one")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """The shortest form; fractions of a second are dropped."""
    seconds = int(duration.total_seconds())
    if seconds < 0:
        return "-" + format_duration(-duration)
    written = ""
    for unit, size in UNITS.items():
        amount, seconds = divmod(seconds, size)
        written += f"{amount}{unit}" if amount else ""
    return written or "0s"


def lasting(duration: timedelta | float) -> str:
    """For a person, by the two largest units: `45s`, `2m 13s`, `1h 5m`, `3d 2h`."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    whole = max(int(seconds), 0)
    parts = []
    for unit, size in UNITS.items():
        amount, whole = divmod(whole, size)
        parts.append((amount, unit))
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    first, *rest = parts[:2]
    written = [f"{first[0]}{first[1]}", *(f"{amount}{unit}" for amount, unit in rest if amount)]
    return " ".join(written)


def read_duration(written: str) -> timedelta:
    """As a stranger may have written it: above zero, and nothing absurd."""
    if written.startswith("-"):
        raise Mistake(f"expected a duration above zero, found {quoted(written)}", "write it without the minus")
    if len(written) > 40:
        raise Mistake(f"expected a duration, found {quoted(written)}", "write it as 45s, 10m, 2h or 1d")
    return parse_duration(written)
