"""Where the engine of a data folder listens, and with which token it is asked.

Laws:
- Whoever holds the folder's lock is the engine (or a command, for a moment). Once nobody does, `engine.json` is stale
  and is not believed: the token goes to no stranger who listens there now.
- Inside a run the fleet is the run's own; naming another there is refused, not ignored.
- Only Python's own small modules are loaded here: a command that takes milliseconds asks the same.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple, Protocol

from wakeful.core.errors import Busy, Forbidden, Mistake

FOLDER = ".wakeful"
LOCK, ENGINE, TOKEN = "lock", "engine.json", "token"
_LONGEST_TOKEN = 4_096


class Unreachable(Busy):
    """No engine answers there: none is at work, or none that can be reached."""


class Place(NamedTuple):
    url: str
    token: str


class Whereabouts(Protocol):
    def find(self) -> Place | None:
        """Where to ask now; None while that is not known, but may be in a moment; `Unreachable` if nobody is there."""


class Known:
    """Told by whoever asks, or by the environment of a run."""

    def __init__(self, url: str, token: str) -> None:
        scheme, mark, rest = url.partition("://")
        if scheme.lower() not in ("http", "https") or not mark or not rest.strip("/"):
            raise Mistake(f"expected the URL of an engine, found {url[:60]!r}", "write it as http://127.0.0.1:7717")
        self._place = Place(url.rstrip("/"), token)

    def find(self) -> Place | None:
        return self._place


class Folder:
    """The engine of a data folder, wherever it listens at the moment."""

    def __init__(self, path: str) -> None:
        self.path = path

    def find(self) -> Place | None:
        if not is_held(self.path):
            raise Unreachable(f"no engine is at work in {self.path} (start one: wakeful up)")
        url = written_url(self.path)
        return Place(url.rstrip("/"), self._token()) if url else None

    def _token(self) -> str:
        path = os.path.join(self.path, TOKEN)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii", errors="replace") as file:
                token = file.read(_LONGEST_TOKEN).strip()
        except FileNotFoundError:
            token = ""
        except OSError as error:
            raise Forbidden(f"cannot read {path}: {error.strerror}") from None
        if not token:
            raise Forbidden(f"there is no token in {path} (print or make it: wakeful token)")
        return token


def whereabouts(url: str | None, token: str | None, data: str | None, fleet: str | None) -> Whereabouts:
    """What is said, else the run we are in, else the data folder: WAKEFUL_DATA, or the one beside the fleet file."""
    if url is not None or token is not None:
        if not url or not token:
            raise Mistake("a url needs its token, and a token its url", "give both, or neither")
        if data is not None or fleet is not None:
            raise Mistake("a url and a folder both say which fleet is meant", "give one of them")
        return Known(url, token)
    url, token = os.environ.get("WAKEFUL_URL"), os.environ.get("WAKEFUL_TOKEN")
    if url and token:
        if data is not None or fleet is not None:
            remedy = "leave it out: whatever is asked in here is asked of that fleet"
            raise Mistake("a folder is named inside a run, which belongs to its own fleet", remedy)
        return Known(url, token)
    named = data or (None if fleet else os.environ.get("WAKEFUL_DATA"))
    return Folder(named or os.path.join(os.path.dirname(fleet or ""), FOLDER))


def is_held(folder: str) -> bool:
    """Whether somebody has the lock of that data folder."""
    import fcntl

    try:
        handle = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


def written_url(folder: str) -> str:
    """Where the engine said that it listens; it may be one that is gone."""
    try:
        with open(os.path.join(folder, ENGINE), encoding="utf-8") as file:
            return str(json.load(file)["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
