"""One request for a list over HTTP: bounded, and sent nowhere but where the operator wrote.

Laws:
- No redirect is followed and no proxy asked: a token goes to the host in the fleet file, or nowhere.
- An answer is a list only when it is whole: 200, its whole length, not one page of many.
- What the other side says is not repeated to the operator; its status is.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from urllib.parse import urlsplit

from wakeful.sources import text
from wakeful.sources.aside import Unreadable

MOST_BODY = 4_000_000
# Seconds for each single wait; whoever asks gives the whole a limit too.
_WAIT = 10.0

_NEXT_PAGE = re.compile(r'rel\s*=\s*"?[^",;]*\bnext\b', re.I)
_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`body` is None when nothing has changed since `tag`; `bounded` says that a part of it would have been noticed."""

    body: bytes | None
    tag: str | None = None
    bounded: bool = True


class Request:
    def __init__(self, url: str, *, token: str | None = None, tag: str | None = None) -> None:
        self._url = url
        self._token = token
        self._tag = tag
        self._lock = threading.Lock()
        self._aborted = False
        self._socket: socket.socket | None = None

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            if self._socket is not None:
                # Not closed: whoever reads from it is told that there is nothing more.
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def do(self) -> Answer:
        connection = self._connection()
        try:
            connection.connect()
            with self._lock:
                self._socket = connection.sock
                if self._aborted:
                    raise Unreadable(f"{self._place()} was not asked")
            connection.request("GET", self._target(), headers=self._headers())
            with connection.getresponse() as response:
                return self._read(response)
        except ssl.SSLCertVerificationError as error:
            raise Unreadable(
                f"{self._place()} is not who it should be: {text.sentence(error.verify_message)}"
            ) from None
        except TimeoutError:
            raise Unreadable(f"{self._place()} does not answer") from None
        except OSError as error:
            raise Unreadable(
                f"{self._place()} cannot be reached: {text.sentence(error.strerror or str(error))}"
            ) from None
        except (http.client.HTTPException, ValueError):
            raise Unreadable(f"{self._place()} gave an answer that is not HTTP, or broke it off") from None
        finally:
            with self._lock:
                self._socket = None
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=_WAIT, context=_encryption())
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=_WAIT)

    def _target(self) -> str:
        parts = urlsplit(self._url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "wakeful"}
        headers["Connection"] = "close"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._tag is not None:
            headers["If-None-Match"] = self._tag
        return headers

    def _read(self, response: http.client.HTTPResponse) -> Answer:
        if response.status == HTTPStatus.NOT_MODIFIED and self._tag is not None:
            return Answer(body=None, tag=self._tag)
        if response.status != HTTPStatus.OK:
            raise Unreadable(f"{self._place()} answered {_words(response.status)}")
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Unreadable(f"{self._place()} answered in an encoding that was not asked for")
        if any(_NEXT_PAGE.search(link) for link in response.headers.get_all("Link", [])):
            raise Unreadable(f"{self._place()} gave one page of several; ask for the whole list")
        bounded = response.length is not None or response.chunked
        body = response.read(MOST_BODY + 1)
        if len(body) > MOST_BODY:
            raise Unreadable(f"{self._place()} answered with more than {MOST_BODY:,} bytes")
        if response.length:
            raise Unreadable(f"{self._place()} broke off its answer")
        tag = response.headers.get("ETag")
        return Answer(body=body, tag=tag if tag and _VISIBLE.fullmatch(tag) else None, bounded=bounded)

    def _place(self) -> str:
        """Without its query, in which somebody may have put a secret all the same."""
        return self._url.partition("?")[0]


def sendable(token: str) -> bool:
    return _VISIBLE.fullmatch(token) is not None


def _words(status: int) -> str:
    if 300 <= status < 400 and status != HTTPStatus.NOT_MODIFIED:
        return f"{status}: redirects are not followed; write the address that it leads to"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


@cache
def _encryption() -> ssl.SSLContext:
    return ssl.create_default_context()
