"""How PostgreSQL keeps what Python holds: a text may hold any character, and many rows are one parameter.

PostgreSQL's texts cannot hold NUL. It is written as two characters, of which the first is never a character of any
text: U+FDD0 is set apart by Unicode for such uses. One that is in a text all the same is written as two as well, so
that everything comes back as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from psycopg.abc import AdaptContext, Buffer
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown, TextLoader

from wakeful.store.session import Row

_MARK = "\ufdd0"
_MARK_BYTES = _MARK.encode()


def written(text: str) -> str:
    if "\x00" in text or _MARK in text:
        return text.replace(_MARK, f"{_MARK}1").replace("\x00", f"{_MARK}0")
    return text


def read(text: str) -> str:
    return text.replace(f"{_MARK}0", "\x00").replace(f"{_MARK}1", _MARK)


def listed(values: Iterable[Any]) -> str:
    """An array, as the server reads one."""
    return "{" + ",".join([_quoted(value) if isinstance(value, str) else str(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    return '"' + written(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def tabled(rows: Sequence[Row]) -> str:
    """Rows as JSON, for a statement that takes many at once. Only ASCII, in which no character is written as two."""
    text = json.dumps(rows, separators=(",", ":"))
    if "\\u" in text:
        # Where nothing but ASCII is in the texts there is nothing to look after.
        rows = [{key: _kept(value) for key, value in row.items()} for row in rows]
        text = json.dumps(rows, separators=(",", ":"))
    return text


def _kept(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # Half of a pair of surrogates is no character, here as in a parameter of its own.
    value.encode()
    return written(value)


class _WriteText(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(written(obj))


class _ReadText(TextLoader):
    def load(self, data: Buffer) -> Any:
        text = super().load(data)
        return read(text) if isinstance(text, str) and _MARK_BYTES in bytes(data) else text


def adapt(context: AdaptContext) -> None:
    """For statements that psycopg itself makes: whatever is bound has one type, whatever its size."""
    adapters = context.adapters
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(str, _WriteText)
    # Free text is VARCHAR in our schema, and only that; names and marks take the faster way.
    adapters.register_loader("varchar", _ReadText)
