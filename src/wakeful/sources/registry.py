"""The sources that an agent declares: one line here for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wakeful.core.agents import Agent
from wakeful.core.snapshots import is_snapshot, read_snapshot
from wakeful.sources.board import NAME as BOARD
from wakeful.sources.board import Reading
from wakeful.sources.directory import NAME as INBOX
from wakeful.sources.directory import Directory
from wakeful.sources.protocol import Declared, Hints, Source
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


def declared(agents: Iterable[Agent], around: Around) -> list[Declared]:
    """Each list once for each address: replicas share an inbox, and one that is named twice is one."""
    found: dict[tuple[str, str], Declared] = {}
    for agent in agents:
        for source in _of(agent, around) if agent.enabled else ():
            found.setdefault((source.agent, source.source), source)
    return list(found.values())


def _of(agent: Agent, around: Around) -> Iterable[Declared]:
    if agent.inbox is not None:
        folder = around.root.absolute() / agent.inbox
        make = partial(Directory, agent.address, folder, around.hints)
        yield Declared(source=INBOX, agent=agent.address, made_of=(folder,), make=make)
    if agent.board is not None:
        board = around.root.absolute() / agent.board
        look = partial(Reading, name=board.name, address=agent.address)
        make = partial(Directory, agent.address, board.parent, around.hints, name=BOARD, look=look)
        yield Declared(source=BOARD, agent=agent.address, made_of=(board,), make=make)
    for written in agent.events:
        if is_snapshot(written):
            yield _snapshot(agent, written, around)


def _snapshot(agent: Agent, written: str, around: Around) -> Declared:
    address = read_snapshot(written)
    # Of its environment the names: our own variables are those that we began with.
    made_of = (address, agent.name, agent.environment, agent.secrets)

    def make() -> Source:
        hide = around.hide(agent)
        if address.program is not None:
            environment = around.environment(agent)
            return ProgramSnapshot(agent.address, address, root=around.root, environment=environment, hide=hide)
        return UrlSnapshot(agent.address, address, variables=around.variables, hide=hide)

    return Declared(source=address.name, agent=agent.address, made_of=made_of, make=make)
