"""The `config.yml` of pulse-driven agents, read as it stands: each of its keys becomes one of ours.

    coordination: wake_guardrails: ...       COOLDOWN, MAX-WAKES-PER-DAY, -PAIR, MAX-MINUTES-PER-DAY
    coordination: max_concurrent_...         SESSIONS
    pulse_enabled, pulse_interval_minutes    ENABLED, INTERVAL
    pulse_offset_minutes, pulse_one_offs     OFFSET, AT
    pulse_blackouts                          QUIET-HOURS
    pulse_container_timeout_ms               TIMEOUT

Law: a mistake in a value is told in the words of the file that was written, not in ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from wakeful.core.errors import Mistake
from wakeful.fleet.blackouts import read_blackouts
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.tree import Entry, Mapping, Pair, Raw, Scalar, Sequence, described, distinct, printed_key
from wakeful.fleet.values import NUMBER, instant, switch

GUARDRAILS = (
    "COOLDOWN-SECONDS",
    "MAX-DAILY-SESSION-MINUTES",
    "MAX-WAKES-PER-DAY",
    "MAX-WAKES-PER-PAIR-PER-DAY",
)
COORDINATION = ("MAX-CONCURRENT-PULSE-SESSIONS", "WAKE-GUARDRAILS")
PULSE = (
    "COORDINATION",
    "PULSE-ENABLED",
    "PULSE-INTERVAL-MINUTES",
    "PULSE-OFFSET-MINUTES",
    "PULSE-BLACKOUTS",
    "PULSE-ONE-OFFS",
    "PULSE-CONTAINER-TIMEOUT-MS",
)
# Its remaining keys, and why they mean nothing here.
UNUSED = {
    "MODEL": "the model is chosen by the RUN command",
    "PLANNING-MODEL": "the model is chosen by the RUN command",
    "EXECUTOR-MODEL": "the model is chosen by the RUN command",
    "THINKING-MODEL": "the model is chosen by the RUN command",
    "THREAD-MODE": "a run has no threads",
    "PULSE-COLUMNS": "a board's columns are chosen by the definition",
    "PULSE-MAX-CONSECUTIVE-SKIPS": "every deferred beat is recorded with its reason",
    "PULSE-TRANSITIONS-TO": "a board's transitions are chosen by the definition",
}


def is_pulse(name: str) -> bool:
    return name in PULSE or name.startswith("PULSE-")


def translated(name: str, key: Scalar, value: Raw, notes: Notes, *, fleet: bool) -> Iterator[Entry]:
    """Our entries for one of its keys."""
    match name:
        case "COORDINATION":
            yield from _coordination(key, value, notes, fleet=fleet)
        case "PULSE-ENABLED":
            yield from _read("ENABLED", key, value, notes)
        case "PULSE-INTERVAL-MINUTES":
            yield from _spans("INTERVAL", key, value, timedelta(minutes=1), (1, 525_600), notes)
        case "PULSE-OFFSET-MINUTES":
            yield from _spans("OFFSET", key, value, timedelta(minutes=1), (0, 525_600), notes)
        case "PULSE-CONTAINER-TIMEOUT-MS":
            yield from _spans("TIMEOUT", key, value, timedelta(milliseconds=1), (1_000, 86_400_000), notes)
        case "PULSE-BLACKOUTS":
            yield Entry("QUIET-HOURS", key, value, known=read_blackouts(key, value, notes))
        case "PULSE-ONE-OFFS":
            yield Entry("AT", key, value, known=_one_offs(key, value, notes))


def _coordination(key: Scalar, value: Raw, notes: Notes, *, fleet: bool) -> Iterator[Entry]:
    for name, inner, found in _fields(key, value, COORDINATION, notes):
        if name == "WAKE-GUARDRAILS":
            yield from _guardrails(inner, found, notes)
        elif fleet:
            yield from _counts("SESSIONS", inner, found, (1, 10_000), notes)
        else:
            notes.warn(
                inner,
                f"{printed_key(inner)} of one agent is not used: an agent has one open run",
                "write sessions: at the top for the fleet",
            )


def _guardrails(key: Scalar, value: Raw, notes: Notes) -> Iterator[Entry]:
    for name, inner, found in _fields(key, value, GUARDRAILS, notes):
        match name:
            case "COOLDOWN-SECONDS":
                yield from _spans("COOLDOWN", inner, found, timedelta(seconds=1), (0, 86_400), notes)
            case "MAX-DAILY-SESSION-MINUTES":
                yield from _counts("MAX-MINUTES-PER-DAY", inner, found, (1, 1_440), notes)
            case "MAX-WAKES-PER-DAY":
                yield from _counts("MAX-WAKES-PER-DAY", inner, found, (0, 1_000_000), notes)
            case "MAX-WAKES-PER-PAIR-PER-DAY":
                yield from _counts("MAX-WAKES-PER-PAIR", inner, found, (0, 1_000_000), notes)


def _fields(key: Scalar, value: Raw, known: tuple[str, ...], notes: Notes) -> Iterator[tuple[str, Scalar, Raw]]:
    if not isinstance(value, Mapping):
        notes.error(value, f"{printed_key(key)}: expected a mapping, found {described(value)}", _example(known))
        return
    pairs: tuple[Pair, ...] = value.pairs
    for name, inner, found in distinct(pairs, notes):
        if name in known:
            yield name, inner, found
            continue
        near = notes.nearest(name, known)
        remedy = f"did you mean {_lower(near)}?" if near else _example(known)
        notes.error(inner, f"unknown key {printed_key(inner)} in {printed_key(key)}", remedy)


def _read(name: str, key: Scalar, value: Raw, notes: Notes) -> Iterator[Entry]:
    try:
        if not isinstance(value, Scalar):
            raise Mistake(f"expected yes or no, found {described(value)}", "write true or false")
        yield Entry(name, key, value, known=switch(value.text))
    except Mistake as mistake:
        notes.mistake(value, mistake, printed_key(key))


def _number(key: Scalar, value: Raw, bounds: tuple[int, int], notes: Notes) -> float | None:
    least, most = bounds
    if isinstance(value, Scalar) and NUMBER.fullmatch(value.text) and least <= float(value.text) <= most:
        return float(value.text)
    notes.error(
        value,
        f"{printed_key(key)}: expected a number from {least} to {most}, found {described(value)}",
        "write the number alone, without a unit",
    )
    return None


def _counts(name: str, key: Scalar, value: Raw, bounds: tuple[int, int], notes: Notes) -> Iterator[Entry]:
    number = _number(key, value, bounds, notes)
    if number is None:
        return
    if number != int(number):
        notes.error(value, f"{printed_key(key)}: expected a whole number, found {number}", "drop the fraction")
        return
    known: object = int(number)
    if name == "MAX-MINUTES-PER-DAY":
        known = {"minutes_per_day": number, "minutes_declared": True}
    yield Entry(name, key, value, known=known)


def _spans(
    name: str, key: Scalar, value: Raw, unit: timedelta, bounds: tuple[int, int], notes: Notes
) -> Iterator[Entry]:
    number = _number(key, value, bounds, notes)
    if number is not None:
        yield Entry(name, key, value, known=unit * number)


def _one_offs(key: Scalar, value: Raw, notes: Notes) -> tuple[object, ...]:
    if isinstance(value, Scalar) and value.empty:
        return ()
    moments: list[object] = []
    for item in value.items if isinstance(value, Sequence) else (value,):
        try:
            if not isinstance(item, Scalar):
                raise Mistake(f"expected an instant, found {described(item)}", "write it as 2026-12-24T18:00:00Z")
            moments.append(instant(item.text))
        except Mistake as mistake:
            notes.mistake(item, mistake, printed_key(key))
    return tuple(moments)


def _lower(name: str) -> str:
    return name.lower().replace("-", "_")


def _example(known: tuple[str, ...]) -> str:
    return f"its keys are {', '.join(_lower(name) for name in known)}"
