"""Access without a thread: the store is called where the caller stands.

For a command that finds no engine, and for the simulation, in which time stands still while the store works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from wakeful.store.session import CALL
from wakeful.store.store import SqlStore

T = TypeVar("T")


class Inline:
    """A call is one transaction and returns committed; whoever watches is told before its caller goes on.

    `hint` is called after each commit that is not quiet, for those who share the store from elsewhere.
    """

    def __init__(self, store: SqlStore, *, hint: Callable[[], None] | None = None) -> None:
        self.store = store
        self._hint = hint
        self._watchers: list[Callable[[], None]] = []

    async def write(self, verb: Callable[[SqlStore], T], *, quiet: bool = False) -> T:
        value = self._call(verb)
        if not quiet:
            self.tell()
            if self._hint is not None:
                self._hint()
        return value

    def _call(self, verb: Callable[[SqlStore], T]) -> T:
        with self.store.session.transaction(CALL):
            return verb(self.store)

    async def read(self, verb: Callable[[SqlStore], T]) -> T:
        return verb(self.store)

    def watch(self, told: Callable[[], None]) -> None:
        self._watchers.append(told)

    def tell(self) -> None:
        for told in self._watchers:
            told()
