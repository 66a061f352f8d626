"""Names that would mean two agents: an address, an agent and a replica never share one.

A tmux session that two agents share is a warning: they would type into the same pane while the other is at work. So are
quiet hours that never end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wakeful.core.agents import Agent, Runner
from wakeful.core.names import LONGEST_NAME
from wakeful.core.windows import never_outside
from wakeful.core.wording import quoted
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.tree import Block


def check_clashes(blocks: list[Block], replicas: Callable[[Block], int], notes: Notes, most: int) -> None:
    unique = {block.name.text: block for block in blocks}
    counts = {name: replicas(block) for name, block in unique.items()}
    total = sum(max(count, 1) for count in counts.values())
    if total > most:
        last = blocks[-1].name
        notes.error(last, f"the fleet would have {total} agents", f"keep it to {most}, or split the fleet")
        return
    for name, count in counts.items():
        block = unique[name]
        if len(f"{name}-{count}") > LONGEST_NAME and count:
            notes.error(block.name, f"the replicas of {name} have names that are too long", "shorten its name")
        for number in range(1, count + 1):
            other = unique.get(f"{name}-{number}")
            if other is None:
                continue
            later, earlier = (other, block) if other.name.line > block.name.line else (block, other)
            notes.error(
                later.name,
                f"{other.name.text} is an agent and also replica {number} of {name} (line {earlier.name.line})",
                "rename one of them",
            )


def warn_sessions(blocks: list[Block], agents: Sequence[Agent], notes: Notes) -> None:
    """Said once of each session, at the last agent that would share it."""
    sharing: dict[str, list[Agent]] = {}
    for agent in agents:
        if agent.runner is Runner.tmux and agent.target and agent.enabled:
            sharing.setdefault(agent.target, []).append(agent)
    places = {block.name.text: block for block in blocks}
    for session, crew in sharing.items():
        if len(crew) < 2:
            continue
        block = places[crew[-1].address]
        more = f" and {len(crew) - 2} more" if len(crew) > 2 else ""
        names = f"{crew[0].name}{',' if more else ' and'} {crew[1].name}{more}"
        one = len({agent.address for agent in crew}) == 1
        notes.warn(
            block.entries["TMUX"].value if "TMUX" in block.entries else block.name,
            f"{names} share the tmux session {quoted(session)}: each would type while another is at work",
            "remove REPLICAS, or declare agents with a session each" if one else "give each a session of its own",
        )


def warn_silence(blocks: list[Block], agents: Sequence[Agent], notes: Notes) -> None:
    """Said once of an agent, however many replicas it has."""
    silent = {agent.address: agent for agent in agents if agent.enabled and never_outside(agent.limits.quiet_hours)}
    for block in blocks:
        if block.name.text in silent:
            notes.warn(
                block.entries["QUIET-HOURS"].value if "QUIET-HOURS" in block.entries else block.name,
                f"the quiet hours of {block.name.text} leave no minute of the week: nothing of it begins by itself",
                "leave it an hour, or say ENABLED: no",
            )
