"""What an engine tells as it happens: server-sent events over one connection that stays open.

Law: whoever hears nothing for longer than an engine keeps silent is told so by an `OSError`, as whoever is cut off is.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from wakeful.cli.complaints import from_problem

# An engine gives a sign of life each fifteen seconds.
PATIENCE = 25.0
_LONGEST = 4_194_304


class Cut(OSError):
    """The stream has ended, or was never one."""


class Hearing:
    """One stream. It may be closed from another thread; whoever reads is then cut off."""

    def __init__(self, url: str, token: str, target: str, patience: float = PATIENCE) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=patience)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        self._target = parts.path.rstrip("/") + target
        self._line: socket.socket | None = None

    def open(self) -> None:
        """A `Complaint` where it is refused."""
        try:
            self._connection.connect()
            self._line = self._connection.sock
            self._connection.request("GET", self._target, headers=self._headers)
            self._response = self._connection.getresponse()
            if self._response.status >= 300:
                raise from_problem(self._response.status, _problem(self._response.read(_LONGEST)))
        except HTTPException as error:
            self._connection.close()
            raise Cut(f"what listens there does not answer as an engine does: {error!r}") from None
        except BaseException:
            self._connection.close()
            raise

    def events(self) -> Iterator[dict[str, Any]]:
        """Until it is cut off; signs of life are none."""
        data: list[bytes] = []
        try:
            while line := self._response.readline(_LONGEST):
                if line.startswith(b"data:"):
                    data.append(line[5:].strip())
                elif not line.strip() and data:
                    told = json.loads(b"\n".join(data))
                    data = []
                    if isinstance(told, dict):
                        yield told
        except (HTTPException, ValueError, AttributeError) as error:
            # http.client meets its own closing with an attribute that is gone.
            raise Cut(f"cut off: {error}") from None
        finally:
            self._response.close()
            self._connection.close()
        raise Cut("the engine ended the stream")

    def close(self) -> None:
        with suppress(OSError):
            if self._line is not None:
                self._line.shutdown(socket.SHUT_RDWR)


def _problem(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
