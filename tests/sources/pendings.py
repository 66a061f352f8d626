"""What is outside, in four kinds: a folder, a board, a program, a server on the loopback."""

import json
import os
import threading
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from wakeful.core.snapshots import read_snapshot
from wakeful.sources.board import Reading
from wakeful.sources.directory import Directory
from wakeful.sources.folder import Listing, Look
from wakeful.sources.snapshot import ProgramSnapshot, UrlSnapshot
from wakeful.testing.contracts.source_case import Told

# Whoever polls does it quickly here; the least that can be declared is a second.
EVERY = timedelta(milliseconds=20)


class Files:
    """A folder in which writers do as they should: they write elsewhere and rename."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        self.told = Told()
        self._away = folder.with_name("away")

    def source(self) -> Directory:
        return Directory("moss", self.folder, self.told)

    def put(self, id: str, words: str) -> None:
        unfinished = self.folder.with_name("unfinished")
        unfinished.write_text(words, encoding="utf-8")
        unfinished.rename(self.folder / id)

    def take(self, id: str) -> None:
        (self.folder / id).unlink()

    def fail(self) -> None:
        self.folder.rename(self._away)

    def mend(self) -> None:
        self._away.rename(self.folder)

    def hint(self) -> None:
        self.told.tell()

    def close(self) -> None: ...


class Board(Files):
    """An org file in that folder, with an entry for each thing; written elsewhere and renamed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.entries: dict[str, str] = {}
        self._write()

    def source(self) -> Directory:
        look = partial(Reading, name="board.org", address="moss")
        return Directory("moss", self.folder, self.told, name="board", look=look)

    def put(self, id: str, words: str) -> None:
        self.entries[id] = words
        self._write()

    def take(self, id: str) -> None:
        del self.entries[id]
        self._write()

    def _write(self) -> None:
        # A heading is one line.
        told = [f"* TODO {id.replace(chr(10), ' ')}\n{words}\n" for id, words in sorted(self.entries.items())]
        super().put("board.org", "".join(told))


def look(place: Path, before: Look | None = None, *, later: float = 0.0) -> Look:
    """One look, so many seconds from now."""
    listing = Listing(place, before or Look(), now=time.time() + later, elapsed=time.monotonic() + later)
    return listing.do()


def names(seen: Look) -> list[str]:
    return [thing.external_id for thing in seen.observed]


def bodies(seen: Look) -> dict[str, str]:
    return {thing.external_id: thing.body for thing in seen.observed}


def shell(path: Path, *lines: str) -> Path:
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o755)
    return path


class Listed:
    """A list that is kept here, to be printed or served."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self.broken = False

    def put(self, id: str, words: str) -> None:
        self.entries[id] = {"id": id, "title": words, "body": words}
        self.changed()

    def take(self, id: str) -> None:
        del self.entries[id]
        self.changed()

    def fail(self) -> None:
        self.broken = True
        self.changed()

    def mend(self) -> None:
        self.broken = False
        self.changed()

    def hint(self) -> None: ...

    def changed(self) -> None: ...

    def close(self) -> None: ...

    def printed(self) -> str:
        return json.dumps(list(self.entries.values()))


class Printed(Listed):
    """By a program that prints what is in a file, and fails when there is none."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.file = folder / "list.json"
        shell(folder / "pending", "exec cat list.json")
        self.changed()

    def source(self) -> ProgramSnapshot:
        address = replace(read_snapshot("snapshot+exec:pending"), every=EVERY)
        return ProgramSnapshot("moss", address, root=self.folder, environment={"PATH": os.environ["PATH"]})

    def changed(self) -> None:
        if self.broken:
            self.file.unlink()
        else:
            unfinished = self.folder / "unfinished"
            unfinished.write_text(self.printed(), encoding="utf-8")
            unfinished.rename(self.file)


class Served(Listed):
    """By a server, with an ETag; `answer` may be replaced, and every request is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[dict[str, str]] = []
        self.paths: list[str] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                served.requests.append(dict(self.headers.items()))
                served.paths.append(self.path)
                served.answer(self)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/tasks"

    def source(self, options: str = "", variables: dict[str, str] | None = None, **more: Any) -> UrlSnapshot:
        address = replace(read_snapshot(f"snapshot+{self.url}{options}"), every=EVERY)
        return UrlSnapshot("moss", address, variables=variables or {}, **more)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if self.broken:
            request.send_error(503)
            return
        body = self.printed().encode()
        tag = f'"{hash(body)}"'
        if request.headers.get("If-None-Match") == tag:
            reply(request, 304, b"", ETag=tag)
        else:
            reply(request, 200, body, ETag=tag)

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


def reply(request: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    if status != 304:
        request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
