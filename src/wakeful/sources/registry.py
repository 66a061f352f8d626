"""The sources that an agent declares: one line here for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wakeful.core.agents import Agent
from wakeful.core.snapshots import is_snapshot, read_snapshot
from wakeful.sources.directory import Directory
from wakeful.sources.protocol import Hints, Source
from wakeful.sources.snapshot import ProgramSnapshot, UrlSnapshot, as_it_is


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is the same for the sources of a fleet: the folder of its file, who hears of changes, our own variables,
    what of them a program of an agent is given, and what must not be seen in anything that is told of it."""

    root: Path
    hints: Hints
    variables: Mapping[str, str]
    environment: Callable[[Agent], Mapping[str, str]]
    hide: Callable[[Agent], Callable[[str], str]] = lambda agent: as_it_is


def declared(agents: Iterable[Agent], around: Around) -> list[Source]:
    """Each list once for each address: replicas share an inbox, and one that is named twice is one."""
    found: dict[tuple[str, str], Source] = {}
    for agent in agents:
        for source in _of(agent, around) if agent.enabled else ():
            found.setdefault((source.agent, source.name), source)
    return list(found.values())


def _of(agent: Agent, around: Around) -> Iterable[Source]:
    if agent.inbox is not None:
        yield Directory(agent.address, around.root.absolute() / agent.inbox, around.hints)
    for written in agent.events:
        if is_snapshot(written):
            yield _snapshot(agent, written, around)


def _snapshot(agent: Agent, written: str, around: Around) -> Source:
    address = read_snapshot(written)
    hide = around.hide(agent)
    if address.program is not None:
        environment = around.environment(agent)
        return ProgramSnapshot(agent.address, address, root=around.root, environment=environment, hide=hide)
    return UrlSnapshot(agent.address, address, variables=around.variables, hide=hide)
