"""What open tasks wait for, as far as a store knows it. Each is one query, however many tasks there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wakeful.core.agents import Agent


class Waited(Protocol):
    def ahead(self, tasks: Sequence[int]) -> dict[int, int]:
        """Of those that stand behind another of their causal key, which one: the oldest before them that is open, or
        one that a run is still at."""

    def of_role(self, role: str) -> list[Agent]:
        """The agents that take its tasks, by name; nobody who is disabled."""

    def untaken(self) -> list[tuple[str | None, str | None, int]]:
        """For whom nobody is there, the agent or the role, with how many open tasks each has."""
