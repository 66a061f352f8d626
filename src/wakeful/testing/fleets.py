"""Drawn fleets: small, ill-behaved, and bounded so tightly that every guard is met.

A seed turns most kinds of trouble on and some off, so that rare combinations are not drowned by common ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from wakeful.core.agents import Agent, Fleet, Limits, RetryPolicy, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.lifecycle import SINGLE, Kind, Lifecycle, State
from wakeful.core.windows import Window, parse_window

NAMES = ("wren", "moss", "finch", "alder", "reed", "heron", "lark", "thrush", "sedge", "rook")
ROLES = ("writer", "editor", "tester")
ZONES = (
    *("UTC", "UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo"),
    *("Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo"),
)
# Around changes of offset, a leap day, a new year, and an ordinary day.
DATES = (
    *((2026, 3, 28), (2026, 10, 24), (2026, 3, 7), (2026, 10, 31), (2026, 4, 4), (2026, 10, 3)),
    *((2026, 4, 23), (2026, 10, 29), (2028, 2, 28), (2026, 12, 31), (2026, 6, 10)),
)
SCHEDULES = ("30 * * * *", "0 */3 * * *", "30 2 * * *", "0 0 * * *", "15 1,2,3 * * *", "*/40 8-18 * * *")
QUIET = ("23:00-07:00", "01:00-03:00", "Mon-Fri 12:00-13:30", "Sat,Sun 00:00-24:00", "20:00-20:30")


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def draw_start(dice: Random) -> datetime:
    year, month, day = dice.choice(DATES)
    return datetime(year, month, day, tzinfo=UTC) + minutes(dice.randrange(24 * 60))


def draw_fleet(dice: Random, start: datetime) -> Fleet:
    sessions, workers = dice.randint(1, 3), dice.randint(1, 3)
    timezone = dice.choice(ZONES)
    shared = draw_fleet_budget(dice)
    names = list(NAMES[: dice.randint(2, 6)])
    agents: list[Agent] = []
    for name in names:
        agent = draw_agent(dice, name, timezone, start)
        agents.append(_shared(agent, sessions, workers, shared))
    if dice.random() < 0.35:
        single = draw_agent(dice, "sedge", timezone, start)
        single = replace(_shared(single, sessions, workers, shared), lifecycle=SINGLE, one_offs=())
        single = replace(single, roles=(dice.choice(ROLES),))
        agents += [replace(single, name=f"sedge-{number}") for number in (1, 2)]
    grace = dice.choice((timedelta(), timedelta(seconds=60), minutes(5)))
    return Fleet(
        title="drawn",
        timezone=timezone,
        sessions=sessions,
        workers=workers,
        grace=grace,
        agents=tuple(agents),
    )


def draw_fleet_budget(dice: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if dice.random() < 0.25:
        found["fleet_usd_per_day"] = dice.randrange(2_000_000, 20_000_000)
    if dice.random() < 0.15:
        found["fleet_tokens_per_day"] = dice.randrange(20_000, 200_000)
    return found


def _shared(agent: Agent, sessions: int, workers: int, budget: dict[str, Any]) -> Agent:
    limits = replace(agent.limits, sessions=sessions, workers=workers, **budget)
    return replace(agent, limits=limits)


def draw_agent(dice: Random, name: str, timezone: str, start: datetime) -> Agent:
    cadence = draw_cadence(dice)
    timed = cadence.base is not None or cadence.schedule is not None
    lifecycle = draw_lifecycle(dice) if timed else SINGLE
    runner = Runner.handler if dice.random() < 0.25 else Runner.process
    hours = [dice.randrange(2, 40) for _ in range(dice.randint(1, 2))] if dice.random() < 0.35 else []
    roles = tuple(role for role in ROLES if dice.random() < 0.4)
    return Agent(
        name=name,
        address=name.split("-")[0],
        runner=runner,
        target="a program",
        lifecycle=lifecycle,
        cadence=cadence,
        one_offs=tuple(sorted({start + timedelta(hours=hour) for hour in hours})),
        timezone=timezone if dice.random() < 0.7 else dice.choice(ZONES),
        limits=draw_limits(dice),
        retries=RetryPolicy(max_retries=dice.randint(0, 3), base=timedelta(seconds=dice.choice((5, 15, 60)))),
        max_failures=dice.randint(1, 4),
        timeout=minutes(dice.choice((10, 20, 45))),
        roles=roles,
    )


def draw_cadence(dice: Random) -> Cadence:
    match dice.choice(("interval", "interval", "interval", "schedule", "continuous", "none")):
        case "interval":
            return Cadence(interval=minutes(dice.choice((20, 45, 60, 120, 240, 480))))
        case "schedule":
            return Cadence(schedule=parse_schedule(dice.choice(SCHEDULES)))
        case "continuous":
            return Cadence(continuous=True, breather=minutes(dice.choice((0.75, 15, 40, 40))))
        case _:
            return Cadence()


def draw_lifecycle(dice: Random) -> Lifecycle:
    if dice.random() < 0.35:
        return SINGLE
    names = ["wake_plan", "wake_write", "wake_audit", "rem"][: dice.randint(2, 4)]
    states = []
    for index, name in enumerate(names):
        following = names[(index + 1) % len(names)]
        rests = name == "rem" or dice.random() < 0.1
        state = State(
            name,
            kind=Kind.rem if rests else Kind.wake,
            repeat=1 if rests else dice.randint(1, 3),
            next=following,
            min_interval=minutes(dice.choice((30, 90, 300))) if dice.random() < 0.35 else None,
            when_schedule=parse_schedule("0 3 * * *") if dice.random() < 0.08 else None,
            when_window=parse_window("08:00-20:00") if dice.random() < 0.08 else None,
        )
        states.append(state)
    return Lifecycle(names[0], tuple(states))


def draw_limits(dice: Random) -> Limits:
    quiet: tuple[Window, ...] = ()
    if dice.random() < 0.35:
        quiet = tuple(parse_window(text) for text in dice.sample(QUIET, dice.randint(1, 2)))
    spends = dice.random() < 0.3
    return Limits(
        quiet_hours=quiet,
        wakes_per_run=dice.choice((0, 1, 2, 3, 3)),
        cooldown=dice.choice((timedelta(), minutes(1), minutes(5), minutes(60))),
        wakes_per_day=dice.choice((1, 2, 3, 6, 12)),
        wakes_per_pair=dice.choice((1, 2, 3, 5)),
        chain=dice.choice((0, 1, 2, 8, 8)),
        minutes_per_day=dice.choice((15.0, 40.0, 120.0, 600.0)),
        minutes_declared=dice.random() < 0.2,
        usd_per_day=dice.randrange(1_000_000, 10_000_000) if spends else None,
        tokens_per_day=dice.randrange(10_000, 100_000) if spends and dice.random() < 0.5 else None,
        reserve_usd=dice.randrange(100_000, 800_000) if spends and dice.random() < 0.5 else None,
        burst=dice.choice((2, 4, 20, 20)),
        burst_window=minutes(dice.choice((10, 10, 40))),
        burst_pause=minutes(30),
    )


EDITS = (
    *("cadence", "cadence", "lifecycle", "lifecycle", "lifecycle", "shrink", "shrink"),
    *("limits", "remove", "add", "disable", "failures", "one_offs"),
)


def edit_fleet(dice: Random, fleet: Fleet, start: datetime, running: Sequence[str] = ()) -> Fleet:
    """One edit as an operator makes it: a value changed, a state dropped, an agent gone, come or back.

    Whoever is `running` is edited more often: an edit matters most while a run is under way."""
    agents = list(fleet.agents)
    favoured = [index for index, agent in enumerate(agents) if agent.name in running and dice.random() < 0.7]
    index = dice.choice(favoured) if favoured else dice.randrange(len(agents))
    agent = agents[index]
    match dice.choice(EDITS):
        case "cadence":
            agents[index] = replace(agent, cadence=draw_cadence(dice))
        case "lifecycle" if "-" not in agent.name:
            agents[index] = replace(agent, lifecycle=draw_lifecycle(dice))
        case "shrink" if len(agent.lifecycle.states) > 1:
            agents[index] = replace(agent, lifecycle=_without_one(dice, agent.lifecycle))
        case "limits":
            agents[index] = _shared(
                replace(agent, limits=draw_limits(dice)), fleet.sessions, fleet.workers, _budget_of(agent)
            )
        case "remove" if len(agents) > 2:
            del agents[index]
        case "add":
            absent = [name for name in NAMES if fleet.agent(name) is None and name != "sedge"]
            if absent:
                drawn = draw_agent(dice, dice.choice(absent), agent.timezone, start)
                agents.append(_shared(drawn, fleet.sessions, fleet.workers, _budget_of(agent)))
        case "one_offs":
            hours = [dice.randrange(2, 40) for _ in range(dice.randint(0, 2))]
            moments = {start + timedelta(hours=hour) for hour in hours}
            agents[index] = replace(agent, one_offs=tuple(sorted(moments)))
        case "disable":
            agents[index] = replace(agent, enabled=not agent.enabled)
        case _:
            agents[index] = replace(agent, max_failures=dice.randint(1, 4))
    return replace(fleet, agents=tuple(agents))


def _budget_of(agent: Agent) -> dict[str, Any]:
    names = ("fleet_usd_per_day", "fleet_tokens_per_day")
    return {name: value for name in names if (value := getattr(agent.limits, name)) is not None}


def _without_one(dice: Random, lifecycle: Lifecycle) -> Lifecycle:
    gone = dice.choice(lifecycle.states)
    following = gone.next if gone.next != gone.name else lifecycle.states[0].name
    kept = tuple(
        replace(state, next=following if state.next == gone.name else state.next)
        for state in lifecycle.states
        if state.name != gone.name
    )
    names = {state.name for state in kept}
    kept = tuple(replace(state, next=state.next if state.next in names else kept[0].name) for state in kept)
    start = lifecycle.start if lifecycle.start in names else kept[0].name
    return Lifecycle(start, kept)
