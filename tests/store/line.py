"""Between a client and the server: a line that can fall silent or be cut, and a server that knows only one answer."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg.conninfo import conninfo_to_dict, make_conninfo

PIECE = 65_536


class Line:
    """Carries bytes to the server of an address and back; `dsn` is its own address."""

    def __init__(self, dsn: str, **settings: str) -> None:
        named = conninfo_to_dict(dsn)
        host, port = str(named.get("host") or "localhost"), int(named.get("port") or os.environ.get("PGPORT") or 5432)
        self._unix = host.startswith("/")
        self._behind = f"{host}/.s.PGSQL.{port}" if self._unix else (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1_000)
        # Only the first word of an unencrypted line is the client's: nothing here must be understood.
        settings = {"sslmode": "disable", "gssencmode": "disable", **settings}
        mine = {**named, "host": "127.0.0.1", "port": self._listening.getsockname()[1], **settings}
        self.dsn = make_conninfo("", **{key: value for key, value in mine.items() if key != "hostaddr"})
        self._flows = threading.Event()
        self._flows.set()
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        self._closed = False

    def silence(self) -> None:
        """Nothing is carried any more, and nobody is told."""
        self._flows.clear()

    def speak(self) -> None:
        self._flows.set()

    def cut(self) -> None:
        """Whoever is connected no longer is."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            self._ends.append(near)
            self._flows.wait()
            if self._closed:
                return
            far = socket.socket(socket.AF_UNIX if self._unix else socket.AF_INET)
            self._ends.append(far)
            try:
                far.connect(self._behind)
            except OSError:
                near.shutdown(socket.SHUT_RDWR)
                continue
            for one, other in ((near, far), (far, near)):
                thread = threading.Thread(target=self._carry, args=(one, other))
                self._threads.append(thread)
                thread.start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while piece := one.recv(PIECE):
                self._flows.wait()
                other.sendall(piece)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._flows.set()
        self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()


@contextmanager
def line_to(dsn: str, **settings: str) -> Iterator[Line]:
    made = Line(dsn, **settings)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def _answering(answer: bytes) -> Iterator[int]:
    """The port of a server that has one answer to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    near, _ = listening.accept()
                    with near, suppress(ConnectionError):
                        near.recv(PIECE)
                        near.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def refusing(code: str, words: str) -> Iterator[str]:
    """The address of a server that refuses everybody, with these words."""
    fields = {"S": "FATAL", "V": "FATAL", "C": code, "M": words}
    body = b"".join(f"{key}{value}\0".encode() for key, value in fields.items()) + b"\0"
    with _answering(b"E" + struct.pack("!I", len(body) + 4) + body) as port:
        yield f"postgresql://rana:hunter2@127.0.0.1:{port}/fleet?sslmode=disable&gssencmode=disable"


@contextmanager
def asking() -> Iterator[str]:
    """The address of a server that wants a password, without one."""
    with _answering(b"R" + struct.pack("!II", 8, 3)) as port:
        yield f"postgresql://rana@127.0.0.1:{port}/fleet?sslmode=disable&gssencmode=disable&passfile=/dev/null"
