"""One request to an engine over HTTP, and its answer.

Law: a command's own share of its time is a few milliseconds. http.client brings the libraries of mail and of
encryption with it and takes longer to load than the whole command to run; HTTP/1.0 on the loopback needs a socket.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from wakeful.cli.complaints import BAD, LATER, NO_ENGINE, Complaint, from_problem

# Longer than anything an engine does before it answers: `pause --now` waits 12 s.
PATIENCE = 30.0
PORT = 80
# What an engine reads of one request.
MOST = 1_048_576


def exchange(url: str, token: str, method: str, target: str, body: dict[str, Any] | None) -> dict[str, Any]:
    """What the engine at `url` answers; a `Complaint` where it refuses, is gone or is silent."""
    request = _request(url, token, method, target, body)
    must_be_short(len(request) - request.index(b"\r\n\r\n") - 4)
    try:
        with reach(url, PATIENCE) as line:
            received = _exchanged(line, request)
    except TimeoutError:
        raise Complaint(f"the engine at {url} does not answer", "try again; see wakeful doctor", LATER) from None
    except OSError as error:
        raise Complaint(
            f"the engine at {url} cannot be reached: {error.strerror or error}", "see wakeful doctor", NO_ENGINE
        ) from None
    status, answer = _response(url, received)
    if status >= 300:
        raise from_problem(status, answer)
    return answer


def must_be_short(size: int) -> None:
    """Also without an engine: what is said is not to depend on who is at work."""
    if size > MOST:
        told = f"{size / 1e6:.1f} MB"
        raise Complaint(f"that is {told}, and an engine takes 1 MB at a time", "send less, or the name of a file", BAD)


def reach(url: str, patience: float) -> socket.socket:
    """A connection to where that URL listens."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        raise Complaint(f"expected the URL of an engine such as http://127.0.0.1:7717, found {url!r}", code=BAD)
    return socket.create_connection((parts.hostname, parts.port or PORT), timeout=patience)


def _request(url: str, token: str, method: str, target: str, body: dict[str, Any] | None) -> bytes:
    content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    parts = urlsplit(url)
    lines = [
        f"{method} {parts.path.rstrip('/')}{target} HTTP/1.0",
        f"Host: {parts.netloc}",
        f"Authorization: Bearer {token}",
        "Accept: application/json",
        "Connection: close",
    ]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + content


def _exchanged(line: socket.socket, request: bytes) -> bytes:
    """All that is answered; what was cut off is as far as it came."""
    pieces = []
    with suppress(ConnectionError):
        line.sendall(request)
        while piece := line.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def _response(url: str, received: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    try:
        if not received or int(headers.get("content-length", 0)) > len(body):
            raise Complaint(f"the engine at {url} ended before it answered", "ask again, with the same --key", LATER)
        status = int(first.split(" ")[1])
        answer = json.loads(body or b"{}")
    except (IndexError, ValueError):
        raise Complaint(f"what listens at {url} does not answer as an engine does", "see wakeful doctor") from None
    return status, answer if isinstance(answer, dict) else {"detail": str(answer)}
