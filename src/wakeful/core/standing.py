"""Where an agent stands: its place in the day, its streaks and its next due instant.

Laws:
- Only the transaction that ends a run moves a standing; a crash leaves it before or after, nothing between.
- `due_at` is an absolute instant; nothing about time is kept in a process.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wakeful.core.lifecycle import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Money in millionths of a dollar, and tokens."""

    usd: int = 0
    tokens: int = 0

    def __add__(self, other: Spend) -> Spend:
        return Spend(usd=self.usd + other.usd, tokens=self.tokens + other.tokens)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(usd=self.usd - other.usd, tokens=self.tokens - other.tokens)


NOTHING = Spend()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    agent: str
    position: Position
    idle_streak: int = 0
    failure_streak: int = 0
    due_at: datetime | None = None
    gates: dict[str, datetime] | None = None
    costs: tuple[Spend, ...] = ()
    last_outcome: str | None = None
    last_ended_at: datetime | None = None

    def ran_at(self, state: str) -> datetime | None:
        """When that state last ended done; a state that never did has an open gate."""
        return (self.gates or {}).get(state)
