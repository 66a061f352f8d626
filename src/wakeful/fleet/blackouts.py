"""`pulse_blackouts`: windows in which a pulse-driven agent rests, in the spellings that its users have.

    - {type: recurring, start_time: "23:00", end_time: "07:00", days_of_week: [1, 2], label: night}
    - {type: one-off, start: 2026-12-24T18:00:00Z, end: 2026-12-27T08:00:00Z}

Day 0 is Sunday. `one_off` with `start_time` and `end_time` means the same as the second. Where no type is given, times
of the day make it recurring, whichever of the keys they have; so is a plain `23:00-07:00`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wakeful.core.errors import Mistake
from wakeful.core.windows import Window, parse_window
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.tree import Mapping, Raw, Scalar, Sequence, described, distinct, printed_key
from wakeful.fleet.values import instant

FIELDS = ("TYPE", "LABEL", "START-TIME", "END-TIME", "START", "END", "DAYS-OF-WEEK")
CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}")
CLOCKS = re.compile(rf"{CLOCK.pattern}\s*-")
DIGITS = re.compile(r"[0-9]{1,6}")
LONGEST_LABEL = 200


class _At(Exception):
    """A mistake with the value it is about."""

    def __init__(self, place: Raw, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.place = place
        self.mistake = Mistake(reason, remedy)


def read_blackouts(key: Scalar, value: Raw, notes: Notes) -> tuple[Window, ...]:
    if isinstance(value, Scalar) and value.empty:
        return ()
    if not isinstance(value, Sequence):
        notes.error(
            value,
            f"{printed_key(key)}: expected a list, found {described(value)}",
            "begin each window with - type:",
        )
        return ()
    windows = []
    for item in value.items:
        try:
            windows.append(_window(item, notes))
        except _At as error:
            notes.mistake(error.place, error.mistake, printed_key(key))
    return tuple(windows)


def _window(item: Raw, notes: Notes) -> Window:
    if isinstance(item, Scalar) and CLOCKS.match(item.text.strip()):
        try:
            return parse_window(item.text.strip())
        except Mistake as mistake:
            raise _At(item, mistake.reason, mistake.remedy) from None
    if not isinstance(item, Mapping):
        raise _At(item, f"expected a window, found {described(item)}", "write type:, start_time: and end_time:")
    fields: dict[str, Raw] = {}
    for name, key, value in distinct(item.pairs, notes):
        if name not in FIELDS:
            near = notes.nearest(name, FIELDS)
            guess = f"did you mean {_spelled(near)}?" if near else f"its keys are {', '.join(map(_spelled, FIELDS))}"
            raise _At(key, f"unknown key {printed_key(key)} in a window", guess)
        fields[name] = value
    label = _text(fields["LABEL"])[:LONGEST_LABEL] if "LABEL" in fields else ""
    window = _one_off(item, fields) if _is_one_off(fields) else _recurring(item, fields)
    return replace(window, label=label)


def _spelled(name: str) -> str:
    return name.lower().replace("-", "_")


def _is_one_off(fields: dict[str, Raw]) -> bool:
    if "TYPE" not in fields:
        given = [fields[name] for name in ("START", "END") if name in fields]
        return any(not CLOCK.fullmatch(_text(value)) for value in given)
    kind = _text(fields["TYPE"]).lower().replace("_", "-")
    if kind not in ("recurring", "one-off"):
        raise _At(
            fields["TYPE"],
            f"expected recurring or one-off, found {described(fields['TYPE'])}",
            "write recurring or one-off",
        )
    return kind == "one-off"


def _one_off(item: Mapping, fields: dict[str, Raw]) -> Window:
    if "DAYS-OF-WEEK" in fields:
        raise _At(fields["DAYS-OF-WEEK"], "a one-off window has no days of the week", "remove days_of_week")
    start = _either(item, fields, "START", "START-TIME")
    end = _either(item, fields, "END", "END-TIME")
    try:
        begin = instant(_text(start))
    except Mistake as mistake:
        raise _At(start, mistake.reason, mistake.remedy) from None
    try:
        finish = instant(_text(end))
    except Mistake as mistake:
        raise _At(end, mistake.reason, mistake.remedy) from None
    if finish <= begin:
        raise _At(end, "the window ends before it has started", "put the earlier instant first")
    return Window(start=begin, end=finish)


def _recurring(item: Mapping, fields: dict[str, Raw]) -> Window:
    for name in ("START", "END"):
        if name in fields and "TYPE" in fields:
            raise _At(fields[name], f"a recurring window has {name.lower()}_time", f"write {name.lower()}_time")
    start, end = _either(item, fields, "START", "START-TIME"), _either(item, fields, "END", "END-TIME")
    days = _days(fields["DAYS-OF-WEEK"]) if "DAYS-OF-WEEK" in fields else ()
    try:
        window = parse_window(f"{_clock(start)}-{_clock(end)}")
    except Mistake as mistake:
        raise _At(start, mistake.reason, mistake.remedy) from None
    return replace(window, days=days)


def _clock(value: Raw) -> str:
    written = _text(value)
    if CLOCK.fullmatch(written):
        return written
    if DIGITS.fullmatch(written):
        raise _At(
            value,
            f"expected a time such as 23:00, found the number {written}",
            f'quote the time: "{_guess(written)}"',
        )
    raise _At(value, f"expected a time, found {described(value)}", 'write it as "23:00"')


def _guess(number: str) -> str:
    """What the number was before a reader of YAML 1.1 took `23:00` for 1380, or `23:00:00` for 82800."""
    amount = int(number)
    minutes = amount if amount <= 1_440 else amount // 60
    return f"{minutes // 60:02}:{minutes % 60:02}" if minutes <= 1_440 else "23:00"


def _days(value: Raw) -> tuple[int, ...]:
    days = set()
    for item in value.items if isinstance(value, Sequence) else (value,):
        written = _text(item)
        if written not in {"0", "1", "2", "3", "4", "5", "6"}:
            raise _At(item, f"expected a day from 0 (Sunday) to 6, found {described(item)}", "write [1, 2, 3, 4, 5]")
        days.add((int(written) + 6) % 7)
    return tuple(sorted(days))


def _either(item: Mapping, fields: dict[str, Raw], *names: str) -> Raw:
    for name in names:
        if name in fields:
            return fields[name]
    wanted = _spelled(names[-1])
    raise _At(item, f"this window has no {wanted}", f"write {wanted}:")


def _text(value: Raw) -> str:
    if isinstance(value, Scalar):
        return value.text.strip()
    raise _At(value, f"expected one value, found {described(value)}", "write one value")
