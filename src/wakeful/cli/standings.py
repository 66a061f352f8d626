"""Where a fleet and its agents stand, as lines of plain words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from wakeful.cli.output import Line, Span, one_line
from wakeful.cli.words import ago, clock, counted, lasting, read_time, spent_words, until, up_words

# A loop wakes at least each minute: one that is silent for longer does not turn.
FRESH = 120.0
# Where an agent without a lifecycle stands.
NOWHERE = "beat"
# How long after its last word the runs of a node are its own.
LEASE = timedelta(seconds=20)

# A disk that is gone takes every folder with it.
MOST_OUTAGES = 10

_NOTHING = "nothing begins by itself (start one: wakeful up)"

SHADES = {
    "running": "green",
    "waiting": "yellow",
    "paused": "bold yellow",
    "quarantined": "bold red",
    "disabled": "dim",
    "done": "green",
    "failed": "red",
    "killed": "red",
}

Row = dict[str, Any]


def header(answer: Row, now: datetime) -> list[Line]:
    fleet, engine = answer["fleet"], answer["engine"]
    title = one_line(fleet.get("title") or "fleet")
    slots = [f"{pool} {fleet[pool]['taken']} of {fleet[pool]['of']}" for pool in ("sessions", "workers")]
    said = ", ".join([counted(fleet["agents"], "agent"), *slots])
    spent = spent_words(fleet.get("spent"))
    # Where a window is narrow the end is cut off: what today cost is asked for more often than how many are at work.
    first = [Span(title, "bold"), Span(": " + (f"{spent}; " if spent else "") + said)]
    nodes = answer.get("nodes") or [] if answer.get("shared") else []
    up = [one_line(node["name"]) for node in nodes if node["state"] == "up"]
    return [first, _at_work(engine, answer.get("shared", False), up, now), *_silent(nodes, bool(up), now)]


def _at_work(engine: Row | None, shared: bool, up: list[str], now: datetime) -> Line:
    if engine is not None:
        span = _engine(engine, now)
        return [Span(f"{span.text}; {counted(len(up), 'node')} up", span.style) if shared else span]
    if up:
        return [Span(f"no engine here; {up_words(up)}", "yellow")]
    return [Span("no node is up" if shared else "no engine", "bold red"), Span(f": {_NOTHING}")]


def _silent(nodes: list[Row], others: bool, now: datetime) -> list[Line]:
    """Nodes that are gone while runs of theirs are open, and when others take these up."""
    lines: list[Line] = []
    for node in nodes:
        if node["state"] != "up" and node["runs"]:
            how = f"{'left' if node['state'] == 'left' else 'is lost, last seen'} {ago(node['seen_at'], now)}"
            at = (read_time(node["seen_at"]) + LEASE).isoformat()
            then = until(at, now) if others else "when a node starts"
            told = f"node {one_line(node['name'])} {how}, with {counted(node['runs'], 'run')} open: taken up {then}"
            lines.append([Span(told, "yellow")])
    return lines


def _engine(engine: Row, now: datetime) -> Span:
    told = "engine"
    if engine.get("since"):
        told += f" up {lasting(now - read_time(str(engine['since'])))}"
    if engine.get("node"):
        told += f" on {one_line(engine['node'])}"
    age = engine.get("heartbeat_age")
    if isinstance(age, int | float):
        told += f", heartbeat {age:.1f}s ago" if age < 10 else f", heartbeat {lasting(age)} ago"
    stale = isinstance(age, int | float) and age > FRESH
    if engine.get("ready", True) and not stale:
        return Span(told, "dim")
    return Span(f"{told}, NOT READY: {one_line(engine.get('why_not') or 'its loop stands still')}", "bold red")


def banner(pauses: list[Row], now: datetime) -> list[Line]:
    """Nobody shall wonder for an hour why nothing happens."""
    return [[Span(f" PAUSED  {pause_words(pause, now)} ", "reverse bold yellow")] for pause in pauses]


def outages(rows: list[Row], shared: bool, now: datetime) -> list[Line]:
    """What cannot be looked at, why, and since when: nothing that arrives there is seen."""
    away = [row for row in rows if row["outage"]]
    told = [_outage(row, shared, now) for row in away[:MOST_OUTAGES]]
    told += [f"and {counted(len(away) - MOST_OUTAGES, 'more outage')}"] if len(away) > MOST_OUTAGES else []
    return [[Span(line, "bold red")] for line in told]


def untaken(rows: list[Row]) -> list[Line]:
    """Open tasks that wait for somebody who is not there."""
    return [[Span(untaken_words(rows), "yellow")]] if rows else []


def untaken_words(rows: list[Row]) -> str:
    """`5 open tasks that nobody can take: 3 for role ghosts, 2 for moss`."""
    told = [f"{row['tasks']:,} for {_whose(row)}" for row in rows[:MOST_OUTAGES]]
    told += ["…"] if len(rows) > MOST_OUTAGES else []
    return f"{counted(sum(row['tasks'] for row in rows), 'open task')} that nobody can take: {', '.join(told)}"


def _whose(row: Row) -> str:
    return one_line(row["agent"] or f"role {row['role']}")


def _outage(row: Row, shared: bool, now: datetime) -> str:
    source, outage = one_line(row["source"]), one_line(row["outage"], 400)
    # Its place is told once: most outages name it themselves.
    told = f"{one_line(row['agent'])}: " + (outage if source.rpartition("+")[2] in outage else f"{source}: {outage}")
    told += f", for {lasting(now - read_time(row['since']))}" if row["since"] else ""
    return told + (f", as seen by {one_line(row['node'])}" if shared and row["node"] else "")


def pause_words(pause: Row, now: datetime) -> str:
    kind, _, name = one_line(pause["scope"]).partition(":")
    told = (
        f"{'the fleet' if kind == 'fleet' else name} by {one_line(pause['owner'])} since {clock(pause['since'], now)}"
    )
    told += f", until {clock(pause['until'], now)}" if pause["until"] else ""
    return told + (f": {one_line(pause['reason'])}" if pause["reason"] else "")


def lines_of(agents: list[Row], now: datetime) -> list[Line]:
    rows = [_columns(agent, now) for agent in agents]
    widths = [max((len(row[column].text) for row in rows), default=0) for column in range(4)]
    return [
        [Span(f"{span.text:{width}}  ", span.style) for span, width in zip(row, widths, strict=True) if width]
        for row in rows
    ]


def _columns(agent: Row, now: datetime) -> list[Span]:
    return [
        Span(one_line(agent["name"]), "bold"),
        Span(_position(agent), "cyan"),
        Span(doing_words(agent["doing"], now), SHADES.get(agent["state"], "")),
        _rest(agent, now),
    ]


def _position(agent: Row) -> str:
    position = agent["position"]
    if position["state"] == NOWHERE:
        return ""
    return one_line(position["state"]) + (f" +{position['hits']}" if position["hits"] else "")


def doing_words(parts: list[str | Row], now: datetime) -> str:
    """What the server says that it is doing, with the times as they are here and now."""
    return one_line("".join(_part(part, now) for part in parts), 400)


def _part(part: str | Row, now: datetime) -> str:
    if isinstance(part, str):
        return part
    ((how, at),) = part.items()
    return _TIMES[how](at, now)


_TIMES: dict[str, Callable[[str, datetime], str]] = {
    "for": lambda at, now: lasting(now - read_time(at)),
    "in": until,
    "at": clock,
    "ago": ago,
}


def _rest(agent: Row, now: datetime) -> Span:
    """What else is worth knowing: the last outcome, and what waits to be read or done."""
    told, last = [], agent["last"]
    if last and last["outcome"] and last["ended_at"]:
        why = f": {one_line(last['reason'], 80)}" if last.get("reason") else ""
        told.append(f"{one_line(last['outcome'])} {ago(last['ended_at'], now)}{why}")
    if agent.get("unread"):
        told.append(f"{agent['unread']} unread")
    if agent.get("open_tasks"):
        told.append(counted(agent["open_tasks"], "open task"))
    return Span(", ".join(told), "red" if last and last["outcome"] in ("failed", "killed") else "dim")
