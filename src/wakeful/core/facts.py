"""The scalars that the guards read. A fact enters only with the guard that reads it.

The store gathers them with one query under its lock; `why` gathers the same ones without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wakeful.core.standing import NOTHING, Spend
from wakeful.core.wakes import Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    now: datetime
    timezone: str = "UTC"
    moot: str | None = None
    pause: Pause | None = None
    wakes_by_run: int = 0
    # How many wakes the agent whose run asks lets a run have; None where that agent is gone.
    wakes_allowed: int | None = None
    last_peer_wake_at: datetime | None = None
    wakes_today: int = 0
    pair_wakes_today: int = 0
    seconds_today: float = 0.0
    spent: Spend = NOTHING
    fleet_spent: Spend = NOTHING
    # None for a run that calls no model: it needs no money, even when none is left.
    reserve: Spend | None = NOTHING
    burst_starts: int = 0
    gate_opens_at: datetime | None = None
    gate_state: str | None = None
    open_run: int | None = None
    slots_taken: int = 0
