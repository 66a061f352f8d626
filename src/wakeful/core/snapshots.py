"""A list that is polled, as its address in ON says it: `snapshot+exec:tools/pending#every=30s`.

Laws:
- What stands behind `#` is for us, as in any address: it is never sent. Everything before it is where the list is.
- Nothing secret stands in an address: a token is named by the variable that holds it.
- The name under which the things of a list are kept changes with where the list is, and not with its options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from wakeful.core.durations import parse_duration
from wakeful.core.endpoints import sent
from wakeful.core.errors import Mistake

PREFIX = "snapshot+"
PROGRAM = "snapshot+exec:PROGRAM#every=30s"
URL = "snapshot+https://HOST/PATH#every=1m&token=ENV_NAME"
SHAPES: Mapping[str, str] = {
    "snapshot+exec": PROGRAM,
    "snapshot+http": URL.replace("https", "http"),
    "snapshot+https": URL,
}

EVERY = timedelta(minutes=1)
# What a task list calls those that wait for somebody; an entry that says another status waits for nobody.
PENDING = ("assigned", "accepted")

_OPTIONS = ("every", "status", "token")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAddress:
    """Either `program` (a path, from the fleet file) or `url` is set; `token` names a variable."""

    name: str
    program: str | None = None
    url: str | None = None
    every: timedelta = EVERY
    token: str | None = None
    pending: tuple[str, ...] = PENDING


def is_snapshot(address: str) -> bool:
    return address.partition(":")[0].lower() in SHAPES


def read_snapshot(address: str) -> SnapshotAddress:
    """Mistakes do not repeat the address: whoever shows it knows what in it must not be shown."""
    try:
        parts = urlsplit(address)
        # Reading the port is what validates it.
        if parts.port == 0:
            raise ValueError
    except ValueError:
        raise Mistake("not an address", f"write {URL}") from None
    shape = SHAPES.get(parts.scheme)
    if shape is None:
        raise Mistake("not the address of a snapshot", f"write {' or '.join(SHAPES.values())}")
    options = _options(parts.fragment, shape)
    every = parse_duration(options["every"][0]) if "every" in options else EVERY
    pending = tuple(dict.fromkeys(options.get("status", PENDING)))
    if parts.scheme == "snapshot+exec":
        if "token" in options:
            raise Mistake("a program takes no token", "name the variable in ENV, and remove token=")
        return SnapshotAddress(name=_name(parts), program=_program(parts), every=every, pending=pending)
    token = options["token"][0] if "token" in options else None
    return SnapshotAddress(name=_name(parts), url=_url(parts), every=every, token=token, pending=pending)


def _options(fragment: str, shape: str) -> Mapping[str, Sequence[str]]:
    try:
        pairs = parse_qsl(fragment, keep_blank_values=True, strict_parsing=bool(fragment), max_num_fields=20)
    except ValueError:
        raise Mistake("the options behind # are not name=value", f"write {shape}") from None
    options: dict[str, list[str]] = {}
    for key, value in pairs:
        if key not in _OPTIONS:
            raise Mistake(f"unknown option {key[:40]!r}", f"use {', '.join(_OPTIONS)}: {shape}")
        if not value:
            raise Mistake(f"the option {key} is empty", f"write {shape}")
        if key in options and key != "status":
            raise Mistake(f"the option {key} is there twice", "keep one of them")
        options.setdefault(key, []).append(value)
    return options


def _program(parts: SplitResult) -> str:
    if parts.netloc or parts.path.startswith("//"):
        raise Mistake("a program has no host", f"write {PROGRAM}, with the path from the fleet file")
    if parts.query:
        raise Mistake("a program has no parameters", "write a program of its own that calls it with them")
    try:
        program = unquote(parts.path, errors="strict")
    except UnicodeDecodeError:
        program = ""
    if not program.strip("/") or "\0" in program:
        raise Mistake("no program is named", f"write {PROGRAM}")
    return program


def _url(parts: SplitResult) -> str:
    if not parts.hostname:
        raise Mistake("no host is named", f"write {URL}")
    return sent(parts, parts.scheme.removeprefix(PREFIX))


def _name(parts: SplitResult) -> str:
    """A query may hold what others should not read: its hash tells two lists of one address apart as well."""
    query = f"?{sha256(parts.query.encode()).hexdigest()[:12]}" if parts.query else ""
    host = f"//{parts.netloc.lower()}" if parts.netloc else ""
    return f"{parts.scheme}:{host}{parts.path}{query}"
