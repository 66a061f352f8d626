"""One small protocol for everything that runs as long as the engine does.

Laws:
- Services start in order and stop in the reverse order; one that cannot start stops those before it.
- A service that fails while it runs is told aloud and begun again after a rest: nothing of the engine dies quietly.
- A store that is away is no failure of the service: it is one line, and a rest that stays short.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from wakeful.core.errors import Busy
from wakeful.engine.absence import LONGEST_REST as LONGEST_AWAY
from wakeful.engine.absence import in_a_line

log = logging.getLogger("wakeful.engine")

FIRST_REST, LONGEST_REST = 0.5, 10.0


class Service(Protocol):
    name: str

    async def start(self) -> None:
        """Returns when it does its work; raises when it cannot."""

    async def stop(self) -> None:
        """Returns when it no longer does; a second stop does nothing."""


class Services:
    """Several services as one."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._running: list[Service] = []

    def add(self, service: Service) -> None:
        self._services.append(service)

    async def start(self) -> None:
        for service in self._services:
            try:
                await service.start()
            except BaseException:
                await self.stop()
                raise
            self._running.append(service)

    async def stop(self) -> None:
        while self._running:
            service = self._running.pop()
            try:
                await service.stop()
            except Exception:
                log.exception("%s did not stop well", service.name)


class Lasting:
    """A service that is one coroutine, called again whenever it fails."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self.failures = 0

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep(), name=self.name)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _keep(self) -> None:
        clock, rest = asyncio.get_running_loop().time, FIRST_REST
        while True:
            begun = clock()
            try:
                await self._work()
                return
            except Exception as error:
                self.failures += 1
                # Only failures that follow each other closely lengthen the rest.
                rest = FIRST_REST if clock() - begun > LONGEST_REST else rest
                rest = self._tell(error, rest)
            await asyncio.sleep(rest)
            rest = min(rest * 2, LONGEST_REST)

    def _tell(self, error: Exception, rest: float) -> float:
        """Say what went wrong; how long to rest after it."""
        if isinstance(error, Busy):
            rest = min(rest, LONGEST_AWAY)
            log.warning("%s waits for the store, and begins again in %g s: %s", self.name, rest, in_a_line(error))
        else:
            log.error("%s failed and begins again in %g s", self.name, rest, exc_info=error)
        return rest
