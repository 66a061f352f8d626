"""CloudEvents 1.0 as HTTP carries them: structured, binary, or many in a batch.

Laws:
- An event is known by its `source` and `id` together, as its specification has it: whatever else differs, a second one
  with the same two is the same event.
- What is kept is the event in its JSON form, whichever way it came, so that whoever reads it need not know.
- An event that lacks what it must have is a mistake that names it; a batch is read whole or not at all, and may hold
  none. A text may hold what the specification lets it hold: all but controls and what is no character.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from wakeful.core.errors import Mistake
from wakeful.core.hooks import read_body

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
VERSION = "1.0"
# A header of the binary mode that a page of another origin cannot send unasked.
MARK = "ce-specversion"
MOST_AT_ONCE = 1_000

_PREFIX = "ce-"
_REQUIRED = ("id", "source", "type")
_TEXTS = ("id", "source", "type", "subject", "datacontenttype", "dataschema", "time")
# Controls, halves of surrogate pairs, and the last two of each plane with their like: what stands between brackets in a
# pattern, as ECMAScript and Python both read it.
NO_CHARACTERS = r"\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff" + "".join(
    chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF)
)
_NO_CHARACTER = re.compile(f"[{NO_CHARACTERS}]")
_ATTRIBUTE = re.compile(r"[a-z0-9]{1,100}")
_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json", re.IGNORECASE)
_LONGEST_SHOWN = 200
_SEE = "see the CloudEvents 1.0 specification"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """`text` is the whole event as JSON."""

    id: str
    source: str
    type: str
    subject: str | None
    text: str

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps([self.source, self.id]).encode()).hexdigest()

    @property
    def title(self) -> str:
        title = f"{self.type} {self.subject}" if self.subject else self.type
        return title if len(title) <= _LONGEST_SHOWN else title[: _LONGEST_SHOWN - 1] + "…"


def read_events(media: str, headers: Sequence[tuple[str, str]], body: bytes) -> list[CloudEvent]:
    """`media` is the content type without its parameters; the names of the headers are in small letters."""
    if media == STRUCTURED:
        return [_event(read_body(body)[1])]
    if media == BATCH:
        return _batch(read_body(body)[1])
    if is_binary(headers):
        return [_event(_from_headers(headers, body))]
    raise Mistake(
        "neither the content type nor a header ce-specversion says that this is a CloudEvent",
        f"send it as {STRUCTURED} or {BATCH}, or its attributes as ce- headers",
    )


def is_binary(headers: Sequence[tuple[str, str]]) -> bool:
    return any(name == MARK for name, _ in headers)


def _batch(said: Any) -> list[CloudEvent]:
    if not isinstance(said, list) or len(said) > MOST_AT_ONCE:
        raise Mistake(f"expected a batch of at most {MOST_AT_ONCE:,} events", "send a JSON array of events")
    events = []
    for place, entry in enumerate(said, 1):
        try:
            events.append(_event(entry))
        except Mistake as mistake:
            raise Mistake(f"event {place} of the batch: {mistake.reason}", mistake.remedy) from None
    return events


def _event(said: Any) -> CloudEvent:
    if not isinstance(said, dict):
        raise Mistake(f"an event is a JSON object, found a {type(said).__name__}", _SEE)
    version = said.get("specversion")
    if version != VERSION:
        raise Mistake(f"expected specversion {VERSION}, found {str(version)[:20]!r}", f"send CloudEvents {VERSION}")
    for name in _REQUIRED:
        if not said.get(name):
            raise Mistake(f"the event has no {name}", _SEE)
    for name, value in said.items():
        _check(name, value)
    if "data" in said and "data_base64" in said:
        raise Mistake("the event has both data and data_base64", "send one of them")
    try:
        text = json.dumps(said, ensure_ascii=False)
    except RecursionError:
        raise Mistake("the data is nested too deeply", "make it flatter") from None
    id, source, kind = (said[name] for name in _REQUIRED)
    return CloudEvent(id=id, source=source, type=kind, subject=said.get("subject"), text=text)


def _check(name: str, value: Any) -> None:
    if name == "data":
        return
    if name == "data_base64":
        try:
            b64decode(value, validate=True)
        except (TypeError, ValueError):
            raise Mistake("data_base64 is not base64", _SEE) from None
        return
    if not _ATTRIBUTE.fullmatch(name):
        raise Mistake(f"illegal name of an attribute: {name[:40]!r}", "use small letters and digits")
    if value is not None and not isinstance(value, str if name in _TEXTS else (str, int, bool)):
        raise Mistake(f"the attribute {name} is a {type(value).__name__}", "send it as text")
    if isinstance(value, str) and (found := _NO_CHARACTER.search(value)):
        raise Mistake(f"the attribute {name} holds U+{ord(found[0]):04X}, which no text may hold", "remove it")
    if name == "time" and isinstance(value, str):
        _check_time(value)


def _check_time(written: str) -> None:
    try:
        known = datetime.fromisoformat(written).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        raise Mistake("the attribute time is no instant with its zone", "write it as 2026-03-01T09:30:00Z")


def _from_headers(headers: Sequence[tuple[str, str]], body: bytes) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, value in headers:
        if name.startswith(_PREFIX):
            attribute = name.removeprefix(_PREFIX)
            if attribute in said or attribute in ("data", "data_base64", "datacontenttype"):
                raise Mistake(f"the header {name[:40]} is not to be there, or not twice", "send each attribute once")
            said[attribute] = _unescaped(value)
    media = next((value for name, value in headers if name == "content-type"), None)
    if media:
        said["datacontenttype"] = media
    if body:
        said.update(_data(media or "", body))
    return said


def _unescaped(value: str) -> str:
    """Text in a header is UTF-8, as %XX where it is not plain."""
    try:
        return unquote(value.encode("latin-1").decode(), errors="strict")
    except UnicodeDecodeError:
        raise Mistake("a header of the event is not UTF-8", "write what is not plain as %XX") from None


def _data(media: str, body: bytes) -> dict[str, Any]:
    kind = media.partition(";")[0].strip()
    if _JSON.fullmatch(kind):
        return {"data": read_body(body)[1]}
    if not kind:
        # An event that says nothing of its data has JSON, as in the structured mode; or it cannot be told.
        with suppress(Mistake):
            return {"data": read_body(body)[1]}
    if kind.lower().startswith("text/"):
        with suppress(UnicodeDecodeError):
            return {"data": body.decode()}
    return {"data_base64": b64encode(body).decode()}
