"""How PostgreSQL keeps what Python holds: every int is a bigint, and a text may hold any character.

PostgreSQL's texts cannot hold NUL. It is written as two characters, of which the first is never a character of any
text: U+FDD0 is set apart by Unicode for such uses. One that is in a text all the same is written as two as well, so
that everything comes back as it was.
"""

from __future__ import annotations

from typing import Any

from psycopg.abc import AdaptContext, Buffer
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown, TextLoader

_MARK = "\ufdd0"
_MARK_BYTES = _MARK.encode()


def written(text: str) -> str:
    if "\x00" in text or _MARK in text:
        return text.replace(_MARK, f"{_MARK}1").replace("\x00", f"{_MARK}0")
    return text


def read(text: str) -> str:
    return text.replace(f"{_MARK}0", "\x00").replace(f"{_MARK}1", _MARK)


class _WriteText(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(written(obj))


class _ReadText(TextLoader):
    def load(self, data: Buffer) -> Any:
        text = super().load(data)
        return read(text) if isinstance(text, str) and _MARK_BYTES in bytes(data) else text


def adapt(context: AdaptContext) -> None:
    """Whatever is bound has one type, whatever its size, so that a statement is prepared once."""
    adapters = context.adapters
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(str, _WriteText)
    # Free text is VARCHAR in our schema, and only that; names and marks take the faster way.
    adapters.register_loader("varchar", _ReadText)
