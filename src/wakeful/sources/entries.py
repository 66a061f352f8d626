"""A list as others print it, and the things in it that are pending.

Laws:
- Understood: an array, an object with `items` or `tasks`, or an object on each line; an entry is an object with an `id`
  or a `task_id`, or the bare id.
- A list is understood whole or not at all: one entry that is not clear makes all of it unknown, because to leave an
  entry out would say that it is gone.
- An entry waits for nobody while its `status` is not one of those that count as pending, while it is `blocked`, or
  while something that it depends on stands unfinished in the same list. When that clears, it is news, although
  nothing in the entry has changed.
- Without a `fingerprint` of its own an entry has changed when anything in it has; the order of its keys is nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NoReturn

from wakeful.core.items import Observation
from wakeful.core.snapshots import PENDING
from wakeful.sources import text
from wakeful.sources.aside import Unreadable

LONGEST_ID = 500
LONGEST_SUBJECT = 500
LONGEST_BODY = 64 * 1024

_LISTS = ("items", "tasks")
_IDS = ("id", "task_id")
_SUBJECTS = ("title", "subject")
_BODIES = ("body", "payload", "description")
_NEEDS = ("depends_on", "dependencies")
# What is said of an entry, and not in it.
_ABOUT = frozenset({*_IDS, *_SUBJECTS, *_BODIES, "fingerprint", "not_before", "blocked"})
_FINISHED = frozenset({"done", "completed", "verified", "closed", "resolved", "cancelled"})

Entry = Mapping[str, Any]


def read_list(printed: bytes, *, pending: Sequence[str] = PENDING, by_lines: bool = True) -> tuple[Observation, ...]:
    """Without `by_lines` only one whole document is a list: of lines, a part would look whole."""
    entries: dict[str, Entry] = {}
    for number, value in enumerate(_values(printed, by_lines), 1):
        entry = value if isinstance(value, dict) else {"id": value}
        id = _id(entry, number)
        if id in entries:
            raise Unreadable(f"the list has two entries with the id {id!r}")
        entries[id] = entry
    standing = {id for id, entry in entries.items() if _status(id, entry) not in _FINISHED}
    try:
        return tuple(
            _observation(id, entry)
            for id, entry in sorted(entries.items())
            if _is_pending(id, entry, pending) and not (_needs(id, entry) & standing)
        )
    except RecursionError:
        raise Unreadable("the list is nested too deep") from None


def _values(printed: bytes, by_lines: bool) -> list[Any]:
    try:
        content = printed.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("the list is not UTF-8") from None
    if not content.strip():
        raise Unreadable("nothing was printed; where nothing is pending, print []")
    try:
        document = _parsed(content)
    except ValueError as error:
        # Not splitlines: a text of JSON may hold the rarer ends of lines as they are.
        lines = [line for line in content.split("\n") if line.strip()]
        if not by_lines or len(lines) < 2:
            raise Unreadable(f"the list is not JSON: {text.sentence(str(error))}") from None
        return list(_lines(lines))
    return _entries(document)


def _lines(lines: Sequence[str]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        try:
            yield _parsed(line)
        except ValueError as error:
            raise Unreadable(f"line {number} of the list is not JSON: {text.sentence(str(error))}") from None


def _entries(document: Any) -> list[Any]:
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        found = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), None)
        if found is not None:
            if document.get("next"):
                raise Unreadable("the list goes on (next); print all of it")
            return list(found)
        if any(key in document for key in _IDS):
            return [document]
    raise Unreadable("expected a list, or an object with items")


def _parsed(content: str) -> Any:
    try:
        return json.loads(content, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _id(entry: Entry, number: int) -> str:
    value = next((entry[key] for key in _IDS if entry.get(key) is not None), None)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise Unreadable(f"entry {number} of the list has no id that is a text or a whole number")
    id = text.name(str(value))
    if len(id) > LONGEST_ID:
        raise Unreadable(f"the id of entry {number} of the list is longer than {LONGEST_ID} characters")
    return id


def _is_pending(id: str, entry: Entry, pending: Sequence[str]) -> bool:
    blocked = entry.get("blocked")
    if not isinstance(blocked, bool | None):
        raise Unreadable(f"the entry {id!r} is blocked neither true nor false")
    status = _status(id, entry)
    return not blocked and (status is None or status in pending)


def _status(id: str, entry: Entry) -> str | None:
    status = entry.get("status")
    if not isinstance(status, str | None):
        raise Unreadable(f"the status of the entry {id!r} is not a text")
    return status


def _needs(id: str, entry: Entry) -> set[str]:
    """The ids that it waits for; what is not in the list stands in nobody's way."""
    needs: Any = next((entry[key] for key in _NEEDS if entry.get(key) is not None), [])
    if not isinstance(needs, list):
        raise Unreadable(f"the entry {id!r} depends on what is not a list")
    named = (
        need if not isinstance(need, dict) else next((need[key] for key in _IDS if key in need), "") for need in needs
    )
    return {text.name(str(need)) for need in named} - {id}


def _observation(id: str, entry: Entry) -> Observation:
    not_before = _not_before(id, entry)
    fingerprint = entry.get("fingerprint")
    if fingerprint is None:
        said: Any = {key: value for key, value in entry.items() if key != "blocked"}
    elif isinstance(fingerprint, str | int | float):
        # When it is to ring is part of what it is: a later or an earlier instant must reach the store.
        said = [fingerprint, entry.get("not_before")]
    else:
        raise Unreadable(f"the fingerprint of the entry {id!r} is neither a text nor a number")
    return Observation(
        external_id=id,
        fingerprint=sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32],
        subject=_subject(id, entry),
        body=_body(entry),
        not_before=not_before,
    )


def _not_before(id: str, entry: Entry) -> datetime | None:
    value = entry.get("not_before")
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None or not 1970 <= moment.year < 9999:
            raise ValueError
    except (ValueError, TypeError):
        raise Unreadable(f"not_before of the entry {id!r} is no instant with a time zone") from None
    return moment.astimezone(UTC)


def _subject(id: str, entry: Entry) -> str:
    found = next((entry[key] for key in _SUBJECTS if isinstance(entry.get(key), str) and entry[key].strip()), None)
    subject = text.line(found) if found else id
    return subject if len(subject) <= LONGEST_SUBJECT else subject[:LONGEST_SUBJECT] + "…"


def _body(entry: Entry) -> str:
    found: Any = next((entry[key] for key in _BODIES if entry.get(key) is not None), None)
    if found is None:
        found = entry if entry.keys() - _ABOUT else ""
    whole = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=1)
    body = text.whole(whole)
    if len(body) <= LONGEST_BODY:
        return body
    return f"{body[:LONGEST_BODY]}\n[cut here: it has {len(body):,} characters]"
