"""What a transaction in PostgreSQL is: one connection writes, in transactions that are as short as a verb.

Laws:
- Wait only with empty hands. Who holds a lock already only tries for the next one, and where it is not to be had is
  `Crowded`: everything is put down, and begun again. (The fleet's money is waited for, as the last of all.)
- What only writes is not waited for; what went wrong is told by the part of the transaction that it happened in.
- What happened is told at the end, all at once: who is about to tell holds up whoever reads on, for as short as can be.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from wakeful.core.errors import Busy, Mistake
from wakeful.store.postgres_copy import backup
from wakeful.store.postgres_link import Crowded as Crowded
from wakeful.store.postgres_link import Link
from wakeful.store.postgres_link import Reader as Reader
from wakeful.store.postgres_migrate import migrate
from wakeful.store.postgres_place import Place as Place
from wakeful.store.postgres_text import tabled
from wakeful.store.postgres_wire import Answer
from wakeful.store.postgres_wire import Connection as Connection
from wakeful.store.session import CALL, Probe, Row


class PostgresSession(Link):
    """The writing connection of a store, and the readers beside it."""

    broken: type[Exception] = psycopg.IntegrityError

    def unreferenced(self, error: Exception) -> bool:
        return isinstance(error, psycopg.errors.ForeignKeyViolation)

    def __init__(self, place: Place, *, probe: Probe | None = None) -> None:
        super().__init__(place, read_only=False)
        self.probe = probe
        self.depth = 0
        self.held_by: int | None = None
        self.untouched = False
        # Whether the transaction holds locks that others may wait for.
        self.laden = False
        # Whether it is in the house.
        self.housed = False
        # What happened, to be told before the commit.
        self._told: list[Row] = []
        # Reads that were sent before they are asked for; what is written since may have made them wrong.
        self._foreseen: dict[str, tuple[Row, Answer]] = {}
        self._drawn: dict[tuple[str, int], Answer] = {}
        # Called when something was undone: whoever remembers what was read meanwhile forgets it.
        self.undone: Callable[[], None] = lambda: None
        self._local = threading.local()
        self._readers: list[Reader] = []
        try:
            self._wire = self.open()
            migrate(self.connection, place.schema)
            number = _number(self.connection)
            self.house, self.log = number << 8, (1 << 62) | (number % (1 << 24)) << 38
        except psycopg.OperationalError as error:
            self.close()
            reason = f"cannot open the store at {place.name}: {str(error).strip()}"
            raise Mistake(reason, "start the server, or mend the address of the store") from error
        except BaseException:
            self.close()
            raise

    def transaction(self, site: str) -> AbstractContextManager[None]:
        return _Part(self, site) if self.depth else _Whole(self, site)

    @property
    def alive(self) -> bool:
        return self.status is TransactionStatus.INTRANS

    def begin(self) -> None:
        self.say("BEGIN")
        self.laden = self.housed = False
        self._told.clear()

    def commit(self) -> None:
        answer = self.say("COMMIT")
        self.settle()
        if answer.tag != b"COMMIT":
            raise Busy(f"the database {self.place.name} has undone what it was to commit")

    def undo(self, told: int, *statements: str) -> None:
        """Whatever state it is in. Where the connection was lost, so is the whole transaction, and nothing is to do."""
        self._foreseen.clear()
        self._drawn.clear()
        del self._told[told:]
        self.undone()
        with suppress(Exception):
            # What was sent has begun; how it ends matters no more.
            self.settle()
        if self.status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            # A lock that was had since is let go.
            self.housed = False
            with suppress(Busy):
                for statement in statements:
                    self.say(statement)
                self.settle()

    # -- what is held -------------------------------------------------------------------------------------
    def enter(self) -> None:
        """With all others who do the ordinary, and with nobody who changes the order of the house."""
        if self.housed:
            return
        if self.laden:
            self._try("try_house", house=self.house)
        else:
            self.write("enter_house", house=self.house)
        self.housed = True

    def alone(self) -> None:
        """With nobody else, until the commit."""
        if self.laden:
            self._try("try_house_alone", house=self.house)
        else:
            self.write("have_house", house=self.house)
        self.laden = self.housed = True

    def hold(self, query: str, **whose: Any) -> None:
        """The addresses of all whom it concerns, until the commit."""
        self.write(f"try_{query}" if self.laden else query, **whose)
        self.laden = True

    def hold_keys(self, keys: Sequence[str], *, shared: bool) -> None:
        """What is added to these causal keys, or closed of them, until the commit; whoever only adds is `shared`."""
        asked = {"number": self.house >> 8, "keys": keys}
        if self.laden:
            self._try("try_share_keys" if shared else "try_have_keys", **asked)
        else:
            self.write("share_keys" if shared else "have_keys", **asked)
        self.laden = True

    def purse(self) -> None:
        """The money of the fleet, where it is bounded: one looks into it at a time."""
        # Always the last that is waited for, so those who have it wait for nobody.
        self.write("hold_purse", purse=self.house + 1)

    def _try(self, query: str, **parameters: Any) -> None:
        row = self.one(query, **parameters)
        if row is None or not row["had"]:
            raise Crowded("others are at work, and this has work of its own under way")

    # -- what is told -------------------------------------------------------------------------------------
    @property
    def told(self) -> int:
        return len(self._told)

    def tell(self, event: Row) -> None:
        self._told.append(event)

    def tell_all(self) -> None:
        """From here on nobody reads on behind what this transaction will have told."""
        if self._told:
            self.write("put_event", log=self.log, rows=json.dumps(self._told, separators=(",", ":")))
            self._told.clear()

    # -- what is written and read -------------------------------------------------------------------------
    def write(self, query: str, **parameters: Any) -> None:
        self._foreseen.clear()
        self.send(query, parameters)

    def run(self, query: str, **parameters: Any) -> int:
        self._foreseen.clear()
        (answer,) = self.ask((query, parameters))
        return answer.changed

    def insert(self, query: str, **parameters: Any) -> int | None:
        self._foreseen.clear()
        row = self.one(query, **parameters)
        return None if row is None else int(row["id"])

    def inserts(self, query: str, rows: Sequence[Row]) -> list[int]:
        """All at once; where not all could be, others were in the way."""
        self._foreseen.clear()
        found = self.all(query, rows=tabled(rows)) if rows else []
        if len(found) < len(rows):
            raise Crowded(f"{query}: others were quicker")
        return [row["id"] for row in found]

    def many(self, query: str, rows: Sequence[Row]) -> None:
        if not rows:
            return
        if self._queries[query].parameters == ("rows",):
            self.write(query, rows=tabled(rows))
            return
        for row in rows:
            self.write(query, **row)

    def draw(self, query: str, count: int) -> None:
        """So many numbers will be needed: they are sent for now. They stay good, whatever is written since."""
        self._drawn[query, count] = self.send(query, {"count": count})

    def drawn(self, query: str, count: int) -> list[int]:
        answer = self._drawn.pop((query, count), None) or self.send(query, {"count": count})
        self.settle()
        return [row["id"] for row in self.wire.rows(answer)]

    def foresee(self, query: str, **parameters: Any) -> None:
        """This will be asked before anything is written: it is sent now, and answered with what is asked before it."""
        self._foreseen[query] = (parameters, self.send(query, parameters))

    def ask(self, *queries: tuple[str, Row]) -> list[Answer]:
        answers = [self._answer(query, parameters) for query, parameters in queries]
        self.settle()
        return answers

    def _answer(self, query: str, parameters: Row) -> Answer:
        asked, answer = self._foreseen.get(query, (None, None))
        return answer if answer is not None and asked == parameters else self.send(query, parameters)

    def nearest(self) -> Link:
        return self if self.held_by == threading.get_ident() else self.reader()

    def reader(self) -> Reader:
        """The calling thread's own connection."""
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = Reader(self.place, self.log)
            self._readers.append(reader)
        return reader

    def backup(self, path: Path) -> None:
        reader = self.reader()
        with reader.snapshot():
            backup(reader.connection, path)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        super().close()


class _Whole:
    """A transaction of its own: committed at the end, told to the probe on both sides."""

    __slots__ = ("session", "site")

    def __init__(self, session: PostgresSession, site: str) -> None:
        self.session = session
        self.site = site

    def __enter__(self) -> None:
        self.session.begin()
        self.session.depth = 1
        self.session.held_by = threading.get_ident()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        session = self.session
        session.depth, session.held_by = 0, None
        try:
            if kind is None:
                session.tell_all()
                if session.probe:
                    # Whoever looks in between finds everything done but the commit.
                    session.settle()
                    session.probe("before", self.site)
                session.commit()
        except BaseException:
            session.undo(0, "ROLLBACK")
            raise
        if kind is not None:
            session.undo(0, "ROLLBACK")
        elif session.probe:
            session.probe("after", self.site)


class _Part:
    """A transaction inside another: a savepoint, undone alone.

    The first part inside a writer's call, or after the locks of a verb, finds nothing written yet, and shares what it
    is in: a savepoint, or the whole.
    """

    __slots__ = ("session", "shared", "site", "told")

    def __init__(self, session: PostgresSession, site: str) -> None:
        self.session = session
        self.site = site
        self.shared = False
        self.told = 0

    def __enter__(self) -> None:
        session = self.session
        self.shared = session.untouched
        session.untouched = self.site == CALL
        session.depth += 1
        self.told = session.told
        if not self.shared:
            session.say("SAVEPOINT part")

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        session = self.session
        session.depth -= 1
        session.untouched = False
        if self.shared:
            if kind is not None and session.depth > 1:
                session.undo(self.told, "ROLLBACK TO part")
            return
        if kind is None:
            try:
                # What went wrong in this part is told by this part, and undone with it.
                session.settle()
                session.say("RELEASE part")
                return
            except BaseException:
                session.undo(self.told, "ROLLBACK TO part", "RELEASE part")
                raise
        session.undo(self.told, "ROLLBACK TO part", "RELEASE part")


def _number(connection: Connection) -> int:
    """By which the locks of this store are told from those of others in the same database."""
    row = connection.execute("SELECT 'address'::regclass::oid::bigint AS number").fetchone()
    assert row is not None
    return int(row["number"])
