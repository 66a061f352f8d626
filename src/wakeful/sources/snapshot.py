"""A list that is polled: a program or an address that tells what is pending now.

Laws:
- It is asked at its instants, counted from the first: an answer that takes long delays no later one.
- Whatever goes wrong is an outage, with its reason: no answer in time, a failure, an answer that is not clear.
- A list that says it has not changed (304) costs nothing.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

from wakeful.core.items import Observation
from wakeful.core.snapshots import SnapshotAddress
from wakeful.sources.aside import Then, Unreadable
from wakeful.sources.entries import read_list
from wakeful.sources.mirror import Mirror
from wakeful.sources.program import Program
from wakeful.sources.request import Answer, Request, sendable

# Seconds for an answer.
LIMIT = 10.0


def as_it_is(words: str) -> str:
    return words


class Snapshot(Mirror):
    def __init__(
        self, agent: str, address: SnapshotAddress, *, hide: Callable[[str], str] = as_it_is, limit: float = LIMIT
    ) -> None:
        """`hide` takes secrets out of what a person will read."""
        super().__init__(address.name, agent)
        self._address = address
        self._hide = hide
        self._limit = limit
        self._first: float | None = None
        self._slot = 0

    @abstractmethod
    async def _ask(self) -> tuple[Observation, ...]:
        """Raises `Unreadable`."""

    async def _see(self, *, patient: bool) -> tuple[Observation, ...]:
        if self._first is None:
            self._first = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._limit):
                return await self._ask()
        except TimeoutError:
            raise Unreadable(f"no answer within {self._limit:g} s") from None
        except Unreadable as error:
            raise Unreadable(self._hide(str(error))) from None

    async def _until_more(self, *, again: bool) -> None:
        assert self._first is not None
        passed, every = asyncio.get_running_loop().time() - self._first, self._address.every / timedelta(seconds=1)
        # A timer may be a hair early: an instant that was used is over.
        self._slot = max(self._slot, int(passed // every)) + 1
        await self._stopped_within(self._slot * every - passed)


class ProgramSnapshot(Snapshot):
    def __init__(
        self,
        agent: str,
        address: SnapshotAddress,
        *,
        root: Path,
        environment: Mapping[str, str],
        hide: Callable[[str], str] = as_it_is,
        limit: float = LIMIT,
    ) -> None:
        """`root` is the folder of the fleet file, `environment` all that the program gets."""
        super().__init__(agent, address, hide=hide, limit=limit)
        assert address.program is not None
        self._root = root.absolute()
        self._path = self._root / address.program
        self._environment = environment

    async def _ask(self) -> tuple[Observation, ...]:
        program = Program(self._path, self._root, self._environment)
        return await self._aside.do(Then(program, partial(read_list, pending=self._address.pending)))


class UrlSnapshot(Snapshot):
    def __init__(
        self,
        agent: str,
        address: SnapshotAddress,
        *,
        variables: Mapping[str, str],
        hide: Callable[[str], str] = as_it_is,
        limit: float = LIMIT,
    ) -> None:
        """`variables` are those in which the token is looked up, each time."""
        super().__init__(agent, address, hide=hide, limit=limit)
        self._variables = variables
        self._tag: str | None = None
        self._known: tuple[Observation, ...] = ()

    async def _ask(self) -> tuple[Observation, ...]:
        assert self._address.url is not None
        request = Request(self._address.url, token=self._token(), tag=self._tag)
        tag, observed = await self._aside.do(Then(request, self._understood))
        if observed is not None:
            self._tag, self._known = tag, observed
        return self._known

    def _understood(self, answer: Answer) -> tuple[str | None, tuple[Observation, ...] | None]:
        """None where it is what it was: a tag is only remembered with a list that was understood."""
        if answer.body is None:
            return answer.tag, None
        return answer.tag, read_list(answer.body, pending=self._address.pending, by_lines=answer.bounded)

    def _token(self) -> str | None:
        name = self._address.token
        if name is None:
            return None
        token = self._variables.get(name, "").strip()
        if not sendable(token):
            raise Unreadable(f"the variable {name} holds no token" if not token else f"{name} cannot be sent")
        return token
