"""A claimed run with everything that whoever carries it out needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wakeful.core.agents import Agent
from wakeful.core.items import Item
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
