"""Frozen dataclasses to JSON-ready values and back, by their type hints. One codec for every stored value.

Laws:
- Times are RFC 3339 in UTC, durations are seconds, enums are their values; nothing executable is ever read.
- A field that is missing takes its default and one that is unknown is passed over, so that neighbouring
  versions can read each other.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_SCALARS = frozenset({str, int, float, bool, type(None)})


def encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, datetime):
        return write_time(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (tuple, list)):
        return [encode(part) for part in value]
    if isinstance(value, dict):
        return {key: encode(part) for key, part in value.items()}
    if is_dataclass(value):
        return _encode_dataclass(value)
    raise TypeError(f"cannot encode {type(value).__name__}")


def _encode_dataclass(value: Any) -> dict[str, Any]:
    told = {}
    for name, default in _shape(value.__class__):
        part = getattr(value, name)
        if part is not default and part != default:
            told[name] = part if part.__class__ in _SCALARS else encode(part)
    return told


def decode(kind: type[T], value: Any) -> T:
    result: T = _decode(kind, value)
    return result


def _decode(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _decode(next(part for part in get_args(kind) if part is not type(None)), value)
    if origin is tuple:
        return tuple(_decode(get_args(kind)[0], part) for part in value)
    if origin is dict:
        return {key: _decode(get_args(kind)[1], part) for key, part in value.items()}
    if kind is datetime:
        return read_time(value)
    if kind is timedelta:
        return timedelta(seconds=value)
    if is_dataclass(kind):
        return _decode_dataclass(kind, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    return value


def _decode_dataclass(kind: Any, value: dict[str, Any]) -> Any:
    hints = _hints(kind)
    return kind(**{name: _decode(hints[name], part) for name, part in value.items() if name in hints})


def write_time(moment: datetime) -> str:
    """RFC 3339, UTC, always with microseconds: texts of one length compare as their instants do."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='microseconds')[:-6]}Z"


def read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _shape(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, _default(field)) for field in fields(kind))


def _default(field: Field[Any]) -> Any:
    return field.default if field.default is not MISSING else MISSING
