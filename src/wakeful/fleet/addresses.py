"""URLs in a fleet file: event sources, HTTP runners, the store.

The sources themselves live elsewhere; here is only what their addresses must look like.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlsplit

from wakeful.core.errors import Mistake
from wakeful.fleet import diagnostics
from wakeful.fleet.diagnostics import nearest
from wakeful.fleet.values import environment

# scheme -> (the shape to write, does it name HOST:PORT, its parameters)
SOURCES: dict[str, tuple[str, bool, tuple[str, ...]]] = {
    "webhook": ("webhook://NAME?preset=github&secret=ENV_NAME", False, ("preset", "secret")),
    "kafka": ("kafka://HOST:PORT/TOPIC?group=G", True, ("group",)),
    "sqs": ("sqs://QUEUE", False, ()),
    "redis": ("redis://HOST:PORT/STREAM?group=G", True, ("group",)),
    "nats": ("nats://HOST:PORT/STREAM?durable=D", True, ("durable",)),
}
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
PASSWORD = re.compile(r"//[^/@\s]*@")


def quoted(written: str) -> str:
    """Addresses may hold a password; it is not shown."""
    return diagnostics.quoted(PASSWORD.sub("//…@", written[:1_000]))


def source(written: str) -> str:
    parts = _split(written)
    if parts.scheme not in SOURCES:
        near = nearest(parts.scheme, SOURCES) if parts.scheme else None
        remedy = f"write {SOURCES[near][0]}" if near else f"use one of {', '.join(f'{name}://' for name in SOURCES)}"
        raise Mistake(f"unknown event source {quoted(written)}", remedy)
    shape, hosted, parameters = SOURCES[parts.scheme]
    if hosted and not (parts.hostname and parts.path.strip("/")):
        raise Mistake(f"{quoted(written)} lacks a host or a name after it", f"write {shape}")
    if not hosted and not SOURCE_NAME.fullmatch(parts.netloc):
        raise Mistake(f"{quoted(written)} does not name its source", f"write {shape}")
    for key, value in _parameters(parts, written):
        if key not in parameters:
            raise Mistake(f"unknown parameter {quoted(key)} in {quoted(written)}", f"write {shape}")
        if not value:
            raise Mistake(f"the parameter {key} of {quoted(written)} is empty", f"write {shape}")
        if key == "secret":
            environment(value)
    return written


def endpoint(written: str) -> str:
    parts = _split(written)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Mistake(f"expected an address of http or https, found {quoted(written)}", "write http://HOST:PORT/PATH")
    return written


def store(written: str) -> str:
    if written == "sqlite":
        return written
    parts = _split(written)
    if parts.scheme != "postgresql" or not (parts.netloc or parts.path.strip("/") or parts.query):
        raise Mistake(f"unknown store {quoted(written)}", "write sqlite or postgresql://USER@HOST/DATABASE")
    return written


def _split(written: str) -> SplitResult:
    try:
        parts = urlsplit(written)
        # Reading the port is what validates it.
        if parts.port == 0:
            raise ValueError
    except ValueError:
        raise Mistake(f"{quoted(written)} is not an address", "write scheme://HOST:PORT/NAME") from None
    if re.search(r"\s", written):
        raise Mistake(f"{quoted(written)} has a space in it", "write one address without spaces")
    return parts


def _parameters(parts: SplitResult, written: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), max_num_fields=20)
    except ValueError:
        raise Mistake(
            f"the parameters of {quoted(written)} are not name=value", "write ?name=value&name=value"
        ) from None
