"""A store that is away for a while: whoever needs it waits, and tries again.

Laws:
- Only `Busy` is waited out. Whatever else is wrong is raised: waiting would not mend it.
- The rest between two tries grows up to 2 s, so that work goes on soon after the store is back. Each try that failed is
  one line of the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from wakeful.core.errors import Busy

log = logging.getLogger("wakeful.engine")

FIRST_REST, LONGEST_REST = 0.1, 2.0

T = TypeVar("T")


def in_a_line(error: Exception) -> str:
    """A server may say more, in lines of its own."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


async def outwait(work: Callable[[], Awaitable[T]]) -> T:
    """What that comes to, as soon as the store is there."""
    rest = FIRST_REST
    while True:
        try:
            return await work()
        except Busy as away:
            log.warning("the store is away, trying again in %g s: %s", rest, in_a_line(away))
        await asyncio.sleep(rest)
        rest = min(rest * 2, LONGEST_REST)
