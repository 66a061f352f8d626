"""The line between a node and its database, which can go silent: nothing arrives any more, and nobody is told."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType


class Line:
    """Listens on the loopback and passes everything on to the server in that folder, as long as it is `open`."""

    def __init__(self, folder: Path, port: int = 5432) -> None:
        self._server = f"{folder}/.s.PGSQL.{port}"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.open = threading.Event()
        self.open.set()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self, dsn: str) -> str:
        """As that one, but by way of this line."""
        return f"{dsn.partition('@')[0]}@127.0.0.1:{self._listening.getsockname()[1]}/postgres"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        self.open.wait()
        far = socket.socket(socket.AF_UNIX)
        self._ends += [near, far]
        try:
            far.connect(self._server)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                self.open.wait()
                other.sendall(data)
        self.open.wait()
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.open.set()
        self._listening.close()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
