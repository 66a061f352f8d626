"""The fleet that the killed process keeps, and the clock that it goes by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from wakeful.core.agents import Agent, Fleet, Limits, Runner
from wakeful.core.cadence import Cadence

START = datetime(2026, 1, 1, tzinfo=UTC)

# A quarter of a day from one life of the process to the next: days end now and then.
LIFE = timedelta(hours=6)
TICK = timedelta(seconds=1)

# Money is reserved and settled in every run, and never runs out.
_LIMITS = Limits(usd_per_day=10**12, tokens_per_day=10**12, reserve_usd=5_000, reserve_tokens=700, cooldown=5 * TICK)
_BEATS = Cadence(interval=timedelta(minutes=2))

NAMES = ("moss", "wren", "fern", "lark", "reed", "crow", "sage", "dove")
ROLE = "work"


def fleet() -> Fleet:
    """Six that beat, of which four also take tasks; one that takes tasks in shifts; one with an inbox only."""
    beating = [
        Agent(name=name, address=name, cadence=_BEATS, limits=_LIMITS, roles=(ROLE,) if index < 4 else ())
        for index, name in enumerate(NAMES[:6])
    ]
    shifts = Agent(name="sage", address="sage", runner=Runner.handler, cadence=Cadence(), limits=_LIMITS, roles=(ROLE,))
    inbox = Agent(name="dove", address="dove", cadence=Cadence(), limits=_LIMITS)
    return Fleet(agents=(*beating, shifts, inbox), sessions=4, workers=4)


def elapsed(run: int) -> timedelta:
    """How long a run says it took: not alike, and never nothing."""
    return timedelta(milliseconds=100 + run * 37 % 1_000)


class Clock:
    """Every look is a tick later than the one before, in every life of the process."""

    def __init__(self, life: int) -> None:
        self._now = START + life * LIFE

    def now(self) -> datetime:
        self._now += TICK
        return self._now
