"""A run at an address: the briefing is posted there, and what comes back is the result.

Laws:
- A token goes to the host in the fleet file, or nowhere: no redirect is followed, no proxy asked, and what is polled
  is of the same origin, at the machine that the name led to first.
- An answer is whole and bounded, or it is a failure; so is one that does not tell how the run will end.
- The wall clock is the guardian's: an agent may take as long over its answer as any other run.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from wakeful.runners.errand import BEARER, TARGET, Trouble, carry_out, tell
from wakeful.runners.whole import write_bytes

MOST_BODY = 4_000_000
# Seconds: to get through at all, for an answer about work under way, and for a farewell.
REACHING = 10.0
POLLING = 60.0
FAREWELL = 3.0
# Seconds between two polls where the other side does not say: they grow from the first to the last.
SOONEST, LATEST = 1.0, 30.0
# So many polls in a row may fail while the work goes on.
FAILED_POLLS = 5

_MOST_TOLD = 2_000
_FAR = timedelta(days=366)
_PASSING = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


class Unheard(Trouble):
    """There was no answer that could be read; another may come."""


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Origin:
    """One host and port, asked one thing at a time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._parts = urlsplit(url)
        self._found: tuple[str, int] | None = None

    @property
    def target(self) -> str:
        return _target(self._parts)

    def same(self, location: str) -> str | None:
        """The target of an address below us; None of any other."""
        try:
            parts = urlsplit(urljoin(self.url, location))
            return _target(parts) if _origin(parts) == _origin(self._parts) else None
        except ValueError:
            return None

    def place(self) -> str:
        """Without its query, in which somebody may have put a secret all the same."""
        return self.url.partition("?")[0]

    def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        within: float | None = None,
        reaching: float = REACHING,
    ) -> Answer:
        connection = self._connection()
        try:
            connection.sock = self._reach(reaching)
            connection.sock.settimeout(within)
            connection.request(method, target, body, dict(headers))
            with connection.getresponse() as response:
                return self._read(response)
        except ssl.SSLCertVerificationError as error:
            raise Trouble(f"{self.place()} is not who it should be: {error.verify_message}", "config") from None
        except TimeoutError:
            raise Unheard(f"{self.place()} does not answer") from None
        except OSError as error:
            raise Unheard(f"{self.place()} cannot be reached: {error.strerror or error}") from None
        except (http.client.HTTPException, ValueError):
            raise Unheard(f"{self.place()} gave an answer that is not HTTP, or broke it off") from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, context=encryption())
        return http.client.HTTPConnection(host, port)

    def _reach(self, within: float) -> socket.socket:
        """Where the name led to first: one that leads elsewhere later is not followed there."""
        scheme, host, port = _origin(self._parts)
        reached = socket.create_connection(self._found or (host, port), within)
        self._found = reached.getpeername()[:2]
        # A machine that is gone is noticed, however long it was silent.
        reached.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if scheme != "https":
            return reached
        with reached:
            return encryption().wrap_socket(reached, server_hostname=host)

    def _read(self, response: http.client.HTTPResponse) -> Answer:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Trouble(f"{self.place()} answered in an encoding that was not asked for")
        bounded = response.length is not None or response.chunked
        body = response.read(MOST_BODY + 1)
        if len(body) > MOST_BODY:
            raise Trouble(f"{self.place()} answered with more than {MOST_BODY:,} bytes")
        if response.length:
            raise Unheard(f"{self.place()} broke off its answer")
        if not bounded and body and not _is_json(body):
            words = "gave a text without its length: half of it could not be told from the whole (send Content-Length)"
            raise Trouble(f"{self.place()} {words}", "config")
        return Answer(response.status, response.headers, body)


class Work:
    """What the other side has accepted, and tells of where it said."""

    def __init__(self, origin: Origin, target: str, headers: Mapping[str, str]) -> None:
        self._origin = origin
        self._target = target
        self._headers = headers

    def wait(self, answer: Answer) -> Answer:
        try:
            return self._poll(answer)
        except BaseException:
            # Nobody waits for it any more.
            with suppress(Trouble):
                self._origin.ask("DELETE", self._target, self._headers, within=FAREWELL, reaching=FAREWELL)
            raise

    def _poll(self, answer: Answer) -> Answer:
        pause, failed = SOONEST, 0
        while answer.status == HTTPStatus.ACCEPTED or answer.status in _PASSING:
            told = retry_after(answer)
            time.sleep(pause if told is None else max(told, SOONEST / 10))
            pause = min(pause * 1.5, LATEST)
            try:
                answer = self._origin.ask("GET", self._target, self._headers, within=POLLING)
                failed = failed + 1 if answer.status in _PASSING else 0
                if failed >= FAILED_POLLS:
                    raise _refusal(answer, self._origin.place())
            except Unheard as trouble:
                failed += 1
                tell(str(trouble))
                if failed >= FAILED_POLLS:
                    raise
        return answer


def post(environment: Mapping[str, str]) -> None:
    origin = Origin(environment[TARGET])
    with open(environment["WAKEFUL_BRIEFING"], "rb") as file:
        briefing = file.read()
    answer = origin.ask("POST", origin.target, _about_run(environment, briefing), briefing)
    if answer.status == HTTPStatus.ACCEPTED:
        location = answer.headers.get("Location")
        target = origin.same(location) if location else None
        if target is None:
            where = "without a Location" if location is None else "with a Location that is not of the same origin"
            raise Trouble(f"{origin.place()} answered 202 {where}: how it ends cannot be learnt", "config")
        answer = Work(origin, target, _headers(environment)).wait(answer)
    _conclude(answer, origin, environment["WAKEFUL_RESULT"])


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    headers = {
        "Accept": "application/json, text/plain;q=0.9, */*;q=0.1",
        "Accept-Encoding": "identity",
        "User-Agent": "wakeful",
        "Connection": "close",
        "Wakeful-Run": environment["WAKEFUL_RUN_ID"],
    }
    if environment.get(BEARER):
        headers["Authorization"] = f"Bearer {environment[BEARER]}"
    return headers


def _about_run(environment: Mapping[str, str], briefing: bytes) -> dict[str, str]:
    token = environment["WAKEFUL_TOKEN"]
    run, epoch = environment["WAKEFUL_RUN_ID"], json.loads(briefing)["run"]["epoch"]
    headers = {
        **_headers(environment),
        "Content-Type": "application/json",
        # Numbers begin anew in another fleet, or in another store of this one; the token does not.
        "Idempotency-Key": f"{run}-{epoch}-{hashlib.sha256(token.encode()).hexdigest()[:16]}",
        "Wakeful-Agent": environment["WAKEFUL_AGENT"],
        "Wakeful-Url": environment["WAKEFUL_URL"],
        "Wakeful-Token": token,
        "Wakeful-Deadline": environment["WAKEFUL_DEADLINE"],
        "Traceparent": environment.get("TRACEPARENT", ""),
    }
    return {name: value for name, value in headers.items() if value}


def _conclude(answer: Answer, origin: Origin, result: str) -> None:
    if not 200 <= answer.status < 300:
        tell(answer.body[:_MOST_TOLD].decode(errors="replace"))
        raise _refusal(answer, origin.place())
    if not answer.body.strip():
        return
    kind = answer.headers.get_content_type()
    # One who means a result may have called it something else: it must not pass for a text, which is done.
    if kind == "application/json" or kind.endswith("+json") or _is_json(answer.body):
        write_bytes(result, answer.body)
        # Printed too: what agent programs print says more than our own keys do, such as what it has cost.
    sys.stdout.buffer.write(_as_text(answer))
    sys.stdout.buffer.flush()


def _is_json(body: bytes) -> bool:
    """An object that is whole."""
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def _as_text(answer: Answer) -> bytes:
    charset = answer.headers.get_content_charset("utf-8")
    try:
        return answer.body.decode(charset, errors="replace").encode(errors="replace")
    except LookupError:
        return answer.body


def _refusal(answer: Answer, place: str) -> Trouble:
    status, seconds = answer.status, retry_after(answer)
    reason = f"{place} answered {_words(status)}"
    if status == HTTPStatus.TOO_MANY_REQUESTS or (status == HTTPStatus.SERVICE_UNAVAILABLE and seconds is not None):
        later = None if seconds is None else (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        return Trouble(reason, "quota", later)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Trouble(reason, "auth")
    if 300 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        return Trouble(reason, "config")
    return Trouble(reason)


def retry_after(answer: Answer) -> float | None:
    """Seconds from now, whichever way it is written."""
    written = (answer.headers.get("Retry-After") or "").strip()
    if written.isascii() and written.isdigit():
        return float(min(int(written[:12]), int(_FAR.total_seconds())))
    try:
        wait = parsedate_to_datetime(written).replace(tzinfo=UTC) - datetime.now(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(wait.total_seconds(), 0.0), _FAR.total_seconds())


def _words(status: int) -> str:
    if 300 <= status < 400:
        return f"{status}: redirects are not followed; write the address that it leads to"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def encryption() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def main() -> None:
    carry_out(post)


if __name__ == "__main__":
    main()
