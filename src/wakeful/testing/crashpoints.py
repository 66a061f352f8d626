"""Where a process can die around a commit: every site that commits, and three moments at each.

Laws:
- A site is the name of a transaction in the source. A test holds the table of sites against the source.
- Before: everything is done but the commit. After: it is committed, and nobody has heard of it. Told: whoever asked
  has the answer, and has done nothing with it.
- A process dies by kill -9 from its own hand: no handler, no `finally`, no word to anybody.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, NoReturn, TypeVar

from wakeful.store.inline import Inline
from wakeful.store.session import Session
from wakeful.store.store import SqlStore
from wakeful.store.writer import Writer

T = TypeVar("T")

MOMENTS = ("before", "after", "told")

# Beside the verbs of the store, which the contract counts (`contracts.store_crashes`): parts of a verb that are undone
# by themselves; the group of a writer's thread, and one caller's share in it or a command's whole; the schema, and a
# store that is copied whole into an empty one.
PARTS = ("recur_one",)
AROUND = ("group", "call")
WHOLE = ("migrate", "load")


class Point(NamedTuple):
    """Here it dies, when it comes by for the so-manyth time."""

    site: str
    moment: str
    turn: int = 1


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


class Doom:
    """Watches the commits of one process, and ends it at its point; without one it only tells where it came by."""

    def __init__(self, point: Point | None = None, *, passed: Callable[[str, str], None] | None = None) -> None:
        self._point = point
        self._left = point.turn if point else 0
        self._passed = passed
        # Of the transaction that is under way or was the last.
        self._sites: list[str] = []

    def reach(self, moment: str, sites: Iterable[str]) -> None:
        for site in dict.fromkeys(sites):
            if self._passed is not None:
                self._passed(moment, site)
            if self._point is not None and self._point[:2] == (site, moment):
                self._left -= 1
                if self._left == 0:
                    die()

    def watch(self, session: Session) -> None:
        """Every transaction of that session, also those that are parts of another."""
        begin, sites = session.transaction, self._sites

        def transaction(site: str) -> AbstractContextManager[None]:
            if not session.depth:
                sites.clear()
            sites.append(site)
            return begin(site)

        vars(session).update(transaction=transaction, probe=lambda moment, _: self.reach(moment, sites))

    def listen(self, access: Writer | Inline) -> None:
        """Every answer that a coroutine gets of that access."""
        write = access.write

        async def listened(verb: Callable[[SqlStore], T], *, quiet: bool = False) -> T:
            mine: list[str] = []
            answer = await write(self._noting(verb, mine), quiet=quiet)
            self.reach("told", mine)
            return answer

        vars(access).update(write=listened)

    def _noting(self, verb: Callable[[SqlStore], T], mine: list[str]) -> Callable[[SqlStore], T]:
        def noted(store: SqlStore) -> Any:
            # It is called inside the whole, and perhaps inside a share of it.
            around = [site for site in self._sites if site in AROUND]
            known = len(self._sites)
            answer = verb(store)
            mine.extend((*around, *self._sites[known:]))
            return answer

        return noted
