"""What an agent is doing, in plain words that every reader renders alike: the terminal, the page, a log.

Laws:
- It is said once, here; a reader puts in the times. A part is a text, or a time with how it is to be told: `for` as how
  long it has lasted, `in` as how long it is until then, `at` as an instant of the reader's own clock, `ago` as how long
  it has been.
- What a person wrote is one line of bounded length here; to keep it inert is for whoever shows it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.control.ahead import AT, Ahead
from wakeful.control.rows import agent_state, held_by
from wakeful.core.agents import Agent
from wakeful.core.cadence import backoff
from wakeful.core.codec import write_time
from wakeful.core.durations import lasting
from wakeful.core.standing import Standing
from wakeful.core.wakes import FLEET, Pause
from wakeful.store.protocol import AgentRow, WakeRow

Part = str | dict[str, str]

# Beyond this a day is told, and not how long it is until then.
_FAR = timedelta(days=2)
_LONGEST = 200
# From so many failures in a row on they are told beside what it does.
_FAILING = 2


def doing(row: AgentRow, beat: Ahead | None, now: datetime, node: str | None = None) -> list[Part]:
    """`beat` is its next one; `node` is told as where it runs."""
    state = agent_state(row, now)
    if state == "quarantined":
        streak = row.standing.failure_streak
        return [f"quarantined after {_failures(streak)}" if streak else "quarantined", *_also(row, node)]
    if state == "paused":
        told = _paused(held_by(row, now)[0])
        return told if row.run is None else _joined([*_running(row, node), ", then ", *told])
    if state == "running":
        return _running(row, node)
    if state == "waiting":
        return _waiting(row.waiting, now)
    return _idle(row, beat, now) if state == "idle" else [state, *_also(row, node)]


def _paused(pause: Pause) -> list[Part]:
    """Who paused the whole fleet, and why, is told once, of the fleet."""
    said = f"paused by {_short(pause.owner)}" + (f": {_short(pause.reason)}" if pause.reason else "")
    told = "paused with the fleet" if pause.scope == FLEET else said
    return [told] if pause.until is None else [f"{told}, until ", {"at": write_time(pause.until)}]


def _running(row: AgentRow, node: str | None) -> list[Part]:
    run = row.run
    if run is None or run.started_at is None:
        return ["starting"]
    most = lasting(row.agent.wall_clock(run.subject))
    return ["running ", {"for": write_time(run.started_at)}, f" of {most}" + (f" on {_short(node)}" if node else "")]


def _also(row: AgentRow, node: str | None) -> list[Part]:
    """It may still be in the run that it was in."""
    return _joined([" (", *_running(row, node), ")"]) if row.run is not None else []


def _waiting(row: WakeRow | None, now: datetime) -> list[Part]:
    at = row.retry_at if row is not None else None
    if row is None or not row.guard:
        if at is None or at <= now:
            return ["waiting: not decided yet"]
        again = write_time(at)
        return ["waiting: tried again ", {"at": again}, " (", {"in": again}, ")"]
    if row.guard == "slots":
        return ["waiting for a free slot"]
    told = f"deferred by {_guard(row.guard)}"
    return [told] if at is None else [f"{told} until ", {"at": write_time(at)}]


def _idle(row: AgentRow, beat: Ahead | None, now: datetime) -> list[Part]:
    told, standing = "idle", row.standing
    if beat is not None and standing.idle_streak and _backs_off(row.agent, standing):
        told += f", backing off (streak {standing.idle_streak})"
    if standing.failure_streak >= _FAILING:
        told += f", {_failures(standing.failure_streak)} in a row"
    if beat is None:
        return [f"{told}, until something arrives"]
    at = write_time(beat.at)
    if beat.held_by is not None:
        return [f"{told}, next beat ", {"at": at}, f" ({_guard(beat.held_by)} until then)"]
    when: Part = {"at": at} if beat.at - now > _FAR else {"in": at}
    return [f"{told}, next beat ", when, *([" (at)"] if beat.by == AT else [])]


def _backs_off(agent: Agent, standing: Standing) -> bool:
    """Whether its beat is later than its cadence alone would have it."""
    cadence, ended = agent.cadence, standing.last_ended_at
    if cadence.schedule is None:
        return cadence.base is not None and backoff(standing.idle_streak) > cadence.base
    if ended is None or standing.due_at is None:
        return False
    return cadence.schedule.after(ended, ZoneInfo(agent.timezone)) < standing.due_at


def _failures(number: int) -> str:
    return f"{number} failure{'' if number == 1 else 's'}"


def _guard(name: str) -> str:
    return name.replace("_", " ")


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


def _joined(parts: list[Part]) -> list[Part]:
    """Texts that follow one another are one part."""
    told: list[Part] = []
    for part in parts:
        if told and isinstance(part, str) and isinstance(told[-1], str):
            told[-1] += part
        else:
            told.append(part)
    return told
