"""Settings as a person types and reads them: `10m`, `12`, `$5`, `20/10m`.

Laws:
- What may be set on a live agent is every limit and policy that a fleet file may declare, under the same names and read
  by the same readers; `-` and `_` are the same, and the names of `core.agents` are understood too.
- What is shown can be typed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from wakeful.core.agents import LIVE_POLICIES, Agent, Declared, Limits, RetryPolicy
from wakeful.core.codec import encode
from wakeful.core.durations import format_duration
from wakeful.core.errors import Mistake
from wakeful.core.windows import DAYS, Window
from wakeful.core.wording import nearest, quoted
from wakeful.fleet import values
from wakeful.fleet.keys import BY_NAME, KEYS, Key, Part
from wakeful.fleet.values import MILLIONTHS, Reader

NOTHING = "none"

# Where a value comes from, the nearest last.
DEFAULT, FLEET, AGENT, OVERRIDE = "default", "fleet", "agent", "override"

# What the fleet file's readers give several fields for, or under another name.
_FIELDS: dict[str, tuple[str, ...]] = {
    "MAX-MINUTES-PER-DAY": ("minutes_per_day", "minutes_declared"),
    "BURST": ("burst", "burst_window"),
    "RESERVE": ("reserve_usd", "reserve_tokens"),
    "RETRY-BASE": ("retry_base",),
    "RETRY-JITTER": ("retry_jitter",),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One name that may be set; `fields` are those of `Limits` or the policies that it fills."""

    name: str
    fields: tuple[str, ...]
    key: Key

    def read(self, written: str) -> dict[str, Any]:
        """The fields with their values, as the store takes them."""
        text = written.strip()
        if self.name == "quiet_hours" and text.lower() == NOTHING:
            return {"quiet_hours": ()}
        parts = [part.strip() for part in self.key.split.split(text)] if self.key.split else [text]
        found = [_read(self.key, part) for part in parts if part]
        if not found:
            raise Mistake(f"expected a value, found {quoted(written)}", "write one, or nothing to take it back")
        if isinstance(found[0], Mapping):
            # What was typed is the whole of it: a half that was set before and is not named is taken back.
            return self.taken_back() | {field: value for each in found for field, value in each.items()}
        return {self.fields[0]: tuple(found) if self.key.split else found[0]}

    def taken_back(self) -> dict[str, Any]:
        return dict.fromkeys(self.fields)


def _read(key: Key, text: str) -> Any:
    # A person at a keyboard writes the sign; a file has it in the key.
    bare = text[1:].strip() if text.startswith("$") and key.read in (values.dollars, values.reserve) else text
    try:
        return key.read(bare)
    except (ValueError, ArithmeticError):
        raise Mistake("expected a sensible value, found one out of all bounds", "write a smaller one") from None


def _spelled(key: str) -> str:
    return key.lower().replace("-", "_")


def _settings() -> dict[str, Setting]:
    found = {}
    for key in KEYS:
        if key.part in (Part.limits, Part.retries) or key.field in LIVE_POLICIES:
            found[_spelled(key.name)] = Setting(_spelled(key.name), _FIELDS.get(key.name) or (key.field,), key)
    # Only the core names this one: how long an agent that started too often is held.
    pause = Key("BURST-PAUSE", values.duration, Part.limits, "burst_pause")
    return found | {"burst_pause": Setting("burst_pause", ("burst_pause",), pause)}


SETTINGS = _settings()


def _own_reader(name: str, reader: Reader) -> Setting:
    return Setting(name, (name,), Key(name, reader, Part.limits, name))


# One field by itself, where the file's key fills two.
_FIELD_ALONE = {
    "burst_window": _own_reader("burst_window", values.duration),
    "reserve_usd": _own_reader("reserve_usd", values.dollars),
    "reserve_tokens": _own_reader("reserve_tokens", BY_NAME["RUN-TOKENS"].read),
}
_BY_FIELD = {setting.fields[0]: setting for setting in SETTINGS.values()} | _FIELD_ALONE


def setting(name: str) -> Setting:
    spelled = _spelled(name.strip())
    known = SETTINGS.get(spelled) or _BY_FIELD.get(spelled)
    if known is not None:
        return known
    if spelled.upper().replace("_", "-") in BY_NAME:
        raise Mistake(
            f"{name} cannot be set on a live agent", "change it in the fleet file, which is read again at once"
        )
    near = nearest(spelled, [*SETTINGS, *_BY_FIELD]) if len(spelled) <= 64 else None
    raise Mistake(
        f"unknown setting {quoted(name)}", f"did you mean {near}?" if near else f"known are {', '.join(SETTINGS)}"
    )


def read_settings(written: Mapping[str, str | float | None]) -> dict[str, Any]:
    """Everything that a person typed, or nothing of it."""
    if not written:
        raise Mistake("nothing to set", "write a setting and its value, such as cooldown=10m")
    read: dict[str, Any] = {}
    for name, value in written.items():
        known = setting(name)
        if value is not None and not isinstance(value, (str, int, float)):
            raise Mistake(f"{name}: expected one value, found {quoted(str(value))}", "write it as text")
        text = "" if value is None else str(value)
        try:
            given = known.read(text) if text.strip() else known.taken_back()
        except Mistake as mistake:
            raise Mistake(f"{name}: {mistake.reason}", mistake.remedy) from None
        if read.keys() & given.keys():
            raise Mistake(f"{known.name} is said twice", "say each setting once")
        read |= given
    return read


# ---- what is shown


def shown(agent: Agent, overrides: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Each setting with its value as it would be typed, where that comes from, the exact values behind it, and what
    would hold without the override."""
    current, default = _values(agent), _values(Agent(name="-", address="-"))
    declared, origins = _values(agent.declared or agent), dict(agent.origins)
    told = {}
    for known in SETTINGS.values():
        exact = {field: current[field] for field in known.fields}
        below = {field: declared[field] for field in known.fields}
        named = {origins[field] for field in known.fields if field in origins}
        # Whoever declares an agent in another way than by a file declares it for that agent.
        unnamed = DEFAULT if all(default[field] == value for field, value in below.items()) else AGENT
        origin = AGENT if AGENT in named else FLEET if named else unnamed
        replaces = None
        if set(known.fields) & set(overrides):
            replaces = {"value": _written(known, below), "origin": origin}
            origin = OVERRIDE
        told[known.name] = {
            "value": _written(known, exact),
            "origin": origin,
            "exact": encode(exact),
            "replaces": replaces,
        }
    return told


def _values(said: Agent | Declared) -> dict[str, Any]:
    limits = {field.name: getattr(said.limits, field.name) for field in fields(Limits)}
    retries: RetryPolicy = said.retries
    policies = {"max_retries": retries.max_retries, "retry_base": retries.base, "retry_jitter": retries.jitter}
    return limits | policies | {"max_failures": said.max_failures}


def _written(known: Setting, exact: Mapping[str, Any]) -> str | None:
    if known.name in _IN_WORDS:
        return _IN_WORDS[known.name](exact)
    value = exact[known.fields[0]]
    if value is None:
        return None
    if known.key.read is values.dollars:
        return _dollars(value)
    return format_duration(value) if isinstance(value, timedelta) else f"{value:g}" if _is_float(value) else str(value)


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def _dollars(millionths: int) -> str:
    return f"${millionths / MILLIONTHS:.6f}".rstrip("0").rstrip(".")


def _burst(exact: Mapping[str, Any]) -> str:
    return f"{exact['burst']}/{format_duration(exact['burst_window'])}"


def _reserve(exact: Mapping[str, Any]) -> str | None:
    usd, tokens = exact["reserve_usd"], exact["reserve_tokens"]
    parts = [_dollars(usd)] if usd is not None else []
    parts += [f"{tokens} tokens"] if tokens is not None else []
    return ", ".join(parts) or None


def _quiet_hours(exact: Mapping[str, Any]) -> str:
    return ", ".join(map(_window, exact["quiet_hours"])) or NOTHING


def _window(window: Window) -> str:
    if window.start is not None and window.end is not None:
        return f"{_instant(window.start)}/{_instant(window.end)}"
    days = ",".join(DAYS[day][:3].capitalize() for day in window.days)
    hours = f"{_clock(window.start_minute or 0)}-{_clock(window.end_minute or 0)}"
    return f"{days} {hours}".strip()


def _instant(moment: Any) -> str:
    return str(moment.isoformat()).replace("+00:00", "Z")


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


_IN_WORDS: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "burst": _burst,
    "reserve": _reserve,
    "quiet_hours": _quiet_hours,
}
