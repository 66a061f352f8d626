"""An agent as its operator declared it, and the limits that bound it.

Laws:
- A declaration is a value: it has a version in the store, and a run keeps the version it started with.
- Every limit has a default here; a fleet, an agent or a live setting may replace it, nothing else may. Who did is kept
  beside the values to be told, and makes no agent a different one.
- Replicas (`moss-1`, `moss-2`) are agents of their own behind one address, and share the limits of that address.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from wakeful.core.cadence import Cadence
from wakeful.core.errors import Mistake
from wakeful.core.lifecycle import SINGLE, Lifecycle
from wakeful.core.recurrences import Recurrence
from wakeful.core.windows import Window


class Runner(StrEnum):
    """How a run happens."""

    process = "process"
    handler = "handler"
    url = "url"
    tmux = "tmux"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the guards compare the facts with. Money is in millionths of a dollar."""

    quiet_hours: tuple[Window, ...] = ()
    wakes_per_run: int = 3
    cooldown: timedelta = timedelta(seconds=300)
    wakes_per_day: int = 12
    wakes_per_pair: int = 5
    chain: int = 8
    minutes_per_day: float = 120.0
    minutes_declared: bool = False
    usd_per_day: int | None = None
    tokens_per_day: int | None = None
    fleet_usd_per_day: int | None = None
    fleet_tokens_per_day: int | None = None
    usd_per_run: int | None = None
    tokens_per_run: int | None = None
    reserve_usd: int | None = None
    reserve_tokens: int | None = None
    burst: int = 20
    burst_window: timedelta = timedelta(minutes=10)
    burst_pause: timedelta = timedelta(minutes=30)
    sessions: int = 2
    workers: int = 3
    fleet_timezone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a failed task is tried again, and when."""

    max_retries: int = 5
    base: timedelta = timedelta(seconds=15)
    jitter: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the fleet file says of an agent, where live settings stand before it."""

    limits: Limits
    retries: RetryPolicy
    max_failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    address: str
    enabled: bool = True
    runner: Runner | None = None
    target: str | None = None
    definition: str | None = None
    lifecycle: Lifecycle = SINGLE
    cadence: Cadence = field(default_factory=lambda: Cadence(interval=timedelta(hours=1)))
    one_offs: tuple[datetime, ...] = ()
    timezone: str = "UTC"
    limits: Limits = field(default_factory=Limits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    max_failures: int = 5
    timeout: timedelta | None = None
    kill_grace: timedelta = timedelta(seconds=10)
    roles: tuple[str, ...] = ()
    workdir: str | None = None
    environment: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    inbox: str | None = None
    board: str | None = None
    gitops: bool = False
    events: tuple[str, ...] = ()
    dream: str | None = None
    check: str | None = None
    # Of each limit and live policy that a fleet file declares, by field: whether the fleet or the agent does.
    origins: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    # None while no live setting is in force.
    declared: Declared | None = field(default=None, compare=False)

    @property
    def shift(self) -> int:
        """How many ready tasks one admission leases: a warm handler takes a shift, a process one task."""
        return 32 if self.runner is Runner.handler else 1

    def wall_clock(self, subject: str) -> timedelta:
        return self.timeout or (timedelta(minutes=30) if subject == "task" else timedelta(minutes=15))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All agents of one fleet file, and what holds for the fleet as a whole."""

    title: str = ""
    timezone: str = "UTC"
    store: str = "sqlite"
    sessions: int = 2
    workers: int = 3
    grace: timedelta = timedelta(seconds=60)
    stagger: timedelta = timedelta(seconds=30)
    port: int = 7717
    run: str | None = None
    retention: timedelta = timedelta(days=30)
    agents: tuple[Agent, ...] = ()
    recurrences: tuple[Recurrence, ...] = ()

    def agent(self, name: str) -> Agent | None:
        return next((agent for agent in self.agents if agent.name == name), None)


# What holds for the whole fleet cannot be set for one agent.
FLEET_WIDE = frozenset({"sessions", "workers", "fleet_timezone", "fleet_usd_per_day", "fleet_tokens_per_day"})

# What `wakeful set` may change on a live agent, beside every limit.
LIVE_POLICIES = ("max_retries", "retry_base", "retry_jitter", "max_failures")


def override(agent: Agent, overrides: dict[str, Any]) -> Agent:
    """The agent with its live settings applied; keys are the field names of `Limits` and `LIVE_POLICIES`."""
    known = {item.name for item in fields(Limits)} - FLEET_WIDE
    limits = {key: value for key, value in overrides.items() if key in known}
    unknown = overrides.keys() - known - set(LIVE_POLICIES)
    if unknown:
        raise Mistake(
            f"unknown setting {sorted(unknown)[0]!r}", f"known are {', '.join(sorted(known | set(LIVE_POLICIES)))}"
        )
    retries = agent.retries
    for key, name in (("max_retries", "max_retries"), ("retry_base", "base"), ("retry_jitter", "jitter")):
        if key in overrides:
            retries = replace(retries, **{name: overrides[key]})
    if "minutes_per_day" in limits:
        # Whoever sets it means it for every cause, as a declaration does.
        limits.setdefault("minutes_declared", True)
    if not overrides:
        return agent
    return replace(
        agent,
        limits=replace(agent.limits, **limits),
        retries=retries,
        max_failures=overrides.get("max_failures", agent.max_failures),
        declared=agent.declared
        or Declared(limits=agent.limits, retries=agent.retries, max_failures=agent.max_failures),
    )
