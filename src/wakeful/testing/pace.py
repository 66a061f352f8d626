"""The time constants of an engine, stretched: what idle nodes say to each other every few seconds costs a world more
than all that happens in it.

Laws:
- All of them are stretched alike, so that they keep their order: a lease is still ten times as long as what renews it.
- What waits for a person, a program or a file is left as it is.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wakeful.engine import (
    absence,
    clock,
    conduct,
    declarations,
    engine,
    loop,
    presence,
    publishing,
    services,
    sourcing,
    telling,
)
from wakeful.testing.station import EXPECTED, VirtualWatch

# How much longer a lease is in most worlds: half an hour.
PACE = 90.0

IMPOSSIBLE = "%d rounds at one instant"


@contextmanager
def paced(factor: float) -> Iterator[None]:
    """Engines that are made meanwhile live at that pace, and hear of files from the world alone."""
    changed: list[tuple[Any, str, Any]] = [(engine, "Watch", VirtualWatch)]
    changed += [(module, "LEASE", presence.LEASE * factor) for module in (presence, loop, sourcing)]
    changed += [(presence, "HOLDING", presence.HOLDING * factor), (presence, "IDLE", presence.IDLE * factor)]
    changed += [(publishing, "EVERY", publishing.EVERY * factor), (sourcing, "TEND", sourcing.TEND * factor)]
    changed += [(loop, "LONGEST", clock.LONGEST * factor), (loop, "UNSEEN", loop.UNSEEN * factor)]
    changed += [(module, "LONGEST_REST", absence.LONGEST_REST * factor / 4) for module in (absence, conduct, sourcing)]
    changed += [(services, "LONGEST_AWAY", absence.LONGEST_REST * factor / 4)]
    # These are minutes already.
    longer = max(factor / 10, 1.0)
    changed += [(loop, "RESYNC", loop.RESYNC * longer), (declarations, "HEARING", declarations.HEARING * longer)]
    changed += [(telling, "LONGEST", telling.LONGEST * longer)]
    before = [(module, name, getattr(module, name)) for module, name, _ in changed]
    for module, name, value in changed:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def lease() -> float:
    """Of the engines of now, in seconds."""
    return presence.LEASE.total_seconds()


class _Listener(logging.Handler):
    def __init__(self, complain: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._complain = complain

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, EXPECTED):
            self._complain(f"{record.getMessage()}\n{''.join(traceback.format_exception(error))}")
        elif str(record.msg).startswith(IMPOSSIBLE):
            self._complain(record.getMessage())


@contextmanager
def listening(complain: Callable[[str], None]) -> Iterator[None]:
    """What engines log is not printed; an error that no trouble of the world explains is a complaint."""
    log, listener = logging.getLogger("wakeful"), _Listener(complain)
    before = log.level, log.propagate
    log.setLevel(logging.ERROR)
    log.propagate = False
    log.addHandler(listener)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.level, log.propagate = before
