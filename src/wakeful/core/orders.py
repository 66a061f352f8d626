"""A claimed run with everything that whoever carries it out needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wakeful.core.agents import Agent
from wakeful.core.items import Item
from wakeful.core.journal import Journal
from wakeful.core.runs import Run
from wakeful.core.standing import Standing
from wakeful.core.wakes import Wake


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    run: Run
    agent: Agent
    standing: Standing
    items: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    wake: Wake | None = None
    deadline: datetime | None = None
    # The number of the beat that the position stands in: it grows when a beat is settled, not when one is tried.
    beat: int = 0
    # What came of the agent's last run, in words.
    last: str | None = None
    # What is recorded already: for each task, or None for the beat, the steps and their results.
    steps: Mapping[int | None, Mapping[str, str | None]] = field(default_factory=dict)
    # For a quiet beat: what the agent did since it last dreamt.
    journal: Journal | None = None
