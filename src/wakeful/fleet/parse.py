"""The worth of an entry: its raw value read by the reader of its key, with every mistake placed.

Law: equal text under one key is read once; a fleet of many agents says the same few things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from wakeful.core.errors import Mistake
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.folder import Folder
from wakeful.fleet.keys import BY_NAME, Key
from wakeful.fleet.tree import Entries, Entry, Raw, Scalar, Sequence, described, printed_key

Values = dict[str, object]
EMPTY = re.compile(r"\s*")


class Worth:
    def __init__(self, notes: Notes, folder: Folder, keys: Mapping[str, Key] = BY_NAME) -> None:
        self.notes = notes
        self.keys = keys
        self.folder = folder
        self._read: dict[tuple[str, str], object] = {}

    def read(self, entries: Entries) -> Values:
        """The values by canonical name; what is broken is told and left out."""
        values: Values = {}
        for name, entry in entries.items():
            value = self.known(entry)
            if value is None:
                value = self._fresh(entry)
            if value is not None:
                values[name] = value
        return values

    def known(self, entry: Entry) -> object | None:
        """The value if it needs no reading any more."""
        if entry.known is not None or not isinstance(entry.value, Scalar):
            return entry.known
        return self._read.get((entry.name, entry.value.text))

    def _fresh(self, entry: Entry) -> object | None:
        key, value = self.keys[entry.name], entry.value
        if isinstance(value, Scalar) and value.empty:
            if key.may_be_empty:
                return ""
            self.notes.error(value, f"{printed_key(entry.key)} has no value", "give it one, or remove the line")
            return None
        before = self.notes.errors
        found = self._several(key, entry) if key.split else self._one(key, value, entry)
        if self.notes.errors > before:
            return None
        if isinstance(value, Scalar):
            self._read[(entry.name, value.text)] = found
        return found

    def _several(self, key: Key, entry: Entry) -> object:
        found: list[object] = []
        for part in _parts(key, entry.value):
            value = self._one(key, part, entry)
            if value is not None and value not in found:
                found.append(value)
        if found and all(isinstance(value, dict) for value in found):
            return {field: value for one in found if isinstance(one, dict) for field, value in one.items()}
        return tuple(found)

    def _one(self, key: Key, value: Raw, entry: Entry) -> object | None:
        try:
            if not isinstance(value, Scalar):
                raise Mistake(f"expected one value, found {described(value)}", "write one value on the line of its key")
            found = _guarded(key, value.text.strip())
            if key.path:
                self.folder.check(key, str(found))
            return found
        except Mistake as mistake:
            self.notes.mistake(value, mistake, printed_key(entry.key))
            return None


def _guarded(key: Key, text: str) -> object:
    """Arithmetic on absurd numbers is a mistake of the file as well."""
    try:
        return key.read(text)
    except (ValueError, ArithmeticError):
        raise Mistake("expected a sensible value, found one out of all bounds", "write a smaller one") from None


def _parts(key: Key, value: Raw) -> Iterator[Raw]:
    """The values of a key that takes several, each at its own place."""
    if isinstance(value, Sequence):
        for item in value.items:
            yield from _parts(key, item) if isinstance(item, Scalar) else (item,)
        return
    if not isinstance(value, Scalar) or key.split is None:
        yield value
        return
    start = 0
    for end, after in [*(found.span() for found in key.split.finditer(value.text)), (len(value.text), 0)]:
        part = value.text[start:end]
        if part.strip():
            blank = len(part) - len(part.lstrip())
            offset = 0 if "\n" in value.text else start + blank
            yield Scalar(part.strip(), value.line, value.column + offset, value.plain)
        start = after
