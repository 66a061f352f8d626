"""URLs in a fleet file: event sources, HTTP runners, the store.

The sources themselves live elsewhere; here is only what their addresses must look like.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlsplit

from wakeful.core import wording
from wakeful.core.endpoints import read_endpoint
from wakeful.core.errors import Mistake
from wakeful.core.hooks import SCHEME, read_hook
from wakeful.core.snapshots import SHAPES, is_snapshot, read_snapshot
from wakeful.core.wording import nearest
from wakeful.fleet.values import environment

# scheme -> (the shape to write, does it name HOST:PORT, its parameters)
SOURCES: dict[str, tuple[str, bool, tuple[str, ...]]] = {
    "webhook": ("webhook://NAME?preset=github&secret=ENV_NAME", False, ("preset", "secret")),
    "kafka": ("kafka://HOST:PORT/TOPIC?group=G", True, ("group",)),
    "sqs": ("sqs://QUEUE", False, ()),
    "redis": ("redis://HOST:PORT/STREAM?group=G", True, ("group",)),
    "nats": ("nats://HOST:PORT/STREAM?durable=D", True, ("durable",)),
}
# Every kind of source, with the shape to write.
KINDS = {**{scheme: shape for scheme, (shape, _, _) in SOURCES.items()}, **SHAPES}
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# A password that was not written as it must be may hold anything, also what would end it.
USER = re.compile(r"//.*@", re.DOTALL)
PASSWORD = re.compile(r"((?:password|token|secret)\s*=)[^&]*", re.IGNORECASE)


def quoted(written: str) -> str:
    """Addresses may hold a password, or a token where its name belongs; neither is shown."""
    return wording.quoted(PASSWORD.sub(r"\1…", USER.sub("//…@", written[:1_000])))


def source(written: str) -> str:
    parts = _split(written)
    if is_snapshot(written):
        return _snapshot(written)
    if parts.scheme not in SOURCES:
        near = nearest(parts.scheme, KINDS) if parts.scheme else None
        remedy = f"write {KINDS[near]}" if near else f"use one of {', '.join(KINDS)}"
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
            _check_variable(value, quoted(written), "parameter secret", "write secret=ENV_NAME and put the secret")
    if parts.scheme == SCHEME:
        _hook(written)
    return written


def _hook(written: str) -> None:
    try:
        read_hook(written)
    except Mistake as mistake:
        raise Mistake(f"{quoted(written)}: {mistake.reason}", mistake.remedy) from None


def _snapshot(written: str) -> str:
    shown = quoted(written.partition("#")[0])
    try:
        snapshot = read_snapshot(written)
    except Mistake as mistake:
        raise Mistake(f"{shown}: {mistake.reason}", mistake.remedy) from None
    _check_token(snapshot.token, shown)
    return written


def _check_token(token: str | None, shown: str) -> None:
    if token is not None:
        _check_variable(token, shown, "option token", "write #token=ENV_NAME and put the token")


def _check_variable(name: str, shown: str, what: str, remedy: str) -> None:
    try:
        environment(name)
    except Mistake:
        # What stands there may be the secret itself.
        raise Mistake(f"{shown}: the {what} names no variable", f"{remedy} into that variable") from None


def endpoint(written: str) -> str:
    parts = _split(written)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Mistake(f"expected an address of http or https, found {quoted(written)}", "write http://HOST:PORT/PATH")
    shown = quoted(written.partition("#")[0])
    try:
        found = read_endpoint(written)
    except Mistake as mistake:
        raise Mistake(f"{shown}: {mistake.reason}", mistake.remedy) from None
    _check_token(found.token, shown)
    return written


def store(written: str) -> str:
    if written == "sqlite":
        return written
    parts = _split(written, several=True)
    if parts.scheme != "postgresql" or not (parts.netloc or parts.path.strip("/") or parts.query):
        raise Mistake(f"unknown store {quoted(written)}", "write sqlite or postgresql://USER@HOST/DATABASE")
    return written


def _split(written: str, *, several: bool = False) -> SplitResult:
    """`several` allows for more hosts than one, with commas between them."""
    try:
        parts = urlsplit(written)
        hosts = parts.netloc.rpartition("@")[2].split(",") if several else [parts.netloc]
        # Reading the port is what validates it.
        if any(urlsplit(f"//{host}").port == 0 for host in hosts):
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
