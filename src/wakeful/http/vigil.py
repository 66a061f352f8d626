"""Whether somebody who was let in may stay: looked at while an answer goes on.

Law: an answer that has begun ends within a second of its caller's token losing its force; one that is given at once
costs a timer that never rings.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from wakeful.control.callers import Caller
from wakeful.http.auth import Authority

log = logging.getLogger(__name__)

# Seconds between two looks; the second that is promised is shared with what a look takes.
LOOK = 0.5


class Begun(Protocol):
    begun: bool


class Vigil:
    """Kept by the task that answers, for as long as it does; one without a caller is kept for nobody."""

    def __init__(self, authority: Authority, caller: Caller | None, answer: Begun) -> None:
        self.cut = False
        self._authority = authority
        self._caller = caller
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._look: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(LOOK, self._begin) if caller is not None else None

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._look is not None:
            self._look.cancel()

    def _begin(self) -> None:
        self._look = self._loop.create_task(self._ask())

    async def _ask(self) -> None:
        assert self._caller is not None and self._task is not None
        try:
            may_stay = not self._answer.begun or await self._authority.still(self._caller)
        except Exception as error:
            # Storage that does not answer ends what rests on it by itself.
            log.warning("could not look whether a caller may stay: %s", error)
            may_stay = True
        if may_stay:
            self._timer = self._loop.call_later(LOOK, self._begin)
        else:
            self.cut = True
            self._task.cancel()
