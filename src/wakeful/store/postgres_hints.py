"""Hints: a word from node to node that something was committed. Whoever hears one looks; a lost one is no loss.

Laws:
- One thread, one connection, which says nothing while nothing happens.
- What is sent is sent after the commit and outside any transaction of the store, several commits as one, at most every
  10 ms. A failure to hint neither fails nor delays a write.
- Nobody knows what was said while the connection was away: after each new one whoever watches is told once.
- Where no hint arrives (a pooler in between that does not keep the connection) it is said once; the renewals of a node
  find everything a little later.
"""

from __future__ import annotations

import logging
import os
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from wakeful.store.postgres_place import Place
from wakeful.store.postgres_session import PostgresSession
from wakeful.store.postgres_wire import Connection

log = logging.getLogger("wakeful.store")

# Between two hints of one node.
PAUSE = 0.010
# Between two attempts to connect.
BACKOFF_LEAST, BACKOFF_MOST = 0.1, 2.0
# How long our own voice may take to come back before we hold that nobody is heard.
ECHO = 2.0
# How long the end waits for a server that does not answer.
GRACE = 1.0

_DEAF = "no hints from other nodes: their changes are found some seconds later"

# Of a transaction that does nothing else the server writes nothing that it would wait for.
_NOTIFY = b"SELECT pg_notify($1, $2)"


def channel_of(session: PostgresSession) -> str:
    """Its own for each store: those in other schemas of the database are not disturbed."""
    return f"wakeful_{session.house >> 8}"


def send_hint(session: PostgresSession) -> None:
    """One hint over the store's own connection, for who has no `Hints`; where that has just been lost, none."""
    if session.status is TransactionStatus.IDLE:
        with suppress(psycopg.Error):
            session.connection.execute(_NOTIFY, (channel_of(session), ""))


def delay_after(delay: float, lasted: float) -> float:
    """Longer each time that a connection was none, or lasted no longer than we would wait for the next."""
    return BACKOFF_LEAST if lasted > BACKOFF_MOST else min(max(delay * 2, BACKOFF_LEAST), BACKOFF_MOST)


def cut(connection: Connection) -> None:
    """From another thread: whoever waits for this connection waits no longer. The thread that has it closes it."""
    # A copy, since the number of a socket that is closed meanwhile may be another's.
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class Hints:
    """`send` after a commit, from any thread; `heard` is called, on a thread of ours, when another has sent one."""

    def __init__(self, place: Place, channel: str, heard: Callable[[], None]) -> None:
        self._place = place
        self._channel = channel
        self._heard = heard
        # By this we know our own voice.
        self._name = secrets.token_hex(8)
        self._waiting = False
        self._sent = float("-inf")
        # By when our own voice should have come back.
        self._doubt: float | None = None
        self._said: set[str] = set()
        self._closing = threading.Event()
        self._connection: Connection | None = None
        self._bell, self._rope = socket.socketpair()
        for end in (self._bell, self._rope):
            end.setblocking(False)
        self._thread = threading.Thread(target=self._work, name="wakeful-hints", daemon=True)
        self._thread.start()

    def send(self) -> None:
        """At once, or with those of the next 10 ms; while there is no connection, when there is one again."""
        if not self._waiting:
            self._waiting = True
            self._ring()

    def _ring(self) -> None:
        # Where the bell is full of rings, or gone, one more makes no difference.
        with suppress(OSError):
            self._rope.send(b"!")

    def stop(self) -> None:
        """What is still to be said is said, and no more."""
        self._closing.set()
        self._ring()

    def close(self) -> None:
        """A second close does nothing."""
        self.stop()
        self._thread.join(GRACE)
        connection = self._connection
        if self._thread.is_alive() and connection is not None:
            cut(connection)
        self._thread.join()
        self._bell.close()
        self._rope.close()

    # -- the thread ---------------------------------------------------------------------------------------
    def _work(self) -> None:
        delay = 0.0
        while not self._closing.wait(delay):
            began = time.monotonic()
            try:
                self._live()
            except psycopg.Error as error:
                self._say("away", "no hints from other nodes: the database is away", error)
            except Exception:
                # Were this thread to end, this node would be slow for good, and nobody would know why.
                log.exception("no hints from other nodes for a moment")
            delay = delay_after(delay, time.monotonic() - began)

    def _say(self, what: str, line: str, error: Exception | str) -> None:
        """Once, until it has passed."""
        if what not in self._said and not self._closing.is_set():
            self._said.add(what)
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            log.warning("%s (%s): %s", line, self._place.name, why)

    def _live(self) -> None:
        """One connection, from its first word until it is lost or no longer wanted."""
        self._connection = connection = self._place.connect()
        try:
            self._listen(connection)
            with selectors.DefaultSelector() as selector:
                selector.register(connection, selectors.EVENT_READ)
                selector.register(self._bell, selectors.EVENT_READ)
                while not self._closing.is_set():
                    self._speak(connection)
                    self._hear(connection)
                    ready = [key.fileobj for key, _ in selector.select(self._patience())]
                    if self._bell in ready:
                        self._bell.recv(4096)
                    if connection in ready:
                        connection.pgconn.consume_input()
            if self._waiting:
                self._execute(connection, _NOTIFY, (self._channel, self._name))
        finally:
            self._connection = None
            connection.close()

    def _listen(self, connection: Connection) -> None:
        # What arrives while we say something ourselves comes this way.
        connection.add_notify_handler(lambda notice: self._take(notice.payload))
        self._execute(connection, sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        # Some poolers take the word and never hand on what follows from it. Others do not answer to this one.
        self._doubt = time.monotonic() + ECHO
        self._execute(connection, _NOTIFY, (self._channel, f"?{self._name}"))
        self._said.discard("away")
        self._heard()

    def _execute(self, connection: Connection, query: bytes | sql.Composed, parameters: tuple[str, ...] = ()) -> None:
        """What the server refuses is said once, and we go on without it; a lost connection is another matter."""
        try:
            connection.execute(query, parameters)
        except psycopg.Error as error:
            if connection.closed:
                raise
            self._say("deaf", _DEAF, error)

    def _patience(self) -> float | None:
        now = time.monotonic()
        ends = [self._sent + PAUSE] if self._waiting else []
        ends += [self._doubt] if self._doubt is not None else []
        return max(0.0, min(ends) - now) if ends else None

    def _speak(self, connection: Connection) -> None:
        if self._waiting and time.monotonic() >= self._sent + PAUSE:
            # Lowered first: a commit that comes while we send is told of again.
            self._waiting = False
            try:
                self._execute(connection, _NOTIFY, (self._channel, self._name))
            except psycopg.Error:
                self._waiting = True
                raise
            self._sent = time.monotonic()

    def _hear(self, connection: Connection) -> None:
        # Also what came with the answer to our own words: the socket will not tell of it again.
        while notice := connection.pgconn.notifies():
            self._take(notice.extra.decode())
        if self._doubt is not None and time.monotonic() >= self._doubt:
            self._doubt = None
            self._say("deaf", _DEAF, "what we say does not come back; is a pooler of transactions in between?")

    def _take(self, payload: str) -> None:
        if payload == f"?{self._name}":
            self._doubt = None
            self._said.discard("deaf")
        elif payload != self._name and not payload.startswith("?"):
            self._heard()
